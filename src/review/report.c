#include "review/report.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "review/code.h"
#include "review/submission.h"

bool report_is_anchored(const struct finding *finding)
{
	return finding->anchoring == FINDING_ANCHORED && !finding->omitted;
}

bool report_is_unanchored(const struct finding *finding)
{
	return finding->anchoring != FINDING_ANCHORED && !finding->omitted;
}

bool report_is_new(const struct finding *finding)
{
	return report_is_anchored(finding) && !finding->known;
}

bool report_fails(const struct review_view *view, const struct finding *finding)
{
	bool is_lost = report_is_unanchored(finding) && finding->anchoring != FINDING_OUT_OF_SCOPE;

	return view->fail_on && finding->severity >= view->fail_on &&
	       (report_is_new(finding) || (view->fail_on_unanchored && is_lost));
}

size_t report_refused(const struct review_view *view)
{
	return view->submission ? view->submission->refusal_count : 0;
}

size_t report_failing(const struct review_view *view)
{
	size_t failing = view->fail_on && view->fail_on_unanchored ? report_refused(view) : 0;

	for (size_t i = 0; i < view->findings->count; i++)
		failing += report_fails(view, &view->findings->items[i]);
	return failing;
}

const char *report_name(const struct finding *finding)
{
	return finding->file ? finding->file->name : finding->path;
}

const char *report_why_unanchored(const struct finding *finding)
{
	switch (finding->anchoring) {
	case FINDING_ANCHORED:
		break;
	case FINDING_NO_FILE:
		return "no file of that path was loaded";
	case FINDING_NO_QUOTE:
		return "its quote stands nowhere in the file";
	case FINDING_NOT_TRIED:
		return "there were too many quotes to look for";
	case FINDING_OUT_OF_SCOPE:
		return "its rule is not for that file";
	}
	return "";
}

char *report_choice(const struct finding *finding)
{
	if (finding->occurrences < 2)
		return NULL;
	if (finding->by_change)
		return xasprintf("The quote stands at %zu places; this is one that was changed.",
				 finding->occurrences);
	if (!finding->hint)
		return xasprintf("The quote stands at %zu places; this is the first.",
				 finding->occurrences);
	return xasprintf("The quote stands at %zu places; this is the nearest to line %" PRId64
			 ", which was named.",
			 finding->occurrences, finding->hint);
}

static void add_count(struct evbuffer *out, size_t count, const char *what, const char *between)
{
	buffer_add_printf(out, "%s%zu %s%s", between, count, what, count == 1 ? "" : "s");
}

void report_tally(const struct review_view *view, struct evbuffer *out)
{
	static const char *const words[OMISSIONS] = {
		[OMITTED_UNCHANGED] = "in lines that were not changed",
		[OMITTED_IGNORED] = "ignored by a comment",
		[OMITTED_UNSURE] = "less certain than is wanted",
		[OMITTED_SURPLUS] = "beyond as many as are wanted",
	};
	size_t severities[SEVERITY_ERROR + 1] = {0}, omitted[OMISSIONS] = {0}, known = 0,
					   unanchored = 0;

	for (size_t i = 0; i < view->findings->count; i++) {
		const struct finding *finding = &view->findings->items[i];

		severities[finding->severity] += report_is_new(finding);
		known += report_is_anchored(finding) && finding->known;
		omitted[finding->omitted]++;
		unanchored += report_is_unanchored(finding);
	}
	add_count(out, severities[SEVERITY_ERROR], "error", "");
	add_count(out, severities[SEVERITY_WARNING], "warning", ", ");
	add_count(out, severities[SEVERITY_NOTE], "note", " and ");
	if (known)
		buffer_add_printf(out, "; %zu more known to the baseline", known);
	for (size_t i = OMITTED_NOT + 1; i < OMISSIONS; i++)
		if (omitted[i])
			buffer_add_printf(out, "; %zu more %s", omitted[i], words[i]);
	if (unanchored)
		buffer_add_printf(out, "; %zu more without a place in the code", unanchored);
	if (report_refused(view))
		buffer_add_printf(out, "; %zu could not be read", report_refused(view));
	if (view->code->unread_count)
		buffer_add_printf(out, "; %zu changed file%s not reviewed",
				  view->code->unread_count,
				  view->code->unread_count == 1 ? " was" : "s were");
}
