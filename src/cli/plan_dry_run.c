#include "cli/plan_dry_run.h"

#include <inttypes.h>

#include "async/metrics.h"
#include "async/plan.h"
#include "base/json.h"
#include "base/money.h"
#include "cli/dry_run.h"
#include "engine/ask.h"
#include "engine/request.h"
#include "trace/result.h"

struct plan_dry_run {
	const struct rlmd_plan *plan;    /* lent */
	const struct llm *llm;           /* lent */
	const struct job_config *config; /* lent */
	const char *model;               /* lent: of calls that name none */
	const char *dearer;              /* lent: of the two that runs ask */
	json_t *operations;              /* owned */
	size_t runs;
	int64_t tokens, cost; /* at most; saturating */
	bool cost_known;
};

static void add_cost(struct plan_dry_run *dry_run, const char *model, int64_t input, int64_t output)
{
	int64_t cost = 0;

	dry_run->cost_known &= llm_price(dry_run->llm, model, input, output, &cost);
	dry_run->cost = money_add(dry_run->cost, cost);
	dry_run->tokens = metrics_sum(dry_run->tokens, metrics_sum(input, output));
}

/* Of a run nobody knows the end but the purse; what is put into an input is an answer at most. */
static int64_t add_worst(struct plan_dry_run *dry_run, const struct rlmd_operation *operation,
			 const char *model)
{
	size_t index = (size_t)(operation - dry_run->plan->operations);
	struct rlmd_text input = operation->input;
	struct rlmd_text context = operation->context;
	int64_t tokens = text_tokens(input) + text_tokens(context);
	int64_t responses = dry_run->plan->filled[index] ? (int64_t)operation->depends_count : 0;
	int64_t output = request_output(dry_run->llm, dry_run->config, model, ASK_TOKENS_QUERY);

	if (operation->mode == RLMD_OPERATION_RUN) {
		dry_run->runs++;
		add_cost(dry_run, dry_run->dearer, 0, dry_run->config->limits.tokens);
	} else {
		add_cost(dry_run, model, tokens + responses * output, output);
	}
	return tokens;
}

static void on_start(void *owner, const struct rlmd_operation *operation, struct rlmd_text input,
		     struct rlmd_call *call)
{
	struct plan_dry_run *dry_run = owner;
	const struct rlmd_plan *plan = dry_run->plan;
	const char *model = operation->model ? operation->model : dry_run->model;
	size_t index = (size_t)(operation - plan->operations), needs;
	const uint32_t *others = plan_others(&plan->dependencies, index, &needs);
	bool race = plan->strategy == RLMD_PLAN_SPECULATIVE;
	json_t *depends = json_array();

	(void)input;
	for (size_t i = 0; plan->ordered && i < needs; i++)
		json_array_append_new(depends, json_string(plan->operations[others[i]].id));
	json_array_append_new(dry_run->operations,
			      json_pack("{s:o, s:s, s:s, s:s, s:o, s:I}", "model",
					json_from_text(text_of(model)), "id", operation->id, "type",
					metrics_type_name(operation->type), "mode",
					operation->mode == RLMD_OPERATION_RUN ? "rlm" : "llm",
					"dependsOn", depends, "inputTokens",
					(json_int_t)add_worst(dry_run, operation, model)));
	rlmd_call_done(call, &(struct rlmd_plan_answer){.error = race ? RLMD_PLAN_ERROR_OPERATION
								      : RLMD_PLAN_OK});
}

/* Nobody lasts long enough to be cancelled. */
static void on_cancel(void *owner, const struct rlmd_operation *operation, struct rlmd_call *call,
		      struct rlmd_plan_usage *ret_usage)
{
	(void)owner, (void)operation, (void)call;
	*ret_usage = (struct rlmd_plan_usage){0};
}

static void carry_out(struct plan_dry_run *dry_run, struct event_base *base)
{
	struct rlmd_execution_options options = {
		.config = {.max_parallel = 1, .timeout_ms = RLMD_PLAN_NO_TIMEOUT},
		.orchestrator = {.start = on_start, .cancel = on_cancel, .owner = dry_run},
	};
	struct rlmd_execution *execution = rlmd_execution_start(base, dry_run->plan, &options);

	event_base_dispatch(base);
	rlmd_execution_free(execution);
}

