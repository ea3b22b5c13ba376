/*
 * review/anchor: a thousand findings in files that have changed since they were quoted, against a
 * search that compares every line with every other; and what a quote may differ by.
 */
#include "review/anchor.h"

#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { LINES = 120, FINDINGS = 1000, QUOTE_MAX = 4 };

static uint32_t dice = 1;

static size_t roll(size_t sides)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % sides;
}

/* --- a file that changes ------------------------------------------------------------------ */

struct script {
	char lines[2 * LINES][64]; /* without indentation and line feed */
	size_t count;
};

/* Few different ones, so that many are repeated. */
static void write_line(char line[static 64])
{
	static const char *const words[] = {"free", "copy", "count", "open_file", "x", "n"};
	static const char *const forms[] = {"%s(%s);", "if (%s == %s) {", "}", "", "%s = %s + 1;"};
	const char *form = forms[roll(5)];

	line[0] = '\0';
	if (!strcmp(form, "}") || !*form)
		snprintf(line, 64, "%.1s", form);
	else if (!strcmp(form, forms[0]))
		snprintf(line, 64, "%s(%s);", words[roll(6)], words[roll(6)]);
	else if (!strcmp(form, forms[1]))
		snprintf(line, 64, "if (%s == %s) {", words[roll(6)], words[roll(6)]);
	else
		snprintf(line, 64, "%s = %s + 1;", words[roll(6)], words[roll(6)]);
}

static void script_write(struct script *script)
{
	script->count = LINES;
	for (size_t i = 0; i < LINES; i++)
		write_line(script->lines[i]);
}

static void copy_line(struct script *script, size_t to, size_t from)
{
	snprintf(script->lines[to], sizeof *script->lines, "%s", script->lines[from]);
}

/* A few lines come in or go before a place. */
static void script_move(struct script *script)
{
	size_t at = roll(LINES / 2), many = 1 + roll(9);

	if (roll(2)) {
		for (size_t i = script->count; i > at; i--)
			copy_line(script, i - 1 + many, i - 1);
		for (size_t i = 0; i < many; i++)
			write_line(script->lines[at + i]);
		script->count += many;
	} else {
		for (size_t i = at + many; i < script->count; i++)
			copy_line(script, i - many, i);
		script->count -= many;
	}
}

static void script_repeat(struct script *script, size_t from, size_t many)
{
	memcpy(script->lines[script->count], script->lines[from], many * sizeof *script->lines);
	script->count += many;
}

static char *script_text(const struct script *script)
{
	static const char *const ends[] = {"\n", "\r\n", " \n", "\t\r\n"};
	static const char *const indents[] = {"", "\t", "        ", "\t\t"};
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	for (size_t i = 0; i < script->count; i++)
		evbuffer_add_printf(out, "%s%s%s", indents[roll(4)], script->lines[i],
				    i + 1 < script->count || roll(2) ? ends[roll(4)] : "");
	return text_drain(out, NULL);
}

/* --- what is right ------------------------------------------------------------------------ */

struct wanted {
	char lines[QUOTE_MAX][64];
	size_t count;
};

static bool stands_at(const struct script *script, size_t at, const struct wanted *quote)
{
	if (at + quote->count > script->count)
		return false;
	for (size_t i = 0; i < quote->count; i++)
		if (strcmp(script->lines[at + i], quote->lines[i]) != 0)
			return false;
	return true;
}

static void check(const struct script *script, const struct wanted *quote,
		  const struct finding *finding)
{
	size_t found = 0, best = 0, least = SIZE_MAX;

	for (size_t i = 0; i < script->count; i++) {
		size_t far = finding->hint ? (size_t)llabs((long long)i + 1 - finding->hint) : 0;

		if (!stands_at(script, i, quote))
			continue;
		if (!found++ || far < least) {
			best = i + 1;
			least = far;
		}
	}
	assert_int_equal(finding->anchoring, found ? FINDING_ANCHORED : FINDING_NO_QUOTE);
	assert_int_equal(finding->occurrences, found);
	assert_int_equal(finding->first, best);
	assert_int_equal(finding->last, found ? best + quote->count - 1 : 0);
}

