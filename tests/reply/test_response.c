/* What a model wrote, read: code, answer, thinking (ENG-1 to ENG-4). */
#include "reply/response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "effort.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_text(struct rlmd_text text, const char *expected, const char *input)
{
	if (text_equal(text, expected))
		return;
	print_error("in:   %s\nwant: [%s]\ngot:  [%.*s]\n", input, expected, (int)text.size,
		    text.bytes ? text.bytes : "");
	fail();
}

/* Reads `input` and compares its blocks, joined by a line "--". */
static void assert_code(const char *input, bool cut, const char *expected)
{
	struct response response;
	char joined[1024] = "";

	response_read(text_of(input), cut, &response);
	for (size_t i = 0; i < response.block_count; i++) {
		strcat(joined, i ? "\n--\n" : "");
		strncat(joined, response.blocks[i].bytes, response.blocks[i].size);
	}
	assert_text(text_of(joined), expected, input);
	response_done(&response);
}

static void assert_answer(const char *input, bool cut, enum rlmd_answer_kind kind,
			  const char *expected)
{
	struct response response;

	response_read(text_of(input), cut, &response);
	if (response.answer != kind)
		print_error("in:   %s\ngot:  [%.*s]\n", input, (int)response.value.size,
			    response.value.bytes);
	assert_int_equal(response.answer, kind);
	assert_text(response.value, expected, input);
	assert_int_equal(response.value.bytes[response.value.size], '\0');
	response_done(&response);
}

struct row {
	const char *input, *expected;
};

