#include "engine/record.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "engine/brief.h"
#include "engine/result.h"

enum { FAILED_TEXT_MAX = 1000 }; /* characters kept of the prompt of a call that failed */

static json_t *clipped(struct text text, int64_t max)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	brief_clip(text, max, out);
	return json_from_text(text_in(out));
}

static json_t *contexts_of(const struct context *context)
{
	json_t *contexts = json_array();

	for (size_t i = 0; i < context->count; i++) {
		const struct context_input *input = &context->inputs[i];
		const struct text_scan *scan = memfile_scan(input->file);

		json_array_append_new(
			contexts, json_pack("{s:s, s:I, s:I, s:I, s:s, s:I, s:I}", "name",
					    input->name, "length", (json_int_t)scan->characters,
					    "bytes", (json_int_t)scan->bytes, "tokenEstimate",
					    (json_int_t)text_scan_tokens(scan), "contentType",
					    input->type, "invalidBytes", (json_int_t)scan->invalid,
					    "files", (json_int_t)json_array_size(input->files)));
	}
	return contexts;
}

void record_run(struct trace *trace, const char *run, const char *parent, int depth,
		struct text task, const char *model, const struct context *context, json_t *sandbox)
{
	trace_run(trace, "run", run, "{s:s?, s:i, s:o, s:s, s:o, s:o*}", "parent", parent, "depth",
		  depth, "task", json_from_text(task), "model", model, "contexts",
		  contexts_of(context), "sandbox", sandbox);
}

void record_response(struct trace *trace, const char *run, int index, struct text prompt,
		     const struct llm_response *reply, struct text thinking)
{
	auto_evbuffer struct evbuffer *thoughts = evbuffer_new();

	text_repair(reply->thinking, thoughts);
	if (reply->thinking.size && thinking.size)
		evbuffer_add(thoughts, "\n", 1);
	text_repair(thinking, thoughts);
	trace_run(trace, "response", run, "{s:i, s:{s:o, s:I}, s:{s:o, s:o, s:I, s:o}, s:s, s:I}",
		  "index", index, "prompt", "content", json_from_text(prompt), "tokens",
		  (json_int_t)reply->usage.input, "response", "content",
		  json_from_text(reply->text), "thinking", json_from_text(text_in(thoughts)),
		  "tokens", (json_int_t)reply->usage.output, "cost",
		  result_cost(reply->cost_known, reply->cost), "model", reply->model, "duration",
		  (json_int_t)reply->duration_ms);
}

void record_block(struct trace *trace, const char *run, int index, struct text code,
		  const struct worker_block *block, int64_t max_output)
{
	trace_run(trace, "code", run, "{s:i, s:o, s:o, s:o, s:o, s:I}", "index", index, "code",
		  json_from_text(code), "stdout", clipped(block->stdout_text, max_output), "stderr",
		  clipped(block->stderr_text, max_output), "error",
		  block->failed ? clipped(block->error, max_output) : json_null(), "duration",
		  (json_int_t)block->duration_ms);
}

void record_iteration(struct trace *trace, const char *run, int index)
{
	trace_run(trace, "iteration", run, "{s:i}", "index", index);
}

void record_call(struct trace *trace, const char *run, int index, const char *reason,
		 const struct llm_request *request, const struct llm_response *reply,
		 const struct error *err)
{
	struct text prompt = request->messages[request->message_count - 1].text;
	int64_t kept;

	if (!trace_admit_call(trace, prompt.size + reply->text.size, &kept))
		return;
	trace_run(trace, "llm_call", run,
		  "{s:i, s:s, s:s?, s:s, s:o, s:o, s:I, s:I, s:o, s:I, s:o*}", "index", index,
		  "kind", llm_kind_name(request->kind), "reason", reason, "model",
		  reply->model ? reply->model : request->model, "prompt",
		  clipped(prompt, err && kept > FAILED_TEXT_MAX ? FAILED_TEXT_MAX : kept),
		  "response", clipped(reply->text, kept), "inputTokens",
		  (json_int_t)reply->usage.input, "outputTokens", (json_int_t)reply->usage.output,
		  "cost", result_cost(reply->cost_known, reply->cost), "duration",
		  (json_int_t)reply->duration_ms, "error", err ? result_error(err, NULL) : NULL);
}

void record_compaction(struct trace *trace, const char *run, int index, int64_t turns,
		       int64_t before, int64_t after)
{
	trace_run(trace, "compaction", run, "{s:i, s:I, s:I, s:I}", "index", index, "turns",
		  (json_int_t)turns, "tokensBefore", (json_int_t)before, "tokensAfter",
		  (json_int_t)after);
}

void record_warning(struct trace *trace, const char *run, const char *text)
{
	trace_run(trace, "warning", run, "{s:o}", "text", json_from_text(text_of(text)));
}

void record_end(struct trace *trace, const char *run, const struct run_result *result,
		const char *source, const struct budget *budget)
{
	trace_run(trace, "end", run, "{s:o, s:s, s:s, s:o, s:o*}", "finalAnswer",
		  json_from_text(result->answer), "answerSource", source, "stopReason",
		  stop_reason_name(result->stop), "usage", result_usage(budget), "error",
		  result->error.kind ? result_error(&result->error, NULL) : NULL);
}
