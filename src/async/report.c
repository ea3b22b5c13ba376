#include "async/report.h"

#include <stdio.h>

#include "async/execution.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"

enum { NAME_MAX_SIZE = RLMD_PLAN_ID_MAX + 1 };

const char *rlmd_plan_error_name(enum rlmd_plan_error_kind kind)
{
	switch (kind) {
	case RLMD_PLAN_OK:
		return "none";
	case RLMD_PLAN_ERROR_TIMEOUT:
		return "timeout";
	case RLMD_PLAN_ERROR_CANCELLED:
		return "cancelled";
	case RLMD_PLAN_ERROR_DEPENDENCY:
		return "dependency";
	case RLMD_PLAN_ERROR_BUDGET:
		return "budget";
	case RLMD_PLAN_ERROR_INPUT:
		return "input";
	case RLMD_PLAN_ERROR_ALL_FAILED:
		return "all_failed";
	case RLMD_PLAN_ERROR_OPERATION:
		break;
	}
	return "operation";
}

/* No id has brackets. */
static const char *name_of(const char *id, size_t index, char out[static NAME_MAX_SIZE])
{
	if (id)
		return id;
	snprintf(out, NAME_MAX_SIZE, "operations[%zu]", index);
	return out;
}

static json_t *error_object(enum rlmd_plan_error_kind error, const char *name, const char *message)
{
	if (!error)
		return json_null();
	return json_make("{s:s, s:o}", "kind", name, "message", json_from_text(text_of(message)));
}

static const char *status_name(enum rlmd_plan_status status)
{
	switch (status) {
	case RLMD_PLAN_SUCCEEDED:
		return "succeeded";
	case RLMD_PLAN_FAILED:
		return "failed";
	case RLMD_PLAN_CANCELLED:
		return "cancelled";
	case RLMD_PLAN_PENDING:
		break;
	}
	return "pending";
}

static void add_end(json_t *object, const struct rlmd_plan_result *result)
{
	json_put(object, "tokens", json_make_integer(result->tokens));
	json_put(object, "duration", json_make_integer(result->duration_ms));
	json_put(object, "error", error_object(result->error, result->error_name, result->message));
	json_put(object, "status", json_make_string(status_name(result->status)));
	if (result->estimated)
		json_put(object, "estimated", json_true());
}

static json_t *result_object(const struct rlmd_plan_result *result, const char *name)
{
	json_t *object = json_make("{s:s}", "id", name);
	struct rlmd_text response = result->response;

	json_put(object, "response",
		 result->status == RLMD_PLAN_SUCCEEDED ? json_from_text(response) : json_null());
	add_end(object, result);
	return object;
}

static json_t *metrics_object(const struct rlmd_plan_metrics *metrics)
{
	json_t *operations = json_make_object();

	for (int type = 0; type < METRICS_TYPES; type++) {
		json_t *outcomes = json_make_object();

		for (int outcome = 0; outcome < METRICS_OUTCOMES; outcome++)
			if (metrics->operations[type][outcome])
				json_put(outcomes,
					 metrics_outcome_name((enum rlmd_plan_outcome)outcome),
					 json_make_integer(metrics->operations[type][outcome]));
		if (json_object_size(outcomes))
			json_put(operations, metrics_type_name((enum rlmd_operation_type)type),
				 json_incref(outcomes));
		json_decref(outcomes);
	}
	return json_make("{s:o, s:I, s:I, s:f, s:I, s:I, s:f}", "operations", operations, "tokens",
			 (json_int_t)metrics->tokens, "parallelHighest",
			 (json_int_t)metrics->parallel_highest, "utilisation",
			 rlmd_plan_metrics_utilisation(metrics), "budgetLimited",
			 (json_int_t)metrics->budget_limited, "races", (json_int_t)metrics->races,
			 "winRate", rlmd_plan_metrics_win_rate(metrics));
}

