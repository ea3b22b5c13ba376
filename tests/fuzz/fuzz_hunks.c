/* Two texts, parted by the first NUL: what differs is in lines that the second one has. */
#include <assert.h>
#include <git2.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "lister/hunks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_int_t lines_of(struct rlmd_text text)
{
	json_int_t lines = 0;

	for (size_t at = 0; at < text.size; at = text_line_end(text, at))
		lines++;
	return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *middle = size ? memchr(data, '\0', size) : NULL;
	size_t first = middle ? (size_t)(middle - data) : size;
	struct rlmd_text before = text_from(data, first);
	struct rlmd_text after = middle ? text_from(middle + 1, size - first - 1) : text_of("");
	json_auto_t *hunks = NULL;
	const json_t *hunk, *pair;
	size_t i, k;

	git_libgit2_init();
	hunks = hunks_between(before, after);
	json_array_foreach (hunks, i, hunk)
		json_array_foreach (json_object_get(hunk, "changed"), k, pair) {
			json_int_t from = json_integer_value(json_array_get(pair, 0));
			json_int_t to = json_integer_value(json_array_get(pair, 1));

			assert(from >= 1 && from <= to && to <= lines_of(after));
		}
	git_libgit2_shutdown();
	return 0;
}
