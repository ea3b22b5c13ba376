#include "engine/full_reading.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/money.h"
#include "engine/ask.h"
#include "engine/request.h"
#include "prompt/brief.h"
#include "trace/result.h"

void full_reading_calls(struct full_reading *reading, const struct rlmd_job *job, const char *model,
			int64_t calls, int64_t input, int64_t output)
{
	int64_t cost = 0;

	reading->priceless |= !llm_price(job->llm, model, input, calls * output, &cost);
	reading->calls += calls;
	reading->tokens = money_add(reading->tokens, input + calls * output);
	reading->cost = money_add(reading->cost, cost);
}

void full_reading_run(struct full_reading *reading, const struct rlmd_job *job, int64_t first,
		      int64_t inputs)
{
	int64_t piece = brief_piece(job->llm, job->subcall_model);

	full_reading_calls(reading, job, job->model, 2, 2 * first,
			   request_output(job->llm, &job->config, job->model, ASK_TOKENS_TURN));
	full_reading_calls(
		reading, job, job->subcall_model, (inputs + piece - 1) / piece, inputs,
		request_output(job->llm, &job->config, job->subcall_model, ASK_TOKENS_QUERY));
}

static void misfit(json_t *misfits, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void misfit(json_t *misfits, const char *fmt, ...)
{
	char text[160];
	va_list arguments;

	va_start(arguments, fmt);
	vsnprintf(text, sizeof text, fmt, arguments);
	va_end(arguments);
	json_array_append_new(misfits, json_string(text));
}

void full_reading_tell(const struct full_reading *reading, const struct budget_limits *limits,
		       json_t *object)
{
	json_t *misfits = json_array();
	char cost[32], limit[32];

	money_format(reading->cost, cost);
	money_format(limits->cost, limit);
	if (reading->cost > limits->cost)
		misfit(misfits, "it may cost %s, and --max-cost is %s", cost, limit);
	if (reading->tokens > limits->tokens)
		misfit(misfits, "it may take %" PRId64 " tokens, and --max-tokens is %" PRId64,
		       reading->tokens, limits->tokens);
	if (reading->calls > limits->calls)
		misfit(misfits, "it takes %" PRId64 " calls, and --max-calls is %" PRId64,
		       reading->calls, limits->calls);
	json_object_set_new(object, "fullReading",
			    json_pack("{s:I, s:I, s:o}", "calls", (json_int_t)reading->calls,
				      "tokens", (json_int_t)reading->tokens, "cost",
				      result_cost(!reading->priceless, reading->cost)));
	json_object_set_new(object, "fits", json_boolean(!json_array_size(misfits)));
	json_object_set_new(object, "misfits", misfits);
}
