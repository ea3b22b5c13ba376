/*
 * llm/llm.h - ask a model, get its answer.
 *
 * One struct llm serves all runs of one job: it knows which providers that may ask, keeps its
 * recording, and what it should be warned of. The providers themselves, with their keys, prices
 * and retry gates, are the process's (llm/registry.h). Every model is named as llm/choice.h has
 * it, "provider/model" or "model", and this is the one place that takes such names apart.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
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
	/* The text without what a clock put into it, and what is left of a budget: what a recording
	 * is found by. Empty: as text. */
	struct rlmd_text timeless;
	/* Of the timeless text, whoever has made it already; lent, or NULL. */
	const struct text_scan *scan;
};

/* What the call is for. A script of answers may match by it (docs: rlmd(1), REPLAY). */
enum llm_kind {
	LLM_TURN,   /* "turn": a run's next step */
	LLM_QUERY,  /* "llm_query": a call out of a block */
	LLM_FORCED, /* "forced": the answer after the budget is spent */
	LLM_DIRECT, /* "direct": rlm_query answered without a sub-run */
};
const char *llm_kind_name(enum llm_kind);

struct llm_recall;
struct llm_usage;
struct rlmd_journal;

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

/* A call waits before its next attempt, and asks nobody until then: its place among those that do
 * is free. Must not cancel the call. */
typedef void llm_rest_fn(void *owner);

/* That wait is over: may it go on at once? If not, llm_go_on() has to follow. Likewise. */
typedef bool llm_rested_fn(void *owner);

/* More of the reply's text, UTF-8; empty: the call is tried again, and what came before is void.
 * Together they are the response's text, but where that is cut for repetition. */
typedef void llm_delta_fn(void *owner, struct rlmd_text more);

struct llm_request {
	const char *model;                  /* NULL or "": llm_default_model() */
	const char *named;                  /* the same as recordings have it; not to be set */
	const struct llm_message *messages; /* lent until the call is over; system first, if any */
	size_t message_count;
	int64_t max_tokens;   /* of output; > 0 */
	int64_t asked_tokens; /* the same before a purse lowered it, which identifies the request;
				 0: as max_tokens */
	bool lowered;         /* by a purse, which would have afforded more */
	bool decides;         /* if it fails the whole work does: another attempt asks again */
	struct llm_sampling sampling; /* its strings are lent until the call is over */
	int64_t deadline;             /* on clock_ms(): no attempt or wait goes beyond it */
	enum llm_kind kind;
	int depth;         /* of the run that asks */
	int turn;          /* of that run, from 0 */
	int number;        /* of the call, as the trace has it */
	const char *place; /* who asks, and for what: the same in each run of the same work, for
			      recordings; lent until the call is over; NULL: nobody says */
	llm_retry_fn *may_retry; /* asked once something was billed; NULL: always */
	llm_wait_fn *on_wait;    /* told of each wait; must not cancel the call; NULL: nobody */
	llm_delta_fn *on_delta;  /* told of the reply as it comes; likewise */
	void *delta_owner;       /* lent until the call is over: of on_delta alone */
	llm_rest_fn *on_rest;    /* both or neither */
	llm_rested_fn *on_rested;
	void *rest_owner;      /* lent until the call is over: of these two */
	const struct log *log; /* lent until the call is over: whose it is; NULL: nobody hears */
	const struct llm_recall *recall; /* likewise: llm_recall()'s; NULL: no cache is looked at */
	/* JSON Schema that the reply should satisfy, for providers that can see to it; lent until
	 * the call is over; empty: none. It is no promise. */
	struct rlmd_text schema;
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
	struct rlmd_text text;     /* UTF-8 */
	struct bytes *bytes;       /* lent: the text's own, which whoever hears of it may take
				      (bytes_take()), for it may be megabytes; or NULL */
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
	size_t broken_at; /* bytes after which the last attempt's answer broke off; 0: it did not */
	bool overlong;    /* clearly more than max_tokens came: it was cut here, by us */
	const int *number;      /* of a replay, the call's as it was then; NULL: as it is now */
	struct rlmd_text asked; /* likewise the last message, with what the clock said; or empty */
	bool cached;            /* it was had before: nobody was asked, and nothing is billed */
	bool journaled;         /* an earlier attempt at the job has had it, and has paid */
	int64_t lowered;        /* it was cut by this max_tokens, which a purse had lowered; or 0 */
};

/* `err` is NULL on success. A refusal is RLMD_ERROR_REFUSED. */
typedef void llm_done_fn(void *owner, const struct llm_response *, const struct rlmd_error *err);

