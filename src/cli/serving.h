/*
 * cli/serving.h - a process that stays, and the clients that it serves (docs/serve.md).
 *
 *   serve.c          the command, and the end of all
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

#include "cli/rpc.h"
#include "cli/session.h"

struct serve_blob;
struct serve_client;
struct serve_job;
struct serve_repl;
struct serve_model;

/* Of the whole process. */
struct serve {
	struct session *session;     /* lent: settings, engine, sandbox */
	struct serve_client *client; /* owned; NULL: it is gone */
	struct serve_model *model;   /* owned: clients as a provider; NULL: nobody asked yet */
	json_t *providers;     /* owned: of single jobs: what they are made of -> their name */
	struct rlmd_error end; /* of the connection */
	bool over;             /* the client is to be freed, and the process ends */
};

struct serve_client {
	struct serve *serve;                    /* lent */
	struct rpc *rpc;                        /* owned */
	bool known;                             /* it said `initialize` */
	bool drains;                            /* no new work is begun */
	int64_t last_job, last_repl, last_blob; /* of the numbers in their names */
	LIST_HEAD(, serve_job) jobs;            /* owned: those that have not ended */
	LIST_HEAD(, serve_repl) repls;          /* owned */
	LIST_HEAD(, serve_blob) blobs;          /* owned */
};