/* A quote of whole lines; the first and the last are not empty. */
static size_t take_quote(const struct script *script, struct wanted *ret)
{
	size_t at;

	do {
		ret->count = 1 + roll(QUOTE_MAX);
		at = roll(script->count - ret->count);
		memcpy(ret->lines, script->lines[at], ret->count * sizeof *ret->lines);
	} while (!*ret->lines[0] || !*ret->lines[ret->count - 1]);
	return at;
}

static char *quote_text(const struct wanted *quote)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	for (size_t i = 0; i < quote->count; i++)
		evbuffer_add_printf(out, "%s%s%s", roll(2) ? "    " : "", quote->lines[i],
				    i + 1 < quote->count || roll(2) ? (roll(2) ? "\n" : "\r\n")
								    : "");
	return text_drain(out, NULL);
}

enum kind { MOVED, EDITED, REPEATED, ABSENT, KINDS };

/* The file as it became since it was quoted. */
static void change(enum kind kind, struct script *script, struct wanted *quote, size_t at)
{
	switch (kind) {
	case MOVED:
		script_move(script);
		break;
	case EDITED:
		snprintf(script->lines[at + roll(quote->count)], 64, "edited();");
		break;
	case REPEATED:
		script_repeat(script, at, quote->count);
		break;
	case ABSENT:
		snprintf(quote->lines[roll(quote->count)], 64, "never_written(%zu);", at);
		break;
	case KINDS:
		break;
	}
}

/* Whether it has a place. */
static bool try_one(enum kind kind)
{
	static struct script script;
	struct wanted quote;
	struct finding finding = {.path = xstrdup("a.c")};
	struct code code = {0};
	auto_free char *text = NULL;
	size_t at;
	bool anchored;

	script_write(&script);
	at = take_quote(&script, &quote);
	finding.hint = roll(4) ? (int64_t)(at + 1) : (int64_t)roll(3 * LINES);
	change(kind, &script, &quote, at);
	text = script_text(&script);
	finding.quote = quote_text(&quote);
	code_add(&code, text_of("a.c"), text_of(text));
	code_seal(&code);
	anchor_find(&code, &finding);
	check(&script, &quote, &finding);
	anchored = finding.anchoring == FINDING_ANCHORED;
	finding_done(&finding);
	code_done(&code);
	return anchored;
}

static void test_a_thousand(void **state)
{
	size_t anchored[KINDS] = {0};

	(void)state;
	for (size_t i = 0; i < FINDINGS; i++)
		anchored[i % KINDS] += try_one((enum kind)(i % KINDS));
	assert_int_equal(anchored[REPEATED], FINDINGS / KINDS);
	assert_int_equal(anchored[ABSENT], 0);
	assert_true(anchored[MOVED] > FINDINGS / KINDS / 2);
	assert_true(anchored[EDITED] < FINDINGS / KINDS);
}

/* --- single cases ------------------------------------------------------------------------- */

static size_t first_line(const char *text, const char *quote, int64_t hint)
{
	struct finding finding = {.path = xstrdup("a.c"), .quote = xstrdup(quote), .hint = hint};
	struct code code = {0};
	size_t first;

	code_add(&code, text_of("a.c"), text_of(text));
	code_seal(&code);
	anchor_find(&code, &finding);
	assert_int_equal(finding.anchoring == FINDING_ANCHORED, finding.first != 0);
	first = finding.first;
	finding_done(&finding);
	code_done(&code);
	return first;
}

