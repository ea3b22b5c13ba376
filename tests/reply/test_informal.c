/* Answers that no marker leads (ENG-2). */
#include "read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ENG-2: answers that no marker leads. */
static void test_informal(void **state)
{
	static const struct reading rows[] = {
		{"`FINAL(20)`", "", "20", ""},
		{"It is clear.\n\n**`FINAL(20)`**", "", "20", NULL},
		{"`FINAL_VAR(n)`.", "", "n", NULL},
		{"```text\nFINAL(the capital is Paris)\n```", "", "the capital is Paris", ""},
		{"```\nFINAL(the capital is Paris)\n```", "", "the capital is Paris", ""},
		{"FINAL_var(n)", "", "n", ""},
		{"SUBMIT(answer=20)", "", "20", ""}, /* DSPy */
		{"So\nSUBMIT(\"a b\")", "", "a b", "So"},
		{"The answer is $\\boxed{20}$.", "", "20", NULL}, /* Qwen, DeepSeek */
		{"**Final Answer**\n\n\\boxed{\\text{the {x} one}}", "", "the {x} one", NULL},
		{"So it is.\n\n**Final Answer:** 20", "", "20", "So it is."},
		{"Final answer: **20**", "", "20", ""},
		{"### Final Answer\n\nIt is 20,\nand 21.", "", "It is 20,\nand 21.", ""},
		{"FINAL ANSWER: `a.c`", "", "a.c", ""},
		{"**Final answer: a *b* c**", "", "a *b* c", ""},
		{"**Final Answer:** **20**", "", "20", ""},
		/* twins */
		{"I end with `FINAL(20)` later.", "", NULL, NULL},
		{"`FINAL(your answer)`", "", NULL, NULL},
		{"`print(1); FINAL(20)`", "", NULL, NULL},
		{"```sql\nFINAL(20)\n```", "", NULL, NULL},
		{"```repl\na\n```\n`FINAL(20)`", "a", NULL, NULL},
		{"\\boxed{20} is what I guess, but I look.", "", NULL, NULL},
		{"\\boxed{20", "", NULL, NULL},
		{"\\boxed{...}", "", NULL, NULL},
		{"Final answer: 20\n\nBut I must look first.", "", NULL, NULL},
		{"The final answer: what could it be?", "", NULL, NULL},
		{"Final answers need code", "", NULL, NULL},
		{"Final answer:", "", NULL, NULL},
		{"`Final Answer: 20`", "", NULL, NULL},
		{"SUBMIT(20) is what I call next.", "", NULL, NULL},
	};

	(void)state;
	ASSERT_READINGS(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_informal),
	};

	return cmocka_run_group_tests_name("informal", tests, NULL, NULL);
}
