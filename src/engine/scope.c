#include "engine/scope.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "engine/function_set.h"

void scope_share(struct scope *scope, struct flow *calls, size_t all_calls, struct flow *workers,
		 size_t all_workers, unsigned weight)
{
	size_t own = (size_t)scope->config.max_parallel;

	scope->calls = flow_new(calls, weight);
	scope->workers = flow_new(workers, weight);
	scope->alive = scheduler_new(scope->base, FLOW_UNLIMITED);
	scope->alive_max = all_workers + (own < all_calls ? own : all_calls);
	flow_set_limit(scope->calls, own);
}

void scope_unshare(struct scope *scope)
{
	for (int depth = 0; depth < RUN_DEPTH_MAX; depth++)
		flow_free(take_pointer(&scope->alive_at[depth]));
	scheduler_free(take_pointer(&scope->alive));
	flow_free(take_pointer(&scope->calls));
	flow_free(take_pointer(&scope->workers));
}

struct permit *scope_ask_worker(struct scope *scope, int depth, bool goes_on, permit_fn *fn,
				void *owner)
{
	return permit_ask(scope->workers, 2 * depth + goes_on, fn, owner);
}

struct permit *scope_ask_alive(struct scope *scope, int depth, permit_fn *fn, void *owner)
{
	struct flow **flow = &scope->alive_at[depth];

	if (!*flow) {
		*flow = flow_new(scheduler_flow(scope->alive), 1);
		flow_set_limit(*flow, scope->alive_max);
	}
	return permit_ask(*flow, 0, fn, owner);
}

bool scope_may_ask(const struct scope *scope, const char *model)
{
	const struct scope_config *config = &scope->config;

	if (!config->models || !model || !*model || !strcmp(model, scope->model) ||
	    !strcmp(model, scope->subcall_model))
		return true;
	for (size_t i = 0; i < config->model_count; i++)
		if (!fnmatch(config->models[i], model, FNM_NOESCAPE))
			return true;
	return false;
}

int64_t scope_output(const struct scope *scope, const char *model, int64_t usual)
{
	int64_t part = llm_window(scope->llm, model) / SCOPE_WINDOW_PART;
	int64_t most = usual > part ? usual : part, limit = scope->config.max_output_tokens;

	return limit ? int64_min(limit, most) : usual;
}

void scope_use(const struct scope *scope, struct llm_request *request)
{
	const struct llm_sampling *given = &scope->config.sampling;
	struct llm_sampling *sampling = &request->sampling;

	if (scope->config.max_output_tokens)
		request->max_tokens = int64_min(request->max_tokens,
						scope->config.max_output_tokens);
	if (!sampling->with_temperature) {
		sampling->with_temperature = given->with_temperature;
		sampling->temperature = given->temperature;
	}
	if (!sampling->stop_count) {
		sampling->stops = given->stops;
		sampling->stop_count = given->stop_count;
	}
}

const struct prompt_set *scope_find_prompts(const struct scope *scope, const char *model)
{
	const struct prompt_set *given = scope->config.prompts;

	return given ? given : prompt_set_for(model, llm_window(scope->llm, model));
}

const struct prompt_set *scope_prompts(const struct scope *scope, int depth)
{
	return depth ? scope->subcall_prompts : scope->prompts;
}

struct brief_facts scope_facts(const struct scope *scope)
{
	return (struct brief_facts){
		.llm = scope->llm,
		.model = scope->model,
		.subcall_model = scope->subcall_model,
		.preload = scope->config.preload,
		.python_version = scope->config.python_version,
		.functions = function_set_described(scope->functions),
		.setup = scope->setup,
		.first_code = scope->first_code,
		.max_output = scope->config.max_output,
		.max_parallel = scope->config.max_parallel,
		.downgrade = scope->config.downgrade,
		.call_count = scope->call_count,
		.call_ms = scope->call_ms,
		.subrun_count = scope->subrun_count,
		.subrun_ms = scope->subrun_ms,
		.subrun_cost = scope->subrun_cost,
	};
}

json_t *scope_sandbox(const struct scope *scope)
{
	return scope->sandbox ? sandbox_report(scope->sandbox) : json_null();
}

bool scope_ends_with_account(const struct scope *scope, const struct budget *budget,
			     enum rlmd_stop stop)
{
	return scope->config.ends_with_account && budget_refuser(budget) &&
	       (stop == RLMD_STOP_MAX_COST || stop == RLMD_STOP_MAX_TOKENS);
}

void scope_show(const struct scope *scope, const char *model, int64_t usual, json_t *object)
{
	const struct llm_sampling *sampling = &scope->config.sampling;
	json_t *stops = json_make_array();

	for (size_t i = 0; i < sampling->stop_count; i++)
		json_append(stops, json_from_text(text_of(sampling->stops[i])));
	json_put(object, "maxOutputTokens", json_make_integer(scope_output(scope, model, usual)));
	json_put(object, "temperature",
		 sampling->with_temperature ? json_make_real(sampling->temperature) : json_null());
	json_put(object, "stop", stops);
	json_put(object, "promptProfile",
		 json_from_text(text_of(scope_find_prompts(scope, model)->name)));
}
