/*
 * A call begins from the loop. Its arguments are checked, then the host or a program has it, and
 * what comes first counts: an answer, or the end of its time. Whom the host has not answered by
 * then stays as a stub that takes the answer and is gone.
 */
#include "engine/function_call.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/timer.h"
#include "engine/function_program.h"
#include "engine/function_set.h"
#include "wire/limit.h"

enum { ANSWER_DEPTH = 64 };

struct rlmd_function_call {
	struct function *function; /* lent; NULL: nobody wants the answer */
	struct timer *due;         /* owned: the beginning, then the answer, then the end */
	char *arguments;           /* owned */
	size_t arguments_size;
	struct function_program *program; /* owned; or NULL */
	bool begun, answered;
	bool with_host; /* who owes us an answer */
	char *answer;   /* owned */
	size_t answer_size;
	struct rlmd_error error; /* where there is none */
	function_done_fn *done;
	void *owner; /* lent */
};

static void drop(struct rlmd_function_call *call)
{
	function_program_free(call->program);
	timer_free(call->due);
	free(call->arguments);
	free(call->answer);
	free(call);
}

/* From inside of it the host may free the job, which goes later. */
static void tell_cancel(struct rlmd_function_call *call)
{
	const struct rlmd_function *spec = &call->function->spec;
	bool *telling = call->function->telling;
	bool before = telling && *telling;

	if (telling)
		*telling = true;
	spec->cancel(spec->owner, call);
	if (telling)
		*telling = before;
}

/* The host may answer whenever it likes; what else there is of the call goes now. */
static void leave_to_host(struct rlmd_function_call *call)
{
	if (call->with_host && call->function->spec.cancel)
		tell_cancel(call);
	else if (call->with_host) {
		timer_free(take_pointer(&call->due));
		free(take_pointer(&call->arguments));
		free(take_pointer(&call->answer));
		call->function = NULL;
		return;
	}
	drop(call);
}

void function_call_cancel(struct rlmd_function_call *call)
{
	if (call)
		leave_to_host(call);
}

/* C3: it is gone, or a stub, before anybody hears of it. */
static void end(struct rlmd_function_call *call)
{
	function_done_fn *done = call->done;
	void *owner = call->owner;
	size_t size = call->answer_size;
	auto_free char *answer = take_pointer(&call->answer);
	struct rlmd_error error = call->error;

	leave_to_host(call);
	done(owner, text_from(answer, size), error.kind ? &error : NULL);
}

static void post(struct rlmd_function_call *call)
{
	call->answered = true;
	timer_post(call->due);
}

/* An answer that is not JSON, or of another form, is the host's mistake. */
static void take_answer(struct rlmd_function_call *call, struct rlmd_text json)
{
	json_auto_t *value = NULL;
	struct rlmd_error why;

	if (json.size > ANSWER_MAX || !json.bytes) {
		error_set(&call->error, RLMD_ERROR_FUNCTION,
			  "its answer has %zu bytes, of %d at most", json.size, ANSWER_MAX);
		return;
	}
	value = json_read(json, ANSWER_DEPTH, &why);
	if (!value) {
		error_set(&call->error, RLMD_ERROR_FUNCTION, "its answer is no JSON: %s", why.text);
		return;
	}
	call->answer = text_copy(json);
	call->answer_size = json.size;
}

/* The host has answered, which it may do once; false: nobody waits for it any more. */
static bool take_back(struct rlmd_function_call *call)
{
	if (!call)
		return false;
	call->with_host = false;
	if (call->function)
		return true;
	free(call);
	return false;
}

void rlmd_function_reply(struct rlmd_function_call *call, struct rlmd_text json)
{
	if (!take_back(call))
		return;
	take_answer(call, json);
	post(call);
}

void rlmd_function_fail(struct rlmd_function_call *call, const char *message)
{
	if (!take_back(call))
		return;
	error_set(&call->error, RLMD_ERROR_FUNCTION, "%s", message ? message : "it failed");
	post(call);
}

static void on_program(void *owner, struct rlmd_text output, const struct rlmd_error *err)
{
	struct rlmd_function_call *call = owner;

	if (err)
		call->error = *err;
	else
		take_answer(call, output);
	post(call);
}

static bool admit(struct rlmd_function_call *call, struct rlmd_error *err)
{
	struct function *function = call->function;
	json_auto_t *arguments = json_read(text_from(call->arguments, call->arguments_size),
					   ARGUMENTS_DEPTH, err);

	if (!arguments || !function_set_accepts(function, arguments, err))
		return false;
	if (function->spec.max_calls && function->calls >= function->spec.max_calls)
		return error_set(err, RLMD_ERROR_BUDGET,
				 "it may be called %" PRId64 " times, and was",
				 function->spec.max_calls);
	function->calls++;
	return true;
}

static void begin(struct rlmd_function_call *call)
{
	const struct rlmd_function *spec = &call->function->spec;
	struct rlmd_text arguments = text_from(call->arguments, call->arguments_size);

	call->begun = true;
	if (!admit(call, &call->error)) {
		post(call);
		return;
	}
	if (spec->timeout_ms > 0)
		timer_start(call->due, spec->timeout_ms);
	if (spec->argv) {
		call->program = function_program_start(timer_base(call->due), spec->argv, arguments,
						       on_program, call, &call->error);
		if (!call->program)
			post(call);
		return;
	}
	call->with_host = true;
	spec->call(spec->owner, call, arguments); /* the call may be gone now */
}

static void on_due(void *owner)
{
	struct rlmd_function_call *call = owner;
	char allowed[16];

	if (!call->begun) {
		begin(call);
		return;
	}
	if (!call->answered) {
		clock_format(call->function->spec.timeout_ms, allowed);
		error_set(&call->error, RLMD_ERROR_TIMEOUT, "it did not answer within %s", allowed);
	}
	end(call);
}

struct rlmd_function_call *function_call_start(struct event_base *base, struct function *function,
					       struct rlmd_text arguments, function_done_fn *done,
					       void *owner)
{
	struct rlmd_function_call *call = xcalloc(1, sizeof *call);

	call->function = function;
	call->arguments = text_copy(arguments);
	call->arguments_size = arguments.size;
	call->done = done;
	call->owner = owner;
	call->due = timer_new(base, on_due, call);
	timer_post(call->due);
	return call;
}
