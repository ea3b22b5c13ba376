/*
 * llm/request.h - a model's request and response: the values that every adapter, cache and
 * recording reads.
 */
#pragma once

#include <jansson.h>
#include <rlmd/provider.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

enum llm_role { LLM_SYSTEM, LLM_USER, LLM_ASSISTANT };

struct llm_message {
	enum llm_role role;
	struct rlmd_text text; /* any bytes; sent as UTF-8, repaired */
	/* The text without clock readings and budget figures: recordings are found by it. Empty:
	 * as text. */
	struct rlmd_text timeless;
	/* Scan of the timeless text, if one was made already; lent, or NULL. */
	const struct text_scan *scan;
};

/* Purpose of a call. A script of answers may match by it (docs: rlmd-exec(1), REPLAY). */
enum llm_kind {
	LLM_TURN,   /* "turn": a run's next step */
	LLM_QUERY,  /* "llm_query": a call out of a block */
	LLM_FORCED, /* "forced": the answer after the budget is spent */
	LLM_DIRECT, /* "direct": rlm_query answered without a sub-run */
};
const char *request_kind_name(enum llm_kind);

struct llm_request;
enum rlmd_model_kind request_model_kind(const struct llm_request *); /* for the host */

struct llm_call;
struct kept_lookup;
struct rlmd_job;

/* More tokens than any model takes or gives in one call: a larger count is an error. */
enum { LLM_COUNT_MAX = 100000000 };

struct llm_usage {
	int64_t input;          /* all of the prompt, cached or not */
	int64_t output;         /* reasoning included */
	int64_t cache_read;     /* of `input` */
	int64_t cache_write;    /* of `input`, five-minute writes and unspecified ones */
	int64_t cache_write_1h; /* of `input` */
	int64_t reasoning;      /* of `output` */
	bool estimated;         /* not (all) reported by the provider */
};
void request_add_usage(struct llm_usage *sum, const struct llm_usage *more);

/* Sampling parameters. Zero sends none of them: the provider's defaults hold. */
struct llm_sampling {
	bool with_temperature;
	double temperature;       /* from 0 to 2 */
	const char *const *stops; /* UTF-8; a reply ends before the first of them; lent */
	size_t stop_count;
};

/* A call waits because the provider is busy: it loads the model, limits the rate, is overloaded. */
struct llm_wait {
	const char *reason; /* said of the model, "it is being loaded"; static */
	int http_status;
	int64_t waited_ms; /* since the provider was first busy */
	int64_t next_ms;   /* until the next attempt */
};

/*
 * The callbacks of a call. None of them may cancel it.
 *
 * llm_retry_fn: may the call try again, after attempts that used `so_far`? If not, the call ends
 * with the last attempt's error.
 * llm_rest_fn: the call waits before its next attempt; its place among the calls in flight is free.
 * llm_rested_fn: that wait is over. True: the call goes on at once. False: llm_go_on() must follow.
 * llm_delta_fn: more of the reply's text, UTF-8. Empty: the call is tried again, and the text so
 * far is void. All pieces together are the response's text, but where that is cut for repetition.
 */
typedef bool llm_retry_fn(void *owner, const struct llm_usage *so_far, int64_t cost_so_far);
typedef void llm_wait_fn(void *owner, const struct llm_wait *);
typedef void llm_rest_fn(void *owner);
typedef bool llm_rested_fn(void *owner);
typedef void llm_delta_fn(void *owner, struct rlmd_text more);

