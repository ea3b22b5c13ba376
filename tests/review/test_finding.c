/* review/submission, finding, fingerprint: what is read, what is told back, what is known again. */
#include "review/finding.h"

#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "review/anchor.h"
#include "review/fingerprint.h"
#include "review/submission.h"

#define GOOD                                                                                       \
	"\"rule\":\"r\",\"severity\":\"error\",\"confidence\":0.5,\"message\":\"m\","              \
	"\"path\":\"a.c\",\"quote\":\"q\""

/* The complaint about an answer, or about the last of its findings that are refused. */
static void assert_told(const char *answer, const char *told)
{
	auto_evbuffer struct evbuffer *wrong = evbuffer_new();
	auto_free char *text = NULL;
	struct submission submission = {0};

	if (submission_read(text_of(answer), &(struct ruleset){0}, &submission, wrong)) {
		assert_int_not_equal(submission.refusal_count, 0);
		evbuffer_add_printf(wrong, "%s",
				    submission.refusals[submission.refusal_count - 1].why);
	}
	text = text_drain(wrong, NULL);
	if (!strstr(text, told))
		fail_msg("told of %s: %s", answer, text);
	submission_done(&submission);
}

static void test_bad(void **state)
{
	static const char *const table[][2] = {
		{"", "not JSON"},
		{"no findings", "not JSON"},
		{"7", "must be an object"},
		{"{}", "findings: is missing"},
		{"{\"findings\":{}}", "findings: must be an array"},
		{"{\"findings\":[1]}", "must be an object"},
		{"{\"findings\":[{}]}", "severity: is missing"},
		{"{\"findings\":[{}]}", "quote: is missing"},
		{"{\"findings\":[{" GOOD "},{\"quote\":1}]}", "quote: must be a string"},
		{"{\"findings\":[{" GOOD ",\"rule\":\"r\"}]}", "not JSON"},
		{"{\"findings\":[{\"rule\":1}]}", "rule: is missing, or no name"},
		{"{\"findings\":[{\"severity\":\"sad\"}]}", "severity: must be \"error\""},
		{"{\"findings\":[{\"severity\":\"none\"}]}", "severity: must be \"error\""},
		{"{\"findings\":[{\"confidence\":1.5}]}", "confidence: must be a number"},
		{"{\"findings\":[{\"confidence\":\"sure?\"}]}", "confidence: must be a number"},
		{"{\"findings\":[{\"path\":\"a\\u0000b\"}]}", "path: has a NUL"},
		{"{\"findings\":[{\"message\":\" \"}]}", "message: is empty"},
		{"{\"findings\":[]} and more", "not JSON"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_told(table[i][0], table[i][1]);
}

static void test_sizes(void **state)
{
	auto_evbuffer struct evbuffer *many = evbuffer_new();
	auto_free char *text = NULL;

	(void)state;
	evbuffer_add_printf(many, "{\"findings\":[0");
	for (size_t i = 0; i < FINDINGS_MAX; i++)
		evbuffer_add_printf(many, ",0");
	evbuffer_add_printf(many, "]}");
	text = text_drain(many, NULL);
	assert_told(text, "more than 5000");
	evbuffer_add_printf(many, "{\"findings\":[{\"path\":\"%0*d\"}]}", FINDING_PATH_MAX + 1, 0);
	free(text);
	text = text_drain(many, NULL);
	assert_told(text, "path: is too long");
}

/* One finding whose member is written like this. */
static struct finding read_with(const char *member, const char *value)
{
	static const char *const members[][2] = {{"rule", "\"r\""},     {"severity", "\"note\""},
						 {"confidence", "0.5"}, {"message", "\"m\""},
						 {"path", "\"a.c\""},   {"quote", "\"q\""},
						 {"line", "7"},         {"patch", "null"}};
	auto_evbuffer struct evbuffer *out = evbuffer_new(), *wrong = evbuffer_new();
	struct ruleset rules = {0};
	struct submission submission = {0};
	struct finding first;

	ruleset_add_usual(&rules);
	evbuffer_add_printf(out, "{\"findings\":[{\"why\":\"\\\"1234567890123456789012\"");
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		evbuffer_add_printf(out, ",\"%s\":%s", members[i][0],
				    strcmp(members[i][0], member) ? members[i][1] : value);
	evbuffer_add_printf(out, "}]}");
	assert_true(submission_read(text_in(out), &rules, &submission, wrong));
	if (submission.refusal_count)
		fail_msg("%s: %s: %s", member, value, submission.refusals[0].why);
	assert_int_equal(submission.findings.count, 1);
	first = submission.findings.items[0];
	first.in_change = first.patch; /* for the test below: the texts are freed */
	submission_done(&submission);
	ruleset_done(&rules);
	return first;
}

/* Members that can only mean one thing mean that. */
static void test_odd(void **state)
{
	static const struct {
		const char *value;
		int64_t line;
	} lines[] = {
		{"-1", 0},           {"\"51\"", 51},
		{"51.0", 51},        {"\"5-7\"", 5},
		{"[5, 7]", 5},       {"\"L12\"", 12},
		{"\"line 12\"", 12}, {"1000000000000000000000000000000", 0},
		{"1e30", 0},         {"0", 0},
		{"null", 0},         {"\"somewhere\"", 0},
		{"{}", 0},           {"true", 0},
		{"51", 51},
	};
	static const struct {
		const char *value;
		enum severity severity;
	} severities[] = {
		{"\"high\"", SEVERITY_ERROR},     {"\" Error \"", SEVERITY_ERROR},
		{"\"CRITICAL\"", SEVERITY_ERROR}, {"\"Medium\"", SEVERITY_WARNING},
		{"\"warn\"", SEVERITY_WARNING},   {"\"low\"", SEVERITY_NOTE},
		{"\"info\"", SEVERITY_NOTE},
	};
	static const struct {
		const char *value;
		double confidence;
	} confidences[] = {{"\"0.9\"", 0.9}, {"90", 0.9},
			   {"\"90%\"", 0.9}, {"\"90 %\"", 0.9},
			   {"1", 1},         {"\"high\"", 0.9},
			   {"0", 0},         {"0.123456789012345678901", 0.123456789012345678901}};
	static const char *const rules[] = {"\"\"", "null", "7", "\" \"", "\"?\""};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_int_equal(read_with("line", lines[i].value).hint, lines[i].line);
	for (size_t i = 0; i < sizeof severities / sizeof *severities; i++)
		assert_int_equal(read_with("severity", severities[i].value).severity,
				 severities[i].severity);
	for (size_t i = 0; i < sizeof confidences / sizeof *confidences; i++)
		assert_true(read_with("confidence", confidences[i].value).confidence ==
			    confidences[i].confidence);
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		read_with("rule", rules[i]);
	assert_false(read_with("patch", "[1]").in_change);
	assert_true(read_with("patch", "\"@@\"").in_change);
}

static void parse(const char *answer, struct findings *ret)
{
	auto_evbuffer struct evbuffer *wrong = evbuffer_new();
	struct submission submission = {0};

	assert_true(submission_read(text_of(answer), &(struct ruleset){0}, &submission, wrong));
	assert_int_equal(evbuffer_get_length(wrong), 0);
	assert_int_equal(submission.refusal_count, 0);
	*ret = submission.findings;
	submission.findings = (struct findings){0};
	submission_done(&submission);
}

static void test_good(void **state)
{
	static const char *const wholes[] = {
		"{\"findings\":[{" GOOD ",\"line\":7,\"patch\":\"-a\\n+b\\n\",\"more\":1}]}",
		"[{" GOOD ",\"line\":7,\"patch\":\"-a\\n+b\\n\"}]",
		"```json\n{\"findings\":[{" GOOD ",\"line\":7,\"patch\":\"-a\\n+b\\n\"}]}\n```\n",
	};
	struct findings findings = {0};

	(void)state;
	for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
		parse(wholes[i], &findings);
		assert_int_equal(findings.count, 1);
		assert_string_equal(findings.items[0].rule, "r");
		assert_string_equal(findings.items[0].message, "m");
		assert_string_equal(findings.items[0].path, "a.c");
		assert_string_equal(findings.items[0].quote, "q");
		assert_string_equal(findings.items[0].patch, "-a\n+b\n");
		assert_int_equal(findings.items[0].severity, SEVERITY_ERROR);
		assert_true(findings.items[0].confidence == 0.5);
		assert_int_equal(findings.items[0].hint, 7);
		findings_done(&findings);
	}
	parse("{\"findings\":[{" GOOD ",\"line\":null,\"patch\":null}]}", &findings);
	assert_null(findings.items[0].patch);
	assert_int_equal(findings.items[0].hint, 0);
	findings_done(&findings);
	parse("{\"findings\":[]}", &findings);
	assert_int_equal(findings.count, 0);
	findings_done(&findings);
}

/* --- merging and fingerprints ------------------------------------------------------------ */

struct row {
	const char *rule, *path, *quote, *severity, *message;
	double confidence;
};

static void review(const struct row *rows, size_t count, struct code *code, struct findings *ret)
{
	json_t *list = json_array();
	json_auto_t *object = json_pack("{s:o}", "findings", list);
	auto_free char *text = NULL;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:f}", "rule",
						      rows[i].rule, "path", rows[i].path, "quote",
						      rows[i].quote, "severity", rows[i].severity,
						      "message", rows[i].message, "confidence",
						      rows[i].confidence));
	text = json_to_string(object);
	parse(text, ret);
	for (size_t i = 0; i < ret->count; i++)
		anchor_find(code, &ret->items[i]);
	findings_sort(ret);
	findings_merge(ret);
	fingerprint_all(code, ret);
}

