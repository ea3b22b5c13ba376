/* Code and prose of a text of Markdown: spans, and the lines that are neither. */
#include "reply/markdown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "read.h"

/* The parts of the text, each behind a bar. */
static void join(struct rlmd_text text, struct range part, char *out)
{
	size_t size = strlen(out);

	out[size++] = '|';
	memcpy(out + size, text.bytes + part.start, part.end - part.start);
	out[size + part.end - part.start] = '\0';
}

static void assert_spans(const struct row *row)
{
	struct rlmd_text text = text_of(row->input);
	struct markdown markdown;
	char joined[256] = "";

	markdown_read(text, &markdown);
	for (size_t i = 0; i < markdown.span_count; i++)
		join(text, markdown.spans[i], joined);
	assert_text(text_of(joined), row->expected, row->input);
	markdown_done(&markdown);
	assert_null(markdown.fences);
	assert_null(markdown.spans);
}

/* CommonMark 0.30, 6.1: as many backticks close a span as opened it, within its paragraph. */
static void test_spans(void **state)
{
	static const struct row rows[] = {
		{"a `b` c `d`", "|`b`|`d`"},
		{"``a ` b`` c", "|``a ` b``"},
		{"`a", ""},
		{"`a\n\nb`", ""},
		{"`a\nb`", "|`a\nb`"},
		{"``a` b", ""},
		{"```repl\n`a`\n```\n`b`", "|`b`"},
		{"`a\n```\nb\n```\nc`", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_spans(&rows[i]);
}

static void assert_prose(const struct row *row)
{
	struct rlmd_text text = text_of(row->input);
	struct markdown markdown;
	struct prose prose = {.text = text, .markdown = &markdown};
	struct range line;
	char joined[256] = "";

	markdown_read(text, &markdown);
	while (markdown_prose_line(&prose, &line))
		join(text, line, joined);
	assert_text(text_of(joined), row->expected, row->input);
	markdown_done(&markdown);
}

static void test_lines_of_prose(void **state)
{
	static const struct row rows[] = {
		{"", ""},
		{"a\nb", "|a\n|b"},
		{"a\n```repl\nb\n```\nc", "|a\n|c"},
		{"Sure: ```repl\nb\n```\nc", "|Sure: |c"},
		{"a `b\nc` d\ne", "|a `b\n|e"},
		/* an answer of several lines is none, an answer of one line is one */
		{"FINAL(a\nb)\nc", "|c"},
		{"FINAL(a)\nc", "|FINAL(a)\n|c"},
		{"FINAL(a\nc", "|FINAL(a\n|c"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_prose(&rows[i]);
}

/* Blanks and characters without a width stand in front of a line's words. */
static void test_start_of_a_line(void **state)
{
	static const struct {
		const char *line;
		size_t start;
	} rows[] = {{"a", 0},
		    {" \t a", 3},
		    {"\xe2\x80\x8b \xef\xbb\xbf"
		     "a",
		     7},
		    {"  ", 2},
		    {"", 0}};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rlmd_text text = text_of(rows[i].line);

		assert_int_equal(markdown_line_start(text, (struct range){0, text.size}),
				 rows[i].start);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_lines_of_prose),
		cmocka_unit_test(test_start_of_a_line),
	};

	return cmocka_run_group_tests_name("markdown", tests, NULL, NULL);
}
