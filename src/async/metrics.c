#include "async/metrics.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/prometheus.h"
#include "base/text.h"

int64_t metrics_sum(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static enum rlmd_plan_outcome outcome_of(const struct rlmd_plan_result *result)
{
	if (result->status == RLMD_PLAN_SUCCEEDED)
		return RLMD_OUTCOME_SUCCEEDED;
	if (result->status == RLMD_PLAN_CANCELLED)
		return RLMD_OUTCOME_CANCELLED;
	if (result->error == RLMD_PLAN_ERROR_TIMEOUT)
		return RLMD_OUTCOME_TIMEOUT;
	if (result->error == RLMD_PLAN_ERROR_DEPENDENCY)
		return RLMD_OUTCOME_DEPENDENCY;
	return RLMD_OUTCOME_FAILED;
}

void metrics_count(struct rlmd_plan_metrics *metrics, const struct rlmd_plan_result *result)
{
	unsigned type = (unsigned)result->operation->type;

	if (type >= METRICS_TYPES)
		type = RLMD_OPERATION_QUERY;
	metrics->operations[type][outcome_of(result)]++;
	metrics->tokens = metrics_sum(metrics->tokens, result->tokens);
}

void metrics_pass(struct rlmd_plan_metrics *metrics, int64_t ms, size_t running, size_t slots)
{
	metrics->busy_ms += ms * (int64_t)running;
	metrics->slot_ms += ms * (int64_t)(running > slots ? running : slots);
}

struct rlmd_plan_metrics *rlmd_plan_metrics_new(void)
{
	return xcalloc(1, sizeof(struct rlmd_plan_metrics));
}

void rlmd_plan_metrics_free(struct rlmd_plan_metrics *metrics)
{
	free(metrics);
}

void rlmd_plan_metrics_add(struct rlmd_plan_metrics *total, const struct rlmd_plan_metrics *one)
{
	if (!total || !one)
		return;
	for (int type = 0; type < METRICS_TYPES; type++)
		for (int outcome = 0; outcome < METRICS_OUTCOMES; outcome++)
			total->operations[type][outcome] += one->operations[type][outcome];
	for (int strategy = 0; strategy < METRICS_STRATEGIES; strategy++)
		total->executions[strategy] += one->executions[strategy];
	total->tokens = metrics_sum(total->tokens, one->tokens);
	total->busy_ms += one->busy_ms;
	total->slot_ms += one->slot_ms;
	total->budget_limited += one->budget_limited;
	total->races += one->races;
	total->races_won += one->races_won;
	if (total->parallel_highest < one->parallel_highest)
		total->parallel_highest = one->parallel_highest;
}

static double ratio(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

int64_t rlmd_plan_metrics_operations(const struct rlmd_plan_metrics *metrics,
				     enum rlmd_operation_type type, enum rlmd_plan_outcome outcome)
{
	if (!metrics || (unsigned)type >= METRICS_TYPES || (unsigned)outcome >= METRICS_OUTCOMES)
		return 0;
	return metrics->operations[type][outcome];
}

double rlmd_plan_metrics_utilisation(const struct rlmd_plan_metrics *metrics)
{
	return metrics ? ratio(metrics->busy_ms, metrics->slot_ms) : 0;
}

double rlmd_plan_metrics_win_rate(const struct rlmd_plan_metrics *metrics)
{
	return metrics ? ratio(metrics->races_won, metrics->races) : 0;
}

const char *metrics_type_name(enum rlmd_operation_type type)
{
	switch (type) {
	case RLMD_OPERATION_TRANSFORM:
		return "Transform";
	case RLMD_OPERATION_VERIFY:
		return "Verify";
	case RLMD_OPERATION_SYNTHESIZE:
		return "Synthesize";
	case RLMD_OPERATION_QUERY:
		break;
	}
	return "Query";
}

const char *metrics_strategy_name(enum rlmd_plan_strategy strategy)
{
	switch (strategy) {
	case RLMD_PLAN_PARALLEL:
		return "Parallel";
	case RLMD_PLAN_SPECULATIVE:
		return "Speculative";
	case RLMD_PLAN_SEQUENTIAL:
		return "Sequential";
	case RLMD_PLAN_DEPENDENCY_AWARE:
		break;
	}
	return "DependencyAware";
}

const char *metrics_outcome_name(enum rlmd_plan_outcome outcome)
{
	switch (outcome) {
	case RLMD_OUTCOME_SUCCEEDED:
		return "succeeded";
	case RLMD_OUTCOME_TIMEOUT:
		return "timeout";
	case RLMD_OUTCOME_DEPENDENCY:
		return "dependency";
	case RLMD_OUTCOME_CANCELLED:
		return "cancelled";
	case RLMD_OUTCOME_FAILED:
		break;
	}
	return "failed";
}

static void counter(struct evbuffer *out, const char *name, const char *help, int64_t value)
{
	prometheus_head(out, name, "counter", help);
	prometheus_sample(out, name, NULL, 0);
	buffer_add_printf(out, "%" PRId64 "\n", value);
}

static void gauge(struct evbuffer *out, const char *name, const char *help, double value)
{
	prometheus_head(out, name, "gauge", help);
	prometheus_sample(out, name, NULL, 0);
	buffer_add_printf(out, "%g\n", value);
}

static void write_operations(struct evbuffer *out, const struct rlmd_plan_metrics *metrics)
{
	static const char name[] = "rlmd_plan_operations_total";

	prometheus_head(out, name, "counter", "Operations that ended, by type and outcome.");
	for (int type = 0; type < METRICS_TYPES; type++)
		for (int outcome = 0; outcome < METRICS_OUTCOMES; outcome++) {
			const struct prometheus_label labels[] = {
				{"type", metrics_type_name((enum rlmd_operation_type)type)},
				{"outcome", metrics_outcome_name((enum rlmd_plan_outcome)outcome)},
			};

			prometheus_sample(out, name, labels, 2);
			buffer_add_printf(out, "%" PRId64 "\n", metrics->operations[type][outcome]);
		}
}

static void write_executions(struct evbuffer *out, const struct rlmd_plan_metrics *metrics)
{
	static const char name[] = "rlmd_plan_executions_total";

	prometheus_head(out, name, "counter", "Plans executed, by strategy.");
	for (int strategy = 0; strategy < METRICS_STRATEGIES; strategy++) {
		const struct prometheus_label label = {
			"strategy", metrics_strategy_name((enum rlmd_plan_strategy)strategy)};

		prometheus_sample(out, name, &label, 1);
		buffer_add_printf(out, "%" PRId64 "\n", metrics->executions[strategy]);
	}
}

char *rlmd_plan_metrics_text(const struct rlmd_plan_metrics *metrics)
{
	static const struct rlmd_plan_metrics none;
	auto_evbuffer struct evbuffer *out = buffer_new();

	if (!metrics)
		metrics = &none;
	write_operations(out, metrics);
	write_executions(out, metrics);
	counter(out, "rlmd_plan_tokens_total",
		"Tokens used by operations, cancelled ones included.", metrics->tokens);
	counter(out, "rlmd_plan_busy_milliseconds_total", "Time of all operations that ran.",
		metrics->busy_ms);
	counter(out, "rlmd_plan_slot_milliseconds_total", "Time of all slots open to operations.",
		metrics->slot_ms);
	gauge(out, "rlmd_plan_parallelism_utilisation_ratio", "Busy time over slot time.",
	      rlmd_plan_metrics_utilisation(metrics));
	gauge(out, "rlmd_plan_parallelism_highest", "The most operations that ran at once.",
	      (double)metrics->parallel_highest);
	counter(out, "rlmd_plan_budget_limited_total",
		"How often the budget changed the parallelism.", metrics->budget_limited);
	counter(out, "rlmd_plan_races_total", "Speculative executions.", metrics->races);
	counter(out, "rlmd_plan_races_won_total", "Speculative executions with a winner.",
		metrics->races_won);
	gauge(out, "rlmd_plan_speculative_win_ratio", "Races won over races.",
	      rlmd_plan_metrics_win_rate(metrics));
	return text_drain(out, NULL);
}
