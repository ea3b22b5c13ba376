#include "wire/limit.h"

enum {
	OUTPUT_CHARACTER = 6,  /* bytes: a lone surrogate is written out as six characters */
	OUTPUT_NOTE = 4 << 10, /* bytes for what is said about the part left out */
};

enum bound { BOUND_FRAME, BOUND_OUTPUT, BOUND_REPORT, BOUND_ANSWER, BOUND_PROMPTS };

struct limit {
	enum message_type message;
	const char *key;
	enum bound bound;
};

/* clang-format off */
static const struct limit limits[] = {
#define MESSAGE(name, wire, from, states, meaning)
#define FIELD(message, key, type, bound, meaning) {MESSAGE_##message, #key, BOUND_##bound},
#include "wire/messages.def"
#undef MESSAGE
#undef FIELD
};
/* clang-format on */

static size_t most(enum bound bound, int64_t max_output)
{
	switch (bound) {
	case BOUND_FRAME:
		break;
	case BOUND_OUTPUT:
		return (size_t)max_output * OUTPUT_CHARACTER + OUTPUT_NOTE;
	case BOUND_REPORT:
		return REPORT_MAX;
	case BOUND_ANSWER:
		return ANSWER_MAX;
	case BOUND_PROMPTS:
		return PROMPTS_MAX;
	}
	return SIZE_MAX;
}

static size_t text_bytes(const struct packet *announced, const struct packet_value *text)
{
	if (text->kind == JSON_VIEW_INTEGER)
		return announced->sizes[text->integer];
	return text->kind == JSON_VIEW_STRING ? text->text.size : 0;
}

static size_t field_bytes(const struct packet *announced, const struct packet_value *field)
{
	size_t bytes = 0;

	if (!field)
		return 0;
	if (field->kind != JSON_VIEW_ARRAY)
		return text_bytes(announced, field);
	for (size_t i = 0; i < field->count; i++)
		bytes += text_bytes(announced, packet_element(announced, field, i));
	return bytes;
}

bool limit_check(const struct packet *announced, enum message_type type, int64_t max_output,
		 struct rlmd_error *err)
{
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		const struct limit *limit = &limits[i];
		size_t max = most(limit->bound, max_output), bytes;

		if (limit->message != type || limit->bound == BOUND_FRAME)
			continue;
		bytes = field_bytes(announced, packet_field(announced, limit->key));
		if (bytes > max)
			return error_set(err, RLMD_ERROR_WORKER,
					 "'%s' with %zu bytes of '%s'; at most %zu are allowed",
					 message_name(type), bytes, limit->key, max);
	}
	return true;
}
