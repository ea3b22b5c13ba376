/*
 *   STARTS -> IDLE    on_ready             the worker has its inputs
 *   IDLE -> BUSY      rlmd_repl_execute    a block
 *   IDLE -> BUSY      rlmd_repl_set_json   a block that assigns
 *   IDLE -> BUSY      rlmd_repl_get        a variable
 *   IDLE -> READS     rlmd_repl_get_json   a block that makes JSON of a variable
 *   BUSY -> IDLE      on_done              the block is over
 *   READS -> IDLE     tell_json            there is JSON, or none: the variable was rendered
 *   BUSY -> IDLE      on_value             the variable was rendered
 *   any -> GONE       on_gone              the worker is dead
 *
 * Every hook is called as the last thing done, for it may free the session.
 */
#include <event2/buffer.h>
#include <jansson.h>
#include <rlmd/repl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "engine/engine.h"
#include "engine/function_call.h"
#include "engine/function_set.h"
#include "engine/inputs.h"
#include "engine/job.h"
#include "pool/worker.h"

enum {
	OUTPUT_MAX = 50000,
	TIMEOUT_MS = 30000,
	VALUE_DEPTH = 64,
	UTF8_MAX = 4,
	STREAMS = 2,
};

/* A function of ours, whose name is no host's: the worker calls it with printed text. */
#define OUTPUT_NAME "<output>" /* worker/functions.py */

enum repl_state {
	REPL_STARTS,
	REPL_IDLE,
	REPL_BUSY,
	REPL_READS,
	REPL_GONE,
};

/* A call of a function of the host's, until it is answered. */
struct repl_call {
	struct rlmd_repl *repl;              /* lent */
	struct rlmd_function_call *function; /* owned */
	int64_t id;                          /* the worker's */
	LIST_ENTRY(repl_call) entry;
};

struct rlmd_repl {
	struct rlmd_engine *engine;     /* lent */
	struct worker *worker;          /* owned; NULL: it is gone */
	struct context context;         /* owned: references */
	struct function_set *functions; /* owned: the host's */
	LIST_HEAD(, repl_call) calls;   /* owned: open ones */
	char *name;                     /* owned: of the variable that is read as JSON */
	int64_t timeout_ms;             /* likewise */
	struct rlmd_repl_hooks hooks;
	enum repl_state state;
	int64_t blocks;       /* so far */
	int64_t max_output;   /* characters */
	size_t printed;       /* bytes of the block's output that were told */
	struct rlmd_job *job; /* owned: serves model calls; NULL: they are refused */
	LIST_ENTRY(rlmd_repl) entry;
};

static void on_ready(struct rlmd_repl *repl)
{
	repl->state = REPL_IDLE;
	if (repl->hooks.ready)
		repl->hooks.ready(repl->hooks.owner, repl);
}

static void tell_json(struct rlmd_repl *repl, bool found, bool is_json, struct rlmd_text value)
{
	repl->state = REPL_IDLE;
	if (repl->hooks.json)
		repl->hooks.json(repl->hooks.owner, repl, found, is_json, value);
}

/* Where the variable is not there, or has no JSON, it is asked for as text. */
static void on_read(struct rlmd_repl *repl, const struct worker_block *done)
{
	if (done->failed || done->final == ANSWER_MISSING)
		worker_get(repl->worker, repl->name, repl->timeout_ms);
	else
		tell_json(repl, true, true, done->answer);
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

	if (repl->state == REPL_READS) {
		tell_json(repl, event->found, false, value);
		return;
	}
	repl->state = REPL_IDLE;
	if (repl->hooks.value)
		repl->hooks.value(repl->hooks.owner, repl, event->found, value, event->variables);
}

static void call_free(struct repl_call *call)
{
	LIST_REMOVE(call, entry);
	function_call_cancel(call->function);
	free(call);
}

static void cancel_calls(struct rlmd_repl *repl)
{
	while (!LIST_EMPTY(&repl->calls))
		call_free(LIST_FIRST(&repl->calls));
}

static void on_gone(struct rlmd_repl *repl, const struct rlmd_error *error)
{
	struct rlmd_error why = *error;

	cancel_calls(repl);
	if (repl->job)
		job_session_worker_lost(repl->job);
	worker_free(take_pointer(&repl->worker));
	repl->state = REPL_GONE;
	if (repl->hooks.gone)
		repl->hooks.gone(repl->hooks.owner, repl, &why);
}

