/*
 * llm/provider.h - one provider as this process uses it: where it is, what opens it, what it costs.
 *
 * All that calls share and that outlives them. The key is bound to a host here: one from the
 * environment goes to the provider's own host, or to the one its environment names, and nowhere
 * else.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/adapter.h"
#include "llm/gate.h"
#include "llm/http.h"
#include "llm/llm.h"
#include "llm/price.h"

struct provider {
	struct event_base *base;       /* lent */
	const struct adapter *adapter; /* lent; NULL for "replay" */
	const char *name;              /* lent, static */
	char *default_model;           /* owned */
	char *url;                     /* owned; NULL when nothing may be opened */
	char *key;                     /* owned; NULL: none is sent */
	char **headers;                /* owned, NULL-terminated */
	struct http *http;             /* owned */
	struct gate *gate;             /* owned */
	bool no_stream;
	bool near;                           /* its server is on this machine, or in its network */
	struct price_table *shipped, *given; /* owned; `given` comes first, may be NULL */
	json_t *quirks;                      /* owned: model -> bits of enum adapter_quirk */
	json_t *warnings, *warned;           /* owned: not yet taken; all texts so far, as keys */
};

/* As llm_new(); with config->replay_dir nothing will ever be opened. */
bool provider_init(struct provider *, struct event_base *, const struct llm_config *,
		   struct rlmd_error *);
void provider_done(struct provider *); /* of a zeroed one too */

/* Whether it may be a small model of one's own, which costs nothing. */
bool provider_is_local(const struct provider *, const char *model);

/* The row of `model` in the tables; false where there is none. */
bool provider_price(const struct provider *, const char *model, struct price *ret);

/* What usage costs; false and 0 where the model has no price. */
bool provider_cost(const struct provider *, const char *model, const struct llm_usage *,
		   int64_t *ret_cost);

/*
 * What a call is charged: what the provider `reported` (-1: nothing), else by the price of the
 * model as asked for, or as resolved. False and 0, with a warning, where neither has one.
 */
bool provider_charge(struct provider *, const char *model, const char *resolved, int64_t reported,
		     const struct llm_usage *, int64_t *ret_cost);

/* Warns that the model's calls cost what nobody counts. */
void provider_warn_unpriced(struct provider *, const char *model);

/* Notes a warning for llm_take_warnings(), each text once. */
void provider_warn(struct provider *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What `model` was found to refuse; and `quirks` with one more, remembered for later calls. */
unsigned provider_quirks(const struct provider *, const char *model);
unsigned provider_learn(struct provider *, const char *model, unsigned quirks, unsigned quirk);
