/*
 * llm/llm.h - ask a model, get its answer.
 *
 * One struct llm serves all runs of one job: it knows which providers that may ask, keeps its
 * recording, and what it should be warned of. The providers themselves, with their keys, prices
 * and retry gates, are the process's (llm/registry.h). Every model is named as llm/model_names.h
 * has it, "provider/model" or "model", and this is the one place that takes such names apart.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "llm/kept.h"
#include "llm/request.h"
#include "llm/room.h"

struct rlmd_journal;

struct llm_config {
	const char *provider;   /* the own one, by its name; NULL: the registry's first */
	const char *model;      /* of calls that name none; NULL: the provider's default */
	const char *record_dir; /* NULL: off */
	const char *replay_dir; /* NULL: off; nobody is asked then, and no cache is looked at */
	const char *cache_dir;  /* NULL: off */
	int64_t cache_age_ms, cache_size;
	const char
		*tenant; /* whose the calls are: a cache has nothing for others; NULL: nobody's */
	const struct rlmd_job *job;         /* a provider of the host's is told of it; or NULL */
	bool offline;                       /* nothing will be asked: no key is needed */
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
 * model_names_allow() (llm/model_names.h).
 */
bool llm_allow(struct llm *, const char *model, struct rlmd_error *);

/* As kept_look() (llm/kept.h), by the names of models that the job has. */
struct kept_lookup *llm_look_up(struct llm *, const struct llm_request *, const char *asker);

/* The answers to `asker` in its turns led nowhere: the next time they are asked for again. */
void llm_forget(struct llm *, const char *asker);

struct llm_call;

/* Answers with an exchange that was kept; else asks, and keeps an answer that is whole. Never calls
 * back before it returns. */
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

/* Both as the provider told them in this process, which no request's identity may depend on; 0: it
 * did not. */
struct room llm_room(const struct llm *, const char *model);

/* Warns, once, that what the model costs is not counted. */
void llm_warn_unpriced(struct llm *, const char *model);

const char *llm_default_model(const struct llm *);               /* lent */
const char *llm_provider(const struct llm *, const char *model); /* whose that is; lent */
const char *llm_price_date(const struct llm *);                  /* "2026-11-01", lent */

/* Connects to whom a request for that model goes, ahead of it; not where its answer may come from
 * elsewhere. */
void llm_connect(const struct llm *, const char *model);

/* The exchanges that the job keeps, for kept_value_name() and the like; lent. */
struct kept *llm_kept(struct llm *);

bool llm_keeps(const struct llm *);   /* exchanges are recorded, or replayed */
bool llm_replays(const struct llm *); /* nobody is asked */

/* Whether who asks for what is to be known by a position that is the same the next time
 * (llm_request.position): exchanges are kept or found, or the job has a journal. */
bool llm_knows_positions(const struct llm *);

/* The warnings for the job, each text once, as a new array of strings; emptied by this. */
json_t *llm_take_warnings(struct llm *);