static void test_merge(void **state)
{
	static const struct row rows[] = {
		{"r", "a.c", "two", "note", "first", 0.2},
		{"r", "./a.c", "  two  ", "error", "second", 0.9},
		{"s", "a.c", "two", "note", "another rule", 0.1},
		{"r", "a.c", "one\ntwo", "warning", "more lines", 0.1},
		{"r", "a.c", "three", "note", "another line", 0.2},
		{"r", "b.c", "gone", "note", "no file", 0.2},
		{"r", "b.c", "gone", "note", "no file", 0.2},
	};
	struct findings findings = {0};
	struct code code = {0};

	(void)state;
	code_add(&code, text_of("a.c"), text_of("one\ntwo\nthree\n"));
	code_seal(&code);
	review(rows, sizeof rows / sizeof *rows, &code, &findings);
	assert_int_equal(findings.count, 3);
	assert_int_equal(findings.items[0].reports, 4);
	assert_int_equal(findings.items[0].severity, SEVERITY_ERROR);
	assert_string_equal(findings.items[0].rule, "r");
	assert_string_equal(findings.items[0].message, "second\n\nAlso (s): another rule");
	assert_int_equal(findings.items[1].first, 3);
	assert_int_equal(findings.items[2].anchoring, FINDING_NO_FILE);
	assert_int_equal(findings.items[2].reports, 2);
	findings_done(&findings);
	code_done(&code);
}

