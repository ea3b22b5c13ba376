#include "pool/translate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "wire/limit.h"

enum { NAME_MAX_BYTES = 256 };

enum {
	SUBSET_VALUES_MAX = 400001, /* of 200,000 files every second one */
	START_MS = 60000,
	START_BYTES_PER_MS = 10000, /* and so much longer for its inputs */
};

/* The memory of a call that waits for its answer, in bytes. */
enum {
	SLOT_WEIGHT = 1680,        /* the structs of a prompt; OPEN_CALLS_WEIGHT_MAX has 20,000 */
	TEXT_COPIES = 2,           /* of a prompt: as it came, and as it is sent on */
	CONTEXT_WEIGHT = 16 << 10, /* what is kept of it beside the bytes */
	VALUE_WEIGHT = 128,        /* a value of a plan's JSON, once it is read */
	SUBSET_WEIGHT = 32,        /* a run of files: twice two numbers */
};

/* An attachment that could not be mapped must not pass for an empty text. */
static bool read_text_and_file(const struct packet *packet, const struct packet_value *value,
			       struct rlmd_text *ret, struct memfile **ret_file,
			       struct rlmd_error *err)
{
	*ret = packet_text(packet, value, ret_file);
	if (!*ret_file || ret->size == memfile_size(*ret_file))
		return true;
	return error_set(err, RLMD_ERROR_INTERNAL, "no room to look at %zu bytes that it sent",
			 memfile_size(*ret_file));
}

static bool is_number(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 0 &&
	       json_integer_value(value) <= INT32_MAX;
}

static bool read_numbers(const json_t *numbers, struct worker_subset *ret, struct rlmd_error *err)
{
	size_t count = json_array_size(numbers), behind = 0, i;
	size_t *ranges = xcalloc(count + 1, sizeof *ranges);

	ret->ranges = ranges;
	ret->count = count / 2;
	if (count % 2 == 0 || count < 3)
		return error_set(err, RLMD_ERROR_WORKER, "'subsets' that are no pairs");
	for (i = 0; i < count; i++)
		if (!is_number(json_array_get(numbers, i)))
			return error_set(err, RLMD_ERROR_WORKER, "'subsets' that are no numbers");
	ret->input = (size_t)json_integer_value(json_array_get(numbers, 0));
	for (i = 1; i < count; i++)
		ranges[i - 1] = (size_t)json_integer_value(json_array_get(numbers, i));
	for (i = 0; i < ret->count; i++) {
		if (ranges[2 * i] < behind || !ranges[2 * i + 1])
			return error_set(err, RLMD_ERROR_WORKER, "'subsets' that do not ascend");
		behind = ranges[2 * i] + ranges[2 * i + 1];
	}
	return true;
}

bool translate_subset(struct rlmd_text json, struct worker_subset *ret, struct rlmd_error *err)
{
	json_t *numbers;
	bool read;

	if (json_look(json).values > SUBSET_VALUES_MAX)
		return error_set(err, RLMD_ERROR_WORKER, "'subsets' of too many parts");
	numbers = json_read(json, 1, NULL);
	if (!numbers)
		return error_set(err, RLMD_ERROR_WORKER, "'subsets' that are no JSON");
	read = read_numbers(numbers, ret, err);
	json_decref(numbers);
	return read;
}

static bool read_text(const struct packet *packet, const struct packet_value *value,
		      struct rlmd_text *ret, struct rlmd_error *err)
{
	struct memfile *file;

	return read_text_and_file(packet, value, ret, &file, err);
}

static bool read_texts(const struct packet *packet, const char *key, struct translated_call *call,
		       struct rlmd_error *err)
{
	const struct packet_value *array = packet_field(packet, key);

	call->request.count = call->request.text_count = array->count;
	call->texts = xcalloc(call->request.count + 1, sizeof *call->texts);
	call->files = xcalloc(call->request.count + 1, sizeof *call->files);
	call->request.texts = call->texts;
	call->request.files = call->files;
	for (size_t i = 0; i < call->request.count; i++) {
		const struct packet_value *element = packet_element(packet, array, i);

		if (element->kind == JSON_VIEW_NULL)
			return error_set(err, RLMD_ERROR_WORKER, "null among the '%s'", key);
		if (!read_text_and_file(packet, element, &call->texts[i], &call->files[i], err))
			return false;
		if (element->kind == JSON_VIEW_STRING)
			call->weight += call->texts[i].size;
	}
	return true;
}

