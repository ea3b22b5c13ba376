/*
 * pool/worker.h - one run's REPL: a confined process and what it says.
 *
 * A worker serves one run and dies with it. It is the only place that sees both
 * a process and a protocol. Messages of a worker are checked here against the table of
 * wire/messages.def; a violation kills it, and the owner hears WORKER_GONE like of any other death.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/answer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memfile.h"
#include "base/text.h"
#include "sandbox/sandbox.h"

enum { WORKER_INPUTS_MAX = 48 }; /* inputs of one worker; the descriptors it may hold are few */

struct worker_input {
	const char *name;     /* of the variable; copied */
	struct memfile *file; /* sealed; referenced */
	struct memfile
		*index; /* sealed; referenced: the files in it (source/file_index.h), or NULL */
	enum text_form form; /* worker_start() chooses it */
};

struct worker_options {
	const struct worker_input *inputs; /* lent during worker_start */
	size_t input_count;
	struct rlmd_text task;      /* lent likewise: of the run; any bytes */
	int64_t max_output;         /* characters of one block's output */
	const struct log *log;      /* lent for the worker's life: its run's; NULL: nobody hears */
	struct rlmd_text functions; /* lent likewise: as `start` tells them; empty: none */
	const char *const *function_names; /* theirs, up to a NULL; lent while it lives; or NULL */
};

enum worker_call_kind {
	WORKER_LLM_QUERY,
	WORKER_RLM_QUERY,
	WORKER_RUN_PLAN,
	WORKER_BUDGET,
	WORKER_FUNCTION
};

/* A part of an input of the caller's, by the files that it is made of. */
struct worker_subset {
	size_t input;         /* its index among the caller's */
	const size_t *ranges; /* pairs: the first file, and how many; NULL: it is none */
	size_t count;         /* of the pairs */
};

/* A call out of the worker's code; everything in it is lent to the callback. */
struct worker_call {
	enum worker_call_kind kind;
	int64_t id;
	size_t count; /* of results of the answer; of a budget 1, and 0 here */
	const struct rlmd_text
		*texts; /* prompts, tasks, or one plan or the arguments as JSON: any bytes */
	struct memfile *const *files; /* where each of these lies; NULL: not in one. Or NULL */
	size_t text_count;            /* one for each result, but where `turns` says otherwise */
	const size_t *turns; /* prompts only; NULL, or how many texts are the conversation of each
				result, the user's and the model's words in turn: odd numbers */
	struct memfile *const *contexts;     /* tasks only: NULL means the caller's own */
	const struct worker_subset *subsets; /* tasks only: of each, before its context; or NULL */
	const char *const *models;           /* tasks only: of each; NULL: the one for sub-calls */
	const char *model;                   /* prompts only: likewise, of all */
	struct rlmd_text system;             /* likewise: what it is told first; empty: nothing */
	int64_t max_tokens;                  /* likewise: of each answer; 0: as usual */
	int temperature;                     /* likewise: thousandths; -1: as usual */
	const char *function;                /* a function only: its name, one of the worker's */
};

/* The end of one block; lent to the callback. */
struct worker_block {
	struct rlmd_text stdout_text, stderr_text;
	bool failed;
	struct rlmd_text error; /* the traceback, where `failed` */
	const char *missing;    /* the module that its code lacked, as the worker has it: anything;
				   or NULL */
	enum answer_source final; /* ANSWER_MISSING: it gave none */
	struct rlmd_text answer;  /* where it did */
	bool interrupted;         /* it ran out of its time and was interrupted */
	int64_t duration_ms;      /* without the time it waited for its calls */
};

enum worker_event_kind {
	WORKER_READY, /* confined, inputs in place */
	WORKER_CALL,  /* answer with worker_reply(), now or later */
	WORKER_DONE,  /* the block is over */
	WORKER_VALUE, /* what worker_get() asked for */
	WORKER_GONE,  /* dead, or never lived; calls are void; only worker_free() may follow */
};

enum worker_exit {
	WORKER_EXIT_DIED,      /* by itself, or killed for what it did or used */
	WORKER_EXIT_NO_MEMORY, /* its inputs did not fit in the memory that it may use */
	WORKER_EXIT_LATE,      /* killed: its block, or rendering a variable, did not end */
};

struct worker_event {
	enum worker_event_kind kind;
	const struct worker_call *call;   /* WORKER_CALL */
	const struct worker_block *block; /* WORKER_DONE */
	bool found;                       /* WORKER_VALUE */
	struct rlmd_text value;           /* WORKER_VALUE, where found */
	bool expression;                  /* WORKER_VALUE: no variable, but Python that uses some */
	struct rlmd_text variables;       /* WORKER_VALUE: what exists, a line each */
	const struct rlmd_error *error; /* WORKER_GONE: RLMD_ERROR_SANDBOX before it was ready (the
				      walls failed), RLMD_ERROR_INPUT where its inputs did not
				      fit, RLMD_ERROR_WORKER after */
	enum worker_exit exit;          /* WORKER_GONE: what kind of end that was */
};

typedef void worker_event_fn(void *owner, const struct worker_event *);

struct worker;

/* Never calls back before it returns (so all failures come as WORKER_GONE). */
struct worker *worker_start(struct event_base *, struct rlmd_sandbox *,
			    const struct worker_options *, worker_event_fn *, void *owner);
void worker_free(struct worker *); /* NULL is fine; kills; may be called from its callback */

/* Runs a block; the worker must be idle. Ends with WORKER_DONE or WORKER_GONE: after
 * `timeout_ms` of its own time (waiting for its calls does not count) it is interrupted,
 * and killed where that does not help within a grace of one second. */
void worker_exec(struct worker *, int64_t block, struct rlmd_text code, int64_t timeout_ms);

/* Interrupts a block, or a variable's rendering, as the end of its time would; an idle one is fine.
 */
void worker_interrupt(struct worker *);

/* Asks for a variable by its name, or whether a text is an expression of some ("" only lists);
 * answered by WORKER_VALUE. The same timeout rules hold, for rendering runs the user's __str__. */
void worker_get(struct worker *, const char *name, int64_t timeout_ms);

/* One result of an answer to a call; lent during worker_reply(). */
struct worker_result {
	bool failed;
	struct rlmd_text value;    /* where not failed */
	char **owned;              /* lent, or NULL: whose the value is, UTF-8 then; a long one is
				      taken from there and not copied, and NULL is left */
	enum rlmd_error_kind kind; /* where failed */
	const char *message;
	const char *degraded; /* why the value is less than what was asked for; NULL: it is not */
};

void worker_reply(struct worker *, int64_t id, const struct worker_result *results, size_t count);
