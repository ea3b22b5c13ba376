/*
 * An answer of findings, whatever it says: they are put in their places, their patches are written
 * anew, and no report has a character in it that nobody sees. The same bytes as a rule and as a
 * baseline.
 */
#include <assert.h>
#include <event2/buffer.h>
#include <rlmd/rlmd.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "review/anchor.h"
#include "review/baseline.h"
#include "review/fingerprint.h"
#include "review/patch.h"
#include "review/report.h"
#include "review/submission.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static report_fn *const reports[] = {
#define REPORT(name, ...) report_##name,
#include "review/reports.def"
#undef REPORT
};

static void check(struct rlmd_text report)
{
	assert(text_is_utf8(report));
	for (size_t i = 0; i < report.size; i++) {
		unsigned char c = (unsigned char)report.bytes[i];

		assert((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t');
	}
}

static void report_all(const struct submission *submission, const struct code *code)
{
	const struct ruleset rules = {0};
	const struct review_view view = {.findings = &submission->findings,
					 .submission = submission,
					 .rules = &rules,
					 .code = code,
					 .fail_on = SEVERITY_NOTE};

	for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
		auto_evbuffer struct evbuffer *out = evbuffer_new();

		reports[i](&view, out);
		check(text_in(out));
	}
}

static void review(struct rlmd_text answer, struct baseline *baseline)
{
	static const char left_out[] = "[{\"path\":\"\\u202e\\n::x.c\",\"status\":\"modified\"}]";
	static const char code_text[] = "int f(void)\n{\n\tg(1);\n\n\tg(1);\r\n}\n\f\nlast";
	auto_evbuffer struct evbuffer *wrong = evbuffer_new();
	struct submission submission = {0};
	struct ruleset rules = {0};
	struct findings findings;
	struct code code = {0};

	ruleset_add_usual(&rules);
	assert(submission_read(answer, &rules, &submission, wrong) == !evbuffer_get_length(wrong));
	findings = submission.findings;
	code_add(&code, text_of("a.c"), text_of(code_text));
	code_add(&code, text_of("src/b c.h"), text_of("x\n"));
	code_seal(&code);
	code_set_changes(&code, text_of(left_out));
	for (size_t i = 0; i < findings.count; i++) {
		anchor_find(&code, &findings.items[i]);
		patch_check(&code, &findings.items[i]);
	}
	findings_sort(&findings);
	findings_merge(&findings);
	fingerprint_all(&code, &findings);
	baseline_apply(baseline, &code, &findings);
	submission.findings = findings;
	report_all(&submission, &code);
	submission_done(&submission);
	ruleset_done(&rules);
	code_done(&code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rlmd_text text = {(const char *)data, size};
	struct baseline baseline = {0};
	struct review_rule rule = {0};
	struct rlmd_error err = {0};

	if (ruleset_parse_rule("x.md", text, &rule, &err))
		ruleset_rule_done(&rule);
	else
		assert(err.kind == RLMD_ERROR_INPUT);
	if (!baseline_parse(text, &baseline, &err))
		assert(err.kind == RLMD_ERROR_INPUT);
	review(text, &baseline);
	baseline_done(&baseline);
	return 0;
}
