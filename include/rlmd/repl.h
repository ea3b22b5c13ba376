/*
 * rlmd/repl.h - one worker by itself: a Python session behind walls, without a
 * model.
 *
 * It has the inputs of a context as variables, runs blocks of code one after
 * the other and keeps what they define. What its code asks of models is
 * answered with an error. Nothing calls back before a function here has
 * returned.
 */
#pragma once

#include <rlmd/engine.h>
#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_context;
struct rlmd_repl;

/* What a block did; lent until the hook returns. */
struct rlmd_repl_block {
	size_t size;
	struct rlmd_text standard_output, standard_error;
	bool failed;
	struct rlmd_text error; /* the traceback, where it failed */
	bool interrupted;       /* it ran out of its time */
	int64_t duration_ms;
};

/* Each may be NULL. rlmd_repl_free() may be called from inside any of them. */
struct rlmd_repl_hooks {
	size_t size;
	void (*ready)(void *owner, struct rlmd_repl *); /* its walls stand: once, first */
	void (*done)(void *owner, struct rlmd_repl *, const struct rlmd_repl_block *);

	/* What rlmd_repl_get() asked for. `variables` are those that there are, one a line:
	 * name, type, and the beginning of the value. */
	void (*value)(void *owner, struct rlmd_repl *, bool found, struct rlmd_text value,
		      struct rlmd_text variables);

	/* It has died, or never lived: RLMD_ERROR_SANDBOX before it was ready,
	 * RLMD_ERROR_INPUT where its inputs did not fit, RLMD_ERROR_WORKER after.
	 * Nothing follows. */
	void (*gone)(void *owner, struct rlmd_repl *, const struct rlmd_error *);
	void *owner; /* lent until it is freed */
};

struct rlmd_repl_options {
	size_t size;
	const struct rlmd_context *context;  /* referenced; NULL: no inputs */
	int64_t max_output;                  /* characters of one block's output; 0: 50,000 */
	const struct rlmd_repl_hooks *hooks; /* NULL: none */
};

/* Of the engine's sandbox; NULL: its default one, which is started for it if
 * need be (rlmd_engine_sandbox() has the errors). Freed with rlmd_repl_free(),
 * before the engine. */
RLMD_API struct rlmd_repl *rlmd_repl_start(struct rlmd_engine *, struct rlmd_sandbox *,
					   const struct rlmd_repl_options *, struct rlmd_error *);

/*
 * Runs a block: done() or gone() comes. After `timeout_ms` of its own it is
 * interrupted, and where that does not help within a second it is killed.
 * RLMD_ERROR_USAGE where the session is not idle: it is not ready yet, is at
 * work, or gone.
 */
RLMD_API bool rlmd_repl_execute(struct rlmd_repl *, struct rlmd_text code, int64_t timeout_ms,
				struct rlmd_error *);

/* Asks for a variable, as its text; NULL: only which there are. value() or
 * gone() comes. Limits and errors are those of rlmd_repl_execute(), and
 * RLMD_ERROR_USAGE for what is no name. */
RLMD_API bool rlmd_repl_get(struct rlmd_repl *, const char *name, int64_t timeout_ms,
			    struct rlmd_error *);

/* Ends the worker; no callback follows. NULL is fine. */
RLMD_API void rlmd_repl_free(struct rlmd_repl *);

#ifdef __cplusplus
}
#endif
