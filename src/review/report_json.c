/* All that is known of each finding, for programs: what rlmd review --json has as "review". */
#include <event2/buffer.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "review/baseline.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/report.h"
#include "review/submission.h"

static void add_location(const struct finding *finding, json_t *object)
{
	json_put(object, "line", json_make_integer((json_int_t)finding->first));
	json_put(object, "endLine", json_make_integer((json_int_t)finding->last));
	json_put(object, "occurrences", json_make_integer((json_int_t)finding->occurrences));
	json_put(object, "fingerprint", json_make_string(finding->fingerprint));
	json_put(object, "known", json_boolean(finding->known));
}

static const char *const because[OMISSIONS] = {
	[OMITTED_IGNORED] = "comment",
	[OMITTED_UNSURE] = "confidence",
	[OMITTED_SURPLUS] = "number",
};

static json_t *object_of(const struct review_view *view, const struct finding *finding)
{
	auto_free char *message = escape_words(finding->message);
	auto_free char *quote = escape_code(finding->quote);
	auto_free char *path = escape_line(finding->path), *rule = escape_line(finding->rule);
	auto_free char *choice = report_choice(finding);
	json_t *object = json_make(
		"{s:s, s:s, s:f, s:s, s:s, s:s, s:s?, s:I, s:b}", "rule", rule, "severity",
		finding_severity_name(finding->severity), "confidence", finding->confidence,
		"message", message, "path", path, "quote", quote, "patch", finding->patch,
		"reports", (json_int_t)finding->reports, "fails", report_fails(view, finding));

	if (finding->named) {
		auto_free char *named = escape_line(finding->named);

		json_put(object, "named", json_make_string(named));
	}
	if (finding->no_patch)
		json_put(object, "patchDropped", json_make_string(finding->no_patch));
	if (choice)
		json_put(object, "choice", json_make_string(choice));
	if (because[finding->omitted])
		json_put(object, "omitted", json_make_string(because[finding->omitted]));
	if (finding->anchoring == FINDING_ANCHORED)
		add_location(finding, object);
	else
		json_put(object, "reason", json_make_string(report_why_unanchored(finding)));
	return object;
}

/* The names of all that the context left out, by reason. */
static json_t *skipped_of(const struct code *code)
{
	json_t *reasons = json_make_object();

	for (size_t i = 0; i < code->skipped_count; i++) {
		const struct code_skipped *one = &code->skipped[i];
		auto_free char *name = escape_line(one->name);

		if (!json_object_get(reasons, one->reason))
			json_put(reasons, one->reason, json_make_array());
		json_append(json_object_get(reasons, one->reason), json_make_string(name));
	}
	return reasons;
}

void report_json(const struct review_view *view, struct evbuffer *out)
{
	json_t *anchored = json_make_array(), *unanchored = json_make_array(),
	       *unchanged = json_make_array(), *omitted = json_make_array();
	json_t *unread = json_make_array();
	json_auto_t *whole = json_make("{s:o, s:o, s:o, s:o, s:o, s:s}", "findings", anchored,
				       "unanchored", unanchored, "unchanged", unchanged, "omitted",
				       omitted, "notReviewed", unread, "failOn",
				       finding_severity_name(view->fail_on));
	json_t *refused = json_make_array();

	for (size_t i = 0; i < view->findings->count; i++) {
		const struct finding *finding = &view->findings->items[i];

		json_append(finding->omitted == OMITTED_UNCHANGED ? unchanged
			    : finding->omitted                    ? omitted
			    : report_is_anchored(finding)         ? anchored
								  : unanchored,
			    object_of(view, finding));
	}
	for (size_t i = 0; i < view->code->unread_count; i++) {
		auto_free char *name = escape_line(view->code->unread[i]);

		json_append(unread, json_make_string(name));
	}
	for (size_t i = 0; i < report_refused(view); i++) {
		auto_free char *why = escape_words(view->submission->refusals[i].why);
		auto_free char *shown = escape_line(view->submission->refusals[i].shown);

		json_append(refused, json_make("{s:s, s:s}", "why", why, "finding", shown));
	}
	json_put(whole, "unreadable", refused);
	json_put(whole, "skipped", skipped_of(view->code));
	json_put(whole, "failing", json_make_integer((json_int_t)report_failing(view)));
	escape_json(whole, out);
}
