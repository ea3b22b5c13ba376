/*
 * rlmd/provider.h - servers, or functions of the host, that answer model calls.
 *
 * A provider is a server that this library can speak to ("openai" is for all that
 * speak its Chat Completions API), or the host's own: a function that takes a
 * request and answers it later. Retries, rate limits, recording and budgets work
 * the same for both. A process may have several providers, also of one kind, each
 * with a name of its own; models are named "provider/model".
 *
 * Use a provider in the thread of the engine that it is added to (rlmd/engine.h);
 * before that, in one thread at a time.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
struct rlmd_job;
struct rlmd_price;
struct rlmd_price_table;
struct rlmd_probe;
struct rlmd_provider;

enum rlmd_role {
	RLMD_ROLE_SYSTEM, /* only first, if at all */
	RLMD_ROLE_USER,
	RLMD_ROLE_ASSISTANT,
};

struct rlmd_message {
	enum rlmd_role role;
	struct rlmd_text text; /* any bytes: the output of programs may be in it */
};

enum rlmd_model_kind {
	RLMD_MODEL_TURN,      /* a run's next step */
	RLMD_MODEL_SUBCALL,   /* a call of a run's code */
	RLMD_MODEL_FORCED,    /* the answer of a run that may not go on */
	RLMD_MODEL_OPERATION, /* of a job that is a plan */
};

/* A request to a provider of the host. All of it is lent until it is answered or cancelled. */
struct rlmd_model_request {
	size_t size;       /* of the library's version of this */
	uint64_t id;       /* names the request; never used again */
	const char *model; /* without the provider's name */
	const struct rlmd_message *messages;
	size_t message_count;
	int64_t max_tokens; /* of output; a reply that is clearly longer is cut */
	bool with_temperature;
	double temperature;       /* from 0 to 2, if with_temperature */
	const char *const *stops; /* the reply ends before the first of these */
	size_t stop_count;
	int64_t time_left_ms;       /* after which the request is cancelled */
	const struct rlmd_job *job; /* that asks */
	const char *run;            /* of it, as in the trace; or the job's id: a plan asks */
	int64_t depth;              /* of the run; 0: the root, or a plan */
	enum rlmd_model_kind kind;
	const char *tenant; /* the job's; NULL: it has none */
};

/*
 * Begins to answer a request. Call rlmd_provider_answer() or rlmd_provider_fail() for it, from
 * inside of this function or later, unless it is cancelled.
 */
typedef void rlmd_model_ask_fn(void *owner, const struct rlmd_model_request *);

/*
 * The answer is not needed any more: the time of the request is over, its job was cancelled, or
 * enough of the reply has come. Its cost is estimated. A later answer is ignored.
 */
typedef void rlmd_model_cancel_fn(void *owner, uint64_t request);

struct rlmd_provider_options {
	size_t size;
	const char *kind; /* "openai", "anthropic", "ollama", "replay" (asks nobody); NULL: `ask` */
	const char *name; /* 1 to 64 of letters, digits, - _ and dots; NULL: as the kind */
	const char *model; /* if a job names none; NULL: the kind's default */

	/* For providers with a `kind`: */
	const char *base_url; /* NULL: of the kind's variable (OPENAI_BASE_URL), or its own */
	const char *key;      /* NULL: that of the file, else of the environment */
	const char *key_file; /* nobody else may read it; read when it is first needed */
	const char *key_environment; /* a variable; NULL: the kind's own (OPENAI_API_KEY); "": none.
					Its key goes to the kind's own host or to that of its
					variable, and to no other base_url */
	bool no_stream;              /* whole answers only */

	/* For all providers: */
	const char *price_table;         /* a file (rlmd/price.h) over the one that is shipped */
	struct rlmd_price_table *prices; /* the same, opened before, referenced; or NULL */
	int max_retries;                 /* of an attempt that failed; 0: 2; negative: none. At
					  * least 5, if any, where an answer had begun */
	int64_t patience_ms; /* how long a call waits in all while the provider is busy; 0: a busy
				provider is a failure like others, and retried like them */

	/* For providers of the host. No callback comes once the engine is freed. The callbacks may
	   call rlmd_provider_delta(), rlmd_provider_answer() and rlmd_provider_fail(). */
	rlmd_model_ask_fn *ask;
	rlmd_model_cancel_fn *cancel; /* or NULL */
	void *owner;                  /* lent: of both */
	bool costs_nothing;           /* else answers, `price` or the tables say the cost */
	int64_t window; /* tokens of prompt and answer together; 0: by the tables, or 128,000 */
	const struct rlmd_price *price; /* of each of its models, in place of the tables
					   (rlmd/price.h): a cache's price of 0 is that of
					   input. Copied; NULL: by the tables */
};

#define RLMD_PROVIDER_OPTIONS_INIT RLMD_INIT(struct rlmd_provider_options)

