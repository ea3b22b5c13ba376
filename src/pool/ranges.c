#include "pool/ranges.h"

#include "base/alloc.h"
#include "base/json.h"

enum { VALUES_MAX = 400001 }; /* of 200,000 files every second one */

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

bool ranges_read(struct rlmd_text json, struct worker_subset *ret, struct rlmd_error *err)
{
	json_t *numbers;
	bool read;

	if (json_look(json).values > VALUES_MAX)
		return error_set(err, RLMD_ERROR_WORKER, "'subsets' of too many parts");
	numbers = json_read(json, 1, NULL);
	if (!numbers)
		return error_set(err, RLMD_ERROR_WORKER, "'subsets' that are no JSON");
	read = read_numbers(numbers, ret, err);
	json_decref(numbers);
	return read;
}
