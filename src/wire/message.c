#include "wire/message.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "wire/bounds.h"

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

static bool find_type(const struct packet *packet, enum message_type *ret_type,
		      struct rlmd_error *err)
{
	const struct packet_value *type = packet_field(packet, "type");

	if (!type || type->kind != JSON_VIEW_STRING)
		return error_set(err, RLMD_ERROR_WORKER, "a message without a type");
	for (size_t i = 0; i < MESSAGE_TYPES; i++)
		if (text_equal(type->text, messages[i].name)) {
			*ret_type = (enum message_type)i;
			return true;
		}
	return error_set(err, RLMD_ERROR_WORKER, "no message is called '%.40s'", type->text.bytes);
}

static bool check_integer(const struct packet_value *value)
{
	return value->kind == JSON_VIEW_INTEGER && value->integer >= 0 &&
	       value->integer <= INTEGER_MAX;
}

/* These become C strings, so a NUL would show two readers two different ones. */
static bool check_string(const struct packet_value *value)
{
	return value->kind == JSON_VIEW_STRING && value->text.size <= STRING_MAX &&
	       !memchr(value->text.bytes, '\0', value->text.size);
}

static bool check_text(struct check *check, const struct packet_value *value)
{
	if (value->kind == JSON_VIEW_STRING)
		return true;
	if (value->kind != JSON_VIEW_INTEGER || value->integer < 0 ||
	    (uint64_t)value->integer >= check->packet->attachment_count ||
	    check->used[value->integer])
		return false;
	check->used[value->integer] = true;
	return true;
}

static bool check_value(struct check *, enum field_type, const struct packet_value *);

static bool check_elements(struct check *check, enum field_type type,
			   const struct packet_value *array)
{
	if (array->kind != JSON_VIEW_ARRAY)
		return false;
	for (size_t i = 0; i < array->count; i++)
		if (!check_value(check, type, packet_element(check->packet, array, i)))
			return false;
	return true;
}

static bool check_value(struct check *check, enum field_type type, const struct packet_value *value)
{
	switch (type) {
	case FIELD_INTEGER:
		return check_integer(value);
	case FIELD_INTEGER_NULL:
		return value->kind == JSON_VIEW_NULL || check_integer(value);
	case FIELD_BOOLEAN:
		return value->kind == JSON_VIEW_TRUE || value->kind == JSON_VIEW_FALSE;
	case FIELD_STRING:
		return check_string(value);
	case FIELD_STRING_NULL:
		return value->kind == JSON_VIEW_NULL || check_string(value);
	case FIELD_TEXT:
		return check_text(check, value);
	case FIELD_TEXT_NULL:
		return value->kind == JSON_VIEW_NULL || check_text(check, value);
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
	size_t members = 1; /* "type" */

	for (size_t i = 0; i < field_count; i++) {
		const struct packet_value *value;

		if (fields[i].message != type)
			continue;
		members++;
		value = packet_field(check->packet, fields[i].key);
		if (!value)
			return error_set(err, RLMD_ERROR_WORKER, "'%s' without '%s'",
					 message_name(type), fields[i].key);
		if (!check_value(check, fields[i].type, value))
			return error_set(err, RLMD_ERROR_WORKER, "'%s' with a wrong '%s'",
					 message_name(type), fields[i].key);
	}
	if (check->packet->member_count != members)
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

	if (!find_type(packet, &type, err))
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