/*
 * One reference, for the caller. Reads the environment and the price tables, opens no connection;
 * a key is missed when the first job may ask (rlmd_job_start()). NULL with RLMD_ERROR_USAGE:
 * unknown kind, bad name, neither kind nor `ask`, or both, a price that is negative or beside
 * costs_nothing; RLMD_ERROR_INPUT: a bad price table.
 */
RLMD_API struct rlmd_provider *rlmd_provider_new(const struct rlmd_provider_options *,
						 struct rlmd_error *);
RLMD_API struct rlmd_provider *rlmd_provider_ref(struct rlmd_provider *);
/* The last one wipes the key. NULL is fine. */
RLMD_API void rlmd_provider_unref(struct rlmd_provider *);
RLMD_API const char *rlmd_provider_name(const struct rlmd_provider *);

/* "ollama", "openai", "anthropic"; NULL: there are no more. Static. */
RLMD_API const char *rlmd_provider_kind(size_t index);

/* The names of environment variables that may hold the key of a kind. NULL: there are no more, or
 * there is no such kind. Static. */
RLMD_API const char *rlmd_provider_key_variable(const char *kind, size_t index);

/*
 * The kind to use if the user names none: the kind that `model` (or NULL) begins with
 * ("openai/..."), if its key is in the environment; else the only kind whose key is there; else
 * "ollama". Static.
 */
RLMD_API const char *rlmd_provider_default(const char *model);

/* --- answers of the host's own ------------------------------------------------------ */

/*
 * The next part of the reply. False, and the part is ignored: the request was answered or cancelled
 * or has enough, `provider` is not a provider of the host, or bytes are NULL.
 */
RLMD_API bool rlmd_provider_delta(struct rlmd_provider *, uint64_t request, struct rlmd_text);

struct rlmd_model_answer {
	size_t size;
	struct rlmd_text text;     /* the reply without its deltas; broken UTF-8 is repaired */
	struct rlmd_text thinking; /* reasoning that is not part of the reply */
	bool cut;                  /* the reply was ended by max_tokens */
	int64_t input_tokens;      /* all of the prompt; with output_tokens 0: both are estimated */
	int64_t output_tokens;
	int64_t cached_tokens; /* of the input, if they cost less */
	bool with_cost;
	int64_t cost;      /* pico-dollars, if with_cost; else by the price tables */
	const char *model; /* that answered; NULL: the one of the request */
};

#define RLMD_MODEL_ANSWER_INIT RLMD_INIT(struct rlmd_model_answer)

/* Ends the reply. False, and it is ignored: as for rlmd_provider_delta(), or the answer is NULL or
 * of unknown size. */
RLMD_API bool rlmd_provider_answer(struct rlmd_provider *, uint64_t request,
				   const struct rlmd_model_answer *);

struct rlmd_model_failure {
	size_t size;
	enum rlmd_error_kind kind; /* decides whether it is tried again: THROTTLED, OVERLOADED,
				      NETWORK and TIMEOUT are; AUTH with status 401 and BILLING end
				      all calls of the provider; NONE is taken for INTERNAL */
	const char *message;       /* what happened, for people; NULL: what the kind means */
	int http_status;           /* 0: there was none */
	int64_t retry_after_ms;    /* no sooner; 0: by rule */
};

#define RLMD_MODEL_FAILURE_INIT RLMD_INIT(struct rlmd_model_failure)

/* Ends the request without a reply and without cost. False: as for rlmd_provider_answer(). */
RLMD_API bool rlmd_provider_fail(struct rlmd_provider *, uint64_t request,
				 const struct rlmd_model_failure *);

/* --- whether it answers --------------------------------------------------------------- */

struct rlmd_probe_result {
	size_t size;     /* of the library's version of this */
	const char *url; /* that was asked; NULL: none. Lent to the callback, as is the error */
	bool asked;      /* whether a request was sent */
	int status;      /* of the answer; 0: none came */
	const struct rlmd_error *error; /* why no request was sent, no answer came, or the provider
					   refused; NULL: it answered */
};

/* Once, from the loop; from inside it the probe may be freed. */
typedef void rlmd_probe_done_fn(void *owner, const struct rlmd_probe_result *);

/*
 * Asks a provider that belongs to no engine for its list of models. That needs the key and costs
 * nothing. A `timeout_ms` above a day counts as a day. The provider is referenced, the base lent.
 * NULL with RLMD_ERROR_USAGE if the provider is in use; every other failure is a result.
 */
RLMD_API struct rlmd_probe *rlmd_probe_start(struct event_base *, struct rlmd_provider *,
					     int64_t timeout_ms, rlmd_probe_done_fn *, void *owner,
					     struct rlmd_error *);
RLMD_API void rlmd_probe_free(struct rlmd_probe *); /* cancels; NULL is fine */

#ifdef __cplusplus
}
#endif