struct llm_request {
	const char *model;                  /* NULL or "": llm_default_model() */
	const char *named;                  /* set by llm: the model's name in recordings */
	const struct llm_message *messages; /* lent until the call is over; system first, if any */
	size_t message_count;
	int64_t max_tokens;   /* of output; > 0 */
	int64_t asked_tokens; /* max_tokens before the budget lowered it: identifies the request;
				 0: as max_tokens */
	bool lowered;         /* the budget lowered max_tokens */
	bool decides;         /* its failure fails the whole job: another attempt asks again */
	struct llm_sampling sampling; /* its strings are lent until the call is over */
	int64_t deadline;             /* on clock_ms(): no attempt or wait goes beyond it */
	enum llm_kind kind;
	int depth;                  /* of the run that asks */
	const char *run;            /* its id; lent until the call is over */
	bool of_operation;          /* no run asks, but a plan */
	const struct rlmd_job *job; /* set by llm: that asks; or NULL */
	const char *tenant;         /* likewise; lent until the call is over */
	int turn;                   /* of that run, from 0 */
	int number;                 /* of the call, as the trace has it */
	/* Of the caller in the job, the same each time the job runs: recordings are keyed by it;
	 * lent until the call is over; or NULL. */
	const char *position;
	llm_retry_fn *may_retry; /* asked once something was billed; NULL: always */
	llm_wait_fn *on_wait;    /* NULL: waits are not reported */
	llm_delta_fn *on_delta;  /* NULL: the reply comes whole */
	void *delta_owner;       /* of on_delta; lent until the call is over */
	llm_rest_fn *on_rest;    /* on_rest and on_rested: both or neither */
	llm_rested_fn *on_rested;
	void *rest_owner;      /* of on_rest and on_rested; lent until the call is over */
	const struct log *log; /* lent until the call is over; NULL: nothing is logged */
	const struct kept_lookup *lookup; /* llm_look_up()'s; lent until the call is over; NULL: no
					    cache and no journal is looked at */
	/* JSON Schema for the reply, sent to providers that can enforce one; not a promise. Lent
	 * until the call is over; empty: none. */
	struct rlmd_text schema;
};

enum llm_finish {
	LLM_FINISH_STOP,   /* complete */
	LLM_FINISH_LENGTH, /* cut by max_tokens */
};

/* Lent to the callback. Usage and cost sum all attempts, on failure too. */
struct llm_response {
	struct rlmd_text text;     /* UTF-8 */
	struct bytes *bytes;       /* lent: the buffer of `text`, which the callback may take
				      (bytes_take()) instead of copying megabytes; or NULL */
	struct rlmd_text thinking; /* the provider's own reasoning field */
	enum llm_finish finish;
	struct llm_usage usage;
	bool cost_known;
	int64_t cost; /* pico-dollars; 0 where unknown */
	int attempts;
	int billed; /* attempts that may have been billed: of several only the sum is known */
	int64_t duration_ms;
	int64_t attempt_ms;      /* of the last attempt, without the waits before it */
	const char *provider;    /* by its name, once the call was sent; or NULL */
	int64_t queued, started; /* likewise clock_ms() when it was wanted, and when it was sent */
	const char *model;       /* as the provider resolved it, or as asked for */
	bool repeating;          /* cut because it repeated itself: another attempt would, too */
	size_t broken_at; /* bytes after which the last attempt's answer broke off; 0: it did not */
	bool overlong;    /* the provider sent clearly more than max_tokens: cut here */
	const int *number;      /* in a replay, the call's number when it was recorded; or NULL */
	struct rlmd_text asked; /* in a replay, the last message as it was recorded; or empty */
	bool cached;            /* from the cache: nothing was sent, nothing is billed */
	bool journaled;         /* from the journal: an earlier attempt at the job has paid */
	int64_t lowered;        /* the max_tokens, lowered by the budget, that cut it; or 0 */
};

/* `err` is NULL on success. A refusal is RLMD_ERROR_REFUSED. */
typedef void llm_done_fn(void *owner, const struct llm_response *, const struct rlmd_error *err);

/* The warnings of whoever asks models, each text once. Texts name models, which foreign code names,
 * so there are so many at most. Embed it; zero is empty. */
struct llm_warnings {
	json_t *all;  /* owned: an array of strings, or NULL; the owner drops it */
	size_t taken; /* of them */
};
void request_warn(struct llm_warnings *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Those that were not taken yet, as a new array of strings. */
json_t *request_take_warnings(struct llm_warnings *);
