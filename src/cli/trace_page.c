#include "cli/trace_page.h"

#include <jansson.h>
#include <rlmd/trace.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/sink.h"

enum {
	PAGE_MAX = 1 << 20, /* bytes of the page without a trace */
	RESULT_DEPTH = 200, /* of JSON: a tree of runs in it */
};

#define REFRESH "<meta http-equiv=\"refresh\" content=\"5\">"

struct page {
	struct evbuffer *out; /* lent */
	size_t events;
};

/* HTML ends a script at the first "</script" in it, and takes "<!--" for more than text. */
static void add_json(struct evbuffer *out, struct rlmd_text json)
{
	const char *at = json.bytes, *end = json.bytes + json.size, *open;

	while ((open = memchr(at, '<', (size_t)(end - at)))) {
		buffer_add(out, at, (size_t)(open - at));
		buffer_add(out, "\\u003c", 6);
		at = open + 1;
	}
	buffer_add(out, at, (size_t)(end - at));
}

/* The tree in the result says again what the other events have said. */
static void add_result(struct evbuffer *out, struct rlmd_text line)
{
	auto_evbuffer struct evbuffer *short_line = buffer_new();
	json_auto_t *result = json_read(line, RESULT_DEPTH, NULL);

	if (result) {
		json_object_del(result, "trace");
		json_write(result, false, short_line);
		line = text_in(short_line);
	}
	add_json(out, line);
}

static void on_event(void *owner, const char *event, struct rlmd_text line)
{
	struct page *page = owner;

	if (page->events++)
		buffer_add(page->out, ",\n", 2);
	if (strcmp(event, "result") != 0)
		add_json(page->out, line);
	else
		add_result(page->out, line);
}

/* Copies the page up to a word, and gives the rest behind it. */
static bool copy_until(struct rlmd_text *page, const char *word, struct evbuffer *out,
		       struct rlmd_error *err)
{
	size_t size = strlen(word);
	const char *found = memmem(page->bytes, page->size, word, size);

	if (!found)
		return error_set(err, RLMD_ERROR_INTERNAL,
				 "trace.html, which was installed with "
				 "this program, lacks %s",
				 word);
	buffer_add(out, page->bytes, (size_t)(found - page->bytes));
	*page = text_from(found + size, (size_t)(page->bytes + page->size - found - (ssize_t)size));
	return true;
}

static bool make(struct rlmd_text page, struct rlmd_text lines, const char *name, bool grows,
		 struct evbuffer *out, struct rlmd_error *err)
{
	struct page made = {.out = out};

	if (!copy_until(&page, "@REFRESH@", out, err))
		return false;
	if (grows)
		buffer_add(out, REFRESH, strlen(REFRESH));
	if (!copy_until(&page, "@TRACE@", out, err))
		return false;
	buffer_add(out, "[", 1);
	if (!rlmd_trace_events(lines, name, on_event, &made, err))
		return false;
	buffer_add(out, "]", 1);
	buffer_add(out, page.bytes, page.size);
	return true;
}

bool trace_page_write(struct rlmd_text lines, const char *name, bool grows, const char *path,
		      struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *template = file_shipped("share", "trace.html");
	auto_free char *page = NULL;
	struct sink *sink;
	size_t size;
	bool ok;

	page = file_read(template, PAGE_MAX, &size, err);
	if (!page || !make(text_from(page, size), lines, name, grows, out, err))
		return false;
	sink = sink_new(path, true, err);
	ok = sink && sink_write(sink, text_in(out), err) && sink_commit(sink, !grows, err);
	sink_free(sink);
	return ok;
}
