#include "llm/call.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json_scan.h"
#include "base/money.h"
#include "base/timer.h"
#include "llm/custom.h"
#include "llm/failure.h"
#include "llm/key.h"
#include "llm/model_list.h"
#include "llm/stream.h"

enum {
	IDLE_MS = 300000,       /* a stream's longest silence: models are loaded and think */
	LOWERED_MAX = 3,        /* times that max_tokens is lowered to what the model can give */
	LINGER_MS = 100,        /* for the body's end after the answer's, to keep the connection */
	REST_MS = 5000,         /* for the usage and the end after the last of the text */
	STREAM_MAX = 256 << 20, /* bytes of a stream */
	TRUNCATION_CHECK = 200, /* tokens of a prompt from which on its truncation is told */
	MEASURED_AT_ONCE = 1 << 20, /* bytes of a prompt: about a millisecond */
	AT_ONCE = 128 << 10,        /* bytes of a text: less than a millisecond */
	FAILURE_MAX = 64 << 10,     /* bytes looked at where the status is not 200 */
	TWICE_MAX = 1 << 20,        /* bytes of nonsense after which no second try is made */
	HEAD_MAX = 80,              /* bytes of nonsense that are shown */
};

struct call {
	struct rlmd_provider *provider;    /* lent */
	const struct llm_request *request; /* lent, or `lowered` */
	struct llm_request lowered;        /* the same with less output, which the model can give */
	struct llm_warnings *warnings;     /* lent: of whoever asks */
	llm_retry_fn *may_retry;
	llm_wait_fn *on_wait;
	llm_done_fn *fn;
	void *owner; /* lent */

	struct model_list_waiter waiter; /* before the first attempt */
	struct timer *timer;             /* owned: the gate opens, or a linger is over */
	struct body *outgoing;           /* owned: while it is measured, before the transfer */
	struct http_transfer *transfer;  /* owned; NULL between attempts */
	struct custom_request *custom;   /* owned, in its place; NULL likewise */
	struct stream *stream;           /* owned; NULL while whole */
	struct reply reply;              /* owned: of this attempt */
	struct reply_delta delta;        /* what was told of it */
	struct bytes body;               /* owned: whole, or of an error */
	struct json_ahead ahead;         /* owned: what was checked of it */
	int status;                      /* of this attempt; 0: none came */
	bool streaming;
	bool bad_before;     /* an earlier attempt's answer was nonsense */
	bool fresh;          /* an earlier attempt's connection broke: no kept one for the next */
	char head[HEAD_MAX]; /* the answer's first bytes */
	size_t received;     /* of the answer, by this attempt */
	unsigned quirks;     /* enum adapter_quirk, in force */
	unsigned tried;      /* likewise, adapted to during this call */
	int lowered_times;   /* max_tokens was, for the size of the model */
	int64_t started, attempt_started;
	int64_t input_estimate; /* 0: not counted yet */
	int billed;             /* of the attempts */
	int attempts;           /* begun */
	int failures;           /* of them; without those that only taught a quirk, or were busy */
	int busy_attempts;      /* of them */
	int64_t busy_since;     /* the end of the first of these */
	bool resting;           /* its place is free until it is asked for again */
	const char *busy;       /* what this attempt's provider is busy with; or NULL */
	int64_t retry_after_ms; /* that a host wishes; 0: nothing */

	struct llm_usage usage; /* of the attempts that are over */
	int64_t cost;
	bool cost_unknown;
};

static void on_timer(void *arg);
static void call_admit(struct call *);
static void call_judge(struct call *, const struct rlmd_error *error, const struct rlmd_error *err);

/* A jitter of high quality gains nothing: the kernel is asked once. */
static double call_jitter(void)
{
	static unsigned short state[3];
	static bool seeded;

	if (!seeded)
		arc4random_buf(state, sizeof state);
	seeded = true;
	return erand48(state);
}

int64_t call_input_tokens(const struct llm_request *request)
{
	int64_t tokens = 0;

	for (size_t i = 0; i < request->message_count; i++)
		tokens += adapter_message_tokens(&request->messages[i]) + 4;
	return tokens;
}

