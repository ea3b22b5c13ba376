#include "wire/message.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "wire/limit.h"

enum field_type {
	FIELD_INTEGER,
	FIELD_INTEGER_NULL,
	FIELD_BOOLEAN,
	FIELD_STRING,
	FIELD_STRING_NULL,
	FIELD_TEXT,
	FIELD_TEXT_NULL,
	FIELD_TEXTS,
	FIELD_STRINGS,
	FIELD_STRINGS_NULL,
	FIELD_INTEGERS,
};

struct message {
	const char *name;
	enum message_sender from;
	unsigned states; /* a bit for each enum worker_state */
};

struct field {
	enum message_type message;
	const char *key;
	enum field_type type;
};

/* clang-format off */
static const struct message messages[] = {
#define IN(state) (1U << WORKER_##state)
#define MESSAGE(name, wire, from, states, meaning) \
	[MESSAGE_##name] = {wire, MESSAGE_FROM_##from, states},
#define FIELD(message, key, type, bound, meaning)
#include "wire/messages.def"
#undef MESSAGE
#undef FIELD
#undef IN
};

static const struct field fields[] = {
#define MESSAGE(name, wire, from, states, meaning)
#define FIELD(message, key, type, bound, meaning) {MESSAGE_##message, #key, FIELD_##type},
#include "wire/messages.def"
#undef MESSAGE
#undef FIELD
};
/* clang-format on */

static const size_t field_count = sizeof fields / sizeof *fields;

/* A packet on the way through the checks. */
struct check {
	const struct packet *packet; /* lent */
	bool *used;                  /* lent: for each attachment */
};

const char *message_name(enum message_type type)
{
	return messages[type].name;
}

static bool find_type(const json_t *message, enum message_type *ret_type, struct rlmd_error *err)
{
	const json_t *type = json_object_get(message, "type");

	if (!json_is_string(type))
		return error_set(err, RLMD_ERROR_WORKER, "a message without a type");
	for (size_t i = 0; i < MESSAGE_TYPES; i++)
		if (text_equal(json_text(type), messages[i].name)) {
			*ret_type = (enum message_type)i;
			return true;
		}
	return error_set(err, RLMD_ERROR_WORKER, "no message is called '%.40s'",
			 json_string_value(type));
}

static bool check_integer(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 0 &&
	       json_integer_value(value) <= INTEGER_MAX;
}

/* These become C strings, so a NUL would show two readers two different ones. */
static bool check_string(const json_t *value)
{
	struct rlmd_text text = json_text(value);

	return json_is_string(value) && text.size <= STRING_MAX &&
	       !memchr(text.bytes, '\0', text.size);
}

static bool check_text(struct check *check, const json_t *value)
{
	json_int_t index = json_integer_value(value);

	if (json_is_string(value))
		return true;
	if (!json_is_integer(value) || index < 0 ||
	    (uint64_t)index >= check->packet->attachment_count || check->used[index])
		return false;
	check->used[index] = true;
	return true;
}

static bool check_value(struct check *, enum field_type, const json_t *);

static bool check_elements(struct check *check, enum field_type type, const json_t *array)
{
	if (!json_is_array(array) || json_array_size(array) > ELEMENTS_MAX)
		return false;
	for (size_t i = 0; i < json_array_size(array); i++)
		if (!check_value(check, type, json_array_get(array, i)))
			return false;
	return true;
}

static bool check_value(struct check *check, enum field_type type, const json_t *value)
{
	switch (type) {
	case FIELD_INTEGER:
		return check_integer(value);
	case FIELD_INTEGER_NULL:
		return json_is_null(value) || check_integer(value);
	case FIELD_BOOLEAN:
		return json_is_boolean(value);
	case FIELD_STRING:
		return check_string(value);
	case FIELD_STRING_NULL:
		return json_is_null(value) || check_string(value);
	case FIELD_TEXT:
		return check_text(check, value);
	case FIELD_TEXT_NULL:
		return json_is_null(value) || check_text(check, value);
	case FIELD_TEXTS:
		return check_elements(check, FIELD_TEXT_NULL, value);
	case FIELD_STRINGS:
		return check_elements(check, FIELD_STRING, value);
	case FIELD_STRINGS_NULL:
		return check_elements(check, FIELD_STRING_NULL, value);
	case FIELD_INTEGERS:
		return check_elements(check, FIELD_INTEGER, value);
	}
	return false;
}

static bool check_fields(struct check *check, enum message_type type, struct rlmd_error *err)
{
	const json_t *message = check->packet->message;
	size_t members = 1; /* "type" */

	for (size_t i = 0; i < field_count; i++) {
		const json_t *value;

		if (fields[i].message != type)
			continue;
		members++;
		value = json_object_get(message, fields[i].key);
		if (!value)
			return error_set(err, RLMD_ERROR_WORKER, "'%s' without '%s'",
					 message_name(type), fields[i].key);
		if (!check_value(check, fields[i].type, value))
			return error_set(err, RLMD_ERROR_WORKER, "'%s' with a wrong '%s'",
					 message_name(type), fields[i].key);
	}
	if (json_object_size(message) != members)
		return error_set(err, RLMD_ERROR_WORKER, "'%s' with fields that it does not have",
				 message_name(type));
	return true;
}

bool message_check(const struct packet *packet, enum message_sender from, enum worker_state state,
		   enum message_type *ret_type, struct rlmd_error *err)
{
	auto_free bool *used = xcalloc(packet->attachment_count + 1, sizeof *used);
	struct check check = {packet, used};
	enum message_type type = MESSAGE_TYPES;

	if (!find_type(packet->message, &type, err))
		return false;
	if (messages[type].from != from)
		return error_set(err, RLMD_ERROR_WORKER, "'%s' from the wrong side",
				 message_name(type));
	if (!(messages[type].states & 1U << state))
		return error_set(err, RLMD_ERROR_WORKER, "'%s' out of turn", message_name(type));
	if (!check_fields(&check, type, err))
		return false;
	if (packet->attachment_count && memchr(used, false, packet->attachment_count))
		return error_set(err, RLMD_ERROR_WORKER,
				 "'%s' with an attachment that nothing names", message_name(type));
	*ret_type = type;
	return true;
}
