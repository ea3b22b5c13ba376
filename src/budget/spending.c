/* The value that accounts are saved as, written and read as JSON (rlmd/budget.h). */
#include <jansson.h>
#include <rlmd/budget.h>
#include <stddef.h>

#include "base/abi.h"
#include "base/error.h"
#include "base/json.h"

enum { VERSION = 1 };

static const struct number {
	const char *name;
	size_t offset;
	bool optional;
} numbers[] = {
	{"cost", offsetof(struct rlmd_spending, cost), false},
	{"tokens", offsetof(struct rlmd_spending, tokens), false},
	{"calls", offsetof(struct rlmd_spending, calls), false},
	{"reservedCost", offsetof(struct rlmd_spending, reserved_cost), true},
	{"reservedTokens", offsetof(struct rlmd_spending, reserved_tokens), true},
	{"overrunCost", offsetof(struct rlmd_spending, overrun_cost), true},
	{"overrunTokens", offsetof(struct rlmd_spending, overrun_tokens), true},
};

static int64_t *number_in(struct rlmd_spending *spending, const struct number *number)
{
	return (int64_t *)(void *)((char *)spending + number->offset);
}

char *rlmd_spending_json(const struct rlmd_spending *given)
{
	struct rlmd_spending spending;
	json_t *object;
	char *text;

	if (!given ||
	    !abi_copy_in(&spending, sizeof spending, given, sizeof spending, "rlmd_spending", NULL))
		return NULL;
	object = json_make("{s:i}", "version", VERSION);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		json_put(object, numbers[i].name,
			 json_make_integer(*number_in(&spending, &numbers[i])));
	json_put(object, "estimated", json_boolean(spending.estimated));
	text = json_to_string(object);
	json_decref(object);
	return text;
}

static bool read_number(const json_t *object, const struct number *number,
			struct rlmd_spending *spending, struct rlmd_error *err)
{
	const json_t *value = json_object_get(object, number->name);

	if (!value && number->optional)
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return error_set(err, RLMD_ERROR_INPUT,
				 "a saved account: \"%s\" must be a whole number, not negative",
				 number->name);
	*number_in(spending, number) = json_integer_value(value);
	return true;
}

static bool read_object(const json_t *object, struct rlmd_spending *ret, struct rlmd_error *err)
{
	const json_t *estimated = json_object_get(object, "estimated");

	if (json_get_integer(object, "version", 0) != VERSION)
		return error_set(err, RLMD_ERROR_INPUT,
				 "a saved account: its \"version\" is not %d", VERSION);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!read_number(object, &numbers[i], ret, err))
			return false;
	if (estimated && !json_is_boolean(estimated))
		return error_set(err, RLMD_ERROR_INPUT,
				 "a saved account: \"estimated\" must be true or false");
	ret->estimated = json_is_true(estimated);
	return true;
}

bool rlmd_spending_from_json(struct rlmd_text json, struct rlmd_spending *ret,
			     struct rlmd_error *err)
{
	struct rlmd_spending spending = {0};
	json_t *object;
	bool ok;

	if (!ret || ret->size < sizeof *ret)
		return error_set(err, RLMD_ERROR_USAGE,
				 "nothing to read a saved account into: "
				 "set `size`");
	if (json.size && !json.bytes)
		return error_set(err, RLMD_ERROR_USAGE, "a text of %zu bytes is NULL", json.size);
	object = json_read(json, 8, err);
	if (!object) {
		if (err)
			err->kind = RLMD_ERROR_INPUT;
		return error_context(err, "a saved account");
	}
	ok = read_object(object, &spending, err);
	json_decref(object);
	return ok && abi_copy_out(ret, &spending, sizeof spending, sizeof spending);
}
