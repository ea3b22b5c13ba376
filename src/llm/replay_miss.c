#include "llm/replay_miss.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "llm/exchange.h"

enum {
	SHOWN = 32,  /* bytes of each text from where they differ on */
	BEFORE = 12, /* and so many before that */
};

/* From a little before the difference on, escaped. */
static void show(struct rlmd_text text, size_t at, char *out, size_t size)
{
	size_t start = at > BEFORE ? at - BEFORE : 0;
	const char *line = memrchr(text.bytes + start, '\n', at - start);

	if (line)
		start = (size_t)(line + 1 - text.bytes);
	while (start < at && ((unsigned char)text.bytes[start] & 0xc0) == 0x80)
		start++;
	text_escape(text_clip(text_slice(text, start, text.size), SHOWN), out, size);
}

static void explain_text(size_t message, const char *role, struct rlmd_text now,
			 struct rlmd_text then, char *out)
{
	size_t least = now.size < then.size ? now.size : then.size, at = 0, line = 1;
	char here[4 * SHOWN + 1], there[4 * SHOWN + 1];

	while (at < least && now.bytes[at] == then.bytes[at])
		line += now.bytes[at++] == '\n';
	show(now, at, here, sizeof here);
	show(then, at, there, sizeof there);
	snprintf(out, REPLAY_MISS_SIZE, "message %zu (%s), line %zu: '%.64s' was '%.64s'", message,
		 role, line, here, there);
}

/* As recordings know it: without what a clock put in, where that is kept. */
static struct rlmd_text content_of(const json_t *message)
{
	const json_t *timeless = json_object_get(message, "timeless");

	return timeless ? json_text(timeless) : json_get_text(message, "content");
}

/* The one that differs first; false: all are the same. */
static bool explain_messages(const json_t *now, const json_t *then, char *out)
{
	size_t count = json_array_size(now), i;
	const json_t *message;

	json_array_foreach (now, i, message) {
		const json_t *before = json_array_get(then, i);
		struct rlmd_text text = content_of(message), was = content_of(before);

		if (!before)
			break;
		if (text.size == was.size && !memcmp(text.bytes, was.bytes, was.size))
			continue;
		/* Of what is not kept without the clock's words nothing can be said. */
		if (json_object_get(message, "timeless") && !json_object_get(before, "timeless"))
			continue;
		explain_text(i + 1, json_get_string(message, "role"), text, was, out);
		return true;
	}
	if (count == json_array_size(then))
		return false;
	snprintf(out, REPLAY_MISS_SIZE, "it has %zu messages, and that had %zu", count,
		 json_array_size(then));
	return true;
}

void replay_miss_explain(const struct llm_request *request, const json_t *recorded,
			 char out[static REPLAY_MISS_SIZE])
{
	static const char *const fields[] = {"model", "max_tokens", "temperature", "stop",
					     "schema"};
	json_auto_t *now = exchange_request(request);

	out[0] = '\0';
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		json_t *here = json_object_get(now, fields[i]);
		json_t *there = json_object_get(recorded, fields[i]);
		auto_free char *is = here ? json_to_string(here) : NULL;
		auto_free char *was = there ? json_to_string(there) : NULL;

		if (json_equal(here, there) || (!here && !there))
			continue;
		snprintf(out, REPLAY_MISS_SIZE, "%s %.60s was %.60s", fields[i], is ? is : "none",
			 was ? was : "none");
		return;
	}
	explain_messages(json_object_get(now, "messages"), json_object_get(recorded, "messages"),
			 out);
}
