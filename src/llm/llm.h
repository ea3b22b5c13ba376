/*
 * llm/llm.h - ask a model, get its answer: provider, HTTP, retries, prices.
 *
 * One struct llm serves every run of a process. It owns the keys. Adapters
 * (llm/adapter.h) turn a request into bytes and bytes into a response; what
 * they share is here: transfers over libcurl, the retry gate of a provider and
 * key, the price table, record and replay.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum llm_role { LLM_SYSTEM, LLM_USER, LLM_ASSISTANT };

struct llm_message {
	enum llm_role role;
	struct rlmd_text text; /* any bytes; sent as UTF-8, repaired */
	/* The text without what a clock put into it: what a recording is found by. Empty: as text.
	 */
	struct rlmd_text timeless;
};

/* What the call is for. A script of answers may match by it (docs: rlmd(1), REPLAY). */
enum llm_kind {
	LLM_TURN,   /* "turn": a run's next step */
	LLM_QUERY,  /* "llm_query": a call out of a block */
	LLM_FORCED, /* "forced": the answer after the budget is spent */
	LLM_DIRECT, /* "direct": rlm_query answered without a sub-run */
};
const char *llm_kind_name(enum llm_kind);

struct llm_usage;

/*
 * May a call try again, after attempts that came to this? Must not cancel the call. Where it says
 * no, the call ends with the last attempt's error.
 */
typedef bool llm_retry_fn(void *owner, const struct llm_usage *so_far, int64_t cost_so_far);

/* How a model picks its words. Zero sends nothing of it, which leaves that to the provider. */
struct llm_sampling {
	bool with_temperature;
	double temperature;       /* from 0 to 2 */
	const char *const *stops; /* UTF-8; a reply ends before the first of them; lent */
	size_t stop_count;
};

/* A call waits, for the provider is busy: it loads the model, limits the rate, has too much to do.
 */
struct llm_wait {
	const char *reason; /* said of the model, "it is being loaded"; static */
	int http_status;
	int64_t waited_ms; /* since it was so first */
	int64_t next_ms;   /* until the next attempt */
};
typedef void llm_wait_fn(void *owner, const struct llm_wait *);

struct llm_request {
	const char *model;                  /* NULL or "": the provider's default */
	const struct llm_message *messages; /* lent during llm_start(); system first, if any */
	size_t message_count;
	int64_t max_tokens;           /* of output; > 0 */
	struct llm_sampling sampling; /* its strings are lent until the call is over */
	int64_t deadline;             /* on clock_ms(): no attempt or wait goes beyond it */
	enum llm_kind kind;
	int depth;               /* of the run that asks */
	int turn;                /* of that run, from 0 */
	llm_retry_fn *may_retry; /* asked once something was billed; NULL: always */
	llm_wait_fn *on_wait;    /* told of each wait; must not cancel the call; NULL: nobody */
};

/* More tokens than any model takes or gives in one call: nobody is believed who counts more. */
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
void llm_usage_add(struct llm_usage *sum, const struct llm_usage *more);

enum llm_finish {
	LLM_FINISH_STOP,   /* complete */
	LLM_FINISH_LENGTH, /* cut by max_tokens */
};

/* Lent to the callback. On failure too usage and cost hold what was billed, all attempts summed. */
struct llm_response {
	struct rlmd_text text;
	struct rlmd_text thinking; /* the provider's own reasoning field */
	enum llm_finish finish;
	struct llm_usage usage;
	bool cost_known;
	int64_t cost; /* pico-dollars; 0 where unknown */
	int attempts;
	int billed; /* of these, at most: of several only the sum is known */
	int64_t duration_ms;
	int64_t attempt_ms; /* of it, the last attempt took; without waits before it */
	const char *model;  /* as the provider resolved it, or as asked for */
	bool repeating;     /* it was cut, for it repeated itself: another attempt would, too */
	bool overlong;      /* clearly more than max_tokens came: it was cut here, by us */
};

/* `err` is NULL on success. A refusal is RLMD_ERROR_REFUSED. */
typedef void llm_done_fn(void *owner, const struct llm_response *, const struct rlmd_error *err);

struct llm_config {
	const char *provider;    /* "ollama", "openai", "anthropic", "replay"; not NULL */
	const char *model;       /* NULL: the provider's default */
	const char *base_url;    /* NULL: the provider's environment variable, else its own */
	const char *key_file;    /* NULL: the provider's environment variable */
	const char *price_table; /* NULL: only the shipped one */
	const char *record_dir;  /* NULL: off */
	const char *replay_dir;  /* NULL: off; needed by provider "replay" */
	bool offline;            /* nothing will be asked: no key is needed */
	bool no_stream;
	int max_retries; /* after the first attempt; the SDKs' 2 by default */
	/* How long a call waits at most, in all, for a provider that is busy; 0: it is tried again
	 * as after any other failure. */
	int64_t patience_ms;
};

/* Whom somebody means who named no provider: the only one whose key is in the environment, else
 * "ollama"; static. To be asked before llm_new(), which takes the key out of there. */
const char *llm_default_provider(void);

struct llm;

/*
 * Everything in `config` is lent during the call. Reads the key (and takes it out of the
 * environment), the price tables and the replay script. Opens no connection. RLMD_ERROR_USAGE for
 * an unknown provider, RLMD_ERROR_AUTH for a missing or unsafe key, RLMD_ERROR_INPUT for bad tables
 * and scripts.
 */
struct llm *llm_new(struct event_base *, const struct llm_config *, struct rlmd_error *);
void llm_free(struct llm *); /* calls must be gone; wipes the keys; NULL is fine */

struct llm_call;

/* Never calls back before it returns. */
struct llm_call *llm_start(struct llm *, const struct llm_request *, llm_done_fn *, void *owner);

/*
 * Closes the transfer; no callback follows. `ret` (may be NULL) gets what it had cost so far,
 * estimated where the provider had not reported it.
 */
void llm_cancel(struct llm_call *, struct llm_usage *ret_usage, int64_t *ret_cost);

/* The most a call may cost: false where the model's price is unknown. Local models cost 0. */
bool llm_price(const struct llm *, const char *model, int64_t input_tokens, int64_t output_tokens,
	       int64_t *ret_cost);

/* How many tokens a prompt and its answer may have together: by the price tables, else a guess that
 * is safe for most: 32,768 for a local model, 128,000 for others. */
int64_t llm_window(const struct llm *, const char *model);

/* How many of them an answer may have; INT64_MAX where no price table tells. */
int64_t llm_max_output(const struct llm *, const char *model);

/* Warns, once, that what the model costs is not counted. */
void llm_warn_unpriced(struct llm *, const char *model);

const char *llm_default_model(const struct llm *); /* lent */
const char *llm_provider(const struct llm *);      /* lent */
const char *llm_price_date(const struct llm *);    /* "2026-11-01", lent */

/*
 * What code is told that a clock has a part in (llm/told.h): takes the words, and returns those to
 * tell. Whether anything is kept or found so at all.
 */
char *llm_told(struct llm *, struct rlmd_text asked, char *words, size_t *size);
bool llm_keeps(const struct llm *);

/* What a user should be warned of, each text once, as a new array of strings; emptied by this. */
json_t *llm_take_warnings(struct llm *);