static void on_answer(void *owner, struct rlmd_text json, const struct rlmd_error *err)
{
	struct repl_call *call = owner;
	const struct worker_result result = {
		.failed = err,
		.value = json,
		.kind = err ? err->kind : RLMD_ERROR_NONE,
		.message = err ? err->text : NULL,
	};

	call->function = NULL;
	worker_reply(call->repl->worker, call->id, &result, 1);
	call_free(call);
}

/* The worker calls only what there is. */
static void call_function(struct rlmd_repl *repl, const struct worker_call *asked)
{
	struct function *function = function_set_find(repl->functions, asked->function);
	struct repl_call *call = xcalloc(1, sizeof *call);

	call->repl = repl;
	call->id = asked->id;
	call->function = function_call_start(repl->engine->base, function, asked->texts[0],
					     on_answer, call);
	LIST_INSERT_HEAD(&repl->calls, call, entry);
}

/* A worker that says more than it may is not listened to. */
static bool may_print(struct rlmd_repl *repl, size_t size)
{
	repl->printed += size;
	return repl->state == REPL_BUSY &&
	       repl->printed <= (size_t)repl->max_output * UTF8_MAX * STREAMS;
}

static void tell_printed(struct rlmd_repl *repl, const struct worker_call *call)
{
	const struct worker_result nothing = {.value = text_of("null")};
	json_auto_t *arguments = json_read(call->texts[0], VALUE_DEPTH, NULL);
	struct rlmd_text text = json_get_text(arguments, "text");
	bool is_error = text_equal(json_get_text(arguments, "stream"), "stderr");

	worker_reply(repl->worker, call->id, &nothing, 1);
	if (text.size && may_print(repl, text.size) && repl->hooks.printed)
		repl->hooks.printed(repl->hooks.owner, repl, is_error, text);
}