static bool read_plan(const struct packet *packet, struct translated_call *call,
		      struct rlmd_error *err)
{
	call->texts = xcalloc(1, sizeof *call->texts);
	call->request.texts = call->texts;
	call->request.count = call->request.text_count = 1;
	return read_text(packet, packet_field(packet, "plan"), call->texts, err);
}

/* An honest worker keeps to all of it: what cannot be read as arguments are lies. */
static bool read_function(const struct packet *packet, struct translated_call *call,
			  struct rlmd_error *err)
{
	const struct json_scan_bounds bounds = {
		.depth = ARGUMENTS_DEPTH,
		.values = ARGUMENTS_VALUES,
	};
	struct json_scan scan;
	struct rlmd_error wrong;
	bool is_object;

	call->request.function = packet_string(packet, "name");
	call->texts = xcalloc(1, sizeof *call->texts);
	call->request.texts = call->texts;
	call->request.count = call->request.text_count = 1;
	if (!read_text(packet, packet_field(packet, "arguments"), call->texts, err))
		return false;
	json_scan_init(&scan, *call->texts, &bounds);
	is_object = json_scan_kind(&scan) == JSON_VIEW_OBJECT;
	if (!json_scan_end(&scan, &wrong))
		return error_set(err, RLMD_ERROR_WORKER, "'arguments': %s", wrong.text);
	return is_object ||
	       error_set(err, RLMD_ERROR_WORKER, "'arguments' that are no JSON object");
}

/* Only functions of the job can be called. */
static bool check_function(const char *name, const char *const *functions, struct rlmd_error *err)
{
	for (; functions && *functions; functions++)
		if (!strcmp(*functions, name))
			return true;
	return error_set(err, RLMD_ERROR_WORKER, "a call of '%.40s', which is no function", name);
}

/* Of each conversation the first and the last words are the user's. */
static bool read_turns(const struct packet *packet, struct translated_call *call,
		       struct rlmd_error *err)
{
	const struct packet_value *array = packet_field(packet, "turns");
	size_t count = array->count, left = call->request.text_count;

	if (!count)
		return true;
	call->turns = xcalloc(count, sizeof *call->turns);
	call->request.turns = call->turns;
	call->request.count = count;
	for (size_t i = 0; i < count; i++) {
		int64_t turns = packet_element(packet, array, i)->integer;

		if (turns % 2 == 0 || (uint64_t)turns > left)
			return error_set(err, RLMD_ERROR_WORKER,
					 "'turns' that are no conversations");
		call->turns[i] = (size_t)turns;
		left -= (size_t)turns;
	}
	return !left || error_set(err, RLMD_ERROR_WORKER, "fewer 'turns' than prompts");
}

static bool read_wishes(const struct packet *packet, struct worker_call *request,
			struct rlmd_error *err)
{
	int64_t temperature = packet_integer(packet, "temperature");

	request->max_tokens = packet_integer(packet, "max_tokens");
	if (!packet_is_null(packet, "max_tokens") &&
	    (!request->max_tokens || request->max_tokens > ANSWER_TOKENS_MAX))
		return error_set(err, RLMD_ERROR_WORKER, "'max_tokens' of %" PRId64,
				 request->max_tokens);
	if (packet_is_null(packet, "temperature"))
		return true;
	if (temperature > TEMPERATURE_MAX)
		return error_set(err, RLMD_ERROR_WORKER, "a 'temperature' above %d",
				 TEMPERATURE_MAX);
	request->temperature = (int)temperature;
	return true;
}

static bool read_questions(const struct packet *packet, struct translated_call *call,
			   struct rlmd_error *err)
{
	call->request.model = packet_string(packet, "model");
	return read_texts(packet, "prompts", call, err) && read_turns(packet, call, err) &&
	       read_text(packet, packet_field(packet, "system"), &call->request.system, err) &&
	       read_wishes(packet, &call->request, err);
}

/* NULL where it is null. */
static const char *string_of(const struct packet_value *value)
{
	return value->kind == JSON_VIEW_STRING ? value->text.bytes : NULL;
}

