/* review/ruleset, baseline: what is read of files of one's own, and what it is good for. */
#include "review/ruleset.h"

#include <event2/buffer.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "review/baseline.h"
#include "review/code.h"

static struct review_rule parsed(const char *name, const char *text)
{
	struct review_rule rule = {0};
	struct rlmd_error err = {0};

	if (!ruleset_parse_rule(name, text_of(text), &rule, &err))
		fail_msg("%s", err.text);
	return rule;
}

static void test_rules(void **state)
{
	struct review_rule rule = parsed("no-strcpy.md", "Look for strcpy().\n");

	(void)state;
	assert_string_equal(rule.id, "no-strcpy");
	assert_int_equal(rule.severity, SEVERITY_NONE);
	assert_int_equal(rule.where_count, 0);
	assert_string_equal(rule.text, "Look for strcpy().");
	ruleset_rule_done(&rule);
	rule = parsed("x.md", "---\r\nid: \"copies\"\r\n# a comment\r\nseverity: error\r\n"
			      "where: [src/**, 'lib/*.c']\r\n---\r\n\r\n# Copies\n\ntext\n");
	assert_string_equal(rule.id, "copies");
	assert_int_equal(rule.severity, SEVERITY_ERROR);
	assert_int_equal(rule.where_count, 2);
	assert_string_equal(rule.where[0], "src/**");
	assert_string_equal(rule.where[1], "lib/*.c");
	assert_string_equal(rule.text, "# Copies\n\ntext");
	ruleset_rule_done(&rule);
	rule = parsed("x.md", "---\nwhere:\n  - a/\n  - \"b/\"\nid: y\n---\ntext\n");
	assert_int_equal(rule.where_count, 2);
	assert_string_equal(rule.where[1], "b/");
	assert_string_equal(rule.id, "y");
	ruleset_rule_done(&rule);
}