static const char *dearer_of(const struct llm *llm, const char *one, const char *other)
{
	int64_t cost = 0, other_cost = 0;

	llm_price(llm, one, 0, 1000, &cost);
	return !llm_price(llm, other, 0, 1000, &other_cost) || other_cost > cost ? other : one;
}

json_t *plan_dry_run(struct event_base *base, const struct rlmd_plan_file *file,
		     const struct llm *llm, const struct job_config *config)
{
	const struct budget_limits *limits = &config->limits;
	const char *model = config->model ? config->model : llm_default_model(llm);
	const char *subcall = config->subcall_model ? config->subcall_model : model;
	struct plan_dry_run dry_run = {
		.plan = rlmd_plan_file_plan(file),
		.llm = llm,
		.config = config,
		.model = model,
		.dearer = dearer_of(llm, model, subcall),
		.operations = json_array(),
		.cost_known = true,
	};

	json_t *object;
	json_int_t parallel = (json_int_t)rlmd_plan_file_config(file)->max_parallel;

	carry_out(&dry_run, base);
	if (dry_run.tokens > limits->tokens)
		dry_run.tokens = limits->tokens;
	if (dry_run.cost > limits->cost)
		dry_run.cost = limits->cost;
	object = json_pack(
		"{s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:o, s:I, s:o}", "provider",
		llm_provider(llm, model), "model", json_from_text(text_of(model)), "subcallModel",
		json_from_text(text_of(subcall)), "priceTable", llm_price_date(llm), "strategy",
		metrics_strategy_name(dry_run.plan->strategy), "maxParallel",
		parallel ? parallel : config->max_parallel, "runs", (json_int_t)dry_run.runs,
		"operations", dry_run.operations, "worstCaseTokens", (json_int_t)dry_run.tokens,
		"worstCaseCost", result_cost(dry_run.cost_known, dry_run.cost));
	request_tell(llm, config, model, ASK_TOKENS_QUERY, object);
	return object;
}

static void add_operation(struct evbuffer *out, size_t number, const json_t *operation)
{
	const json_t *depends = json_object_get(operation, "dependsOn"), *id;
	struct rlmd_text mode = json_get_text(operation, "mode");
	size_t i;

	evbuffer_add_printf(out, "%6zu  %s  %s, %s of %s, about %" PRId64 " tokens", number,
			    json_string_value(json_object_get(operation, "id")),
			    json_string_value(json_object_get(operation, "type")),
			    text_equal(mode, "rlm") ? "a run" : "a call",
			    json_string_value(json_object_get(operation, "model")),
			    json_get_integer(operation, "inputTokens", 0));
	json_array_foreach (depends, i, id)
		evbuffer_add_printf(out, "%s%s", i ? ", " : ", after ", json_string_value(id));
	evbuffer_add(out, "\n", 1);
}

void plan_dry_run_format(const json_t *object, int64_t max_cost, struct evbuffer *out)
{
	const json_t *operations = json_object_get(object, "operations"), *operation;
	const json_t *cost = json_object_get(object, "worstCaseCost");
	char worst[32] = "unknown", limit[32] = "none";
	size_t i;

	if (json_is_number(cost))
		money_format(money_from_dollars(json_number_value(cost)), worst);
	if (max_cost != BUDGET_UNLIMITED)
		money_format(max_cost, limit);
	evbuffer_add_printf(
		out,
		"provider        %s\nmodel           %s\nsubcall model   %s\nprices of       %s\n"
		"strategy        %s, %" PRId64 " at once\n"
		"operations      %zu (whole runs: %" PRId64 ")\n"
		"tokens          %" PRId64 " at most\ncost            %s at most (limit: %s)\n",
		json_string_value(json_object_get(object, "provider")),
		json_string_value(json_object_get(object, "model")),
		json_string_value(json_object_get(object, "subcallModel")),
		json_string_value(json_object_get(object, "priceTable")),
		json_string_value(json_object_get(object, "strategy")),
		json_get_integer(object, "maxParallel", 0), json_array_size(operations),
		json_get_integer(object, "runs", 0), json_get_integer(object, "worstCaseTokens", 0),
		worst, limit);
	dry_run_format_request(object, out);
	evbuffer_add(out, "\n", 1);
	json_array_foreach (operations, i, operation)
		add_operation(out, i + 1, operation);
}
