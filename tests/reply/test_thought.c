/* Thoughts that a model left in the text of its reply (ENG-4). */
#include "read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ENG-4: thoughts in the text. */
static void test_thoughts(void **state)
{
	static const struct reading rows[] = {
		/* DeepSeek-R1, QwQ, Qwen3 */
		{"<think>\nFINAL(1)\n</think>\n\nFINAL(2)", "", "2", "FINAL(1)"},
		{"<think></think>\n```repl\na\n```", "a", NULL, ""},
		{"<think>so\n```python\nb\n</think>\n```repl\na\n```", "a", NULL,
		 "so\n```python\nb"},
		{"<think>x</think>FINAL(2)", "", "2", "x"},
		{"<think>x</think>\nthen\n<think>y</think>\nFINAL(2)", "", "2", "x\ny\n\nthen"},
		{"<think>say `</think>` now</think>FINAL(2)", "", "2", "say `</think>` now"},
		/* a template that has the opening tag */
		{"x FINAL(1)\n</think>\n\nFINAL(2)", "", "2", "x FINAL(1)"},
		{"x so it is 2.</think>\n\nFINAL(2)", "", "2", "x so it is 2."},
		{"```repl\na\n```\n</think>\n", "", NULL, "```repl\na\n```"},
		/* others */
		{"<thinking>FINAL(1)</thinking>FINAL(2)", "", "2", "FINAL(1)"},
		{"<Reasoning>x</reasoning>\nFINAL(2)", "", "2", "x"},
		{"[THINK]x[/THINK]FINAL(2)", "", "2", "x"},                   /* Magistral */
		{"◁think▷x FINAL(1)◁/think▷FINAL(2)", "", "2", "x FINAL(1)"}, /* Kimi */
		{"<|START_THINKING|>x FINAL(1)<|END_THINKING|><|START_RESPONSE|>FINAL(2)"
		 "<|END_RESPONSE|>",
		 "", "2", NULL}, /* Cohere */
		{"<|begin_of_thought|>\n\nx FINAL(1)\n\n<|end_of_thought|>\n\n"
		 "<|begin_of_solution|>\n\nFINAL(2)\n\n<|end_of_solution|>",
		 "", "2", NULL}, /* OpenThinker */
		{"<|channel|>analysis<|message|>x FINAL(1)<|end|>FINAL(2)", "", "2",
		 "x FINAL(1)"}, /* gpt-oss */
		/* one that is never closed */
		{"<think>\nx FINAL(1)\n```repl\na\n```", "", NULL, "x FINAL(1)\n```repl\na\n```"},
		{"FINAL(2)\n<think>\nx", "", "2", "x"},
		/* twins */
		{"FINAL(It opens with <think>.)", "", "It opens with <think>.", ""},
		{"FINAL(\n<think>\nx\n</think>\n)", "", "<think>\nx\n</think>", ""},
		{"Models write <think> first.\nFINAL(2)", "", "2", "Models write <think> first."},
		{"The last is </think>.\nFINAL(2)", "", "2", "The last is </think>."},
		{"It is `</think>`\nFINAL(2)", "", "2", "It is `</think>`"},
		{"```repl\ns = '''\n<think>\n</think>\n'''\n```", "s = '''\n<think>\n</think>\n'''",
		 NULL, ""},
		{"`<think>` opens it\nFINAL(2)", "", "2", "`<think>` opens it"},
	};

	(void)state;
	ASSERT_READINGS(rows);
}

/* However many there are, none of them is read as anything else. */
static void test_many_thoughts(void **state)
{
	static const char thought[] = "<think>\nFINAL(1)\n</think>\nso\n";
	char text[100 * sizeof thought];
	struct response response;

	(void)state;
	for (size_t count = 1; count < 100; count++) {
		size_t size = count * (sizeof thought - 1);

		memcpy(text + size - sizeof thought + 1, thought, sizeof thought - 1);
		response_read(text_from(text, size), false, &response);
		assert_int_equal(response.answer, RLMD_ANSWER_NONE);
		response_done(&response);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thoughts),
		cmocka_unit_test(test_many_thoughts),
	};

	return cmocka_run_group_tests_name("thought", tests, NULL, NULL);
}
