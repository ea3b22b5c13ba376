/*
 *   STARTS -> IDLE    on_ready             the worker has its inputs
 *   IDLE -> BUSY      rlmd_repl_execute    a block
 *   IDLE -> BUSY      rlmd_repl_get        a variable
 *   BUSY -> IDLE      on_done              the block is over
 *   BUSY -> IDLE      on_value             the variable was rendered
 *   any -> GONE       on_gone              the worker is dead
 *
 * Every hook is called as the last thing done, for it may free the session.
 */
#include <rlmd/repl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "engine/engine.h"
#include "engine/inputs.h"
#include "pool/worker.h"

enum { OUTPUT_MAX = 50000, TIMEOUT_MS = 30000 };

enum repl_state {
	REPL_STARTS,
	REPL_IDLE,
	REPL_BUSY,
	REPL_GONE,
};

struct rlmd_repl {
	struct rlmd_engine *engine; /* lent */
	struct worker *worker;      /* owned; NULL: it is gone */
	struct context context;     /* owned: references */
	struct rlmd_repl_hooks hooks;
	enum repl_state state;
	int64_t blocks; /* so far */
	LIST_ENTRY(rlmd_repl) entry;
};

static void on_ready(struct rlmd_repl *repl)
{
	repl->state = REPL_IDLE;
	if (repl->hooks.ready)
		repl->hooks.ready(repl->hooks.owner, repl);
}

static void on_done(struct rlmd_repl *repl, const struct worker_block *done)
{
	struct rlmd_repl_block block = {
		.size = sizeof block,
		.standard_output = done->stdout_text,
		.standard_error = done->stderr_text,
		.failed = done->failed,
		.error = done->failed ? done->error : (struct rlmd_text){"", 0},
		.interrupted = done->interrupted,
		.duration_ms = done->duration_ms,
	};

	repl->state = REPL_IDLE;
	if (repl->hooks.done)
		repl->hooks.done(repl->hooks.owner, repl, &block);
}

static void on_value(struct rlmd_repl *repl, const struct worker_event *event)
{
	struct rlmd_text value = event->found ? event->value : (struct rlmd_text){"", 0};

	repl->state = REPL_IDLE;
	if (repl->hooks.value)
		repl->hooks.value(repl->hooks.owner, repl, event->found, value, event->variables);
}

static void on_gone(struct rlmd_repl *repl, const struct rlmd_error *error)
{
	struct rlmd_error why = *error;

	worker_free(take_pointer(&repl->worker));
	repl->state = REPL_GONE;
	if (repl->hooks.gone)
		repl->hooks.gone(repl->hooks.owner, repl, &why);
}

/* Calls of its code are refused: no run serves them. */
static void refuse(struct rlmd_repl *repl, const struct worker_call *call)
{
	size_t count = call->count ? call->count : 1;
	auto_free struct worker_result *results = xcalloc(count, sizeof *results);

	for (size_t i = 0; i < count; i++)
		results[i] = (struct worker_result){.failed = true,
						    .kind = RLMD_ERROR_USAGE,
						    .message = "this session has no model"};
	worker_reply(repl->worker, call->id, results, count);
}

static void on_worker(void *owner, const struct worker_event *event)
{
	struct rlmd_repl *repl = owner;

	switch (event->kind) {
	case WORKER_READY:
		on_ready(repl);
		return;
	case WORKER_CALL:
		refuse(repl, event->call);
		return;
	case WORKER_DONE:
		on_done(repl, event->block);
		return;
	case WORKER_VALUE:
		on_value(repl, event);
		return;
	case WORKER_GONE:
		on_gone(repl, event->error);
		return;
	}
}

static void start_worker(struct rlmd_repl *repl, struct rlmd_sandbox *sandbox, int64_t max_output)
{
	struct worker_input inputs[WORKER_INPUTS_MAX];
	struct worker_options options = {
		.inputs = inputs,
		.input_count = inputs_of(&repl->context, inputs),
		.max_output = max_output ? max_output : OUTPUT_MAX,
		.log = &repl->engine->log,
	};

	repl->worker = worker_start(repl->engine->base, sandbox, &options, on_worker, repl);
}

