/* FINAL(value) and FINAL_VAR(name) in prose: which counts, and what it says (ENG-2, ENG-3). */
#include "read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
		{"so FINAL('tis done) and the dogs' bowls)", "'tis done"},
		{"FINAL(names: 'tis, the dogs') and the cats' bowls (two)",
		 "names: 'tis, the dogs'"},
		{"so FINAL(a 5\" disk) and a 3\" one)", "a 5\" disk"},
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

/* ENG-2, ENG-3: spellings, and words that are the form of an answer. */
static void test_answers(void **state)
{
	static const struct reading rows[] = {
		{"Final(42)", "", "42", ""},
		{"FinalVar(x)", "", "x", ""},
		{"**FINALVAR(x)**", "", "x", NULL},
		{"final_var(\"x\")", "", "x", ""},
		{"final_answer(\"42\")", "", "42", ""}, /* smolagents */
		{"FINAL(\"the answer\")", "", "the answer", ""},
		{"FINAL(the answer is 42)", "", "the answer is 42", ""},
		{"FINAL(42)\nFINAL(the answer)", "", "42", NULL},
		/* twins */
		{"Final(s) in May.", "", NULL, NULL},
		{"so Final(42)", "", NULL, NULL},
		{"final_answer(42) is how", "", NULL, NULL},
		{"my_final_answer(42)", "", NULL, NULL},
		{"FINAL(the answer)", "", NULL, NULL},
		{"FINAL( Your Answer )", "", NULL, NULL},
		{"FINAL(<answer>)", "", NULL, NULL},
		{"FINAL([value])", "", NULL, NULL},
		{"FINAL(...)", "", NULL, NULL},
	};

	(void)state;
	ASSERT_READINGS(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_final),      cmocka_unit_test(test_empty_answer),
		cmocka_unit_test(test_no_final),   cmocka_unit_test(test_span_paragraph),
		cmocka_unit_test(test_precedence), cmocka_unit_test(test_unclosed),
		cmocka_unit_test(test_final_var),  cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests_name("marker", tests, NULL, NULL);
}
