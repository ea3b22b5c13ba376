#include "cli/serve_model.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "cli/providers.h"

struct serve_model {
	struct serve *serve; /* lent */
	serve_model_name_fn *name_of;
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

static json_t *params_of(const struct rlmd_model_request *asked, const char *job)
{
	static const char *const kinds[] = {
		[RLMD_MODEL_TURN] = "turn",
		[RLMD_MODEL_SUBCALL] = "subcall",
		[RLMD_MODEL_FORCED] = "forced",
		[RLMD_MODEL_OPERATION] = "operation",
	};
	json_t *params = json_make("{s:s, s:s, s:I, s:s, s:s, s:o, s:I, s:I}", "job", job, "run",
				   asked->run, "depth", (json_int_t)asked->depth, "kind",
				   kinds[asked->kind], "model", asked->model, "messages",
				   messages_of(asked), "maxTokens", (json_int_t)asked->max_tokens,
				   "timeLeftMs", (json_int_t)asked->time_left_ms);

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

static void on_ask(void *owner, const struct rlmd_model_request *asked)
{
	struct serve_model *model = owner;
	struct serve_client *client;
	struct model_request *request;
	const char *job = NULL;

	LIST_FOREACH (client, &model->serve->clients, entry)
		if ((job = model->name_of(client, asked->job)))
			break;
	if (!job) {
		fail(model, asked->id, RLMD_ERROR_INTERNAL, "the client is gone");
		return;
	}
	request = xcalloc(1, sizeof *request);
	request->model = model;
	request->id = asked->id;
	LIST_INSERT_HEAD(&model->requests, request, entry);
	request->asked = rpc_ask(client->rpc, "model.request", params_of(asked, job), on_answer,
				 request);
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

bool serve_model_open(struct serve *serve, serve_model_name_fn *name_of, struct rlmd_error *err)
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
	model->name_of = name_of;
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

/* Those of the server are called as their kinds are. */
const char *serve_model_provider(struct serve *serve, const struct config *config,
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
