/*
 * llm/provider.h - one provider with one key: where it is, what opens it, what it costs.
 *
 * All that calls share and that outlives them. Made of its settings alone; it belongs to a loop
 * from provider_bind() on, and is opened when something is to be asked of it, so that nobody needs
 * the key of what is never asked. The key is bound to a host: one from the environment goes to the
 * provider's own host, or to the one its environment names, and nowhere else.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <rlmd/provider.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/adapter.h"
#include "llm/custom.h"
#include "llm/price.h"
#include "llm/request.h"
#include "llm/room.h"
#include "net/gate.h"
#include "net/http.h"

enum { PRICED_MAX = 4 }; /* models: those of a job's depths */

/* The prices of the models asked for last: a call looks them up a dozen times. */
struct priced {
	struct {
		char *model; /* owned; NULL: nothing is kept here */
		bool known;
		struct price price;
	} of[PRICED_MAX];
	size_t next; /* to be forgotten */
};

struct rlmd_provider {
	int references;
	const struct adapter *adapter; /* lent; NULL for "replay", and the host's own */
	struct custom custom;          /* owned: of the host's own */
	char *name;                    /* owned */
	char *default_model;           /* owned */
	char *base_url;                /* owned; as given, or NULL */
	char *key_file;                /* owned; NULL: none */
	char *given_key;               /* owned; NULL: none */
	bool given_by_environment;     /* the key was: it goes to no other host */
	char *withheld; /* owned: why the key is not sent, in a sentence; NULL: it is, or none is */
	bool at_home;   /* it is asked where its vendor has it */
	int max_retries;
	int64_t patience_ms;
	bool no_stream;
	bool free;                                /* all of its models cost nothing */
	int64_t window;                           /* of all its models; 0: by the tables */
	struct rlmd_price_table *shipped, *given; /* owned; `given` comes first, may be NULL */
	struct priced *priced;                    /* owned */
	struct price own;                         /* of each model, in place of the tables; */
	bool own_price;                           /* if this is set */
	json_t *quirks;                           /* owned: model -> bits of enum adapter_quirk */
	json_t *rooms;                            /* owned: model -> "window", "output", as told */
	json_t *notes;           /* owned array: what whoever uses it should be warned of */
	struct event_base *base; /* lent; NULL: it belongs to no loop */

	/* Once it is open. */
	char *url;               /* owned; NULL: it is not */
	char *key;               /* owned; NULL: none is sent */
	char **headers;          /* owned, NULL-terminated */
	struct http *http;       /* owned */
	struct gate *gate;       /* owned */
	struct model_list *list; /* owned; NULL: it was not asked for */
	bool near;               /* its server is on this machine, or in its network */
};

/* rlmd_provider_new() of options that were checked, with a kind at least, whose `max_retries` is
 * what it says. All of them are lent during the call. Reads the environment and its own price
 * table, and changes neither. RLMD_ERROR_USAGE for an unknown kind or a bad name, RLMD_ERROR_INPUT
 * for a bad table. */
struct rlmd_provider *provider_new(const struct rlmd_provider_options *, struct rlmd_error *);
struct rlmd_provider *provider_ref(struct rlmd_provider *);
void provider_unref(struct rlmd_provider *); /* NULL is fine; wipes the key with the last one */

/* A name that a model's may begin with: letters, digits, - _ and dots. RLMD_ERROR_USAGE. */
bool provider_check_name(const char *name, struct rlmd_error *);

/* The table that is shipped, which comes after its own; NULL: there is none, and why. Takes a
 * reference. */
void provider_take_prices(struct rlmd_provider *, struct rlmd_price_table *shipped,
			  const struct rlmd_error *missing);

void provider_rename(struct rlmd_provider *, const char *name);

/* Makes it one of this loop, and of no other until it is unbound. RLMD_ERROR_USAGE. */
bool provider_bind(struct rlmd_provider *, struct event_base *, struct rlmd_error *);
void provider_unbind(struct rlmd_provider *); /* closes it; calls must be gone */

/* Finds address and key, unless that was done; connects to nobody. RLMD_ERROR_USAGE for a bad base
 * URL, RLMD_ERROR_AUTH for a missing or unsafe key. */
bool provider_open(struct rlmd_provider *, struct rlmd_error *);

/* Connects to its server ahead of the first call, where it is open and has one (net/http.h). */
void provider_connect(struct rlmd_provider *);

/* Asks a server of one's own, without TLS, for the sizes of its models, unless it was asked, or
 * there is nothing to learn. Returns whom to wait for; NULL: nobody. */
struct model_list *provider_ask_rooms(struct rlmd_provider *);

/* Where it has its list of models, new; it is open. */
char *provider_probe_url(const struct rlmd_provider *);

/* Whether there is a key, or no need of one: what is wrong with it is found when it is opened. */
bool provider_has_key(const struct rlmd_provider *);

/* Whether it is asked elsewhere than at its vendor's, in a protocol that many servers speak, whose
 * models may have names that begin like a provider's. */
bool provider_is_gateway(const struct rlmd_provider *);

/* Whether it may be a small model of one's own, which costs nothing. */
bool provider_is_local(const struct rlmd_provider *, const char *model);

/* The row of `model` in the tables; false where there is none. */
bool provider_price(const struct rlmd_provider *, const char *model, struct price *ret);

/* The cost of a usage; false and 0 where the model has no price. */
bool provider_cost(const struct rlmd_provider *, const char *model, const struct llm_usage *,
		   int64_t *ret_cost);

/*
 * The charge for a call: the cost that the provider `reported` (-1: nothing), else by the price
 * of the model as asked for, or as resolved. False and 0, with a warning, where neither has one.
 */
bool provider_charge(const struct rlmd_provider *, const char *model, const char *resolved,
		     int64_t reported, const struct llm_usage *, struct llm_warnings *,
		     int64_t *ret_cost);

/* Warns that the model's calls cost what nobody counts. */
void provider_warn_unpriced(const char *model, struct llm_warnings *);

/* The features that `model` was found to refuse; and `quirks` with one more, remembered for later
 * calls. */
unsigned provider_quirks(const struct rlmd_provider *, const char *model);
unsigned provider_learn(struct rlmd_provider *, const char *model, unsigned quirks, unsigned quirk);

/* The sizes that the provider told of the model, in a refusal or in its list; and what it tells
 * now. */
struct room provider_room(const struct rlmd_provider *, const char *model);
void provider_learn_room(struct rlmd_provider *, const char *model, const struct room *);