/* The fingerprints of a finding of `quote` in a file of that text. */
static struct finding known_by(const char *path, const char *text, const char *rule,
			       const char *quote)
{
	const struct row row = {rule, path, quote, "note", "m", 0.5};
	struct findings findings = {0};
	struct finding first;
	struct code code = {0};

	code_add(&code, text_of(path), text_of(text));
	code_seal(&code);
	review(&row, 1, &code, &findings);
	assert_int_equal(findings.items[0].anchoring, FINDING_ANCHORED);
	first = findings.items[0];
	findings_done(&findings);
	code_done(&code);
	return first;
}

#define BODY "int f(void)\n{\n\tint x;\n\n\tbad(x);\n\treturn x;\n}\n"

static void test_fingerprints(void **state)
{
	struct finding at = known_by("a.c", BODY, "r", "bad(x);"), other;

	(void)state;
	assert_int_equal(strlen(at.fingerprint), 64);
	other = known_by("a.c", "new();\n\n" BODY, "r", "x)"); /* the line moved; a shorter quote */
	assert_string_equal(at.fingerprint, other.fingerprint);
	other = known_by("a.c", "  bad( x );\r\n", "r", "bad( x );"); /* other white space */
	assert_string_equal(at.fingerprint, other.fingerprint);
	other = known_by("a.c", BODY, "s", "int x;\n\nbad(x);\n"); /* a wider quote, another rule */
	assert_string_equal(at.fingerprint, other.fingerprint);
	other = known_by("b/c.c", BODY, "r", "bad(x);"); /* another file */
	assert_string_not_equal(at.fingerprint, other.fingerprint);
	other = known_by("a.c", BODY, "r", "return x;");
	assert_string_not_equal(at.fingerprint, other.fingerprint);
	assert_string_equal(known_by("a.c", BODY, "r", "}").fingerprint, other.fingerprint);
}

static void test_ordinals(void **state)
{
	static const struct row rows[] = {
		{"r", "a.c", "same();\nx", "note", "m", 0.2},
		{"r", "a.c", "same();\ny", "note", "m", 0.2},
	};
	struct findings findings = {0};
	struct code code = {0};

	(void)state;
	code_add(&code, text_of("a.c"), text_of("same();\nx\nsame();\ny\n"));
	code_seal(&code);
	review(rows, 2, &code, &findings);
	assert_int_equal(findings.count, 2);
	assert_string_not_equal(findings.items[0].fingerprint, findings.items[1].fingerprint);
	assert_string_equal(findings.items[0].fingerprint,
			    known_by("a.c", "same();\n", "r", "same();").fingerprint);
	findings_done(&findings);
	code_done(&code);
}

/* Prints come back as they were written, and nothing else is one. */
static void test_prints(void **state)
{
	static const char *const bad[] = {"",
					  "||",
					  "|1|",
					  "|0123456789abcdef",
					  "x|0123456789abcdef|",
					  "|0123456789abcdeF|",
					  "|0123456789abcdef||"};
	static const char good[] = "0000000000000001,0000000000000002|0123456789abcdef+|";
	auto_evbuffer struct evbuffer *many = evbuffer_new();
	auto_free char *text = NULL, *long_one = NULL;
	struct print print;

	(void)state;
	assert_true(fingerprint_read(text_of(good), &print));
	assert_int_equal(print.count, 3);
	assert_int_equal(print.first, 2);
	assert_int_equal(print.lines[2], 0x0123456789abcdef);
	assert_true(print.alone[2]);
	text = fingerprint_write(&print);
	assert_string_equal(text, good);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(fingerprint_read(text_of(bad[i]), &print));
	for (size_t i = 0; i < 40; i++)
		evbuffer_add_printf(many, "%s%016d", i ? "," : "|", 1);
	evbuffer_add_printf(many, "|");
	long_one = text_drain(many, NULL);
	assert_false(fingerprint_read(text_of(long_one), &print));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad),      cmocka_unit_test(test_odd),
		cmocka_unit_test(test_sizes),    cmocka_unit_test(test_good),
		cmocka_unit_test(test_merge),    cmocka_unit_test(test_fingerprints),
		cmocka_unit_test(test_ordinals), cmocka_unit_test(test_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