static bool read_models(const struct packet *packet, struct translated_call *call,
			struct rlmd_error *err)
{
	const struct packet_value *array = packet_field(packet, "models");

	if (array->count != call->request.count)
		return error_set(err, RLMD_ERROR_WORKER, "not as many models as tasks");
	call->models = xcalloc(call->request.count + 1, sizeof *call->models);
	call->request.models = call->models;
	for (size_t i = 0; i < call->request.count; i++)
		call->models[i] = string_of(packet_element(packet, array, i));
	return true;
}

static bool read_context(const struct packet *packet, const struct packet_value *element,
			 struct translated_call *call, struct memfile **ret_file,
			 struct rlmd_error *err)
{
	struct memfile *attached;
	struct rlmd_text text = packet_text(packet, element, &attached);

	if (attached || element->kind == JSON_VIEW_NULL) {
		*ret_file = memfile_ref(attached);
		return true;
	}
	call->weight += text.size;
	*ret_file = memfile_new_private("rlmd-context");
	return memfile_append(*ret_file, text, err) && memfile_seal(*ret_file, err);
}

static bool read_contexts(const struct packet *packet, struct translated_call *call,
			  struct rlmd_error *err)
{
	const struct packet_value *array = packet_field(packet, "contexts");

	if (array->count != call->request.count)
		return error_set(err, RLMD_ERROR_WORKER, "not as many contexts as tasks");
	call->contexts = xcalloc(call->request.count + 1, sizeof *call->contexts);
	call->context_count = call->request.count;
	call->request.contexts = call->contexts;
	for (size_t i = 0; i < call->context_count; i++)
		if (!read_context(packet, packet_element(packet, array, i), call,
				  &call->contexts[i], err))
			return false;
	return true;
}

static bool read_subset(const struct packet *packet, const struct packet_value *element,
			struct worker_subset *ret, struct rlmd_error *err)
{
	struct rlmd_text text;

	if (element->kind == JSON_VIEW_NULL)
		return true;
	return read_text(packet, element, &text, err) && translate_subset(text, ret, err);
}

static bool read_subsets(const struct packet *packet, struct translated_call *call,
			 struct rlmd_error *err)
{
	const struct packet_value *array = packet_field(packet, "subsets");

	if (!array->count)
		return true;
	if (array->count != call->request.count)
		return error_set(err, RLMD_ERROR_WORKER, "not as many subsets as tasks");
	call->subsets = xcalloc(array->count, sizeof *call->subsets);
	call->request.subsets = call->subsets;
	for (size_t i = 0; i < array->count; i++) {
		if (!read_subset(packet, packet_element(packet, array, i), &call->subsets[i], err))
			return false;
		if (call->subsets[i].ranges && call->contexts[i])
			return error_set(err, RLMD_ERROR_WORKER, "a context beside a subset");
		call->weight += call->subsets[i].count * SUBSET_WEIGHT;
	}
	return true;
}

static bool read_arguments(const struct packet *packet, enum message_type type,
			   struct translated_call *call, struct rlmd_error *err)
{
	if (type == MESSAGE_LLM_QUERY) {
		call->request.kind = WORKER_LLM_QUERY;
		return read_questions(packet, call, err);
	}
	if (type == MESSAGE_RLM_QUERY) {
		call->request.kind = WORKER_RLM_QUERY;
		return read_texts(packet, "tasks", call, err) && read_contexts(packet, call, err) &&
		       read_subsets(packet, call, err) && read_models(packet, call, err);
	}
	if (type == MESSAGE_RUN_PLAN) {
		call->request.kind = WORKER_RUN_PLAN;
		return read_plan(packet, call, err);
	}
	if (type == MESSAGE_FUNCTION) {
		call->request.kind = WORKER_FUNCTION;
		return read_function(packet, call, err);
	}
	call->request.kind = WORKER_BUDGET;
	return true;
}

/* JSON has no more values than separators; a short text can hold very many. */
static size_t plan_weight(struct rlmd_text plan)
{
	size_t values = 1;

	for (size_t i = 0; i < plan.size; i++)
		values += memchr(",:[{", plan.bytes[i], 4) != NULL;
	return values * VALUE_WEIGHT;
}

