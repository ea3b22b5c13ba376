/* Markdown, in which a stranger's words are text and code and never links, images or HTML. */
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/report.h"
#include "review/submission.h"

/* Its lines as they stand in the file. */
static void add_code(const struct finding *finding, struct evbuffer *out)
{
	const struct code_file *file = finding->file;
	size_t start = file->starts[finding->first - 1], end = file->starts[finding->last];
	auto_free char *lines = text_copy(text_slice(file->text, start, end));
	auto_free char *code = escape_code(lines);

	escape_preformatted(code, out);
}

static void add_notes(const struct finding *finding, struct evbuffer *out)
{
	auto_free char *choice = report_choice(finding);

	if (finding->anchoring != FINDING_ANCHORED)
		buffer_add_printf(out, "\nNot anchored: %s.\n", report_why_unanchored(finding));
	if (choice)
		buffer_add_printf(out, "\n%s\n", choice);
	if (finding->reports > 1)
		buffer_add_printf(out, "\nReported %zu times.\n", finding->reports);
	if (finding->no_patch)
		buffer_add_printf(out, "\nIts patch was dropped: %s.\n", finding->no_patch);
}

static void add_finding(const struct finding *finding, struct evbuffer *out)
{
	auto_free char *path = escape_line(report_name(finding)),
		       *rule = escape_line(finding->rule);
	auto_free char *message = escape_words(finding->message);
	auto_free char *patch = finding->patch ? escape_code(finding->patch) : NULL;

	buffer_add_printf(out, "\n### %s: ", finding_severity_name(finding->severity));
	escape_span(rule, out);
	buffer_add_printf(out, "\n\n");
	escape_span(path, out);
	if (finding->anchoring == FINDING_ANCHORED)
		buffer_add_printf(out, ", line %zu", finding->first);
	buffer_add_printf(out, " (confidence %.2g%s)\n\n", finding->confidence,
			  finding->known ? ", known to the baseline" : "");
	escape_markdown(message, out);
	buffer_add_printf(out, "\n");
	if (finding->anchoring == FINDING_ANCHORED) {
		buffer_add_printf(out, "\n");
		add_code(finding, out);
	}
	add_notes(finding, out);
	if (patch) {
		buffer_add_printf(out, "\nSuggested:\n\n");
		escape_preformatted(patch, out);
	}
}

enum part { PART_NEW, PART_KNOWN, PART_UNANCHORED };

static bool is_in(const struct finding *finding, enum part part)
{
	switch (part) {
	case PART_NEW:
		return report_is_new(finding);
	case PART_KNOWN:
		return report_is_anchored(finding) && finding->known;
	case PART_UNANCHORED:
		return report_is_unanchored(finding);
	}
	return false;
}

/* Whole findings, as long as they fit within `max` bytes in all. Returns how many did not. */
static size_t add_part(const struct review_view *view, enum part part, enum severity severity,
		       size_t max, struct evbuffer *out)
{
	size_t beyond = 0;

	for (size_t i = 0; i < view->findings->count; i++) {
		auto_evbuffer struct evbuffer *one = buffer_new();
		const struct finding *finding = &view->findings->items[i];

		if (!is_in(finding, part) || finding->severity != severity)
			continue;
		add_finding(finding, one);
		if (beyond || evbuffer_get_length(out) + evbuffer_get_length(one) > max)
			beyond++;
		else
			buffer_add_buffer(out, one);
	}
	return beyond;
}

static void add_unread(const struct code *code, size_t max, struct evbuffer *out)
{
	if (code->unread_count)
		buffer_add_printf(out, "\n## Changed, but left out of the review\n\n");
	for (size_t i = 0; i < code->unread_count; i++) {
		auto_free char *name = escape_line(code->unread[i]);

		if (evbuffer_get_length(out) > max) {
			buffer_add_printf(out, "- and %zu more\n", code->unread_count - i);
			return;
		}
		buffer_add_printf(out, "- ");
		escape_span(name, out);
		buffer_add_printf(out, "\n");
	}
}

static void write_all(const struct review_view *view, size_t max, struct evbuffer *out)
{
	static const char *const heads[] = {[PART_NEW] = NULL,
					    [PART_KNOWN] = "Known to the baseline",
					    [PART_UNANCHORED] = "Without a place in the code"};
	size_t beyond = 0;

	buffer_add_printf(out, "## Review\n\n");
	report_tally(view, out);
	buffer_add_printf(out, ".\n");
	add_unread(view->code, max / 2, out);
	for (enum part part = PART_NEW; part <= PART_UNANCHORED; part++) {
		auto_evbuffer struct evbuffer *body = buffer_new();
		size_t room = max - evbuffer_get_length(out);

		for (enum severity severity = SEVERITY_ERROR; severity > SEVERITY_NONE; severity--)
			beyond += add_part(view, part, severity, room, body);
		if (evbuffer_get_length(body) && heads[part])
			buffer_add_printf(out, "\n## %s\n", heads[part]);
		buffer_add_buffer(out, body);
	}
	if (report_refused(view))
		buffer_add_printf(out, "\n## Could not be read\n");
	for (size_t i = 0; i < report_refused(view) && evbuffer_get_length(out) < max / 8 * 7;
	     i++) {
		auto_free char *shown = escape_line(view->submission->refusals[i].shown);
		auto_free char *why = escape_flat(view->submission->refusals[i].why);

		buffer_add_printf(out, "\n");
		escape_markdown(why, out);
		buffer_add_printf(out, ": ");
		escape_span(shown, out);
		buffer_add_printf(out, "\n");
	}
	if (beyond)
		buffer_add_printf(out, "\n%zu more did not fit in here.\n", beyond);
}

void report_markdown(const struct review_view *view, struct evbuffer *out)
{
	write_all(view, SIZE_MAX, out);
}

/* Something is kept for the headings and the last line. */
void report_summary(const struct review_view *view, struct evbuffer *out)
{
	enum { KEPT = 1000 };

	write_all(view, REPORT_SUMMARY_MAX - KEPT, out);
}
