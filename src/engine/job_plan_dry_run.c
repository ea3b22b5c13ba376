#include "engine/job_plan_dry_run.h"

#include <event2/event.h>

#include "async/metrics.h"
#include "async/plan.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/money.h"
#include "base/number.h"
#include "engine/ask.h"
#include "engine/first_request.h"
#include "engine/full_reading.h"
#include "engine/job.h"
#include "engine/request.h"
#include "trace/result.h"

struct plan_dry_run {
	const struct rlmd_job *job;      /* lent */
	const struct rlmd_plan *plan;    /* lent */
	const struct llm *llm;           /* lent */
	const struct job_config *config; /* lent */
	const char *model;               /* lent: of calls that name none */
	const char *dearer;              /* lent: of the two that runs ask */
	json_t *operations;              /* owned */
	size_t runs;
	int64_t tokens, cost; /* at most; saturating */
	bool cost_known;
	struct full_reading reading;
};

static void add_cost(struct plan_dry_run *dry_run, const char *model, int64_t input, int64_t output)
{
	int64_t cost = 0;

	dry_run->cost_known &= llm_price(dry_run->llm, model, input, output, &cost);
	dry_run->cost = money_add(dry_run->cost, cost);
	dry_run->tokens = metrics_sum(dry_run->tokens, metrics_sum(input, output));
}

/* Its context is read once, as that of a run of its own. */
static void read_once(struct plan_dry_run *dry_run, const struct rlmd_operation *operation)
{
	struct conversation conversation = {0};
	struct context context = {0};
	struct rlmd_error err;

	if (operation->context.bytes)
		context_from_text(operation->context, &context, &err);
	first_request(&conversation, dry_run->job, &context, operation->input);
	full_reading_run(&dry_run->reading, dry_run->job, first_request_tokens(&conversation),
			 text_tokens(operation->context));
	conversation_done(&conversation);
	context_done(&context);
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
		read_once(dry_run, operation);
	} else {
		add_cost(dry_run, model, tokens + responses * output, output);
		full_reading_calls(&dry_run->reading, dry_run->job, model, 1,
				   tokens + responses * output, output);
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

static json_t *object_of(const struct rlmd_job *job, const struct plan_dry_run *dry_run)
{
	const struct budget_limits *limits = &job->config.limits;
	json_t *object = json_pack(
		"{s:s, s:o, s:o, s:s, s:s, s:i, s:I, s:o, s:I, s:o}", "provider",
		llm_provider(job->llm, job->model), "model", json_from_text(text_of(job->model)),
		"subcallModel", json_from_text(text_of(job->subcall_model)), "priceTable",
		llm_price_date(job->llm), "strategy",
		metrics_strategy_name(dry_run->plan->strategy), "maxParallel",
		job->config.max_parallel, "runs", (json_int_t)dry_run->runs, "operations",
		dry_run->operations, "worstCaseTokens",
		(json_int_t)int64_min(dry_run->tokens, limits->tokens), "worstCaseCost",
		result_cost(dry_run->cost_known, int64_min(dry_run->cost, limits->cost)));
	json_int_t parallel = (json_int_t)rlmd_plan_file_config(job->file)->max_parallel;

	if (parallel)
		json_object_set_new(object, "maxParallel", json_integer(parallel));
	full_reading_tell(&dry_run->reading, limits, object);
	request_tell(job->llm, &job->config, job->model, ASK_TOKENS_QUERY, object);
	return object;
}

/* On a loop of its own: nothing else may happen meanwhile. */
json_t *job_plan_show(const struct rlmd_job *job, struct rlmd_error *err)
{
	struct plan_dry_run dry_run = {
		.job = job,
		.plan = rlmd_plan_file_plan(job->file),
		.llm = job->llm,
		.config = &job->config,
		.model = job->model,
		.dearer = dearer_of(job->llm, job->model, job->subcall_model),
		.cost_known = true,
	};
	struct event_base *base = loop_new();

	if (!base) {
		error_set(err, RLMD_ERROR_INTERNAL, "cannot make an event loop");
		return NULL;
	}
	dry_run.operations = json_array();
	carry_out(&dry_run, base);
	event_base_free(base);
	return object_of(job, &dry_run);
}