static bool read_options(const struct rlmd_repl_options *given, struct rlmd_repl_options *options,
			 struct rlmd_repl_hooks *hooks, struct rlmd_error *err)
{
	if (!abi_copy_in(options, sizeof *options, given, sizeof *options, "rlmd_repl_options",
			 err) ||
	    !abi_copy_in(hooks, sizeof *hooks, options->hooks, sizeof *hooks, "rlmd_repl_hooks",
			 err))
		return false;
	return options->max_output >= 0 ||
	       error_set(err, RLMD_ERROR_USAGE, "max_output cannot be negative");
}

struct rlmd_repl *rlmd_repl_start(struct rlmd_engine *engine, struct rlmd_sandbox *sandbox,
				  const struct rlmd_repl_options *given, struct rlmd_error *err)
{
	struct rlmd_repl_options options;
	struct rlmd_repl_hooks hooks;
	struct rlmd_repl *repl;

	if (!engine) {
		error_set(err, RLMD_ERROR_USAGE, "a session needs an engine");
		return NULL;
	}
	if (!engine_is_ours(engine, err))
		return NULL;
	if (!read_options(given, &options, &hooks, err))
		return NULL;
	if (!sandbox)
		sandbox = rlmd_engine_sandbox(engine, NULL, err);
	if (!sandbox)
		return NULL;
	repl = xcalloc(1, sizeof *repl);
	repl->engine = engine;
	repl->hooks = hooks;
	if (options.context)
		context_share(&repl->context, context_of(options.context));
	LIST_INSERT_HEAD(&engine->repls, repl, entry);
	start_worker(repl, sandbox, options.max_output);
	return repl;
}

static bool is_idle(const struct rlmd_repl *repl, struct rlmd_error *err)
{
	if (!repl)
		return error_set(err, RLMD_ERROR_USAGE, "there is no session");
	if (!engine_is_ours(repl->engine, err))
		return false;
	switch (repl->state) {
	case REPL_STARTS:
		return error_set(err, RLMD_ERROR_USAGE, "the session is not ready yet");
	case REPL_IDLE:
		return true;
	case REPL_BUSY:
		return error_set(err, RLMD_ERROR_USAGE, "the session is at work: wait for its end");
	case REPL_GONE:
		return error_set(err, RLMD_ERROR_USAGE, "the session is gone: start another one");
	}
	return false;
}

bool rlmd_repl_execute(struct rlmd_repl *repl, struct rlmd_text code, int64_t timeout_ms,
		       struct rlmd_error *err)
{
	if (!is_idle(repl, err))
		return false;
	if (!code.bytes && code.size)
		return error_set(err, RLMD_ERROR_USAGE, "a block of %zu bytes is NULL", code.size);
	repl->state = REPL_BUSY;
	worker_exec(repl->worker, ++repl->blocks, code, timeout_ms > 0 ? timeout_ms : TIMEOUT_MS);
	return true;
}

/* ASCII, or any character beyond it: whether Python takes it for a name is Python's business. */
static bool is_name(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	struct rlmd_text text = rlmd_text_of(name);

	for (size_t i = 0; i < text.size; i++) {
		unsigned char c = (unsigned char)text.bytes[i];
		bool digit = c >= '0' && c <= '9';

		if (c < 0x80 && !strchr(letters, c) && (!digit || !i))
			return false;
	}
	return text.size && text_is_utf8(text);
}

bool rlmd_repl_get(struct rlmd_repl *repl, const char *name, int64_t timeout_ms,
		   struct rlmd_error *err)
{
	if (!is_idle(repl, err))
		return false;
	if (name && !is_name(name))
		return error_set(err, RLMD_ERROR_USAGE, "'%.100s' is no variable's name", name);
	repl->state = REPL_BUSY;
	worker_get(repl->worker, name ? name : "", timeout_ms > 0 ? timeout_ms : TIMEOUT_MS);
	return true;
}

void rlmd_repl_free(struct rlmd_repl *repl)
{
	if (!repl)
		return;
	engine_to_free(repl->engine);
	LIST_REMOVE(repl, entry);
	worker_free(repl->worker);
	context_done(&repl->context);
	free(repl);
}
