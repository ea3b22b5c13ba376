/*
 * batch/node.h - this process at a store, beside others, on this machine or elsewhere.
 *
 * It is known there by its name (batch/node_name.h). As it comes, it takes jobs and money from
 * those of its machine that are dead, so that nobody waits for their leases.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>

struct event_base;
struct node;
struct store;

struct node_options {
	const char *store; /* lent: a place as store_open() has it */
	/* Once: the store is there, or `err` says why not. The node may be freed. */
	void (*opened)(void *owner, const struct rlmd_error *err);
	/* Others may have written, or the server is back; any number of times after opened(). */
	void (*changed)(void *owner);
	/* What its user should know; lent. */
	void (*warn)(void *owner, const char *text);
	void *owner;
};

/* RLMD_ERROR_USAGE where the store's place is none. Nothing is told before it returns. */
struct node *node_new(struct event_base *, const struct node_options *, struct rlmd_error *);
void node_free(struct node *); /* nothing is told any more; NULL is fine */

struct store *node_store(const struct node *); /* lent */
const char *node_name(const struct node *);    /* lent */

/* Whether the server cannot be reached now: what it is asked for waits until it is back. */
bool node_is_away(const struct node *);