/* ENG-1: which fences are code, and where they end. */
static void test_fences(void **state)
{
	static const struct row rows[] = {
		{"```repl\nprint(1)\n```", "print(1)"},
		{"```python\nprint(1)\n```\n", "print(1)"},
		{"```py\na\n```\n```python3\nb\n```\n```py3\nc\n```", "a\n--\nb\n--\nc"},
		{"```Python\na\n```\n``` REPL \nb\n```", "a\n--\nb"},
		{"```python title=\"x.py\" {1}\na\n```", "a"},
		{"```repl,hidden\na\n```", "a"},
		{"```python:main.py\na\n```", "a"},
		{"~~~repl\na\n~~~", "a"},
		{"~~~~ py\na\n~~~\nb\n~~~~~  \t\n", "a\n~~~\nb"},
		{"```repl\na\n~~~\nb\n```", "a\n~~~\nb"},
		{"````python\ns = '''\n```\nx\n```\n'''\n````", "s = '''\n```\nx\n```\n'''"},
		/* other languages, and none */
		{"```json\n{}\n```\n```\nx\n```\n```bash\nls\n```\n```text\nt\n```", ""},
		{"```pythonic\na\n```\n```replx\nb\n```\n```pyc\nd\n```", ""},
		/* a fence of another language hides one inside of it */
		{"````markdown\n```repl\na\n```\n````\n```repl\nb\n```", "b"},
		{"```text\n```repl\na\n```\n```repl\nb\n```", "b"},
		/* what looks like a closing fence but has text behind it, is shorter or deeper */
		{"```repl\na\n``` x\nb\n```", "a\n``` x\nb"},
		{"````repl\na\n```\nb\n````", "a\n```\nb"},
		{"```repl\ndef f():\n    '''\n    ```\n    '''\n```",
		 "def f():\n    '''\n    ```\n    '''"},
		{"```repl\na\n  ```\nb", "a"},
		/* no fences at all */
		{"``repl\na\n``", ""},
		{"```repl a``` and `b`\nc", ""},
		{"    ", ""},
		{"", ""},
		{"```", ""},
		/* an open one in a complete response */
		{"```repl\na\nb", "a\nb"},
		{"```repl\na\n``", "a\n``"},
		{"```repl", ""},
		{"```repl\n", ""},
		/* empty blocks are no blocks */
		{"```repl\n```\n```repl\n\n  \n```\n```repl\nx\n```", "x"},
		/* blank lines inside stay, so that line numbers hold */
		{"```repl\n\na\n\nb\n\n```", "\na\n\nb"},
		/* text around it */
		{"First\n```repl\na\n```\nthen\n```repl\nb\n```\nend", "a\n--\nb"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_code(rows[i].input, false, rows[i].expected);
}

/* ENG-1: a fence may stand behind words on its line, where nothing else can be meant. */
static void test_fences_behind_words(void **state)
{
	static const struct row rows[] = {
		{"Sure: ```python\nprint(1)\n```", "print(1)"},
		{"text ```repl\na\n```", "a"},
		{"Sure:```Python3  \r\na\r\n```\r\nFINAL_VAR(a)", "a"},
		{"Like `this`, then ````py\nx = '''\n```\n'''\n````\nend", "x = '''\n```\n'''"},
		{"a ```x``` b ```python\nc\n```", "c"},
		{"First: ```repl\na\n```\nand: ```repl\nb\n```", "a\n--\nb"},
		{"  Sure: ```repl\n    if x:\n        y\n  ```", "if x:\n    y"},
		{"* Look: ```repl\n  a\n  ```\n", "a"},
		/* other languages and bare ones hide what follows no more than they should */
		{"So: ```json\n{}\n```\n```repl\na\n```", "a"},
		{"So: ```\n42\n```\nNow:\n```repl\nprint(1)\n```", "print(1)"},
		/* it closes on its last line, or not at all: then it must look like code */
		{"Sure: ```python\nprint(1)```", "print(1)"},
		{"Sure: ```python\nx = 1\nx```\nand on", "x = 1\nx"},
		{"Sure: ```python\nprint(1)\n", "print(1)"},
		/* inline code, and talk about fences */
		{"use ```x``` here", ""},
		{"use ```python x``` here\nand\n```\ny\n```", ""},
		{"use ```python``` here\nand ```python``` there", ""},
		{"a block that opens with ```python\nand closes with ```.", ""},
		{"a block that opens with ```python\nand closes with ```", ""},
		{"a block that opens with ```python\nand closes with ``` then", ""},
		{"a block that opens with ```python\n\nThen I shall answer.", ""},
		{"a block that opens with ```python\n\nThen I write f(x).\nFINAL(42)", ""},
		{"So: ```python\nimport re\nprint(1)\n", "import re\nprint(1)"},
		{"opens with ```python\nas in\n```repl\na\n```", "a"},
		{"opens with ```python\nas `in` this\n```repl\na\n```", "a"},
		{"a ``` that is open\nhere ```python\nprint(1)\n```", ""},
		{"say \"```python\nprint(1)\n```", ""},
		{"say (```python\nprint(1)\n```", ""},
		{"an escaped \\```python\nprint(1)\n```", ""},
		{"behind ```python it goes on\nprint(1)\n```", ""},
		{"tildes ~~~python\nprint(1)\n~~~", ""},
		{"two ``python\nprint(1)\n``", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_code(rows[i].input, false, rows[i].expected);
}

/* ENG-1: a fence may close on the last line of its code, for Python has no backticks but in
 * strings and comments. */
static void test_fences_closed_on_the_last_line(void **state)
{
	static const struct row rows[] = {
		{"```python\nprint(1)```", "print(1)"},
		{"```python\nprint(1)```\n", "print(1)"},
		{"```python\nprint(1) ```  \r\nDone.\n```repl\nb\n```", "print(1) \n--\nb"},
		{"```python\nprint(1)```\nIt prints:\n```\n1\n```", "print(1)"},
		{"```repl\na\nb````\nc", "a\nb"},
		{"````repl\na```\nb\n````", "a```\nb"},
		{"```repl\ns = '''x```\ny'''\nprint(s)\n```", "s = '''x```\ny'''\nprint(s)"},
		{"```repl\ns = \"\"\"it's ```\n\"\"\"```\nend", "s = \"\"\"it's ```\n\"\"\""},
		{"```repl\n# ends with ```\na\n```", "# ends with ```\na"},
		{"```repl\ns = 'a\\' ```'\nb```", "s = 'a\\' ```'\nb"},
		{"```repl\ns = 'open ```\nb\n```", "s = 'open ```\nb"},
		{"```repl\na = '#'```", "a = '#'"},
		{"```repl\ns = 'a\\\nb ```'\nc```", "s = 'a\\\nb ```'\nc"},
		{"```repl\na\n        ```\nb", "a"},
		/* words behind it are prose; backticks and one word alone may open a fence */
		{"```python\nprint(1)``` That is it.", "print(1)"},
		{"```python\nprint(1)``` That's it.\nIt prints:\n```\n1\n```", "print(1)"},
		{"```python\nprint(1)\n``` That is it.\n", "print(1)"},
		{"```repl\na``` Then:\n```repl\nb\n```", "a\n--\nb"},
		{"````repl\na``` then\nb\n````", "a``` then\nb"},
		{"```repl\na``` is `b`\n```", "a``` is `b`"},
		{"```repl\na\n```b\n```", "a\n```b"},
		{"```repl\ns = '``` That is it.'\nb\n```", "s = '``` That is it.'\nb"},
		{"```repl\na # ``` That is it.\nb\n```", "a # ``` That is it.\nb"},
		{"```repl\ns = '''\n``` That is it.\n'''\n```", "s = '''\n``` That is it.\n'''"},
		{"Like ```python\nprint(1)``` that.\nYes.", ""},
		/* another language's closes so where it does not close in a better way */
		{"```json\n{}```\n```repl\na\n```", "a"},
		{"```text\nx```\n```\n```repl\na\n```", "a"},
		{"~~~text\nx~~~\n```repl\na\n```\n~~~", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_code(rows[i].input, false, rows[i].expected);
}

/* ENG-1: CRLF is no part of the code, and a lone carriage return is left alone. */
static void test_line_ends(void **state)
{
	(void)state;
	assert_code("```repl\r\na\r\n  b\r\n```\r\n", false, "a\n  b");
	assert_code("```repl\r\na\rb\r\n", false, "a\rb");
	assert_code("x\r\n~~~py\r\na\r\n~~~ \r\ny", false, "a");
}

/* ENG-1: a fence's indentation comes off all lines evenly, in lists too; a block that is
 * indented as a whole would be no Python, so that comes off as well. */
static void test_indentation(void **state)
{
	static const struct row rows[] = {
		{"  ```repl\n  if x:\n      y\n  ```", "if x:\n    y"},
		{"1. Look:\n\n   ```repl\n   a\n\n   b\n   ```", "a\n\nb"},
		{"- ```repl\n  a\n    b\n  ```\n", "a\n  b"},
		{"10) - ```repl\n      a\n      ```\n", "a"},
		{"      ```repl\n      a\n      ```\nafter", "a"},
		{"\t```repl\n\tif x:\n\t\ty\n\t```", "if x:\n\ty"},
		{"```repl\n    a\n      b\n    c\n```", "a\n  b\nc"},
		{"```repl\na\n  b\n```", "a\n  b"},
		{"    ```repl\na\n    b\n    ```", "a\nb"},
		{"   ```repl\n  a\n```\nx", "a"},
		{"  ```repl\n\ta\n  ```", "a"},
		{"-```repl\na\n```", "a"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_code(rows[i].input, false, rows[i].expected);
}

/* ENG-1: a block in which the provider cut the response is not run, the ones before it are. */
static void test_cut_fence(void **state)
{
	struct response response;

	(void)state;
	assert_code("```repl\na\n```\n```repl\nb\nc", true, "a");
	response_read(text_of("x\n```repl\nprint('FINAL(1)"), true, &response);
	assert_true(response.cut_fence);
	assert_int_equal(response.block_count, 0);
	assert_int_equal(response.answer, RLMD_ANSWER_NONE);
	assert_text(response.thinking, "x", "cut");
	response_done(&response);

	response_read(text_of("Sure: ```repl\nprint('FINAL(1)"), true, &response);
	assert_true(response.cut_fence);
	assert_int_equal(response.block_count, 0);
	assert_int_equal(response.answer, RLMD_ANSWER_NONE);
	response_done(&response);

	response_read(text_of("```repl\na\n```\nand then"), true, &response);
	assert_false(response.cut_fence);
	assert_int_equal(response.block_count, 1);
	response_done(&response);

	response_read(text_of("```repl\na"), false, &response);
	assert_false(response.cut_fence);
	response_done(&response);
}

/* Code between tags, or in a tool's call, is cut where nothing closes it. */
static void test_cut_tags(void **state)
{
	static const struct {
		const char *input, *code;
		bool cut_fence;
	} rows[] = {
		{"<repl>\nprint(a)\nx = f(b)", "", true},
		{"<repl>\nprint(a)\n</repl>\nand th", "print(a)", false},
		{"<repl>\nprint(a)\n</repl>\n<repl>\nx = f(b)", "print(a)", true},
		{"<|python_tag|>print(a)\nprint('b", "", true},
		{"<tool_call>\n<function=python>\n<parameter=code>\nprint(a)\nremove", "", true},
		/* nothing of it is missing */
		{"<tool_call>\n<function=python>\n<parameter=code>\nprint(a)\n</parameter>\n</fun",
		 "print(a)", false},
		{"[TOOL_CALLS] [{\"name\": \"python\", \"arguments\": {\"code\": \"a\"}}]", "a",
		 false},
		{"<|python_tag|>{\"name\": \"python\", \"parameters\": {\"code\": \"a\"}}", "a",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct response response;

		assert_code(rows[i].input, true, rows[i].code);
		response_read(text_of(rows[i].input), true, &response);
		assert_int_equal(response.cut_fence, rows[i].cut_fence);
		response_done(&response);
	}
}

/* ENG-2: parentheses balance; the value may hold anything. */
static void test_final(void **state)
{
	static const struct row rows[] = {
		{"FINAL(42)", "42"},
		{"FINAL( 42 )", "42"},
		{"The answer is FINAL(42).", "42"},
		{"**FINAL(42)**", "42"},
		{"> FINAL(42)", "42"},
		{"FINAL(good)\n\nThe document says:\n> FINAL(evil)", "good"},
		{"FINAL(f(x) + (1))", "f(x) + (1)"},
		{"FINAL(a\nb (c)\n\nd)", "a\nb (c)\n\nd"},
		{"FINAL({\"a\": [1, (2, 3)]})", "{\"a\": [1, (2, 3)]}"},
		{"\xe7\xad\x94\xe6\xa1\x88\xe6\x98\xaf"
		 "FINAL(42)",
		 "42"}, /* no space in Chinese */
		{"(see FINAL(42))", "42"},
		/* strings: what is in them does not count */
		{"FINAL(\"a) b\")", "a) b"},
		{"FINAL('a) b')", "a) b"},
		{"FINAL(\"smile :(\")", "smile :("},
		{"FINAL(\"\"\"a) \"b\" (c\"\"\")", "a) \"b\" (c"},
		{"FINAL('''it's (done''')", "it's (done"},
		{"FINAL({\"a)\": \"b(\", 'c': 1})", "{\"a)\": \"b(\", 'c': 1}"},
		{"FINAL([\"a)\", \"b)\"])", "[\"a)\", \"b)\"]"},
		{"FINAL(answer=\"a)b\")", "a)b"},
		{"FINAL(final_answer = a (b))", "a (b)"},
		{"FINAL(answer == b)", "answer == b"},
		{"FINAL(\"a\\\")b\")", "a\")b"},
		{"FINAL(\"He said \"hi (you)\" twice\")", "He said \"hi (you)\" twice"},
		/* apostrophes and inches are no strings */
		{"FINAL(it's done)", "it's done"},
		{"FINAL('it's done')", "it's done"},
		{"FINAL('tis done), said Bob's (other) dog", "'tis done"},
		{"FINAL(the dogs' bowls) and Bob's", "the dogs' bowls"},
		{"FINAL('tis done) and the dogs' bowls)", "'tis done"},
		{"FINAL(names: 'tis, the dogs') and the cats' bowls (two)",
		 "names: 'tis, the dogs'"},
		{"FINAL(a 5\" disk) and a 3\" one)", "a 5\" disk"},
		{"so FINAL(don't) and FINAL(won't)", "won't"},
		/* code spans and escapes in it */
		{"FINAL(use `foo(` here)", "use `foo(` here"},
		{"FINAL(the pattern foo\\(bar)", "the pattern foo\\(bar"},
		{"FINAL(C:\\dir\\)", "C:\\dir\\"},
		{"FINAL(one ` tick) and another ` tick", "one ` tick"},
		{"FINAL(:-\\) ok) and on", ":-\\) ok"},
		/* one pair of quotes comes off, where all of it is one string */
		{"FINAL(\"42\")", "42"},
		{"FINAL('42')", "42"},
		{"FINAL(\"\"\"\n42\n\"\"\")", "\n42\n"},
		{"FINAL(\"a\\nb\")", "a\\nb"},
		{"FINAL(\"a\\\\\")", "a\\\\"},
		{"FINAL('a\\'b')", "a'b"},
		{"FINAL(\"a\", \"b\")", "\"a\", \"b\""},
		{"FINAL('a' and 'b')", "'a' and 'b'"},
		{"FINAL(\"a\" + \"b)\")", "\"a\" + \"b)\""},
		{"FINAL(\"\"x\"\")", "\"x\""},
		{"FINAL(\"half)", "\"half"},
		/* nested: part of the outer one */
		{"FINAL(call FINAL(x) now)", "call FINAL(x) now"},
		/* dots in a value are fine, dots alone are not */
		{"FINAL(...) is how I end: FINAL(a...)", "a..."},
		/* an answer may hold code, which is then text */
		{"FINAL(Use\n```python\nf(:\n```\nnow)", "Use\n```python\nf(:\n```\nnow"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_answer(rows[i].input, false, RLMD_ANSWER_DIRECT, rows[i].expected);
}

/* ENG-2: FINAL("") is the empty answer, FINAL() is none. */
static void test_empty_answer(void **state)
{
	(void)state;
	assert_answer("FINAL(\"\")", false, RLMD_ANSWER_DIRECT, "");
	assert_answer("FINAL('')", false, RLMD_ANSWER_DIRECT, "");
	assert_answer("FINAL(\"\"\"\"\"\")", false, RLMD_ANSWER_DIRECT, "");
	assert_answer("FINAL( \n)", false, RLMD_ANSWER_NONE, "");
}

/* ENG-2: talk about the marker, and what only looks like it. */
static void test_no_final(void **state)
{
	static const char *const rows[] = {
		"",
		"FINAL",
		"FINAL answer",
		"I will call FINAL() later",
		"I will call FINAL(...) or FINAL(\xe2\x80\xa6) later",
		"XFINAL(3)",
		"NOT_FINAL(3)",
		"FINAL_ANSWER(3)",
		"FINALLY(3)",
		"final(3)",
		"as in `FINAL(3)`",
		"``a ` FINAL(3)``",
		"`FINAL(3)\nFINAL(4)`",
		"```\nFINAL(3)\n```",
		"```repl\nFINAL(3)\n```",
		"~~~\nFINAL(3)",
		"- ```sql\n  FINAL(3)\n  ```",
		"FINAL(",
		"FINAL(  \n",
		"I use FINAL( like this\n```repl\nx\n```",
		"I use FINAL(\n```repl\nx = (1)\n```\nand then)",
		"FINAL( and code\n```repl\nx\n```",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_answer(rows[i], false, RLMD_ANSWER_NONE, "");
}

/* A code span does not reach beyond its paragraph. */
static void test_span_paragraph(void **state)
{
	(void)state;
	assert_answer("a ` tick\n\nFINAL(3)\n\nanother ` tick", false, RLMD_ANSWER_DIRECT, "3");
	assert_answer("a ` tick\n```\n```\nFINAL(3) ` x", false, RLMD_ANSWER_DIRECT, "3");
	assert_answer("a `` FINAL(3) ` x", false, RLMD_ANSWER_DIRECT, "3");
}

/* ENG-2: the start of a line wins over a sentence; among equals the last. */
static void test_precedence(void **state)
{
	(void)state;
	assert_answer("FINAL(1)\nFINAL(2)", false, RLMD_ANSWER_DIRECT, "2");
	assert_answer("a FINAL(1) b FINAL(2)", false, RLMD_ANSWER_DIRECT, "2");
	assert_answer("FINAL(1)\nor perhaps FINAL(2)", false, RLMD_ANSWER_DIRECT, "1");
	assert_answer("so FINAL(1)\n  FINAL(2)\nsee FINAL(3)", false, RLMD_ANSWER_DIRECT, "2");
	assert_answer("FINAL(1)\nFINAL_VAR(x)", false, RLMD_ANSWER_VARIABLE, "x");
	assert_answer("FINAL_VAR(x)\nFINAL(1)", false, RLMD_ANSWER_DIRECT, "1");
	assert_answer("FINAL_VAR(x)\nor FINAL(1)", false, RLMD_ANSWER_VARIABLE, "x");
	assert_answer("FINAL(1)\nFINAL()", false, RLMD_ANSWER_DIRECT, "1");
	assert_answer("FINAL(1)\nFINAL_VAR(1)", false, RLMD_ANSWER_DIRECT, "1");
	assert_answer("- FINAL(1)\nso FINAL(2)", false, RLMD_ANSWER_DIRECT, "1");
	assert_answer("FINAL(a `FINAL(b)` c)", false, RLMD_ANSWER_DIRECT, "a `FINAL(b)` c");
}

/* ENG-2: an unclosed one at the very end takes the rest, unless the response was cut. */
static void test_unclosed(void **state)
{
	(void)state;
	assert_answer("FINAL(42", false, RLMD_ANSWER_DIRECT, "42");
	assert_answer("The answer is FINAL(42 (maybe\nmore\n", false, RLMD_ANSWER_DIRECT,
		      "42 (maybe\nmore");
	assert_answer("FINAL(\"42\"", false, RLMD_ANSWER_DIRECT, "42");
	assert_answer("FINAL(42", true, RLMD_ANSWER_NONE, "");
	assert_answer("FINAL_VAR(x", false, RLMD_ANSWER_VARIABLE, "x");
	assert_answer("FINAL_VAR(x", true, RLMD_ANSWER_NONE, "");
	assert_answer("FINAL(42)", true, RLMD_ANSWER_DIRECT, "42");
	assert_answer("Final(42", false, RLMD_ANSWER_NONE, "");
	/* what the provider cut were inventions: the reply had ended before */
	assert_answer("It is FINAL(42\nTurn 2 of 4. Left: cost 1\nand th", true, RLMD_ANSWER_DIRECT,
		      "42");
	assert_answer("FINAL((\nFINAL(42)", false, RLMD_ANSWER_DIRECT, "42");
	assert_answer("FINAL(( as in FINAL(41)", false, RLMD_ANSWER_DIRECT, "( as in FINAL(41)");
	assert_answer("so FINAL(1)\nFINAL(2 (", false, RLMD_ANSWER_DIRECT, "2 (");
	assert_answer("FINAL(1)\nwritten as FINAL( that is", false, RLMD_ANSWER_DIRECT, "1");
}

/* ENG-3: FINAL_VAR names one Python identifier. */
static void test_final_var(void **state)
{
	static const struct row rows[] = {
		{"FINAL_VAR(answer)", "answer"},
		{"FINAL_VAR( answer_2 )", "answer_2"},
		{"FINAL_VAR(\"answer\")", "answer"},
		{"FINAL_VAR( '_a' )", "_a"},
		{"FINAL_VAR(`a`)", "a"},
		{"so **FINAL_VAR(a)**.", "a"},
		{"FINAL_VAR(r\xc3\xa9sum\xc3\xa9)", "r\xc3\xa9sum\xc3\xa9"},
	};
	static const char *const none[] = {
		"FINAL_VAR()",       "FINAL_VAR(\"\")",     "FINAL_VAR(2x)",
		"FINAL_VAR(a.b)",    "FINAL_VAR(a[0])",     "FINAL_VAR(a b)",
		"FINAL_VAR(a, b)",   "FINAL_VAR(f(x))",     "FINAL_VAR(\"a)",
		"XFINAL_VAR(a)",     "a `FINAL_VAR(a)`",    "FINAL_VARS(a)",
		"FINAL_VAR (a)",     "FINAL_VAR(\"a')",     "```repl\nFINAL_VAR(a)\n```",
		"FINAL_VAR(<name>)", "FINAL_VAR(\n```\na)", "FINAL_VAR(a\n```\n```\n)",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_answer(rows[i].input, false, RLMD_ANSWER_VARIABLE, rows[i].expected);
	for (size_t i = 0; i < COUNT(none); i++)
		assert_answer(none[i], false, RLMD_ANSWER_NONE, "");
}

/* A name that no worker can be asked for is no name. */
static void test_long_name(void **state)
{
	char input[400] = "FINAL_VAR(";

	(void)state;
	memset(input + 10, 'a', 256);
	strcpy(input + 266, ")");
	assert_answer(input, false, RLMD_ANSWER_VARIABLE, (input[266] = '\0', input + 10));
	memset(input + 10, 'a', 257);
	strcpy(input + 267, ")");
	assert_answer(input, false, RLMD_ANSWER_NONE, "");
}

/* ENG-4: thinking is what is outside of fences and of the marker that counts. */
static void test_thinking(void **state)
{
	static const struct row rows[] = {
		{"  Only text. ", "Only text."},
		{"First\n```repl\na\n```\nthen\n~~~json\n{}\n~~~\nend\n", "First\nthen\nend"},
		{"I know.\nFINAL(42)\n", "I know."},
		{"FINAL(1)\nFINAL(2)", "FINAL(1)"},
		{"It is FINAL(42), surely", "It is , surely"},
		{"```repl\na\n```\nFINAL_VAR(a) done", "done"},
		{"a\nFINAL(x\n```python\nb\n```\n)\nc\n```repl\nd\n```\ne", "a\n\nc\ne"},
		{"```repl\na\n```", ""},
		{"Sure: ```repl\na\n```\nthen", "Sure: \nthen"},
		{"Sure:\n```repl\na```\nthen", "Sure:\nthen"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct response response;

		response_read(text_of(rows[i].input), false, &response);
		assert_text(response.thinking, rows[i].expected, rows[i].input);
		response_done(&response);
	}
}

/* ENG-6: code beside the answer is there to be run; code inside of the answer is text. */
static void test_code_and_answer(void **state)
{
	static const char input[] =
		"```repl\nx = 1\n```\nFINAL(See:\n```python\ny\n```\n)\n```py\nz\n```\n";
	struct response response;

	(void)state;
	assert_code(input, false, "x = 1\n--\nz");
	response_read(text_of(input), false, &response);
	assert_int_equal(response.answer, RLMD_ANSWER_DIRECT);
	assert_text(response.value, "See:\n```python\ny\n```", input);
	response_done(&response);
}

/* Nothing but code: what no answer is. */
static void test_only_code(void **state)
{
	static const char *const code[] = {
		"```repl\na\n```",    "```\na\n```\n\n~~~py\nb\n~~~\n",
		"```repl\na",         "```python\nprint(1)```\n",
		"```\n{'a': 1}\n```",
	};
	static const char *const other[] = {
		"",
		"a",
		"So: ```repl\na\n```",
		"```repl\na\n```\nFINAL(1)",
		"```sql\na\n```",
		"```\n{\"a\": 1}\n```",
		"```python\n[1]\n```\n",
		"```\na\n```\n```json\n1\n```",
	};
	struct response response;

	(void)state;
	for (size_t i = 0; i < COUNT(code) + COUNT(other); i++) {
		bool is_code = i < COUNT(code);

		response_read(text_of(is_code ? code[i] : other[i - COUNT(code)]), i % 2,
			      &response);
		assert_int_equal(response.only_code, is_code);
		response_done(&response);
	}
}

/* NUL and bytes that are no UTF-8 pass through unharmed. */
static void test_any_bytes(void **state)
{
	static const char input[] = "\0\xff\n```repl\na\0\xfe\n```\nFINAL(b\0\xfd)";
	struct response response;

	(void)state;
	response_read(text_from(input, sizeof input - 1), false, &response);
	assert_int_equal(response.block_count, 1);
	assert_int_equal(response.blocks[0].size, 3);
	assert_memory_equal(response.blocks[0].bytes, "a\0\xfe", 3);
	assert_int_equal(response.value.size, 3);
	assert_memory_equal(response.value.bytes, "b\0\xfd", 3);
	assert_int_equal(response.thinking.size, 2);
	response_done(&response);
	response_read((struct rlmd_text){0}, false, &response);
	assert_int_equal(response.block_count, 0);
	response_done(&response);
}

static clock_t time_of(const char *input, size_t size, bool cut)
{
	clock_t start = clock();
	struct response response;

	response_read(text_from(input, size), cut, &response);
	response_done(&response);
	return clock() - start;
}

/* Sixteen times as much text as its beginning; in quadratic time it would take 256 times as long.
 */
static void assert_linear(const char *input, size_t size, bool cut)
{
	clock_t little = time_of(input, size / 16, cut) + CLOCKS_PER_SEC / 1000;

	assert_in_range(time_of(input, size, cut), 0, 64 * little);
}

/* Hostile texts take as long as any other. */
static void test_linear(void **state)
{
	static const char *const units[] = {
		"FINAL(",
		"FINAL()",
		"FINAL(\"",
		"FINAL(\"(",
		"FINAL('(a' ",
		"FINAL_VAR(",
		"FINAL_VAR(a ",
		"**FINAL(",
		"FINAL( ",
		"FINAL(\"\"\"",
		"FINAL(```\n",
		"FINAL(x\n```\n",
		"(",
		")",
		"`",
		"` ``",
		"```\n",
		"```repl\n",
		"~~~a\n",
		"a ```python\n",
		"a ```python\n\\'''\n",
		"a ```x\n\"\n",
		"a ```\nb\n\n",
		"```x\na```\n",
		"```python\n'a```\n",
		"<think>\n",
		"</think>\n",
		"<think>x</think>\n<tool_call>\n",
		"<tool_call>\n[",
		"<tool_call>\n{\"name\":\"",
		"<python>\n",
		"<function_calls>\n",
		"<invoke name=\"python\">\n<parameter name=\"a",
		"[TOOL_CALLS]python[ARGS]{\"code\":\"\n",
		"[python(code='",
		"to=python<|message|>{\n",
		"Action: python\nAction Input: {\n",
		"</s>\n",
		"{\"a\":[\n",
		"```\nf(1)\n```\n",
		"```repl\na\n```\nx\n",
		"> FINAL(\n",
		"- ",
		"\"",
		"'",
		"\"a ",
		"\"\"\"",
		"\\",
		" ",
		"\n",
		"\t",
	};
	static char input[1 << 18];
	const size_t size = effort(sizeof input, sizeof input / 16);

	(void)state;
	for (size_t i = 0; i < COUNT(units); i++) {
		memcpy(input, "FINAL(", 6);
		for (size_t at = 6; at < size; at++)
			input[at] = units[i][(at - 6) % strlen(units[i])];
		assert_linear(input, size, i % 2);
	}
	/* Backticks in rows of all lengths, none of which has a partner. */
	memset(input, '`', size);
	for (size_t at = 0, run = 1; at + run < size; at += ++run)
		input[at + run] = ' ';
	assert_linear(input, size, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fences),
		cmocka_unit_test(test_fences_behind_words),
		cmocka_unit_test(test_fences_closed_on_the_last_line),
		cmocka_unit_test(test_line_ends),
		cmocka_unit_test(test_indentation),
		cmocka_unit_test(test_cut_fence),
		cmocka_unit_test(test_cut_tags),
		cmocka_unit_test(test_final),
		cmocka_unit_test(test_empty_answer),
		cmocka_unit_test(test_no_final),
		cmocka_unit_test(test_span_paragraph),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_unclosed),
		cmocka_unit_test(test_final_var),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_thinking),
		cmocka_unit_test(test_code_and_answer),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_only_code),
		cmocka_unit_test(test_linear),
	};

	return cmocka_run_group_tests_name("response", tests, NULL, NULL);
}
