/* review/escape: whatever characters a stranger writes, a report is what its format allows, and
 * nothing becomes a link. */
#include "review/escape.h"

#include <ctype.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"

typedef char *words_fn(const char *);

/* Any number below 2^21, also where Unicode has no character: a surrogate, or none at all. */
static void add_point(struct evbuffer *out, uint32_t point)
{
	unsigned char bytes[4];
	size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = size - 1; i > 0; i--, point >>= 6)
		bytes[i] = (unsigned char)(0x80 | (point & 0x3f));
	bytes[0] = (unsigned char)(heads[size] | point);
	buffer_add(out, bytes, size);
}

static uint32_t take_point(const char **at)
{
	const unsigned char *s = (const unsigned char *)*at;
	size_t size = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t point = size == 1 ? s[0] : s[0] & (0x7fu >> size);

	for (size_t i = 1; i < size; i++)
		point = point << 6 | (s[i] & 0x3f);
	*at += size;
	return point;
}

/* Char of XML 1.0, without the controls that it allows but nobody sees. */
static bool may_be_in_xml(uint32_t point)
{
	return point == '\t' || point == '\n' || (point >= 0x20 && point < 0x7f) ||
	       (point > 0x9f && point < 0xd800) || (point > 0xdfff && point < 0xfffe) ||
	       (point > 0xffff && point < 0x110000);
}

static void check_xml(words_fn *words, const char *text)
{
	auto_evbuffer struct evbuffer *xml = buffer_new();
	auto_free char *safe = words(text), *out = NULL;

	escape_xml(safe, xml);
	out = text_drain(xml, NULL);
	assert_true(text_is_utf8(text_of(out)));
	for (const char *at = out; *at;) {
		uint32_t point = take_point(&at);

		if (!may_be_in_xml(point) || (point & 0xfffe) == 0xfffe ||
		    (point >= 0xfdd0 && point <= 0xfdef))
			fail_msg("U+%04X is in the report", point);
	}
}

/* Every character, every number that is none, and every byte. */
static void test_xml_has_what_it_allows(void **state)
{
	static words_fn *const all[] = {escape_words, escape_code, escape_line, escape_flat};
	enum { POINTS_MAX = 0x200000, MOST = 0x20000, PIECE = 4096 };

	(void)state;
	for (uint32_t from = 0; from < POINTS_MAX; from += PIECE) {
		auto_evbuffer struct evbuffer *points = buffer_new();
		auto_free char *text = NULL;

		/* In most planes there is nothing but at the end. */
		if (from >= MOST && ((from + PIECE) & 0xffff))
			continue;
		for (uint32_t point = from ? from : 1; point < from + PIECE; point++)
			add_point(points, point);
		text = text_drain(points, NULL);
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			check_xml(all[i], text);
	}
	for (int byte = 1; byte < 256; byte++)
		check_xml(escape_words, (const char[]){'a', (char)byte, 'b', '\0'});
}

static void test_noncharacters_are_seen(void **state)
{
	auto_free char *words = escape_words(
		"a\xef\xbf\xbe\xef\xbf\xbf\xef\xb7\x90 \xf0\x9f\xbf\xbe");

	(void)state;
	assert_string_equal(words, "a\\ufffe\\uffff\\ufdd0 \\ud83f\\udffe");
}

/* --- links ------------------------------------------------------------------------------ */

/* A copy as a service looks at it: entities decoded, and a line feed for each tag. */
static char *as_seen(const char *markdown)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	for (const char *at = markdown; *at;) {
		if (*at == '<') {
			buffer_add(out, "\n", 1);
			at = strchr(at, '>') + 1;
		} else if (at[0] == '&' && at[1] == '#') {
			char *end, c = (char)strtol(at + 2, &end, 10);

			assert_int_equal(*end, ';');
			buffer_add(out, &c, 1);
			at = end + 1;
		} else {
			buffer_add(out, at++, 1);
		}
	}
	return text_drain(out, NULL);
}

/* Words that GitHub, GitLab and their kin make links of, without any markup. */
static const char *const links[] = {
	"www\\.",
	"[a-z]+:/",
	"[a-z]:[^[:space:]]",
	"[^[:space:]]@[^[:space:]]",
	"@[a-z]",
	"[#!$%~&^][a-z0-9]",
	"[a-z]-[0-9]",
	"[0-9a-f]{7}",
	"[a-z0-9]\\.[a-z0-9]",
};

static void check_no_link(const char *words, const char *markdown)
{
	auto_free char *seen = as_seen(markdown);

	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		regex_t pattern;
		bool found;

		assert_int_equal(
			regcomp(&pattern, links[i], REG_EXTENDED | REG_ICASE | REG_NEWLINE), 0);
		found = !regexec(&pattern, seen, 0, NULL, 0);
		regfree(&pattern);
		if (found)
			fail_msg("'%s' has '%s' in '%s'", words, links[i], markdown);
	}
}

static const char *const hostile[] = {
	"see www.evil.example:x",
	"user@evil.example",
	"see WWW.evil.example/a",
	"http://evil.example/",
	"https://evil.example/, ftp://evil.example, mailto:a@evil.example",
	"xmpp:a@evil.example/x",
	"@everyone look at #1, org/repo#2, GH-3 and !4, $5, %6, ~7, &8",
	"ABC-123: commit 0123456789abcdef0123456789abcdef01234567 and deadbeef",
	"a@deadbeef, org/repo@0123456",
	"(www.evil.example)",
	"evil.example ()",
	"1. www.a.b\n2. c@d.e",
};

static void test_nothing_is_a_link(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
		auto_evbuffer struct evbuffer *text = buffer_new(), *span = buffer_new();
		auto_free char *words = escape_words(hostile[i]), *line = escape_line(hostile[i]);
		auto_free char *paragraph = NULL, *code = NULL;

		escape_markdown(words, text);
		paragraph = text_drain(text, NULL);
		check_no_link(hostile[i], paragraph);
		escape_span(line, span);
		code = text_drain(span, NULL);
		if (*code == '`') /* Markdown looks for nothing in it */
			assert_null(strchr(code + 1, '<'));
		else
			check_no_link(hostile[i], code);
	}
}

/* Between backticks stands what a name is made of alone. */
static void test_spans(void **state)
{
	static const struct {
		const char *words, *span;
	} rows[] = {
		{"src/main.c", "`src/main.c`"},
		{"www.evil.example", "`www.evil.example`"},
		{"", "<code></code>"},
		{"a`b", "<code>a&#96;b</code>"},
		{"user@evil.example", "<code>user&#64;<!-- -->evil.<!-- -->example</code>"},
		{"a b", "<code>a b</code>"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_evbuffer struct evbuffer *out = buffer_new();
		auto_free char *span = NULL;

		escape_span(rows[i].words, out);
		span = text_drain(out, NULL);
		assert_string_equal(span, rows[i].span);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xml_has_what_it_allows),
		cmocka_unit_test(test_noncharacters_are_seen),
		cmocka_unit_test(test_nothing_is_a_link),
		cmocka_unit_test(test_spans),
	};

	alloc_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
