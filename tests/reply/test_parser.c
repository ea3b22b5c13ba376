/* rlmd/parser.h: what a program that uses the library reads out of a reply. */
#include <rlmd/parser.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_text(struct rlmd_text text, const char *expected)
{
	assert_int_equal(text.size, strlen(expected));
	assert_memory_equal(text.bytes, expected, text.size);
}

static void test_code(void **state)
{
	struct rlmd_reply *reply = rlmd_reply_parse(
		rlmd_text_of("Look.\n```python\na = 1\n```\nand\n```repl\nprint(a)\n```\n"), false);

	(void)state;
	assert_int_equal(rlmd_reply_block_count(reply), 2);
	assert_text(rlmd_reply_block(reply, 0), "a = 1");
	assert_text(rlmd_reply_block(reply, 1), "print(a)");
	assert_text(rlmd_reply_block(reply, 2), "");
	assert_int_equal(rlmd_reply_answer(reply), RLMD_ANSWER_NONE);
	assert_text(rlmd_reply_answer_text(reply), "");
	assert_non_null(memmem(rlmd_reply_thinking(reply).bytes, rlmd_reply_thinking(reply).size,
			       "Look.", 5));
	assert_false(rlmd_reply_cut_code(reply));
	assert_false(rlmd_reply_invented(reply));
	rlmd_reply_free(reply);
}

static void test_answers(void **state)
{
	struct rlmd_reply *direct = rlmd_reply_parse(rlmd_text_of("FINAL(42 of them)"), false);
	struct rlmd_reply *variable = rlmd_reply_parse(rlmd_text_of("FINAL_VAR(total)"), false);

	(void)state;
	assert_int_equal(rlmd_reply_answer(direct), RLMD_ANSWER_DIRECT);
	assert_text(rlmd_reply_answer_text(direct), "42 of them");
	assert_int_equal(rlmd_reply_answer(variable), RLMD_ANSWER_VARIABLE);
	assert_text(rlmd_reply_answer_text(variable), "total");
	rlmd_reply_free(direct);
	rlmd_reply_free(variable);
}

static void test_cut(void **state)
{
	struct rlmd_reply *reply = rlmd_reply_parse(rlmd_text_of("```python\na = "), true);

	(void)state;
	assert_true(rlmd_reply_cut_code(reply));
	assert_int_equal(rlmd_reply_block_count(reply), 0);
	rlmd_reply_free(reply);
}

/* The reply is copied, and any bytes are one. */
static void test_any_bytes(void **state)
{
	char bytes[] = "FINAL(\xff)\0```python\n";
	struct rlmd_reply *reply = rlmd_reply_parse((struct rlmd_text){bytes, sizeof bytes - 1},
						    false);

	(void)state;
	memset(bytes, 'x', sizeof bytes);
	assert_int_equal(rlmd_reply_answer(reply), RLMD_ANSWER_DIRECT);
	rlmd_reply_free(reply);
	reply = rlmd_reply_parse((struct rlmd_text){NULL, 0}, false);
	assert_int_equal(rlmd_reply_block_count(reply), 0);
	assert_text(rlmd_reply_thinking(reply), "");
	rlmd_reply_free(reply);
	rlmd_reply_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests_name("parser", tests, NULL, NULL);
}
