/* JUnit XML: a test case for each finding at its place, which fails where the gate does. */

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "review/code.h"
#include "review/escape.h"
#include "review/report.h"

static void add_attribute(struct evbuffer *out, const char *name, const char *value)
{
	buffer_add_printf(out, " %s=\"", name);
	escape_xml(value, out);
	buffer_add_printf(out, "\"");
}

static void add_words(struct evbuffer *out, const struct finding *finding, bool fails)
{
	auto_free char *message = escape_words(finding->message);
	auto_free char *line = escape_flat(finding->message);

	buffer_add_printf(out, fails ? "<failure" : "<system-out");
	if (fails) {
		add_attribute(out, "type", finding_severity_name(finding->severity));
		add_attribute(out, "message", line);
	}
	buffer_add_printf(out, ">");
	escape_xml(message, out);
	buffer_add_printf(out, fails ? "</failure>" : "</system-out>");
}

static void add_case(const struct review_view *view, const struct finding *finding,
		     struct evbuffer *out)
{
	auto_free char *rule = escape_line(finding->rule);
	auto_free char *path = escape_line(finding->file->name);
	auto_free char *name = xasprintf("%s:%zu", path, finding->first);

	buffer_add_printf(out, "    <testcase");
	add_attribute(out, "classname", rule);
	add_attribute(out, "name", name);
	buffer_add_printf(out, " time=\"0\">");
	add_words(out, finding, report_fails(view, finding));
	buffer_add_printf(out, "</testcase>\n");
}

void report_junit(const struct review_view *view, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *cases = buffer_new(), *tally = buffer_new();
	size_t count = 0, failures = 0;

	for (size_t i = 0; i < view->findings->count; i++) {
		const struct finding *finding = &view->findings->items[i];

		if (!report_is_anchored(finding))
			continue;
		count++;
		failures += report_fails(view, finding);
		add_case(view, finding, cases);
	}
	if (!count && ++count)
		buffer_add_printf(cases, "    <testcase classname=\"review\" name=\"no "
					 "findings\" time=\"0\"/>\n");
	report_tally(view, tally);
	buffer_add_printf(out,
			  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			  "<testsuites name=\"rlmd review\" tests=\"%zu\" failures=\"%zu\" "
			  "errors=\"0\" time=\"0\">\n"
			  "  <testsuite name=\"rlmd review\" tests=\"%zu\" failures=\"%zu\" "
			  "errors=\"0\" skipped=\"0\" time=\"0\">\n",
			  count, failures, count, failures);
	buffer_add_buffer(out, cases);
	buffer_add_printf(out,
			  "    <system-out>%.*s</system-out>\n  </testsuite>\n"
			  "</testsuites>\n",
			  (int)text_in(tally).size, text_in(tally).bytes);
}
