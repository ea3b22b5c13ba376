#include "trace/record.h"

#include "async/report.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "prompt/brief.h"
#include "trace/result.h"

#define WHOLE (INT64_MAX / 2) /* characters: no limit of its own */

enum {
	TEXT_MAX = 100000,      /* characters kept of each text of a call or a sub-run */
	FAILED_TEXT_MAX = 1000, /* ... and of the prompt of a call that failed */
};

static json_t *kept(struct trace *trace, struct rlmd_text text, int64_t max)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	brief_clip(text, trace_admit_text(trace, text, max), out);
	return json_from_text(text_in(out));
}

static json_t *contexts_of(const struct context *context)
{
	json_t *contexts = json_make_array();

	for (size_t i = 0; i < context->count; i++) {
		const struct context_input *input = &context->inputs[i];
		const struct text_scan *scan = memfile_scan(input->file);

		json_append(contexts,
			    json_make("{s:s, s:I, s:I, s:I, s:s, s:I, s:I}", "name", input->name,
				      "length", (json_int_t)scan->characters, "bytes",
				      (json_int_t)scan->bytes, "tokenEstimate",
				      (json_int_t)text_scan_tokens(scan), "contentType",
				      input->type, "invalidBytes", (json_int_t)scan->invalid,
				      "files", (json_int_t)file_index_count(input->files)));
	}
	return contexts;
}

void record_run(struct trace *trace, const char *run, const char *parent, int depth,
		struct rlmd_text task, const char *model, const char *prompt,
		const struct context *context, json_t *sandbox)
{
	if (!trace_hears(trace, TRACE_RUN)) {
		json_decref(sandbox);
		return;
	}
	trace_run(trace, TRACE_RUN, run, "{s:s?, s:i, s:o, s:s, s:o, s:o, s:o*}", "parent", parent,
		  "depth", depth, "task", kept(trace, task, parent ? TEXT_MAX : WHOLE), "model",
		  model, "promptProfile", json_from_text(text_of(prompt)), "contexts",
		  contexts_of(context), "sandbox", sandbox);
}

/* Where it is so: of all others nothing is said. */
static json_t *true_or_absent(bool so)
{
	return so ? json_true() : NULL;
}

void record_response(struct trace *trace, const char *run, int index, struct rlmd_text prompt,
		     const struct llm_response *reply, struct rlmd_text thinking)
{
	auto_evbuffer struct evbuffer *thoughts = NULL;

	if (!trace_hears(trace, TRACE_RESPONSE))
		return;
	thoughts = buffer_new();
	text_repair(reply->thinking, thoughts);
	if (reply->thinking.size && thinking.size)
		buffer_add(thoughts, "\n", 1);
	text_repair(thinking, thoughts);
	trace_run(
		trace, TRACE_RESPONSE, run,
		"{s:i, s:{s:o, s:I}, s:{s:o, s:o, s:I, s:o}, s:s, s:s?, s:I, s:I, s:I, s:I, s:o*, "
		"s:o*}",
		"index", index, "prompt", "content", kept(trace, prompt, WHOLE), "tokens",
		(json_int_t)reply->usage.input, "response", "content",
		kept(trace, reply->text, WHOLE), "thinking", kept(trace, text_in(thoughts), WHOLE),
		"tokens", (json_int_t)reply->usage.output, "cost",
		result_cost(reply->cost_known, reply->cost), "model", reply->model, "provider",
		reply->provider, "cachedTokens", (json_int_t)reply->usage.cache_read, "queuedMs",
		(json_int_t)trace_ms(trace, reply->queued), "startedMs",
		(json_int_t)trace_ms(trace, reply->started), "duration",
		(json_int_t)reply->duration_ms, "cached", true_or_absent(reply->cached),
		"journaled", true_or_absent(reply->journaled));
}

void record_block(struct trace *trace, const char *run, int index, struct rlmd_text code,
		  const struct worker_block *block, int64_t max_output)
{
	if (!trace_hears(trace, TRACE_CODE))
		return;
	trace_run(trace, TRACE_CODE, run, "{s:i, s:o, s:o, s:o, s:o, s:I}", "index", index, "code",
		  kept(trace, code, WHOLE), "stdout", kept(trace, block->stdout_text, max_output),
		  "stderr", kept(trace, block->stderr_text, max_output), "error",
		  block->failed ? kept(trace, block->error, max_output) : json_null(), "duration",
		  (json_int_t)block->duration_ms);
}

void record_demonstration(struct trace *trace, const char *run, struct rlmd_text code,
			  const struct worker_block *block, int64_t max_output)
{
	if (!trace_hears(trace, TRACE_DEMONSTRATION))
		return;
	trace_run(trace, TRACE_DEMONSTRATION, run, "{s:o, s:o, s:o, s:o, s:I}", "code",
		  kept(trace, code, WHOLE), "stdout", kept(trace, block->stdout_text, max_output),
		  "stderr", kept(trace, block->stderr_text, max_output), "error",
		  block->failed ? kept(trace, block->error, max_output) : json_null(), "duration",
		  (json_int_t)block->duration_ms);
}

