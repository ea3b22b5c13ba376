/*
 * An attempt that failed: what that means, whether there is another one, and when.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "llm/call_private.h"
#include "llm/failure.h"

enum { TWICE_MAX = 1 << 20 }; /* bytes of nonsense after which no second try is made */

void call_wait(struct call *call, int64_t ms)
{
	struct timeval wait = clock_timeval(ms);

	event_add(call->timer, &wait);
}

void call_rest(struct call *call, int64_t ms)
{
	const struct llm_request *request = call->request;

	if (request->on_rest && !call->resting) {
		call->resting = true;
		request->on_rest(request->rest_owner);
	}
	call_wait(call, ms);
}

bool call_has_rested(struct call *call)
{
	if (!call->resting)
		return true;
	call->resting = false;
	return call->request->on_rested(call->request->rest_owner);
}

void call_go_on(struct call *call)
{
	call_admit(call);
}

/* When the tokens of a minute or day are used up, some say only so until when. */
static const char *tokens_reset(const struct http_transfer *transfer)
{
	const char *left = http_header(transfer, "x-ratelimit-remaining-tokens");

	return !left || !strcmp(left, "0") ? http_header(transfer, "x-ratelimit-reset-tokens")
					   : NULL;
}

/* Attempts that cost nothing so far leave all of what was reserved for the call. */
static bool may_spend_again(const struct call *call)
{
	return (!call->usage.input && !call->usage.output && !call->cost) ||
	       call->may_retry(call->owner, &call->usage, call->cost);
}

/* Those that found a busy provider are counted by themselves: their waits grow by that. */
static void count_failure(struct call *call, struct gate_failure *failure, int64_t now)
{
	if (!call->busy) {
		failure->attempt = ++call->failures;
		return;
	}
	if (!call->busy_attempts++)
		call->busy_since = now;
	failure->attempt = call->busy_attempts;
	failure->waited = now - call->busy_since;
}

static void tell_wait(const struct call *call, int http_status, int64_t now, int64_t at)
{
	struct llm_wait wait = {
		.reason = call->busy,
		.http_status = http_status,
		.waited_ms = now - call->busy_since,
		.next_ms = at - now,
	};

	if (call->busy)
		call->on_wait(call->owner, &wait);
}

bool call_broke_off(const struct call *call, const struct rlmd_error *err)
{
	return (err->kind == RLMD_ERROR_NETWORK || err->kind == RLMD_ERROR_TIMEOUT) &&
	       call->status == 200 && call->received;
}

/* The end of the last attempt is logged as that of the call (llm.c). */
static void log_retry(const struct call *call, const struct rlmd_error *err, int64_t next_ms)
{
	bool cut = call_broke_off(call, err);
	enum log_event event = cut ? LOG_CALL_CUT : call->busy ? LOG_CALL_WAITS : LOG_CALL_RETRIED;
	struct rlmd_log_field fields[] = {
		LOG_TEXT("provider", call->provider->name),
		LOG_TEXT("model", call->request->model),
		LOG_NUMBER("attempt", call->attempts),
		LOG_TEXT("error", rlmd_error_name(err->kind)),
		LOG_NUMBER("http_status", call->status),
		LOG_NUMBER("next_ms", next_ms),
		LOG_NUMBER(cut ? "bytes" : "waited_ms",
			   cut ? (int64_t)call->received : clock_ms() - call->busy_since),
		{.name = NULL},
	};
	char next[16];

	if (event == LOG_CALL_RETRIED)
		fields[6].name = NULL;
	clock_format(next_ms, next);
	log_write(call->request->log, event, fields, "%s; asked again in %s", err->text, next);
}

void call_failed(struct call *call, const struct rlmd_error *error, bool retry)
{
	struct gate_failure failure = {
		.error = error,
		.retry = retry && clock_ms() < call->request->deadline,
		.at_once = call->transfer && http_lost(call->transfer),
		.busy = call->busy,
		.started = call->attempt_started,
		.deadline = call->request->deadline,
	};
	int64_t now = clock_ms(), at;
	struct rlmd_error final = *error;
	char wish[24];
	bool again;

	count_failure(call, &failure, now);
	call->fresh |= error->kind == RLMD_ERROR_NETWORK;
	if (error->kind == RLMD_ERROR_BAD_REPLY) {
		failure.retry &= !call->bad_before && call->received <= TWICE_MAX;
		call->bad_before = true;
	}
	if (call->status) {
		failure.should_retry = http_header(call->transfer, "x-should-retry");
		failure.retry_after_ms = http_header(call->transfer, "retry-after-ms");
		failure.retry_after = http_header(call->transfer, "retry-after");
	}
	if (call->retry_after_ms) {
		snprintf(wish, sizeof wish, "%" PRId64, call->retry_after_ms);
		failure.retry_after_ms = wish;
	}
	if (call->status == 429 && !failure.retry_after)
		failure.retry_after = tokens_reset(call->transfer);
	again = gate_retry(call->provider->gate, &failure, now, clock_wall_ms(), call_jitter(), &at,
			   &final);
	call_close_attempt(call); /* and with it `error`, where that is the transfer's */
	if (!again || !may_spend_again(call)) {
		call_finish(call, &final);
		return;
	}
	log_retry(call, &final, at - now);
	tell_wait(call, final.http_status, now, at);
	call_reset_attempt(call);
	call_rest(call, at - now);
}

void call_failed_in_answer(struct call *call, struct rlmd_error *error)
{
	call_redact(call, error->text);
	call_failed(call, error, failure_passes(error->kind));
}

void call_failed_with_status(struct call *call)
{
	struct failure failure = {0};
	struct rlmd_error error = {0};

	failure_of_status(call->status, bytes_text(&call->body), &failure);
	if (http_refused_by_proxy(call->transfer, call->status, &error)) {
		call_failed(call, &error, false);
		return;
	}
	call_redact(call, failure.message);
	if (failure.quirk && !(call->tried & failure.quirk) &&
	    adapter_can_adapt(call->request, failure.quirk)) {
		call->tried |= failure.quirk;
		call->quirks = provider_learn(call->provider, call->request->model, call->quirks,
					      failure.quirk);
		call_tell_quirks(call, failure.quirk);
		call_close_attempt(call);
		call_reset_attempt(call);
		call_admit(call);
		return;
	}
	error_set(&error, failure.kind, "%s answered with status %d%s%s%s", call->provider->name,
		  call->status, *failure.message ? ": " : "", failure.message,
		  failure_advice(failure.kind));
	error.http_status = call->status;
	call->busy = failure.busy;
	call_failed(call, &error, failure.retry);
}

/* Status 200 and not what was asked for: a proxy's page, half a JSON, nothing. */
void call_failed_nonsense(struct call *call, const char *why)
{
	size_t size = call->received < CALL_HEAD_MAX ? call->received : CALL_HEAD_MAX;
	char shown[4 * CALL_HEAD_MAX + 1];
	struct rlmd_error error = {0};

	text_escape(text_from(call->head, size), shown, sizeof shown);
	error_set(&error, RLMD_ERROR_BAD_REPLY,
		  "%s's answer made no sense (%s): %s%s%s; check that the base URL is the "
		  "provider's API",
		  call->provider->name, why, size ? "it began '" : "it was empty", shown,
		  size ? "'" : "");
	call_failed_in_answer(call, &error);
}

/* A host says what it was by the kind of the error; the words are its own. */
void call_failed_custom(struct call *call, const struct rlmd_error *err)
{
	call->busy = failure_busy(err->kind, err->http_status);
	call_failed(call, err, failure_passes(err->kind));
}
