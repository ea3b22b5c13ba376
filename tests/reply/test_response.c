/* Whole replies, read: code, answer, thinking (ENG-1 to ENG-4). */
#include "read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "effort.h"

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

/* Replies that have words, where no code runs any more. */
static void test_words(void **state)
{
	static const char *const words[] = {
		"42",
		"x = 42",
		"f(x)",
		"> 42",
		"So: ```repl\na\n```",
		"{\"a\": 1}",
		"FINAL(42)",
		"FINAL_VAR(x)",
		"```json\n[1]\n```",
		"It is FINAL() that I write.",
		"FINAL(f(x))",
	};
	static const char *const none[] = {
		"",
		"```repl\na\n```",
		"\xe2\x80\x8b```\na\n```",
		"> ```repl\n> a\n> ```",
		">```repl\n>a\n",
		"print(1)",
		"> print(1)",
		"<python>\na\n</python>",
		"FINAL(\n```repl\na\n```\n)",
		"FINAL(print(1))",
		"FINAL()",
		"**FINAL(the answer)**",
		"<think>42",
		"<think>42</think>",
		"<think>x</think>```repl\na\n```",
	};
	struct response response;

	(void)state;
	for (size_t i = 0; i < COUNT(words) + COUNT(none); i++) {
		bool has = i < COUNT(words);
		const char *input = has ? words[i] : none[i - COUNT(words)];

		response_read(text_of(input), false, &response);
		if (response_has_words(&response) != has)
			print_error("in: %s\n", input);
		assert_int_equal(response_has_words(&response), has);
		response_done(&response);
	}
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
		"FINAL(\n1) x",
		"FINAL(x) y)\n",
		" :) [0, 1) (0, 1] ",
		"wait FINAL(1)",
		"analysis\n",
		"```python\n'''\n```\n",
		"```python\n'''\n```\n```python\n\"\"\"\n```\n",
		"\\boxed{",
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
		cmocka_unit_test(test_thinking),  cmocka_unit_test(test_code_and_answer),
		cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_only_code),
		cmocka_unit_test(test_words),     cmocka_unit_test(test_linear),
	};

	return cmocka_run_group_tests_name("response", tests, NULL, NULL);
}
