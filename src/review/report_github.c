/*
 * Workflow commands that annotate lines. GitHub shows ten of each kind of a step: the surest are
 * those, and the last line says how many there are.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/report.h"

enum { MESSAGE_MAX = 4000 }; /* bytes */

static const char *const commands[] = {
	[SEVERITY_NONE] = "notice",
	[SEVERITY_NOTE] = "notice",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_ERROR] = "error",
};

static void annotate(const struct finding *finding, struct evbuffer *out)
{
	auto_free char *rule = escape_line(finding->rule);
	auto_free char *path = escape_line(finding->file->name);
	auto_free char *whole = escape_words(finding->message);
	auto_free char *message = text_copy(text_clip(text_of(whole), MESSAGE_MAX));

	buffer_add_printf(out, "::%s file=", commands[finding->severity]);
	escape_property(path, out);
	buffer_add_printf(out, ",line=%zu,endLine=%zu,title=", finding->first, finding->last);
	escape_property(rule, out);
	buffer_add_printf(out, "::");
	escape_command(message, out);
	buffer_add_printf(out, "\n");
}

static int compare(const void *left, const void *right)
{
	const struct finding *const *a = left, *const *b = right;
	double by = (*b)->confidence - (*a)->confidence;

	return by ? (by > 0 ? 1 : -1) : (*a > *b) - (*a < *b);
}

/* Returns how many there are beyond those that are shown. */
static size_t annotate_all(const struct review_view *view, enum severity severity,
			   struct evbuffer *out)
{
	const struct findings *findings = view->findings;
	auto_free const struct finding **items = xcalloc(findings->count + 1, sizeof *items);
	size_t count = 0;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->items[i].severity == severity && report_is_new(&findings->items[i]))
			items[count++] = &findings->items[i];
	qsort(items, count, sizeof *items, compare);
	for (size_t i = 0; i < count && i < REPORT_ANNOTATIONS; i++)
		annotate(items[i], out);
	return count > REPORT_ANNOTATIONS ? count - REPORT_ANNOTATIONS : 0;
}

static void annotate_unread(const struct code *code, struct evbuffer *out)
{
	for (size_t i = 0; i < code->unread_count && i < REPORT_ANNOTATIONS; i++) {
		auto_free char *name = escape_line(code->unread[i]);

		buffer_add_printf(out, "::notice file=");
		escape_property(name, out);
		buffer_add_printf(out, ",title=not reviewed::This file was changed, but left "
				       "out of the review: see the log.\n");
	}
}

void report_github(const struct review_view *view, struct evbuffer *out)
{
	size_t beyond = 0;

	for (enum severity severity = SEVERITY_ERROR; severity > SEVERITY_NONE; severity--)
		beyond += annotate_all(view, severity, out);
	annotate_unread(view->code, out);
	buffer_add_printf(out, "review: ");
	report_tally(view, out);
	if (beyond)
		buffer_add_printf(out,
				  "; %zu of them are not annotated here, but in the step "
				  "summary and the other reports",
				  beyond);
}
