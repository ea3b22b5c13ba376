/*
 * batch/node.h - this process at a store, beside others, on this machine or elsewhere.
 *
 * It is known there by its name. As it comes, it takes jobs and money from those of its machine
 * that are dead, so that nobody waits for their leases.
 *
 * A name has the machine's, for people, and what tells this process from all others that there were
 * and will be: its id, when it began, and of what namespace of processes and what start of which
 * machine that is. So who starts again after a kill can prove that its predecessor is dead, and
 * need not wait for that one's leases. Of other machines nothing is known.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>

struct event_base;
struct node;
struct store;

struct node_options {
	const char *store; /* lent: an address as store_open() has it */
	bool existing;     /* none is made */
	bool waits;        /* ... but at a server: whoever loads the first batch may come later */
	/* Once: the store is there, or `err` says why not. The node may be freed. */
	void (*opened)(void *owner, const struct rlmd_error *err);
	/* Others may have written, or the server is back; any number of times after opened(). */
	void (*changed)(void *owner);
	/* Warns the user; lent. */
	void (*warn)(void *owner, const char *text);
	void *owner;
};

/* RLMD_ERROR_USAGE where the store's address is none. Nothing is told before it returns. */
struct node *node_new(struct event_base *, const struct node_options *, struct rlmd_error *);
void node_free(struct node *); /* nothing is told any more; NULL is fine */

struct store *node_store(const struct node *); /* lent */
const char *node_name(const struct node *);    /* lent */

/* Whether the store is not open yet, the server cannot be reached now, or another process holds the
 * store locked: what it is asked for waits until that is over. */
bool node_is_away(const struct node *);

/* --- names ---------------------------------------------------------------------------- */

/* Room for node_name_tell(). */
enum { NODE_TOLD_SIZE = 128 };

enum { NODE_NAME_SIZE = 256 };

/* The name of this process: "host:pid:...". */
void node_name_get(char ret[NODE_NAME_SIZE]);

/* The name for people: "process 4242 on build-7". */
void node_name_tell(struct rlmd_text name, char ret[NODE_TOLD_SIZE]);

/* Whether a process of this machine had the name, and is there no more. False: it is, or nobody can
 * know. */
bool node_name_is_dead(struct rlmd_text name);
