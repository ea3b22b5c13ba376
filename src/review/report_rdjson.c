/* reviewdog's Diagnostic Format (rdjson): comments and suggestions on the lines of pull requests.
 * Source: proto/rdf/reviewdog.proto of reviewdog. */
#include <event2/buffer.h>
#include <jansson.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/report.h"

static const char *const severities[] = {
	[SEVERITY_NONE] = "UNKNOWN_SEVERITY",
	[SEVERITY_NOTE] = "INFO",
	[SEVERITY_WARNING] = "WARNING",
	[SEVERITY_ERROR] = "ERROR",
};

/* Whole lines; new. */
static json_t *range(size_t first, size_t last)
{
	return json_make("{s:{s:I}, s:{s:I}}", "start", "line", (json_int_t)first, "end", "line",
			 (json_int_t)last);
}

static struct rlmd_text without_end(struct rlmd_text text)
{
	return text_slice(text, 0,
			  text.size && text.bytes[text.size - 1] == '\n' ? text.size - 1
									 : text.size);
}

/* Services replace whole lines: what is inserted comes with a line beside it. */
static json_t *suggestion(const struct code_file *file, const struct patch_edit *edit)
{
	struct rlmd_text added = text_in(edit->added), line;
	size_t first = edit->line, last = edit->line + edit->removed - 1;
	auto_evbuffer struct evbuffer *text = buffer_new();

	if (edit->removed) {
		buffer_add(text, added.bytes, added.size);
	} else if (first <= file->lines) {
		line = code_line(file, first);
		last = first;
		buffer_add(text, added.bytes, added.size);
		buffer_add(text, line.bytes, line.size);
	} else {
		first = last = file->lines;
		line = without_end(code_line(file, last));
		buffer_add(text, line.bytes, line.size);
		buffer_add(text, "\n", 1);
		buffer_add(text, added.bytes, added.size);
	}
	return json_make("{s:o, s:o}", "range", range(first, last), "text",
			 json_from_text(without_end(text_in(text))));
}

/* A patch of several files is none that a comment can carry. */
static json_t *suggestions(const struct finding *finding)
{
	const struct patch *patch = finding->edits;
	json_t *list = json_make_array();

	if (!patch || patch->count != 1 || patch->files[0].file != finding->file ||
	    !finding->file->lines)
		return list;
	for (size_t i = 0; i < patch->files[0].count; i++)
		json_append(list, suggestion(finding->file, &patch->files[0].edits[i]));
	return list;
}

static json_t *diagnostic(const struct finding *finding)
{
	auto_free char *rule = escape_line(finding->rule);
	auto_free char *message = escape_words(finding->message);
	auto_free char *path = escape_line(finding->file->name);

	return json_make("{s:s, s:{s:s, s:o}, s:s, s:{s:s}, s:o}", "message", message, "location",
			 "path", path, "range", range(finding->first, finding->last), "severity",
			 severities[finding->severity], "code", "value", rule, "suggestions",
			 suggestions(finding));
}

/* Known findings have their comments already. */
void report_rdjson(const struct review_view *view, struct evbuffer *out)
{
	json_t *diagnostics = json_make_array();
	json_auto_t *whole = json_make("{s:{s:s}, s:o}", "source", "name", "rlmd", "diagnostics",
				       diagnostics);

	for (size_t i = 0; i < view->findings->count; i++)
		if (report_is_new(&view->findings->items[i]))
			json_append(diagnostics, diagnostic(&view->findings->items[i]));
	escape_json(whole, out);
}