struct llm_config {
	const char *provider;   /* the own one, by its name; NULL: the registry's first */
	const char *model;      /* of calls that name none; NULL: the provider's default */
	const char *record_dir; /* NULL: off */
	const char *replay_dir; /* NULL: off; nobody is asked then, and no cache is looked at */
	const char *cache_dir;  /* NULL: off */
	int64_t cache_age_ms, cache_size;
	const char
		*tenant; /* whose the calls are: a cache has nothing for others; NULL: nobody's */
	bool offline;    /* nothing will be asked: no key is needed */
	const struct rlmd_journal *journal; /* NULL: off; off, too, where a replay answers */
	/* Of that: the job has to end with this error, from the loop. */
	void (*journal_broken)(void *owner, const struct rlmd_error *);
	void *journal_owner; /* lent */
};

struct llm;
struct registry;

/*
 * Everything in `config` is lent during the call, the registry for good. Reads the replay script,
 * opens no connection. RLMD_ERROR_USAGE for an unknown provider and a bad address, RLMD_ERROR_AUTH
 * for a missing or unsafe key, RLMD_ERROR_INPUT for bad scripts.
 */
struct llm *llm_new(struct registry *, const struct llm_config *, struct rlmd_error *);
void llm_free(struct llm *); /* calls must be gone; NULL is fine */

/* The host of its journal is told of nothing any more: its job is being freed. */
void llm_leave_journal(struct llm *);

/*
 * Lets all names of models that follow name the provider that this one does. For names of whoever
 * ordered the work: those that foreign code gives are not to be allowed. NULL is fine. Errors as of
 * choices_allow() (llm/choice.h).
 */
bool llm_allow(struct llm *, const char *model, struct rlmd_error *);

/*
 * Looks for a request's answer among those that were had before: in the job's journal, else in a
 * cache (llm/cache.h); to be asked once for each call. What `asker`, a name, asks a cache for the
 * second time is looked for as such: whoever asks the same twice wants two answers. NULL: there is
 * neither. A call that is sent once more looks for its next answer in the journal alone.
 */
struct llm_recall *llm_recall(struct llm *, const struct llm_request *, const char *asker);
void llm_recall_again(struct llm_recall *);   /* NULL is fine */
bool llm_recalled(const struct llm_recall *); /* it is there; NULL is fine */
void llm_recall_free(struct llm_recall *);    /* NULL is fine */

/* An answer that is there was paid by an earlier attempt at the job. NULL is fine. */
bool llm_recalled_paid(const struct llm_recall *);

/* How often the same was asked by earlier attempts, who have paid for that and got nothing; once.
 * `cost_known` as of a response. NULL is fine: 0. */
struct llm_bill {
	struct llm_usage usage;
	int64_t cost;
	bool cost_unknown;
	int64_t calls;
};
struct llm_bill llm_recall_bill(struct llm_recall *);

/* What `asker` was answered in its turns led nowhere: the next time it is asked for again. */
void llm_forget(struct llm *, const char *asker);

struct llm_call;

/* Answers from what was recalled; else asks, and keeps an answer that is whole. Never calls back
 * before it returns. */
struct llm_call *llm_start(struct llm *, const struct llm_request *, llm_done_fn *, void *owner);

/* One that was told to wait when its rest was over has its turn. */
void llm_go_on(struct llm_call *);

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

const char *llm_default_model(const struct llm *);               /* lent */
const char *llm_provider(const struct llm *, const char *model); /* whose that is; lent */
const char *llm_price_date(const struct llm *);                  /* "2026-11-01", lent */

/*
 * What code is told that a clock or the host has a part in (llm/told.h): named by what had asked
 * for it, before it is said; looked for, new, or NULL; and kept, `found` or not. Nothing is sent to
 * a model before what was told is in the journal, where there is one.
 */
struct llm_told {
	char id[65];
	int64_t number;
};
void llm_told_name(struct llm *, struct rlmd_text asked, struct llm_told *ret);
char *llm_told_find(struct llm *, const struct llm_told *, size_t *ret_size);
void llm_told_keep(struct llm *, const struct llm_told *, struct rlmd_text words, bool found);

/* Connects to whom a request for that model goes, ahead of it; not where its answer may come from
 * elsewhere. */
void llm_connect(const struct llm *, const char *model);

bool llm_keeps(const struct llm *);   /* exchanges are recorded, or replayed */
bool llm_replays(const struct llm *); /* nobody is asked */

/* Whether who asks for what is to be known by a place that is the same the next time
 * (llm_request.place): exchanges are kept or found, or the job has a journal. */
bool llm_knows_places(const struct llm *);

/* What the job should be warned of, each text once, as a new array of strings; emptied by this. */
json_t *llm_take_warnings(struct llm *);
