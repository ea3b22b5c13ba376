/*
 * cli/serving.h - a process that stays, and the clients that it serves (docs/serve.md).
 *
 *   serve.c          the command, and the end of all
 *   serve_socket.c   where clients come
 *   serve_tenants.c  whose they are: keys, walls, shares, caps
 *   serve_client.c   one client: its methods
 *   serve_params.c   what jobs and sessions are given: options, contexts, tools
 *   serve_job.c      a job: its start, its events, its end
 *   serve_session.c  a session
 *   serve_blob.c     texts that come in pieces
 *   serve_model.c    the client as a provider
 */
#pragma once

#include <jansson.h>
#include <rlmd/engine.h>
#include <rlmd/provider.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "batch/concurrency.h"
#include "cli/rpc.h"
#include "cli/session.h"

/* Bytes of one blob; and of all blobs and texts of a client that is not trusted. */
#define SERVE_HELD_MAX ((size_t)4 << 30)

struct serve_blob;
struct serve_client;
struct serve_job;
struct serve_repl;
struct serve_model;
struct serve_params;
struct serve_socket;
struct serve_tenants;
struct rlmd_group;
struct rlmd_span_exporter;
struct tenancy;

/* Of the whole process. */
struct serve {
	struct session *session;           /* lent: settings, engine, sandbox */
	LIST_HEAD(, serve_client) clients; /* owned */
	size_t client_count;
	struct serve_socket *socket; /* owned: where more of them come; or NULL */
	struct serve_tenants
		*tenants;          /* owned; NULL: rlmd.conf has none, or one client is served */
	struct serve_model *model; /* owned: clients as a provider; NULL: nobody asked yet */
	json_t *providers;         /* owned: of single jobs: what they are made of -> their name */
	struct concurrency jobs;   /* how many of them may be at work */
	int64_t at_work;           /* jobs */
	struct timer *room;        /* owned: looks for memory again, while jobs wait */
	bool confined;             /* clients name neither addresses nor files of the server's */
	struct rlmd_span_exporter *spans; /* owned: gets those of jobs; or NULL */
	struct rlmd_error end;            /* of the connection of a single client */
	bool over;                        /* the process ends */
};

struct serve_client {
	struct serve *serve;                    /* lent */
	struct rpc *rpc;                        /* owned */
	int socket;                             /* owned; -1: its descriptors are lent */
	uid_t uid;                              /* of the user at the other end of the socket */
	const struct tenancy *tenancy;          /* lent: whose it is; or NULL */
	struct rlmd_group *group;               /* owned: its turns beside others; or NULL */
	bool known;                             /* it said `initialize` */
	struct timer *greeting;                 /* owned: until when it has to; or NULL */
	bool drains;                            /* no new work is begun */
	int64_t last_job, last_repl, last_blob; /* of the numbers in their names */
	size_t held_bytes;                      /* of all its blobs, and texts of its works */
	LIST_HEAD(, serve_job) jobs;            /* owned: those that have not ended */
	TAILQ_HEAD(, serve_job) line;           /* lent: those of them that wait for their turn */
	int64_t at_work;                        /* the others */
	LIST_HEAD(, serve_repl) repls;          /* owned */
	LIST_HEAD(, serve_blob) blobs;          /* owned */
	LIST_HEAD(, serve_params) works;        /* lent: of all its jobs and sessions */
	LIST_ENTRY(serve_client) entry;
};

/* Its connection is over, for that reason or for none: it is gone then. */
void serve_lose(struct serve_client *, const struct rlmd_error *why);
