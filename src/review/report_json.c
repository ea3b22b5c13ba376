/* All that is known of each finding, for programs: what rlmd review --json has as "review". */
#include <event2/buffer.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "review/baseline.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/report.h"

static void add_place(const struct finding *finding, json_t *object)
{
	json_object_set_new(object, "line", json_integer((json_int_t)finding->first));
	json_object_set_new(object, "endLine", json_integer((json_int_t)finding->last));
	json_object_set_new(object, "occurrences", json_integer((json_int_t)finding->occurrences));
	json_object_set_new(object, "fingerprint", json_string(finding->fingerprint));
	json_object_set_new(object, "known", json_boolean(finding->known));
}

static json_t *object_of(const struct review_view *view, const struct finding *finding)
{
	auto_free char *message = escape_words(finding->message);
	auto_free char *quote = escape_code(finding->quote);
	auto_free char *path = escape_line(finding->path), *rule = escape_line(finding->rule);
	auto_free char *choice = report_choice(finding);
	json_t *object = json_pack(
		"{s:s, s:s, s:f, s:s, s:s, s:s, s:s?, s:I, s:b}", "rule", rule, "severity",
		severity_name(finding->severity), "confidence", finding->confidence, "message",
		message, "path", path, "quote", quote, "patch", finding->patch, "reports",
		(json_int_t)finding->reports, "fails", report_fails(view, finding));

	if (finding->no_patch)
		json_object_set_new(object, "patchDropped", json_string(finding->no_patch));
	if (choice)
		json_object_set_new(object, "choice", json_string(choice));
	if (finding->place == FINDING_ANCHORED)
		add_place(finding, object);
	else
		json_object_set_new(object, "reason", json_string(report_no_place(finding)));
	return object;
}

void report_json(const struct review_view *view, struct evbuffer *out)
{
	json_t *placed = json_array(), *unplaced = json_array(), *unchanged = json_array();
	json_t *unread = json_array();
	json_auto_t *whole = json_pack("{s:o, s:o, s:o, s:o, s:s}", "findings", placed,
				       "unanchored", unplaced, "unchanged", unchanged,
				       "notReviewed", unread, "failOn",
				       severity_name(view->fail_on));
	size_t failing = 0;

	for (size_t i = 0; i < view->findings->count; i++) {
		const struct finding *finding = &view->findings->items[i];

		failing += report_fails(view, finding);
		json_array_append_new(finding->place != FINDING_ANCHORED ? unplaced
				      : finding->unchanged_lines         ? unchanged
									 : placed,
				      object_of(view, finding));
	}
	for (size_t i = 0; i < view->code->unread_count; i++) {
		auto_free char *name = escape_line(view->code->unread[i]);

		json_array_append_new(unread, json_string(name));
	}
	json_object_set_new(whole, "failing", json_integer((json_int_t)failing));
	escape_json(whole, out);
}
