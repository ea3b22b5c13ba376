/* The parts of a reply without code and answer, of which the model is told. */
#include "reply/unread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_what_it_held(void **state)
{
	static const struct {
		const char *said, *name;
		enum unread unread;
	} rows[] = {
		{"", "", UNREAD_WORDS},
		{"I would look first.", "", UNREAD_WORDS},
		{"Il faudrait d'abord lire \xf0\x9f\x98\x80.", "", UNREAD_WORDS},
		{"```\nls -la\n```", "", UNREAD_WORDS},
		{"```json\n{\"total\": 42}\n```", "", UNREAD_WORDS},
		{"```bash\nls -la\n```", "bash", UNREAD_LANGUAGE},
		{"So:\n```text\nx\n```\n```js\nf()\n```", "js", UNREAD_LANGUAGE},
		{"<tool_call>\n{\"name\": \"search\"}\n</tool_call>", "", UNREAD_TOOL},
		{"I look.\n[TOOL_CALLS]search[ARGS]{}", "", UNREAD_TOOL},
		{"Action: search\nAction Input: x", "", UNREAD_TOOL},
		{"{\"tool\": \"search\", \"input\": \"x\"}", "", UNREAD_TOOL},
		{"```json\n{\"name\": \"f\", \"arguments\": {}}\n```", "", UNREAD_TOOL},
		{"{\"name\": \"Ann\", \"age\": 3}", "", UNREAD_WORDS},
		{"Action: I look.", "", UNREAD_WORDS},
		{"I count:\n\nn = f(1)\nprint(n)\n", "", UNREAD_LINES},
	};
	struct rlmd_text name;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (unread_find(text_of(rows[i].said), &name) != rows[i].unread)
			fail_msg("%s", rows[i].said);
		assert_true(text_equal(name, rows[i].name));
	}
}

static void test_the_last_sentence(void **state)
{
	static const char *const rows[][2] = {
		{"", ""},
		{"It is 42.", "It is 42."},
		{"I looked! It is 4.2.\n", "It is 4.2."},
		{"First.\n\nThe answer: Paris", "Paris"},
		{"\xe7\x9c\x8b\xe3\x80\x82\xe6\x98\xaf\xe3\x80\x82", "\xe6\x98\xaf\xe3\x80\x82"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_true(text_equal(unread_sentence(text_of(rows[i][0])), rows[i][1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_held),
		cmocka_unit_test(test_the_last_sentence),
	};

	return cmocka_run_group_tests_name("unread", tests, NULL, NULL);
}
