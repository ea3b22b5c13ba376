#include "cli/serve_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "cli/providers.h"
#include "cli/serve_tenants.h"

struct serve_model {
	struct serve *serve;                 /* lent */
	struct rlmd_provider *provider;      /* owned: a reference */
	LIST_HEAD(, model_request) requests; /* owned: without an answer */
};

struct model_request {
	struct serve_model *model; /* lent */
	uint64_t id;               /* the provider's */
	struct rpc_call *asked;    /* lent */
	LIST_ENTRY(model_request) entry;
};

static void fail(struct serve_model *model, uint64_t id, enum rlmd_error_kind kind,
		 const char *message)
{
	const struct rlmd_model_failure failure = {
		.size = sizeof failure, .kind = kind, .message = message};

	rlmd_provider_fail(model->provider, id, &failure);
}

static void answer(struct serve_model *model, uint64_t id, const json_t *result)
{
	const json_t *usage = json_object_get(result, "usage");
	const json_t *cost = json_object_get(usage, "cost");
	const struct rlmd_model_answer answer = {
		.size = sizeof answer,
		.text = json_get_text(result, "text"),
		.input_tokens = json_get_integer(usage, "inputTokens", 0),
		.output_tokens = json_get_integer(usage, "outputTokens", 0),
		.with_cost = json_is_number(cost),
		.cost = money_from_dollars(json_number_value(cost)),
	};

	if (json_is_string(json_object_get(result, "text")))
		rlmd_provider_answer(model->provider, id, &answer);
	else
		fail(model, id, RLMD_ERROR_BAD_REPLY, "the client's answer has no text");
}

static void on_answer(void *owner, const json_t *result, const char *why)
{
	struct model_request *request = owner;
	struct serve_model *model = request->model;
	uint64_t id = request->id;

	LIST_REMOVE(request, entry);
	free(request);
	if (result)
		answer(model, id, result);
	else
		fail(model, id, RLMD_ERROR_INTERNAL, why);
}

static json_t *messages_of(const struct rlmd_model_request *asked)
{
	static const char *const roles[] = {
		[RLMD_ROLE_SYSTEM] = "system",
		[RLMD_ROLE_USER] = "user",
		[RLMD_ROLE_ASSISTANT] = "assistant",
	};
	json_t *messages = json_make_array();

	for (size_t i = 0; i < asked->message_count; i++)
		json_append(messages,
			    json_make("{s:s, s:o}", "role", roles[asked->messages[i].role],
				      "content", json_from_text(asked->messages[i].text)));
	return messages;
}

const char *serve_model_kind_name(enum rlmd_model_kind kind)
{
	static const char *const kinds[] = {
		[RLMD_MODEL_TURN] = "turn",
		[RLMD_MODEL_SUBCALL] = "subcall",
		[RLMD_MODEL_FORCED] = "forced",
		[RLMD_MODEL_OPERATION] = "operation",
	};

	return kinds[kind];
}

static json_t *params_of(const struct rlmd_model_request *asked, const struct serve_params *asker)
{
	json_t *params = json_make(
		"{s:s, s:s, s:I, s:s, s:s, s:o, s:I, s:I}", asker->kind, asker->name, "run",
		asked->run, "depth", (json_int_t)asked->depth, "kind",
		serve_model_kind_name(asked->kind), "model", asked->model, "messages",
		messages_of(asked), "maxTokens", (json_int_t)asked->max_tokens, "timeLeftMs",
		(json_int_t)asked->time_left_ms);

	if (asked->with_temperature)
		json_put(params, "temperature", json_make_real(asked->temperature));
	if (asked->stop_count) {
		json_t *stops = json_make_array();

		for (size_t i = 0; i < asked->stop_count; i++)
			json_append(stops, json_make_string(asked->stops[i]));
		json_put(params, "stop", stops);
	}
	return params;
}

static const struct serve_params *asker_of(const struct serve *serve, const struct rlmd_job *job)
{
	const struct serve_client *client;
	const struct serve_params *params;

	LIST_FOREACH (client, &serve->clients, entry)
		LIST_FOREACH (params, &client->works, entry)
			if (params->job == job)
				return params;
	return NULL;
}

static void on_ask(void *owner, const struct rlmd_model_request *asked)
{
	struct serve_model *model = owner;
	const struct serve_params *asker = asker_of(model->serve, asked->job);
	struct model_request *request;

	if (!asker) {
		fail(model, asked->id, RLMD_ERROR_INTERNAL, "the client is gone");
		return;
	}
	request = xcalloc(1, sizeof *request);
	request->model = model;
	request->id = asked->id;
	LIST_INSERT_HEAD(&model->requests, request, entry);
	request->asked = rpc_ask(asker->client->rpc, "model.request", params_of(asked, asker),
				 on_answer, request);
}

