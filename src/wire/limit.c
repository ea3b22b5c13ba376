#include "wire/limit.h"

#include "base/json.h"

enum {
	OUTPUT_CHARACTER = 6,  /* bytes: a lone surrogate is written out as six characters */
	OUTPUT_NOTE = 4 << 10, /* bytes for what is said about the part left out */
};

struct limit {
	enum message_type message;
	const char *key;
	size_t max; /* bytes of all texts of the field; 0: what `max_output` makes */
};

static const struct limit limits[] = {
	{MESSAGE_STARTED, "error", REPORT_MAX},
	{MESSAGE_DONE, "stdout", 0},
	{MESSAGE_DONE, "stderr", 0},
	{MESSAGE_DONE, "error", 0},
	{MESSAGE_DONE, "answer", ANSWER_MAX},
	{MESSAGE_VALUE, "value", ANSWER_MAX},
	{MESSAGE_VALUE, "variables", REPORT_MAX},
	{MESSAGE_LLM_QUERY, "prompts", PROMPTS_MAX},
	{MESSAGE_LLM_QUERY, "system", PROMPTS_MAX},
	{MESSAGE_RLM_QUERY, "tasks", PROMPTS_MAX},
	{MESSAGE_RUN_PLAN, "plan", PROMPTS_MAX},
};

static size_t text_bytes(const struct packet *announced, const json_t *text)
{
	return json_is_integer(text) ? announced->sizes[json_integer_value(text)]
				     : json_text(text).size;
}

static size_t field_bytes(const struct packet *announced, const json_t *field)
{
	size_t bytes = 0;

	if (!json_is_array(field))
		return text_bytes(announced, field);
	for (size_t i = 0; i < json_array_size(field); i++)
		bytes += text_bytes(announced, json_array_get(field, i));
	return bytes;
}

bool limit_check(const struct packet *announced, enum message_type type, int64_t max_output,
		 struct rlmd_error *err)
{
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		const struct limit *limit = &limits[i];
		size_t max = limit->max ? limit->max
					: (size_t)max_output * OUTPUT_CHARACTER + OUTPUT_NOTE;
		size_t bytes;

		if (limit->message != type)
			continue;
		bytes = field_bytes(announced, json_object_get(announced->message, limit->key));
		if (bytes > max)
			return error_set(err, RLMD_ERROR_WORKER,
					 "'%s' with %zu bytes of '%s'; at most %zu are allowed",
					 message_name(type), bytes, limit->key, max);
	}
	return true;
}