static void test_parts(void **state)
{
	static const struct {
		const char *text, *quote;
		int64_t hint;
		size_t first;
	} table[] = {
		{"max = 10\nx = 10\n", "x = 10", 1, 2}, /* a whole line before a part of one */
		{"max = 10\n", "x = 10", 0, 0},         /* no word is cut */
		{"max = 100\n", "max = 10", 0, 0},
		{"a\n\tif (strcpy(a, b)) {\n", "strcpy(a, b)", 0, 2},
		{"f(a, b);\nf(b);\n", "f(b)", 1, 2},
		{"one two\nthree\nfour five\n", "two\nthree\nfour", 0, 1},
		{"onetwo\nthree\nfour five\n", "two\nthree\nfour", 0, 0},
		{"one two\nthree\nfourfive\n", "two\nthree\nfour", 0, 0},
		{"one two\nthree!\nfour five\n", "two\nthree\nfour", 0, 0},
		{"a\nb\na\nb\na\n", "a", 4, 3}, /* of two that are as near, the first */
		{"a\nb\na\nb\na\n", "a", 0, 1},
		{"a\nb\na\nb\na\n", "a\nb", 900, 3},
		{"a\nb\n", "a\n\nb", 0, 0}, /* an empty line is a line */
		{"a\n \nb\n", "a\n\nb", 0, 1},
		{"a\nb", "b\nc", 0, 0}, /* over the end */
		{"\xef\xbb\xbfint a;\n", "int a;", 0, 1},
		{"caf\xe9 one\nx\n", "caf\xef\xbf\xbd one", 0, 1}, /* as it was shown */
		{"\xc3\xa9t\xc3\xa9\n", "t\xc3\xa9", 0, 0},
		{"", "a", 0, 0},
		{"a\n\n\n", "\n \n", 2, 0}, /* nothing is quoted */
		{"x  =  1;\n", "x = 1;", 0, 0},
		{"X = 1;\n", "x = 1;", 0, 0},
		{"a\n", "a", INT64_MAX, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		size_t first = first_line(table[i].text, table[i].quote, table[i].hint);

		if (first != table[i].first)
			fail_msg("row %zu: line %zu", i, first);
	}
}

static void test_files(void **state)
{
	static const char *const names[] = {"src/a.c", "./src/a.c", "a.c", "src//a.c", "x/src/a.c",
					    "rc/a.c",  "src/a.cc",  "/",   ""};
	struct code code = {0};

	(void)state;
	code_add(&code, text_of("src/a.c"), text_of("old\n"));
	code_add(&code, text_of("b.c"), text_of("b\n"));
	code_add(&code, text_of("src/a.c"), text_of("new\n"));
	code_seal(&code);
	assert_int_equal(code.count, 2);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct finding finding = {.path = xstrdup(names[i]), .quote = xstrdup("new")};

		anchor_find(&code, &finding);
		assert_int_equal(finding.anchoring, i < 5 ? FINDING_ANCHORED : FINDING_NO_FILE);
		finding_done(&finding);
	}
	code_done(&code);
}

/* A quote that stands everywhere is not looked for without end: what comes too late has no place.
 */
static void test_too_much(void **state)
{
	struct finding finding = {.path = xstrdup("a.c"), .quote = xstrdup("b")};
	struct code code = {0};

	(void)state;
	code_add(&code, text_of("a.c"), text_of("a\nb\nb\nb\n"));
	code_seal(&code);
	anchor_find(&code, &finding);
	assert_int_equal(code.work, 3);
	assert_int_equal(finding.anchoring, FINDING_ANCHORED);
	finding.occurrences = finding.first = finding.last = 0;
	code.work = (size_t)CODE_WORK_MAX + 1;
	anchor_find(&code, &finding);
	assert_int_equal(finding.anchoring, FINDING_NOT_TRIED);
	finding_done(&finding);
	code_done(&code);
}

static void test_changes(void **state)
{
	const struct code_file *file;
	struct code code = {0};

	(void)state;
	code_add(&code, text_of("a.c"), text_of("1\n2\n3\n4\n5\n6\n"));
	code_seal(&code);
	code_set_changes(&code,
			 text_of("[{\"path\":\"gone.c\",\"status\":\"deleted\",\"hunks\":[]},"
				 "{\"path\":\"a.c\",\"status\":\"modified\",\"hunks\":["
				 "{\"start\":1,\"end\":4,\"changed\":[[2,2]]},"
				 "{\"start\":4,\"end\":6,\"changed\":[[5,6],[0,9]]}]}]"));
	file = code_find(&code, text_of("a.c"));
	assert_false(code_changed(file, 1, 1));
	assert_true(code_changed(file, 1, 2));
	assert_false(code_changed(file, 3, 4));
	assert_true(code_changed(file, 6, 6));
	code_done(&code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thousand), cmocka_unit_test(test_parts),
		cmocka_unit_test(test_files),      cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