/* Each caller hears of it, also where another call had found it out. */
static void call_tell_quirks(const struct call *call, unsigned quirks)
{
	static const unsigned told[] = {QUIRK_NO_STOP, QUIRK_NO_TEMPERATURE};

	for (size_t i = 0; i < sizeof told / sizeof *told; i++)
		if (quirks & told[i] && adapter_can_adapt(call->request, told[i]))
			request_warn(call->warnings,
				     "model '%.100s' refuses %s: it is asked without",
				     call->request->model,
				     told[i] == QUIRK_NO_STOP ? "stop texts" : "a temperature");
}

static void call_drop_whole(struct call *call)
{
	bytes_done(&call->body);
	json_ahead_done(&call->ahead);
}

void call_free(struct call *call)
{
	if (!call)
		return;
	model_list_wait_no_more(&call->waiter);
	http_transfer_free(call->transfer);
	body_free(call->outgoing);
	custom_free(call->custom);
	stream_free(call->stream);
	reply_done(&call->reply);
	call_drop_whole(call);
	timer_free(call->timer);
	free(call);
}

static const char *resolved_model(const struct call *call)
{
	return *call->reply.model ? call->reply.model : call->request->model;
}

/* An error costs nothing; what broke after the request had left may have been worked on. */
static bool attempt_billed(const struct call *call)
{
	if (call->custom)
		return custom_billed(call->custom);
	if (call->status)
		return call->status == 200;
	return call->transfer && http_sent(call->transfer);
}

/* Counted where it is asked for: most providers say it. */
static int64_t input_estimate(struct call *call)
{
	if (!call->input_estimate)
		call->input_estimate = call_input_tokens(call->request);
	return call->input_estimate;
}

static void call_bill(struct call *call)
{
	struct llm_usage usage;
	int64_t cost;

	if (!attempt_billed(call))
		return;
	call->billed++;
	usage = reply_usage(&call->reply, reply_counted(&call->reply) ? 0 : input_estimate(call));
	if (call->reply.usage_absurd)
		request_warn(call->warnings,
			     "the usage that %s reported was not believable; it was estimated",
			     call->provider->name);
	request_add_usage(&call->usage, &usage);
	if (!provider_charge(call->provider, call->request->model, resolved_model(call),
			     call->reply.cost_reported, &usage, call->warnings, &cost))
		call->cost_unknown = true;
	call->cost = money_add(call->cost, cost);
}

static void call_redact(const struct call *call, char *string)
{
	string[key_redact(call->provider->key, string, strlen(string))] = '\0';
}

static void call_close_attempt(struct call *call)
{
	call_bill(call);
	call_redact(call, call->reply.model);
	call_redact(call, call->reply.refusal);
	http_transfer_free(take_pointer(&call->transfer));
	custom_free(take_pointer(&call->custom));
	stream_free(take_pointer(&call->stream));
	call_drop_whole(call);
	timer_stop(call->timer);
}

static void call_reset_attempt(struct call *call)
{
	reply_tell_again(&call->delta);
	reply_done(&call->reply);
	reply_init(&call->reply);
	call->status = 0;
	call->received = 0;
	call->busy = NULL;
	call->retry_after_ms = 0;
}

static bool call_broke_off(const struct call *call, const struct rlmd_error *err)
{
	return (err->kind == RLMD_ERROR_NETWORK || err->kind == RLMD_ERROR_TIMEOUT) &&
	       call->status == 200 && call->received;
}

/* NULL: it succeeded. Nothing is under way any more, and the call may be gone. */
static void call_finish(struct call *call, const struct rlmd_error *err)
{
	struct llm_response response = {
		.text = key_redact_answer(call->provider->key, &call->reply.text.bytes),
		.bytes = &call->reply.text.bytes,
		.thinking = key_redact_answer(call->provider->key, &call->reply.thinking.bytes),
		.finish = call->reply.finish,
		.usage = call->usage,
		.cost_known = !call->cost_unknown,
		.cost = call->cost_unknown ? 0 : call->cost,
		.attempts = call->attempts,
		.billed = call->billed,
		.duration_ms = clock_ms() - call->started,
		.attempt_ms = call->attempts ? clock_ms() - call->attempt_started : 0,
		.model = resolved_model(call),
		.broken_at = err && call_broke_off(call, err) ? call->received : 0,
		.overlong = call->reply.overlong,
		.repeating = call->reply.repeating,
	};

	call->fn(call->owner, &response, err);
}

