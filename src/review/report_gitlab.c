/* GitLab's Code Quality: an array of issues, each with a place and a fingerprint of its own. */
#include <event2/buffer.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/report.h"

static const char *const severities[] = {
	[SEVERITY_NONE] = "info",
	[SEVERITY_NOTE] = "info",
	[SEVERITY_WARNING] = "minor",
	[SEVERITY_ERROR] = "major",
};

static json_t *issue(const struct finding *finding)
{
	auto_free char *rule = escape_line(finding->rule);
	auto_free char *message = escape_flat(finding->message);
	auto_free char *path = escape_line(finding->file->name);

	return json_make("{s:s, s:s, s:s, s:s, s:{s:s, s:{s:I, s:I}}}", "description", message,
			 "check_name", rule, "fingerprint", finding->fingerprint, "severity",
			 severities[finding->severity], "location", "path", path, "lines", "begin",
			 (json_int_t)finding->first, "end", (json_int_t)finding->last);
}

/* Known findings are in it, too: GitLab compares with the target branch itself. */
void report_gitlab(const struct review_view *view, struct evbuffer *out)
{
	json_auto_t *issues = json_make_array();

	for (size_t i = 0; i < view->findings->count; i++)
		if (report_is_anchored(&view->findings->items[i]))
			json_append(issues, issue(&view->findings->items[i]));
	escape_json(issues, out);
}