static void on_cancel(void *owner, uint64_t id)
{
	struct serve_model *model = owner;
	struct model_request *request;

	LIST_FOREACH (request, &model->requests, entry)
		if (request->id == id)
			break;
	if (!request)
		return;
	LIST_REMOVE(request, entry);
	rpc_cancel(request->asked);
	free(request);
}

/* Adds the provider to the engine, once. */
static bool open_model(struct serve *serve, struct rlmd_error *err)
{
	struct rlmd_provider_options options = {
		.size = sizeof options,
		.name = SERVE_MODEL_NAME,
		.model = SERVE_MODEL_NAME,
		.ask = on_ask,
		.cancel = on_cancel,
		.costs_nothing = true,
	};
	struct serve_model *model;

	if (serve->model)
		return true;
	model = xcalloc(1, sizeof *model);
	model->serve = serve;
	LIST_INIT(&model->requests);
	options.owner = model;
	model->provider = rlmd_provider_new(&options, err);
	if (model->provider &&
	    rlmd_engine_add_provider(serve->session->engine, NULL, model->provider, err)) {
		serve->model = model;
		return true;
	}
	serve_model_free(model);
	return false;
}

/* --- at an address of their own ---------------------------------------------------------- */

static bool add(struct serve *serve, const struct config *config, const char *name,
		struct rlmd_error *err)
{
	struct rlmd_provider *provider = providers_named(config, name, err);
	bool added = provider &&
		     rlmd_engine_add_provider(serve->session->engine, NULL, provider, err);

	rlmd_provider_unref(provider);
	return added;
}

/* The registered name of the provider that a job's settings are about, lent; NULL: the server has
 * none, and cannot make one. Those of the server are called as their kinds are. */
static const char *provider_of(struct serve *serve, const struct config *config,
			       struct rlmd_error *err)
{
	static const enum option_id settings[] = {OPTION_base_url, OPTION_key_file,
						  OPTION_price_table, OPTION_no_stream};
	const char *url = config->base_url, *file = config->key_file, *prices = config->price_table;
	auto_free char *key = NULL, *name = NULL;
	size_t i = 0, count = sizeof settings / sizeof *settings;

	while (i < count && config->layers[settings[i]] != CONFIG_JOB)
		i++;
	if (i == count)
		return config->provider;
	key = xasprintf("%s\n%s\n%s\n%s\n%d", config->provider, url ? url : "", file ? file : "",
			prices ? prices : "", config->no_stream);
	if (!serve->providers)
		serve->providers = json_make_object();
	if (!json_object_get(serve->providers, key)) {
		name = xasprintf("%s.%zu", config->provider,
				 json_object_size(serve->providers) + 1);
		if (!add(serve, config, name, err))
			return NULL;
		json_put(serve->providers, key, json_make_string(name));
	}
	return json_get_string(serve->providers, key);
}

/* --- what jobs and sessions are given --------------------------------------------------------- */

bool serve_model_take(struct serve_params *params, const json_t *model, struct rlmd_error *err)
{
	struct serve *serve = params->client->serve;

	if (!model) {
		params->provider = provider_of(serve, &params->config, err);
		return params->provider;
	}
	if (!text_equal(json_text(model), SERVE_MODEL_NAME))
		return error_set(err, RLMD_ERROR_USAGE,
				 "model is \"client\" or left out: others are an option");
	params->provider = SERVE_MODEL_NAME;
	return open_model(serve, err);
}

bool serve_model_give(const struct serve_params *params, struct rlmd_job_options *options,
		      struct rlmd_error *err)
{
	const struct tenancy *tenancy = params->client->tenancy;
	const struct config *config = &params->config;
	bool named = config->layers[OPTION_model] == CONFIG_JOB;
	const char *below = config->layers[OPTION_subcall_model] == CONFIG_JOB
				    ? config->subcall_model
				    : NULL;

	options->provider = params->provider;
	options->group = params->client->group;
	if (!tenancy)
		return true;
	options->account = serve_tenants_account(params->client->serve->tenants, tenancy);
	if (!strcmp(params->provider, SERVE_MODEL_NAME)) {
		options->tenant = tenancy->name;
		options->group = tenancy->group;
		options->sandbox = tenancy->sandbox;
		return true;
	}
	if (below && !tenants_may_use(tenancy->settings, below))
		return error_set(err, RLMD_ERROR_INPUT, "tenant '%s' may not use model '%.100s'",
				 tenancy->name, below);
	return tenancies_give(tenancy, named ? config->model : NULL, options, err);
}

void serve_model_free(struct serve_model *model)
{
	struct model_request *request;

	if (!model)
		return;
	while ((request = LIST_FIRST(&model->requests))) {
		LIST_REMOVE(request, entry);
		free(request);
	}
	rlmd_provider_unref(model->provider);
	free(model);
}