static void warn_of_truncation(struct call *call)
{
	int64_t counted = call->reply.usage.input;

	const struct adapter *adapter = call->provider->adapter;

	if (adapter && adapter->local && call->reply.usage_seen && counted > 0 &&
	    input_estimate(call) > TRUNCATION_CHECK && counted < input_estimate(call) / 2)
		request_warn(call->warnings,
			     "%s seems to have cut a prompt: it counted less than half of the "
			     "tokens sent to %.100s; give the model a larger context window",
			     call->provider->name, call->request->model);
}

static void call_complete(struct call *call)
{
	struct rlmd_error error = {0};

	if (provider_is_local(call->provider, call->request->model) &&
	    call->reply.finish == LLM_FINISH_LENGTH)
		reply_end_repetition(&call->reply);
	if (call->reply.overlong || call->reply.repeating)
		call->reply.finish = LLM_FINISH_LENGTH;
	if (call->reply.repeating)
		request_warn(call->warnings,
			     "model '%.100s' repeated itself without end: its reply was cut where "
			     "that began",
			     call->request->model);
	reply_tell(&call->delta, bytes_text(&call->reply.text.bytes), true);
	warn_of_truncation(call);
	call_close_attempt(call);
	if (call->reply.refused)
		error_set(&error, RLMD_ERROR_REFUSED, "%s refused to answer%s%s",
			  call->provider->name, *call->reply.refusal ? ": " : "",
			  call->reply.refusal);
	call_finish(call, call->reply.refused ? &error : NULL);
}

/* --- attempts that failed ----------------------------------------------------------- */

static void call_rest(struct call *call, int64_t ms)
{
	const struct llm_request *request = call->request;

	if (request->on_rest && !call->resting) {
		call->resting = true;
		request->on_rest(request->rest_owner);
	}
	timer_start(call->timer, ms);
}

