/*
 * rlmd/repl.h - a Python session behind walls, without a model.
 *
 * The inputs of a context are its variables. It runs blocks of code one after the
 * other and keeps their definitions. Its code may call functions of the host's
 * (rlmd/function.h), and models through a job (`calls`). No callback comes before a
 * function here has returned.
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
struct rlmd_function;
struct rlmd_job;
struct rlmd_job_options;
struct rlmd_repl;

/* The end of a block; lent until the hook returns. */
struct rlmd_repl_block {
	size_t size;
	struct rlmd_text standard_output, standard_error;
	bool failed;
	struct rlmd_text error; /* the traceback, if it failed */
	bool interrupted;       /* its time was over, or the host asked for that */
	int64_t duration_ms;
};

/* Each may be NULL. rlmd_repl_free() may be called from inside any of them. */
struct rlmd_repl_hooks {
	size_t size;
	void (*ready)(void *owner, struct rlmd_repl *); /* once, before all others */
	void (*done)(void *owner, struct rlmd_repl *, const struct rlmd_repl_block *);

	/* The answer to rlmd_repl_get(). `variables` lists all, one a line: name, type, and the
	 * beginning of the value. */
	void (*value)(void *owner, struct rlmd_repl *, bool found, struct rlmd_text value,
		      struct rlmd_text variables);

	/* The answer to rlmd_repl_get_json(). `is_json`: the value is JSON; else it has none, and
	 * is told as text. */
	void (*json)(void *owner, struct rlmd_repl *, bool found, bool is_json,
		     struct rlmd_text value);

	/* The worker has died: RLMD_ERROR_SANDBOX before it was ready, RLMD_ERROR_INPUT if the
	 * inputs did not fit, RLMD_ERROR_WORKER later. The last callback. */
	void (*gone)(void *owner, struct rlmd_repl *, const struct rlmd_error *);
	void *owner; /* lent until it is freed */

	/* The running block has printed this, on sys.stderr or sys.stdout: whole lines, and parts
	 * of lines where it flushes. In all `max_output` characters of each; done() has head and
	 * tail of longer output. */
	void (*printed)(void *owner, struct rlmd_repl *, bool is_error, struct rlmd_text text);
};

#define RLMD_REPL_HOOKS_INIT RLMD_INIT(struct rlmd_repl_hooks)

struct rlmd_repl_options {
	size_t size;
	const struct rlmd_context *context;    /* referenced; NULL: no inputs */
	int64_t max_output;                    /* characters of one block's output; 0: 50,000 */
	const struct rlmd_repl_hooks *hooks;   /* NULL: none */
	const struct rlmd_function *functions; /* the host's, for code to call; copied */
	size_t function_count;

	/* Options of a job (rlmd/job.h) that serves the model calls and sub-runs of the code: its
	 * provider and models, its limits, of which time runs from here on, its hooks. It has no
	 * task, plan, context or functions of its own. Copied. NULL: model calls fail. */
	const struct rlmd_job_options *calls;
};

#define RLMD_REPL_OPTIONS_INIT RLMD_INIT(struct rlmd_repl_options)

/* `sandbox` NULL: the engine's default one, which is started if need be (errors as for
 * rlmd_engine_sandbox()). Free the session with rlmd_repl_free(), before the engine. */
RLMD_API struct rlmd_repl *rlmd_repl_start(struct rlmd_engine *, struct rlmd_sandbox *,
					   const struct rlmd_repl_options *, struct rlmd_error *);

/*
 * Runs a block; done() or gone() follows. After `timeout_ms` the block is interrupted, and a second
 * later the worker is killed. RLMD_ERROR_USAGE if the session is not idle.
 */
RLMD_API bool rlmd_repl_execute(struct rlmd_repl *, struct rlmd_text code, int64_t timeout_ms,
				struct rlmd_error *);

/* Asks for a variable as text (NULL: for the list of variables); value() or gone() follows. Time
 * and errors are those of rlmd_repl_execute(), and RLMD_ERROR_USAGE for a bad name. */
RLMD_API bool rlmd_repl_get(struct rlmd_repl *, const char *name, int64_t timeout_ms,
			    struct rlmd_error *);

/* Asks for a variable as JSON; json() or gone() follows. Else as rlmd_repl_get(). */
RLMD_API bool rlmd_repl_get_json(struct rlmd_repl *, const char *name, int64_t timeout_ms,
				 struct rlmd_error *);

/* Makes a variable of JSON, as a block that assigns it would; done() or gone() follows.
 * RLMD_ERROR_USAGE also for a text that is no JSON. */
RLMD_API bool rlmd_repl_set_json(struct rlmd_repl *, const char *name, struct rlmd_text json,
				 int64_t timeout_ms, struct rlmd_error *);

/* Interrupts the block that runs, as the end of its time would: KeyboardInterrupt in Python, and a
 * second later the end of the worker. NULL and an idle session are fine. */
RLMD_API void rlmd_repl_interrupt(struct rlmd_repl *);

/*
 * The job of `calls`, for rlmd_job_get_status(), rlmd_job_get_left() and rlmd_job_each_activity();
 * NULL: there is none. Lent until the session is freed, with which it goes. It ends before, and its
 * hook `end` is called, only where a hook of it interrupts or cancels it; later calls of the code
 * fail. Its hooks must not free it.
 */
RLMD_API const struct rlmd_job *rlmd_repl_job(const struct rlmd_repl *);

/* Ends the worker; no callback follows. NULL is fine. */
RLMD_API void rlmd_repl_free(struct rlmd_repl *);

#ifdef __cplusplus
}
#endif
