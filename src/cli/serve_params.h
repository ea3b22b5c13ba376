/*
 * cli/serve_params.h - what a job and a session are given: options, contexts and tools.
 */
#pragma once

#include <rlmd/context.h>
#include <rlmd/function.h>
#include <rlmd/sandbox.h>

#include "cli/serving.h"

struct serve_tool;

/* Never called before serve_params_load() returns. `context` is lent; NULL: `err` says why. */
typedef void serve_loaded_fn(void *owner, struct rlmd_context *context,
			     const struct rlmd_error *err);

/* Embed it. Zero may be freed. */
struct serve_params {
	struct serve_client *client; /* lent */
	const char *kind, *name;     /* "job" or "session", static, and its name, lent */
	const char *provider;        /* lent: its registered name; NULL: no model is asked */
	const struct rlmd_job *job;  /* lent: that asks; NULL: it has not begun, or none does */
	struct config config;        /* owned: the server's settings, and the options over them */
	json_t *contexts;            /* referenced, until its texts are in memory files */
	size_t text_bytes;           /* of those texts */
	char **sources;              /* owned: of the contexts, as for rlmd_context_load() */
	size_t source_count;
	int *fds; /* owned: memory files of the texts among them */
	size_t fd_count;
	struct serve_blob **blobs; /* owned: in use, up to a NULL */
	size_t blob_count;
	struct rlmd_context *context;         /* owned, once it is there */
	struct rlmd_context_loading *loading; /* owned */
	serve_loaded_fn *loaded;
	void *owner;
	struct serve_tool *tools;        /* owned */
	struct rlmd_function *functions; /* owned: the same, for the library */
	size_t tool_count;
	LIST_ENTRY(serve_params) entry; /* of the client's works */
};

/* Options for a command, contexts and tools. RLMD_ERROR_USAGE. */
bool serve_params_read(struct serve_params *, struct serve_client *, enum command_id,
		       const json_t *params, struct rlmd_error *);
void serve_params_done(struct serve_params *);

/* Has the texts among the contexts in memory files; once more is fine. */
bool serve_params_open_texts(struct serve_params *, struct rlmd_error *);

/* Does that, and loads all. True, and no call follows: the context is there already, or there is
 * none to load. Else the call, or false with an error. */
bool serve_params_load(struct serve_params *, serve_loaded_fn *, void *owner, bool *ret_waits,
		       struct rlmd_error *);

/* The one that the options ask for. Starts it where none is there, which blocks for some tenths of
 * a second. */
struct rlmd_sandbox *serve_params_sandbox(const struct serve_params *, struct rlmd_error *);

/* Where the file or directory is, new, that the client calls so; relative to where the server is,
 * or, of a client that is not trusted, to its root. RLMD_ERROR_INPUT: it may not name that one. */
char *serve_params_path(const struct serve_client *, const char *path, struct rlmd_error *);