static bool call_has_rested(struct call *call)
{
	if (!call->resting)
		return true;
	call->resting = false;
	return call->request->on_rested(call->request->rest_owner);
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

static void call_failed(struct call *call, const struct rlmd_error *error, bool retry)
{
	struct gate_failure failure = {
		.error = error,
		.retry = retry && clock_ms() < call->request->deadline,
		.at_once = call->transfer && http_lost(call->transfer),
		.broken = call->status == 200 && call->received &&
			  error->kind != RLMD_ERROR_BAD_REPLY,
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

static void call_failed_in_answer(struct call *call, struct rlmd_error *error)
{
	call_redact(call, error->text);
	call_failed(call, error, failure_passes(error->kind));
}

static void call_ask_again(struct call *call)
{
	call_close_attempt(call);
	call_reset_attempt(call);
	call_admit(call);
}

/* The model cannot give as much as it was asked for: asked again for what fits, which is reserved
 * already. The limit of the model is remembered. */
static bool call_fits_less(struct call *call, const struct room *room)
{
	int64_t fits = room_fit(room, call->request->max_tokens, input_estimate(call));

	provider_learn_room(call->provider, call->request->model, room);
	if (!fits || call->lowered_times++ == LOWERED_MAX)
		return false;
	call->lowered = *call->request;
	call->lowered.max_tokens = fits;
	call->request = &call->lowered;
	return true;
}

static bool call_adapts(struct call *call, unsigned quirk)
{
	if (!quirk || call->tried & quirk || !adapter_can_adapt(call->request, quirk))
		return false;
	call->tried |= quirk;
	call->quirks = provider_learn(call->provider, call->request->model, call->quirks, quirk);
	call_tell_quirks(call, quirk);
	return true;
}

static void call_failed_with_status(struct call *call)
{
	struct failure failure = {0};
	struct rlmd_error error = {0};
	const char *withheld;

	failure_of_status(call->status, bytes_text(&call->body), &failure);
	if (http_refused_by_proxy(call->transfer, call->status, &error)) {
		call_failed(call, &error, false);
		return;
	}
	call_redact(call, failure.message);
	if (call_adapts(call, failure.quirk) || call_fits_less(call, &failure.room)) {
		call_ask_again(call);
		return;
	}
	withheld = failure.kind == RLMD_ERROR_AUTH ? call->provider->withheld : NULL;
	error_set(&error, failure.kind, "%s answered with status %d%s%s%s%s", call->provider->name,
		  call->status, *failure.message ? ": " : "", failure.message, withheld ? "; " : "",
		  withheld ? withheld : failure_advice(failure.kind));
	error.http_status = call->status;
	call->busy = failure.busy;
	call_failed(call, &error, failure.retry);
}

/* Status 200 and not what was asked for: a proxy's page, half a JSON, nothing. */
static void call_failed_nonsense(struct call *call, const char *why)
{
	size_t size = call->received < HEAD_MAX ? call->received : HEAD_MAX;
	char shown[4 * HEAD_MAX + 1];
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
static void call_failed_custom(struct call *call, const struct rlmd_error *err)
{
	call->busy = failure_busy(err->kind, err->http_status);
	call_failed(call, err, failure_passes(err->kind));
}

/*
 * --- answers that come as a whole ----------------------------------------------------
 * One of megabytes is gone over while it comes, and its texts are taken a part in each turn of the
 * loop, so that it holds up nobody else.
 */

/* False where it is too large to be kept whole. */
static bool call_keep(struct call *call, struct rlmd_text data)
{
	size_t limit = call->status == 200 ? REPLY_WHOLE_MAX : FAILURE_MAX;
	size_t room = limit - call->body.size;

	bytes_add(&call->body, text_slice(data, 0, data.size < room ? data.size : room));
	if (call->status == 200)
		json_ahead_feed(&call->ahead, bytes_text(&call->body));
	return data.size <= room;
}

static void call_take_whole(struct call *call)
{
	struct rlmd_error error = {0};
	bool fine = reply_go_on(&call->reply, AT_ONCE, &error);

	reply_tell(&call->delta, bytes_text(&call->reply.text.bytes), false);
	if (fine && reply_waits(&call->reply))
		timer_post(call->timer);
	else
		call_judge(call, &error, NULL);
}

static void call_read_whole(struct call *call)
{
	struct rlmd_error error = {0};

	call->reply.ahead = &call->ahead;
	call->reply.at_once = AT_ONCE;
	if (call->provider->adapter->whole(&call->reply, bytes_text(&call->body), &error))
		call_take_whole(call);
	else
		call_judge(call, &error, NULL);
}

/* --- answers -------------------------------------------------------------------------- */

static bool wants_more(const struct call *call)
{
	return !call->reply.overlong && !call->reply.repeating;
}

static bool on_event(void *owner, const struct adapter_event *event, struct rlmd_error *err)
{
	struct call *call = owner;

	if (call->reply.finished)
		return true;
	return call->provider->adapter->event(&call->reply, event, err) && wants_more(call);
}

static bool on_ahead(void *owner, struct rlmd_text bytes, size_t *ret_taken, struct rlmd_error *err)
{
	struct call *call = owner;

	return reply_take_expected(&call->reply, bytes, ret_taken, err) && wants_more(call);
}

/* A server may answer a request for a stream as a whole, and one for a whole by a stream. A line of
 * NDJSON is both at once. */
static bool answered_whole(const struct call *call)
{
	const char *type = http_header(call->transfer, "content-type");

	if (call->provider->adapter->framing != FRAMING_SSE || !type)
		return !call->streaming;
	return call->streaming ? !strncasecmp(type, "application/json", 16)
			       : strncasecmp(type, "text/event-stream", 17) != 0;
}

static void on_status(void *owner, struct http_transfer *transfer, int status)
{
	struct call *call = owner;

	(void)transfer;
	call->status = status;
	if (status == 200 && !answered_whole(call))
		call->stream = stream_new(call->provider->adapter->framing, on_event, on_ahead,
					  call);
}

static void call_feed(struct call *call, struct rlmd_text data)
{
	struct rlmd_error error = {0};
	bool whole = call->reply.complete, ended = call->reply.finished;
	bool fine = stream_feed(call->stream, data, &error);

	reply_tell(&call->delta, bytes_text(&call->reply.text.bytes), false);
	if (ended)
		return; /* who goes on talking behind the answer's end does not put that off */
	if (call->reply.finished)
		timer_start(call->timer, LINGER_MS);
	else if (call->reply.overlong ||
		 call->reply.repeating) /* and may never end: whatever else comes is billed too */
		call_complete(call);
	else if (!fine && error.kind == RLMD_ERROR_BAD_REPLY)
		call_failed_nonsense(call, error.text);
	else if (!fine)
		call_failed_in_answer(call, &error);
	else if (call->reply.complete && !whole)
		timer_start(call->timer, REST_MS);
}

static void on_data(void *owner, struct http_transfer *transfer, struct rlmd_text data)
{
	struct call *call = owner;
	size_t room = call->received < HEAD_MAX ? HEAD_MAX - call->received : 0;

	(void)transfer;
	if (room)
		memcpy(call->head + call->received, data.bytes,
		       data.size < room ? data.size : room);
	call->received += data.size;
	if (call->stream)
		call_feed(call, data);
	else if (call_keep(call, data))
		return;
	else if (call->status == 200)
		call_failed_nonsense(call, "it is too large");
	else
		call_failed_with_status(call);
}

/* An answer that is complete stays so, whatever is missing behind it: the words that end a stream,
 * or the connection. */
static void call_judge(struct call *call, const struct rlmd_error *error,
		       const struct rlmd_error *err)
{
	struct rlmd_error broken = {0};

	if (error->kind == RLMD_ERROR_BAD_REPLY) {
		call_failed_nonsense(call, error->text);
	} else if (error->kind) {
		broken = *error;
		call_failed_in_answer(call, &broken);
	} else if (call->reply.complete) {
		call_complete(call);
	} else if (err) {
		call_failed(call, err, failure_passes(err->kind) && !http_hopeless(call->transfer));
	} else if (*call->reply.model || call->reply.text.bytes.size) {
		error_set(&broken, RLMD_ERROR_NETWORK,
			  "%s closed the connection before its answer's end", call->provider->name);
		call_failed(call, &broken, true);
	} else {
		call_failed_nonsense(call, "no part of a stream");
	}
}

/* The body has ended, as it should or by `err`. A stream's last event counts without the blank line
 * after it, unless it is half a one. */
static void call_read_end(struct call *call, const struct rlmd_error *err)
{
	struct rlmd_error error = {0};

	if (!call->stream && !err) {
		call_read_whole(call);
		return;
	}
	if (call->stream && !stream_end(call->stream, &error) && error.kind == RLMD_ERROR_BAD_REPLY)
		error = (struct rlmd_error){0};
	call_judge(call, &error, err);
}

static void on_done(void *owner, struct http_transfer *transfer, const struct rlmd_error *err)
{
	struct call *call = owner;

	(void)transfer;
	if (call->reply.finished)
		call_complete(call);
	else if (call->status && call->status != 200)
		call_failed_with_status(call);
	else
		call_read_end(call, err);
}

static void on_more(void *owner)
{
	struct call *call = owner;

	reply_tell(&call->delta, bytes_text(&call->reply.text.bytes), false);
}

static void on_custom(void *owner, const struct rlmd_error *err, int64_t retry_after_ms)
{
	struct call *call = owner;

	call->retry_after_ms = retry_after_ms;
	if (err)
		call_failed_custom(call, err);
	else
		call_complete(call);
}

static void call_hand_over(struct call *call)
{
	call->reply.asked = call->request->max_tokens;
	call->attempts++;
	call->attempt_started = clock_ms();
	call->custom = custom_start(call->provider, call->request, &call->reply, on_more, on_custom,
				    call);
}

static void call_send(struct call *call)
{
	const struct rlmd_provider *provider = call->provider;
	struct http_request request = {
		.url = provider->url,
		.headers = (const char *const *)provider->headers,
		.body = take_pointer(&call->outgoing),
		.deadline = call->request->deadline,
		.idle_ms = call->streaming ? IDLE_MS : INT64_MAX,
		.max_size = STREAM_MAX,
		.fresh = call->fresh,
	};

	call->reply.asked = call->request->max_tokens;
	call->reply.watched = call->streaming && provider_is_local(provider, call->request->model);
	call->attempts++;
	call->attempt_started = clock_ms();
	call->transfer = http_start(provider->http, &request, on_status, on_data, on_done, call);
}

/* A part in each turn of the loop, so that a long prompt holds up nobody else. */
static void call_measure(struct call *call)
{
	if (body_measure(call->outgoing, MEASURED_AT_ONCE))
		call_send(call);
	else
		timer_post(call->timer);
}

static void call_encode(struct call *call)
{
	call->streaming = !(call->quirks & QUIRK_NO_STREAM);
	call->outgoing = body_new();
	call->provider->adapter->encode(call->request, call->quirks, call->streaming,
					call->outgoing);
	call_measure(call);
}

static void call_admit(struct call *call)
{
	int64_t now = clock_ms(), at;
	struct rlmd_error error = {0};

	if (!gate_admit(call->provider->gate, now, call_jitter(), &at, &error)) {
		call_finish(call, &error);
	} else if (at >= call->request->deadline) {
		error_set(&error,
			  now >= call->request->deadline ? RLMD_ERROR_TIMEOUT
							 : RLMD_ERROR_THROTTLED,
			  "the time for the call was over before %s could be asked%s",
			  call->provider->name,
			  now >= call->request->deadline ? "" : ": it limits the rate");
		call_finish(call, &error);
	} else if (at > now) {
		log_write(call->request->log, LOG_CALL_HELD,
			  LOG_FIELDS(LOG_TEXT("provider", call->provider->name),
				     LOG_TEXT("model", call->request->model),
				     LOG_NUMBER("wait_ms", at - now)),
			  "%s limits the rate: the call has to wait", call->provider->name);
		call_rest(call, at - now);
	} else if (!call_has_rested(call)) {
		return;
	} else if (call->provider->custom.ask) {
		call_hand_over(call);
	} else {
		call_encode(call);
	}
}

/* The gate opens; the body is being measured; the answer is being taken; or it is there, and its
 * end or its connection's does not come. */
static void on_timer(void *arg)
{
	struct call *call = arg;

	if (reply_waits(&call->reply))
		call_take_whole(call);
	else if (call->transfer)
		call_complete(call);
	else if (call->outgoing)
		call_measure(call);
	else
		call_admit(call);
}

void call_go_on(struct call *call)
{
	call_admit(call);
}

/* The sizes of the model may have come. */
static void on_rooms(void *owner)
{
	struct call *call = owner;
	const struct llm_request *request = call->request;
	struct room room = provider_room(call->provider, request->model);

	if ((room.output && request->max_tokens > room.output) ||
	    (room.window && input_estimate(call) + request->max_tokens > room.window))
		call_fits_less(call, &room);
	timer_post(call->timer);
}

struct call *call_start(struct rlmd_provider *provider, const struct llm_request *request,
			struct llm_warnings *warnings, llm_retry_fn *may_retry,
			llm_wait_fn *on_wait, llm_done_fn *fn, void *owner)
{
	struct call *call = xcalloc(1, sizeof *call);

	call->provider = provider;
	call->request = request;
	call->warnings = warnings;
	call->delta = (struct reply_delta){request->on_delta, request->delta_owner, provider->key,
					   0};
	call->may_retry = may_retry;
	call->on_wait = on_wait;
	call->fn = fn;
	call->owner = owner;
	call->timer = timer_new(provider->base, on_timer, call);
	call->quirks = provider_quirks(provider, request->model);
	call->started = clock_ms();
	reply_init(&call->reply);
	call_tell_quirks(call, call->quirks);
	call->waiter = (struct model_list_waiter){.go = on_rooms, .owner = call};
	if (!model_list_wait(provider_ask_rooms(provider), &call->waiter))
		timer_post(call->timer);
	return call;
}

void call_cancel(struct call *call, struct llm_usage *ret_usage, int64_t *ret_cost)
{
	reply_go_on(&call->reply, SIZE_MAX, NULL); /* it is paid for */
	call_bill(call);
	if (ret_usage)
		*ret_usage = call->usage;
	if (ret_cost)
		*ret_cost = call->cost_unknown ? 0 : call->cost;
	call_free(call);
}
