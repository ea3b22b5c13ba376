/* The report for people. Each line begins with a word of ours: none can be taken for a command. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/report.h"
#include "review/submission.h"

static void add_lines(const char *text, struct evbuffer *out)
{
	while (*text) {
		size_t size = strcspn(text, "\n");

		buffer_add_printf(out, "    | %.*s\n", (int)size, text);
		text += size + (text[size] == '\n');
	}
}

static void add_finding(const struct finding *finding, struct evbuffer *out)
{
	auto_free char *path = escape_line(report_name(finding)),
		       *rule = escape_line(finding->rule);
	auto_free char *message = escape_words(finding->message);
	auto_free char *choice = report_choice(finding);

	buffer_add_printf(out, "%s: %s", finding_severity_name(finding->severity), path);
	if (finding->anchoring == FINDING_ANCHORED)
		buffer_add_printf(out, ":%zu", finding->first);
	buffer_add_printf(out, ": %s (confidence %.2g%s)\n", rule, finding->confidence,
			  finding->known ? ", known to the baseline" : "");
	add_lines(message, out);
	if (finding->anchoring != FINDING_ANCHORED)
		buffer_add_printf(out, "    not anchored: %s\n", report_why_unanchored(finding));
	if (choice)
		buffer_add_printf(out, "    %s\n", choice);
	if (finding->reports > 1)
		buffer_add_printf(out, "    reported %zu times\n", finding->reports);
	if (finding->patch)
		buffer_add_printf(
			out, "    has a patch: the Markdown, SARIF and JSON reports show it\n");
	if (finding->no_patch)
		buffer_add_printf(out, "    its patch was dropped: %s\n", finding->no_patch);
}

/* The worst first; those that count before the others. */
void report_text(const struct review_view *view, struct evbuffer *out)
{
	for (enum severity severity = SEVERITY_ERROR; severity > SEVERITY_NONE; severity--)
		for (size_t i = 0; i < view->findings->count; i++)
			if (view->findings->items[i].severity == severity &&
			    report_is_new(&view->findings->items[i]))
				add_finding(&view->findings->items[i], out);
	for (size_t i = 0; i < view->findings->count; i++) {
		const struct finding *finding = &view->findings->items[i];

		if (!report_is_new(finding) && !finding->omitted)
			add_finding(finding, out);
	}
	for (size_t i = 0; i < report_refused(view); i++) {
		auto_free char *why = escape_words(view->submission->refusals[i].why);
		auto_free char *shown = escape_line(view->submission->refusals[i].shown);

		buffer_add_printf(out, "could not be read:\n");
		add_lines(why, out);
		add_lines(shown, out);
	}
	for (size_t i = 0; i < view->code->unread_count; i++) {
		auto_free char *name = escape_line(view->code->unread[i]);

		buffer_add_printf(out, "not reviewed: %s: changed, but left out\n", name);
	}
	buffer_add_printf(out, "review: ");
	report_tally(view, out);
}