static size_t call_weight(const struct translated_call *call)
{
	size_t weight = call->request.count * SLOT_WEIGHT + TEXT_COPIES * call->request.system.size;

	for (size_t i = 0; i < call->request.text_count; i++)
		weight += TEXT_COPIES * call->texts[i].size;
	for (size_t i = 0; i < call->context_count; i++)
		if (call->contexts[i])
			weight += CONTEXT_WEIGHT + memfile_size(call->contexts[i]);
	if (call->request.kind == WORKER_RUN_PLAN || call->request.kind == WORKER_FUNCTION)
		weight += plan_weight(call->texts[0]);
	return weight;
}

bool translate_call(const struct packet *packet, enum message_type type,
		    const char *const *functions, struct translated_call *ret,
		    struct rlmd_error *err)
{
	*ret = (struct translated_call){.weight = packet->weight, .request.temperature = -1};
	ret->request.id = packet_integer(packet, "id");
	if (read_arguments(packet, type, ret, err) &&
	    (!ret->request.function || check_function(ret->request.function, functions, err))) {
		ret->weight = call_weight(ret);
		return true;
	}
	translate_call_done(ret);
	return false;
}

void translate_call_done(struct translated_call *call)
{
	for (size_t i = 0; i < call->context_count; i++) {
		memfile_unref(call->contexts[i]);
		if (call->subsets)
			free((size_t *)call->subsets[i].ranges);
	}
	free(call->contexts);
	free(call->subsets);
	free(call->texts);
	free(call->files);
	free(call->turns);
	free(call->models);
}

/* Of all sources those that a block can be; the others are not for it to say. */
static bool final_read(const char *name, enum answer_source *ret)
{
	static const enum answer_source finals[] = {ANSWER_FINAL_DIRECT, ANSWER_FINAL_VAR};

	for (size_t i = 0; i < sizeof finals / sizeof *finals; i++)
		if (!strcmp(name, answer_source_name(finals[i]))) {
			*ret = finals[i];
			return true;
		}
	return false;
}

bool translate_block(const struct packet *packet, int64_t number, struct worker_block *ret,
		     struct rlmd_error *err)
{
	const char *final = packet_string(packet, "final");
	enum answer_source source = ANSWER_MISSING;
	int64_t ended = packet_integer(packet, "block");

	if (ended != number)
		return error_set(err, RLMD_ERROR_WORKER,
				 "'done' of block %" PRId64 ", not %" PRId64, ended, number);
	if (!final != packet_is_null(packet, "answer"))
		return error_set(err, RLMD_ERROR_WORKER,
				 "'done' with only one of 'final' and 'answer'");
	if (final && !final_read(final, &source))
		return error_set(err, RLMD_ERROR_WORKER, "'done' with an unknown 'final'");
	ret->final = source;
	ret->failed = !packet_is_null(packet, "error");
	ret->missing = packet_string(packet, "missing");
	return read_text(packet, packet_field(packet, "stdout"), &ret->stdout_text, err) &&
	       read_text(packet, packet_field(packet, "stderr"), &ret->stderr_text, err) &&
	       read_text(packet, packet_field(packet, "error"), &ret->error, err) &&
	       read_text(packet, packet_field(packet, "answer"), &ret->answer, err);
}

bool translate_value(const struct packet *packet, struct worker_event *ret, struct rlmd_error *err)
{
	ret->found = !packet_is_null(packet, "value");
	ret->expression = packet_field(packet, "expression")->kind == JSON_VIEW_TRUE;
	return read_text(packet, packet_field(packet, "value"), &ret->value, err) &&
	       read_text(packet, packet_field(packet, "variables"), &ret->variables, err);
}

struct frame *translate_start(const struct worker_options *options)
{
	struct frame *frame = frame_new(message_name(MESSAGE_START));

