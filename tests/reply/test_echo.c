/* Replies that go on with our side of the conversation. */
#include "read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Inventions of a model end its reply. */
static void test_inventions(void **state)
{
	static const struct reading rows[] = {
		{"```repl\na\n```\n<output>\n1\n</output>\nFINAL(1)", "a", NULL, ""},
		{"```repl\na\n```\n[block 1]\n[stdout]\n1\n```repl\nb\n```", "a", NULL, ""},
		{"```repl\na\n```\nx\n## Output:\n1\nFINAL(1)", "a", NULL, "x"},
		{"```repl\na\n```\n```output\n1\n```\nFINAL(1)", "a", NULL, ""},
		{"<repl>\na\n</repl>\nObservation: 1\nFINAL(1)", "a", NULL, ""},
		{"x\n\nTurn 2 of 4. Left: cost 1\n\nFINAL(1)", "", NULL, "x"},
		{"x\nWhat happened since your last response (data\nFINAL(1)", "", NULL, "x"},
		{"FINAL(2)\n<|im_start|>user\nFINAL(1)", "", "2", ""}, /* ChatML */
		{"```repl\na\n```\nTurn 2 of 4. Left: cost 1\n\nFINAL(1)", "a", NULL, ""},
		/* twins */
		{"Turn 2 of 4. Left: cost 1\n```repl\na\n```\nFINAL(1)", "a", "1", NULL},
		{"<output>\n1\n</output>\nFINAL(1)", "", "1", NULL},
		{"Output:\nFINAL(1)", "", "1", "Output:"},
		{"```repl\na\n```\nOutput: as you see.\nFINAL(1)", "a", "1", NULL},
		{"```repl\na\n```\nTurn 2 of the wheel.\nFINAL(1)", "a", "1", NULL},
		{"```repl\ns = '''\n<output>\n'''\n```\nFINAL(1)", "s = '''\n<output>\n'''", "1",
		 ""},
		{"```repl\na\n```\nFINAL(\n[stdout]\n1\n)", "a", "[stdout]\n1", ""},
		{"```repl\na\n```\nI see `<output>`\nFINAL(1)", "a", "1", NULL},
	};

	(void)state;
	ASSERT_READINGS(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inventions),
	};

	return cmocka_run_group_tests_name("echo", tests, NULL, NULL);
}
