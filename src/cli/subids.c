#include "cli/subids.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

enum { FILE_MAX = 4 << 20, NAME_MAX_SHOWN = 64 };

struct subid_range {
	char name[NAME_MAX_SHOWN + 1];
	uint64_t first, count;
};

static bool read_line(struct rlmd_text line, struct subid_range *ret)
{
	char copy[256];
	int length = 0;

	snprintf(copy, sizeof copy, "%.*s", (int)line.size, line.bytes);
	return sscanf(copy, "%64[^:#\n]:%20" SCNu64 ":%20" SCNu64 "%n", ret->name, &ret->first,
		      &ret->count, &length) == 3 &&
	       length > 0 && ret->count && ret->first <= UINT32_MAX && ret->count <= UINT32_MAX;
}

static void warn(const char *path, const struct subid_range *range, uint32_t first, uint32_t count,
		 json_t *warnings)
{
	auto_free char *text = xasprintf(
		"workers get ids from %u to %u, of which %s gives %s those from %" PRIu64
		" to %" PRIu64 "; choose others with --first-uid",
		first, first + count - 1, path, range->name, range->first,
		range->first + range->count - 1);

	json_array_append_new(warnings, json_from_text(text_of(text)));
}

void subids_check(const char *path, struct rlmd_text content, uint32_t first, uint32_t count,
		  json_t *warnings)
{
	while (content.size) {
		const char *end = memchr(content.bytes, '\n', content.size);
		size_t size = end ? (size_t)(end - content.bytes) : content.size;
		struct subid_range range;

		if (read_line(text_from(content.bytes, size), &range) &&
		    range.first < (uint64_t)first + count && first < range.first + range.count)
			warn(path, &range, first, count, warnings);
		size += end ? 1 : 0;
		content = text_from(content.bytes + size, content.size - size);
	}
}

void subids_check_all(uint32_t first, uint32_t count, json_t *warnings)
{
	static const char *const paths[] = {"/etc/subuid", "/etc/subgid"};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		size_t size;
		auto_free char *content = file_read(paths[i], FILE_MAX, &size, NULL);

		if (content)
			subids_check(paths[i], text_from(content, size), first, count, warnings);
	}
}