json_t *report_execution(const struct rlmd_execution *execution)
{
	struct rlmd_plan_summary summary = execution_summary(execution);
	json_t *results = json_make_object(), *cancelled = json_make_array(), *winner = json_null();
	char out[NAME_MAX_SIZE];

	for (size_t i = 0; i < rlmd_plan_count(rlmd_execution_plan(execution)); i++) {
		struct rlmd_plan_result result = dispatch_result(&execution->calls[i]);
		const char *name = name_of(result.operation->id, i, out);

		json_put(results, name, result_object(&result, name));
		if (result.status == RLMD_PLAN_CANCELLED)
			json_append(cancelled, json_make_string(name));
		if (i == summary.winner)
			winner = json_make_string(name);
	}
	return json_make("{s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "results", results, "totalTokens",
			 (json_int_t)summary.tokens, "duration", (json_int_t)summary.duration_ms,
			 "winner", winner, "cancelled", cancelled, "error",
			 error_object(summary.error, summary.error_name, summary.message),
			 "metrics", metrics_object(summary.metrics));
}

const char *report_event_name(enum rlmd_plan_event_kind kind)
{
	switch (kind) {
	case RLMD_PLAN_EVENT_START:
		return "plan_start";
	case RLMD_PLAN_EVENT_OPERATION_START:
		return "operation_start";
	case RLMD_PLAN_EVENT_OPERATION_END:
		return "operation_end";
	case RLMD_PLAN_EVENT_WINNER:
		return "winner";
	case RLMD_PLAN_EVENT_PARALLELISM:
		return "parallelism";
	case RLMD_PLAN_EVENT_END:
		break;
	}
	return "plan_end";
}

static void add_summary(json_t *object, const struct rlmd_plan_summary *summary)
{
	json_put(object, "succeeded", json_make_integer((json_int_t)summary->succeeded));
	json_put(object, "failed", json_make_integer((json_int_t)summary->failed));
	json_put(object, "cancelled", json_make_integer((json_int_t)summary->cancelled));
	json_put(object, "totalTokens", json_make_integer(summary->tokens));
	json_put(object, "duration", json_make_integer(summary->duration_ms));
	json_put(object, "error",
		 error_object(summary->error, summary->error_name, summary->message));
}

json_t *report_event(const struct rlmd_plan_event *event)
{
	json_t *object = json_make("{s:s, s:I}", "event", report_event_name(event->kind), "ms",
				   (json_int_t)event->elapsed_ms);
	char out[NAME_MAX_SIZE];

	switch (event->kind) {
	case RLMD_PLAN_EVENT_START:
		json_put(object, "strategy",
			 json_make_string(metrics_strategy_name(event->strategy)));
		json_put(object, "operations", json_make_integer((json_int_t)event->count));
		json_put(object, "wanted", json_make_integer((json_int_t)event->wanted));
		break;
	case RLMD_PLAN_EVENT_PARALLELISM:
		json_put(object, "wanted", json_make_integer((json_int_t)event->wanted));
		json_put(object, "parallel", json_make_integer((json_int_t)event->parallel));
		json_put(object, "remaining", json_make_integer(event->budget_remaining));
		json_put(object, "estimate", json_make_integer(event->budget_estimate));
		break;
	case RLMD_PLAN_EVENT_OPERATION_START:
	case RLMD_PLAN_EVENT_OPERATION_END:
	case RLMD_PLAN_EVENT_WINNER:
		json_put(object, "id", json_make_string(name_of(event->id, event->index, out)));
		if (event->result)
			add_end(object, event->result);
		break;
	case RLMD_PLAN_EVENT_END:
		add_summary(object, event->summary);
		break;
	}
	return object;
}

static char *write_out(json_t *object)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	json_write(object, false, out);
	json_decref(object);
	return text_drain(out, NULL);
}

char *rlmd_execution_json(const struct rlmd_execution *execution)
{
	return execution ? write_out(report_execution(execution)) : NULL;
}

char *rlmd_plan_event_json(const struct rlmd_plan_event *event)
{
	if (!event || (event->kind >= RLMD_PLAN_EVENT_END && !event->summary))
		return NULL;
	return write_out(report_event(event));
}