static void test_bad_rules(void **state)
{
	static const char *const table[][2] = {
		{"", "line 0: nothing is said"},
		{"---\nid: x\n---\n \n", "line 3: nothing is said"},
		{"---\nid: x\n", "line 2: the head has no end"},
		{"---\nseverity: fatal\n---\ntext", "line 2: severity is error, warning or note"},
		{"---\nseverity: none\n---\ntext", "line 2: severity is error"},
		{"---\nlevel: error\n---\ntext", "line 2: is no 'id:'"},
		{"---\nnothing\n---\ntext", "line 2: is no 'id:'"},
		{"---\nid:\n---\ntext", "the id is empty"},
		{"caf\xe9", "is not UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct review_rule rule = {0};
		struct rlmd_error err = {0};

		assert_false(ruleset_parse_rule("x.md", text_of(table[i][0]), &rule, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		if (!strstr(err.text, table[i][1]))
			fail_msg("%s", err.text);
	}
}

/* --- a directory -------------------------------------------------------------------------- */

struct room {
	char path[32];
};

static void room_put(const struct room *room, const char *name, const char *text)
{
	auto_free char *path = xasprintf("%s/%s", room->path, name);

	assert_true(file_write(path, text_of(text), NULL));
}

static void room_drop(const struct room *room, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", room->path, name);

	assert_int_equal(unlink(path), 0);
}

static void assert_refused(const struct room *room, const char *why)
{
	struct ruleset set = {0};
	struct rlmd_error err = {0};

	assert_false(ruleset_read(room->path, &set, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
}

static void test_directory(void **state)
{
	struct room room = {"/tmp/rlmd-test-rules-XXXXXX"};
	auto_evbuffer struct evbuffer *words = evbuffer_new();
	auto_free char *link = NULL, *text = NULL;
	struct ruleset set = {0};

	(void)state;
	assert_non_null(mkdtemp(room.path));
	assert_refused(&room, "it has no rules");
	room_put(&room, "b.md", "---\nseverity: note\nwhere: src/, *.h\n---\nlook at b\n");
	room_put(&room, "a.md", "look at a\n");
	room_put(&room, ".c.md", "");
	room_put(&room, "README", "");
	assert_true(ruleset_read(room.path, &set, NULL));
	assert_int_equal(set.count, 2);
	ruleset_describe(&set, words);
	text = text_drain(words, NULL);
	assert_string_equal(text,
			    "Rule \"a\":\nlook at a\n\nRule \"b\", severity \"note\", only in "
			    "files that match src/, *.h:\nlook at b\n");
	assert_non_null(ruleset_find(&set, "b"));
	assert_null(ruleset_find(&set, "c"));
	assert_ptr_equal(ruleset_find(&set, " B"), ruleset_find(&set, "b"));
	ruleset_add_usual(&set);
	assert_string_equal(ruleset_find(&set, "c")->id, "other");
	assert_string_equal(ruleset_find(&set, "a")->id, "a");
	ruleset_done(&set);
	room_put(&room, "d.md", "---\nid: a\n---\ntwice\n");
	assert_refused(&room, "two rules have the id 'a'");
	room_drop(&room, "d.md");
	link = xasprintf("%s/d.md", room.path);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_refused(&room, "the rule d.md");
	room_drop(&room, "d.md");
	room_drop(&room, "a.md");
	room_drop(&room, "b.md");
	room_drop(&room, ".c.md");
	room_drop(&room, "README");
	assert_int_equal(rmdir(room.path), 0);
	assert_refused(&room, "the rules in /tmp/");
}

/* Each synonym and each number leads to a rule, and no two rules are one. */
static void test_usual(void **state)
{
	static const char *const names[][2] = {
#define SYNONYM(name, id) {name, id},
#include "review/rules.def"
		{"Memory_Leak", "leak"},
		{"  XSS!", "cross-site-scripting"},
		{"CWE-89", "sql-injection"},
		{"cwe_416 use", "use-after-free"},
		{"CWE-4", "other"},
		{"---", "other"},
		{"", "other"},
	};
	struct ruleset set = {0};

	(void)state;
	ruleset_add_usual(&set);
	assert_in_range(set.count, 40, 60);
	for (size_t i = 0; i < set.count; i++)
		assert_ptr_equal(ruleset_find(&set, set.rules[i].id), &set.rules[i]);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_string_equal(ruleset_find(&set, names[i][0])->id, names[i][1]);
	ruleset_done(&set);
}

static void test_apply(void **state)
{
	struct review_rule rule = parsed("r.md", "---\nseverity: note\nwhere: src/\n---\ntext\n");
	struct ruleset set = {.rules = &rule, .count = 1};
	struct code_file inside = {.path = (char[]){"src/a.c"}},
			 outside = {.path = (char[]){"a.c"}};
	struct finding finding = {
		.rule = (char[]){"r"}, .severity = SEVERITY_ERROR, .file = &inside};

	(void)state;
	ruleset_rate(&set, &finding);
	ruleset_apply(&set, &finding);
	assert_int_equal(finding.severity, SEVERITY_NOTE);
	assert_int_equal(finding.anchoring, FINDING_ANCHORED);
	finding.file = &outside;
	ruleset_rate(&set, &finding);
	ruleset_apply(&set, &finding);
	assert_int_equal(finding.anchoring, FINDING_OUT_OF_SCOPE);
	ruleset_rule_done(&rule);
}

/* Whether a rule with that pattern is for the path. */
static bool is_for(const char *pattern, const char *path)
{
	auto_free char *text = xasprintf("---\nwhere: %s\n---\ntext\n", pattern);
	struct review_rule rule = parsed("r.md", text);
	struct ruleset set = {.rules = &rule, .count = 1};
	auto_free char *name = xstrdup(path);
	struct code_file file = {.path = name};
	struct finding finding = {.rule = (char[]){"r"}, .file = &file};

	ruleset_rate(&set, &finding);
	ruleset_apply(&set, &finding);
	ruleset_rule_done(&rule);
	return finding.anchoring == FINDING_ANCHORED;
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} table[] = {
		{"*.c", "a.c", true},
		{"*.c", "src/deep/a.c", true},
		{"*.c", "a.cc", false},
		{"src/*.c", "src/a.c", true},
		{"src/*.c", "src/net/a.c", false},
		{"src/**/*.c", "src/a.c", true},
		{"src/**/*.c", "src/net/tls/a.c", true},
		{"src/**/*.c", "test/src/a.c", false},
		{"**/a.c", "a.c", true},
		{"**/a.c", "x/y/a.c", true},
		{"**/a.c", "ba.c", false},
		{"src/", "src/x/y", true},
		{"src/", "srcs/x", false},
		{"/a.c", "a.c", true},
		{"/a.c", "x/a.c", false},
		{"src/**", "src/x/y", true},
		{"?.c", "a.c", true},
		{"?.c", "ab.c", false},
		{"src?a.c", "src/a.c", false},
		{"[a-c].c", "b.c", true},
		{"[!a-c].c", "b.c", false},
		{"[!a-c].c", "d.c", true},
		{"\\*.c", "*.c", true},
		{"\\*.c", "a.c", false},
		{"**", "any/thing", true},
		{"*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (is_for(table[i].pattern, table[i].path) != table[i].matches)
			fail_msg("%s and %s", table[i].pattern, table[i].path);
}

/* --- the baseline ------------------------------------------------------------------------- */

#define SARIF(results) "{\"version\":\"2.1.0\",\"runs\":[{\"results\":[" results "]}]}"
#define RESULT(name, rule, line, print)                                                            \
	"{\"ruleId\":\"" rule "\",\"partialFingerprints\":{\"rlmdLines/v1\":\"" print              \
	"\"},\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{\"uri\":\"" name          \
	"\"},\"region\":{\"startLine\":" line "}}}]}"

/* The print of these lines of a text. */
static char *print_of(const char *text, size_t first, size_t last)
{
	struct finding item = {.first = first, .last = last};
	struct findings findings = {&item, 1};
	struct code code = {0};
	char *print;

	code_add(&code, text_of("a"), text_of(text));
	code_seal(&code);
	item.file = code_find(&code, text_of("a"));
	fingerprint_all(&code, &findings);
	print = fingerprint_write(item.print);
	free(item.print);
	code_done(&code);
	return print;
}

#define FUNCTION(name) "int " name "(void)\n{\n\tone(" name ");\n\tcommon();\n\treturn 0;\n}\n"

/* Which of the lines of a text a finding is known on, after a review of another text. */
static void assert_known(const char *old, size_t line, const char *new, const char *path,
			 size_t known)
{
	auto_free char *print = print_of(old, line, line);
	auto_free char *sarif = xasprintf(SARIF("{}," RESULT("a%%20b", "r", "%zu", "%s")), print,
					  line);

	for (size_t at = 1; at <= 12; at++) {
		struct finding item = {.rule = xstrdup("other"), .first = at, .last = at};
		struct findings findings = {&item, 1};
		struct baseline baseline = {0};
		struct code code = {0};

		code_add(&code, text_of(path), text_of(new));
		code_seal(&code);
		item.file = code_find(&code, text_of(path));
		fingerprint_all(&code, &findings);
		assert_true(baseline_parse(text_of(sarif), &baseline, NULL));
		assert_int_equal(baseline.count, 1);
		baseline_apply(&baseline, &code, &findings);
		if (item.known != (at == known))
			fail_msg("%s: line %zu", path, at);
		assert_string_equal(item.rule, item.known ? "r" : "other");
		finding_done(&item);
		baseline_done(&baseline);
		code_done(&code);
	}
}

static void test_baseline(void **state)
{
	static const char both[] = FUNCTION("f") FUNCTION("g"),
			  turned[] = FUNCTION("g") FUNCTION("f");

	(void)state;
	assert_known(both, 4, both, "a b", 4); /* as it was, and not the same line of g() */
	assert_known(both, 4, turned, "a b", 10);
	assert_known(both, 4, turned, "c", 10); /* moved to another file */
	assert_known(both, 3, turned, "a b", 9);
	assert_known(both, 4, FUNCTION("g") FUNCTION("h"), "a b", 0);
}

static void test_bad_baseline(void **state)
{
	static const char *const table[] = {"", "{}", "[]", "{\"version\":\"2.0.0\",\"runs\":[]}",
					    "{\"version\":\"2.1.0\"}"};
	struct baseline baseline = {0};
	struct rlmd_error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		assert_false(baseline_parse(text_of(table[i]), &baseline, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	}
	assert_false(baseline_read("/nowhere/x.sarif", &baseline, &err));
	assert_non_null(strstr(err.text, "/nowhere/x.sarif"));
	assert_true(
		baseline_parse(text_of(SARIF("1, {\"partialFingerprints\": 3}")), &baseline, &err));
	baseline_done(&baseline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),     cmocka_unit_test(test_rules),
		cmocka_unit_test(test_bad_rules),    cmocka_unit_test(test_directory),
		cmocka_unit_test(test_apply),        cmocka_unit_test(test_baseline),
		cmocka_unit_test(test_bad_baseline), cmocka_unit_test(test_usual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