	frame_array(frame, "names");
	for (size_t i = 0; i < options->input_count; i++)
		frame_string(frame, NULL, text_of(options->inputs[i].name));
	frame_array_end(frame);
	frame_array(frame, "forms");
	for (size_t i = 0; i < options->input_count; i++)
		frame_string(frame, NULL, text_of(text_form_name(options->inputs[i].form)));
	frame_array_end(frame);
	frame_array(frame, "sizes");
	for (size_t i = 0; i < options->input_count; i++)
		frame_integer(frame, NULL,
			      (int64_t)memfile_form_size(options->inputs[i].file,
							 options->inputs[i].form));
	frame_array_end(frame);
	frame_array(frame, "starts");
	for (size_t i = 0; i < options->input_count; i++)
		frame_integer(frame, NULL, (int64_t)memfile_start(options->inputs[i].file));
	frame_array_end(frame);
	frame_array(frame, "indexes");
	for (size_t i = 0; i < options->input_count; i++)
		frame_integer(frame, NULL,
			      options->inputs[i].index
				      ? (int64_t)memfile_size(options->inputs[i].index)
				      : 0);
	frame_array_end(frame);
	frame_text(frame, "task", options->task);
	frame_integer(frame, "max_output", options->max_output);
	frame_text(frame, "functions",
		   options->functions.size ? options->functions : text_of("[]"));
	return frame;
}

/*
 * A mapped file is not the worker's memory, but characters that were decoded of it are. While
 * Python decodes what is not ASCII it holds the characters twice, beside the bytes.
 */
size_t translate_start_memory(const struct worker_options *options)
{
	size_t memory = TEXT_COPIES * options->task.size;
	bool paged = false;

	for (size_t i = 0; i < options->input_count; i++) {
		const struct text_scan *scan = memfile_scan(options->inputs[i].file);
		/* Decoding may widen what it has; a `str` with files is a copy of one without. */
		size_t copies = 1 + (scan->highest >= 0x80) + (options->inputs[i].index != NULL);

		paged |= options->inputs[i].form > TEXT_ASCII;
		if (options->inputs[i].form != TEXT_UTF8)
			continue;
		memory += scan->bytes + text_scan_python_size(scan) * copies;
	}
	return memory + (paged ? TEXT_WINDOW : 0);
}

int64_t translate_start_ms(const struct worker_options *options)
{
	int64_t ms = START_MS;

	for (size_t i = 0; i < options->input_count; i++)
		ms += (int64_t)(memfile_size(options->inputs[i].file) / START_BYTES_PER_MS);
	return ms;
}

struct frame *translate_exec(int64_t block, struct rlmd_text code)
{
	struct frame *frame = frame_new(message_name(MESSAGE_EXEC));

	frame_integer(frame, "block", block);
	frame_text(frame, "code", code);
	return frame;
}

/* No message may say a longer name; so it names nothing. */
struct frame *translate_get(const char *name)
{
	struct frame *frame = frame_new(message_name(MESSAGE_GET));

	frame_string(frame, "name", text_of(strlen(name) <= NAME_MAX_BYTES ? name : ""));
	return frame;
}

static void add_degraded(struct frame *frame, const struct worker_result *result)
{
	if (result->degraded && !result->failed)
		frame_string(frame, NULL, text_clip(text_of(result->degraded), NAME_MAX_BYTES));
	else
		frame_null(frame, NULL);
}

struct frame *translate_reply(int64_t id, const struct worker_result *results, size_t count)
{
	struct frame *frame = frame_new(message_name(MESSAGE_REPLY));

	frame_integer(frame, "id", id);
	frame_array(frame, "values");
	for (size_t i = 0; i < count; i++)
		if (results[i].failed)
			frame_null(frame, NULL);
		else if (results[i].owned)
			frame_text_owned(frame, NULL, results[i].owned, results[i].value.size);
		else
			frame_text(frame, NULL, results[i].value);
	frame_array_end(frame);
	frame_array(frame, "errors");
	for (size_t i = 0; i < count; i++)
		if (results[i].failed)
			frame_string(frame, NULL, text_of(rlmd_error_name(results[i].kind)));
		else
			frame_null(frame, NULL);
	frame_array_end(frame);
	frame_array(frame, "messages");
	for (size_t i = 0; i < count; i++)
		if (results[i].failed)
			frame_text(frame, NULL, text_of(results[i].message));
		else
			frame_null(frame, NULL);
	frame_array_end(frame);
	frame_array(frame, "degraded");
	for (size_t i = 0; i < count; i++)
		add_degraded(frame, &results[i]);
	frame_array_end(frame);
	return frame;
}