/* Models and sub-runs. */
static void ask(struct rlmd_repl *repl, const struct worker_call *call)
{
	size_t count = call->count ? call->count : 1;
	auto_free struct worker_result *results = NULL;

	if (repl->job) {
		job_session_call(repl->job, repl->worker, call);
		return;
	}
	results = xcalloc(count, sizeof *results);
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
		if (event->call->kind == WORKER_FUNCTION &&
		    !strcmp(event->call->function, OUTPUT_NAME))
			tell_printed(repl, event->call);
		else if (event->call->kind == WORKER_FUNCTION)
			call_function(repl, event->call);
		else
			ask(repl, event->call);
		return;
	case WORKER_DONE:
		if (repl->state == REPL_READS)
			on_read(repl, event->block);
		else
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

static void destroy(void *owner);

static void start_worker(struct rlmd_repl *repl, struct rlmd_sandbox *sandbox, int64_t max_output)
{
	struct worker_input inputs[WORKER_INPUTS_MAX];
	struct worker_options options;

	if (repl->hooks.printed)
		function_set_add_own(repl->functions, OUTPUT_NAME);
	options = (struct worker_options){
		.inputs = inputs,
		.input_count = inputs_of(&repl->context, inputs),
		.max_output = max_output ? max_output : OUTPUT_MAX,
		.log = &repl->engine->log,
		.functions = function_set_json(repl->functions),
		.function_names = function_set_names(repl->functions),
	};

	repl->max_output = options.max_output;
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

static bool start_job(struct rlmd_repl *repl, struct rlmd_sandbox *sandbox,
		      const struct rlmd_repl_options *options, struct rlmd_error *err)
{
	struct rlmd_job_options calls;

	if (!abi_copy_in(&calls, sizeof calls, options->calls, sizeof calls, "rlmd_job_options",
			 err))
		return false;
	if (calls.context || calls.function_count)
		return error_set(err, RLMD_ERROR_USAGE,
				 "context and functions are the session's, not its job's");
	calls.sandbox = sandbox;
	calls.context = options->context;
	calls.functions = options->functions;
	calls.function_count = options->function_count;
	repl->job = job_session_start(repl->engine, &calls, destroy, repl, err);
	return repl->job;
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
	repl->functions = function_set_new(options.functions, options.function_count,
					   &repl->context, err);
	if (!repl->functions) {
		destroy(repl);
		return NULL;
	}
	if (options.calls && !start_job(repl, sandbox, &options, err)) {
		destroy(repl);
		return NULL;
	}
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
	case REPL_READS:
		return error_set(err, RLMD_ERROR_USAGE, "the session is at work: wait for its end");
	case REPL_GONE:
		return error_set(err, RLMD_ERROR_USAGE, "the session is gone: start another one");
	}
	return false;
}

static int64_t time_of(int64_t timeout_ms)
{
	return timeout_ms > 0 ? timeout_ms : TIMEOUT_MS;
}

static void execute(struct rlmd_repl *repl, struct rlmd_text code, int64_t timeout_ms)
{
	repl->printed = 0;
	worker_exec(repl->worker, ++repl->blocks, code, time_of(timeout_ms));
}

bool rlmd_repl_execute(struct rlmd_repl *repl, struct rlmd_text code, int64_t timeout_ms,
		       struct rlmd_error *err)
{
	if (!is_idle(repl, err))
		return false;
	if (!code.bytes && code.size)
		return error_set(err, RLMD_ERROR_USAGE, "a block of %zu bytes is NULL", code.size);
	repl->state = REPL_BUSY;
	execute(repl, code, timeout_ms);
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

static bool check_name(const char *name, struct rlmd_error *err)
{
	return is_name(name) ||
	       error_set(err, RLMD_ERROR_USAGE, "'%.100s' is no variable's name", name);
}

bool rlmd_repl_get(struct rlmd_repl *repl, const char *name, int64_t timeout_ms,
		   struct rlmd_error *err)
{
	if (!is_idle(repl, err) || (name && !check_name(name, err)))
		return false;
	repl->state = REPL_BUSY;
	worker_get(repl->worker, name ? name : "", time_of(timeout_ms));
	return true;
}

bool rlmd_repl_get_json(struct rlmd_repl *repl, const char *name, int64_t timeout_ms,
			struct rlmd_error *err)
{
	auto_free char *code = NULL;

	if (!is_idle(repl, err) || !check_name(name ? name : "", err))
		return false;
	code = xasprintf("FINAL(__import__('json').dumps(%s, ensure_ascii=False, allow_nan=False))",
			 name);
	free(repl->name);
	repl->name = xstrdup(name);
	repl->timeout_ms = time_of(timeout_ms);
	repl->state = REPL_READS;
	execute(repl, text_of(code), timeout_ms);
	return true;
}

/* A string of JSON is one of Python, where what is beyond ASCII stands as it is. */
bool rlmd_repl_set_json(struct rlmd_repl *repl, const char *name, struct rlmd_text json,
			int64_t timeout_ms, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *code = NULL;
	json_auto_t *value = NULL, *literal = NULL;

	if (!is_idle(repl, err) || !check_name(name ? name : "", err))
		return false;
	value = json.bytes ? json_read(json, VALUE_DEPTH, err) : NULL;
	if (!value)
		return json.bytes ? false
				  : error_set(err, RLMD_ERROR_USAGE, "there is no value to set");
	literal = json_from_text(json);
	code = buffer_new();
	buffer_add_printf(code, "%s = __import__('json').loads(", name);
	json_write(literal, false, code);
	buffer_add_printf(code, ")");
	repl->state = REPL_BUSY;
	execute(repl, text_in(code), timeout_ms);
	return true;
}

void rlmd_repl_interrupt(struct rlmd_repl *repl)
{
	if (repl && engine_is_ours(repl->engine, NULL) &&
	    (repl->state == REPL_BUSY || repl->state == REPL_READS))
		worker_interrupt(repl->worker);
}

static void destroy(void *owner)
{
	struct rlmd_repl *repl = owner;

	LIST_REMOVE(repl, entry);
	cancel_calls(repl);
	worker_free(repl->worker);
	function_set_free(repl->functions);
	free(repl->name);
	context_done(&repl->context);
	free(repl);
}

/* From inside a hook of its job's the loop does it. */
void rlmd_repl_free(struct rlmd_repl *repl)
{
	if (!repl)
		return;
	engine_to_free(repl->engine);
	repl->hooks = (struct rlmd_repl_hooks){0};
	if (repl->job)
		rlmd_job_free(repl->job);
	else
		destroy(repl);
}

const struct rlmd_job *rlmd_repl_job(const struct rlmd_repl *repl)
{
	return repl ? repl->job : NULL;
}