void record_iteration(struct trace *trace, const char *run, int index)
{
	if (trace_hears(trace, TRACE_ITERATION))
		trace_run(trace, TRACE_ITERATION, run, "{s:i}", "index", index);
}

void record_call(struct trace *trace, const char *run, int index, const char *reason,
		 const struct llm_request *request, const struct llm_response *reply,
		 const struct rlmd_error *err)
{
	struct rlmd_text prompt = reply->asked.size
					  ? reply->asked
					  : request->messages[request->message_count - 1].text;

	if (!trace_hears(trace, TRACE_LLM_CALL) || !trace_admit_call(trace))
		return;
	trace_run(trace, TRACE_LLM_CALL, run,
		  "{s:i, s:s, s:s?, s:s, s:s?, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, "
		  "s:o*, s:o*, s:o*}",
		  "index", index, "kind", request_kind_name(request->kind), "reason", reason,
		  "model", reply->model ? reply->model : request->model, "provider",
		  reply->provider, "prompt", kept(trace, prompt, err ? FAILED_TEXT_MAX : TEXT_MAX),
		  "response", kept(trace, reply->text, TEXT_MAX), "tokens",
		  (json_int_t)(reply->usage.input + reply->usage.output), "inputTokens",
		  (json_int_t)reply->usage.input, "outputTokens", (json_int_t)reply->usage.output,
		  "cachedTokens", (json_int_t)reply->usage.cache_read, "cost",
		  result_cost(reply->cost_known, reply->cost), "queuedMs",
		  (json_int_t)trace_ms(trace, reply->queued), "startedMs",
		  (json_int_t)trace_ms(trace, reply->started), "duration",
		  (json_int_t)reply->duration_ms, "error", err ? result_error(err, NULL) : NULL,
		  "cached", true_or_absent(reply->cached), "journaled",
		  true_or_absent(reply->journaled));
}

void record_wait(struct trace *trace, const char *run, int index, const struct llm_request *request,
		 const struct llm_wait *wait)
{
	if (trace_hears(trace, TRACE_WAITING) && trace_admit_call(trace))
		trace_run(trace, TRACE_WAITING, run, "{s:i, s:s, s:s, s:s, s:i, s:I, s:I}", "index",
			  index, "kind", request_kind_name(request->kind), "model", request->model,
			  "reason", wait->reason, "httpStatus", wait->http_status, "waited",
			  (json_int_t)wait->waited_ms, "next", (json_int_t)wait->next_ms);
}

void record_degraded(struct trace *trace, const char *run, bool task, const char *reason)
{
	if (trace_hears(trace, TRACE_DEGRADED) && trace_admit_call(trace))
		trace_run(trace, TRACE_DEGRADED, run, "{s:s, s:s}", "call",
			  task ? "rlm_query" : "llm_query", "reason", reason);
}

void record_function(struct trace *trace, const char *run, const struct record_function *call)
{
	if (!trace_hears(trace, TRACE_FUNCTION) || !trace_admit_call(trace))
		return;
	trace_run(trace, TRACE_FUNCTION, run, "{s:s, s:o, s:o, s:I, s:s?}", "name", call->name,
		  "arguments", kept(trace, call->arguments, TEXT_MAX), "answer",
		  kept(trace, call->answer, TEXT_MAX), "duration", (json_int_t)call->duration_ms,
		  "error", call->error ? rlmd_error_name(call->error) : NULL);
}

void record_plan(struct trace *trace, const char *run, const struct rlmd_plan_event *event)
{
	enum trace_kind kind = trace_kind_of(report_event_name(event->kind));
	json_t *object;

	if (!trace_hears(trace, kind))
		return;
	object = report_event(event);
	json_put(object, "run", json_make_string(run));
	trace_event(trace, kind, object);
}

void record_compaction(struct trace *trace, const char *run, int index, int64_t turns,
		       int64_t before, int64_t after)
{
	if (!trace_hears(trace, TRACE_COMPACTION))
		return;
	trace_run(trace, TRACE_COMPACTION, run, "{s:i, s:I, s:I, s:I}", "index", index, "turns",
		  (json_int_t)turns, "tokensBefore", (json_int_t)before, "tokensAfter",
		  (json_int_t)after);
}

void record_warning(struct trace *trace, const char *run, const char *text)
{
	if (trace_hears(trace, TRACE_WARNING))
		trace_run(trace, TRACE_WARNING, run, "{s:o}", "text",
			  json_from_text(text_of(text)));
}

void record_end(struct trace *trace, const char *run, bool root, const struct record_ending *ending,
		const struct budget *budget)
{
	json_t *answer;

	if (!trace_hears(trace, TRACE_END))
		return;
	answer = root ? json_from_text(ending->answer) : kept(trace, ending->answer, TEXT_MAX);
	trace_run(trace, TRACE_END, run, "{s:o, s:s, s:s?, s:o, s:o*}", "finalAnswer", answer,
		  "answerSource", answer_source_name(ending->source), "stopReason",
		  rlmd_stop_name(ending->stop), "usage", result_usage(budget), "error",
		  ending->error->kind ? result_error(ending->error, NULL) : NULL);
}
