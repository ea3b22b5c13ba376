/* prompt/prompt: values, and their places in a text; with and without those that time changes. */
#include "prompt/prompt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "budget/budget.h"

/* A set whose every text is this one, rendered under the name of any of them. */
static void assert_rendered(const char *template, const struct prompt_values *values,
			    const char *wanted, const char *wanted_timeless)
{
	auto_evbuffer struct evbuffer *out = buffer_new(), *timeless = buffer_new();
	auto_free char *text = NULL, *other = NULL;
	struct prompt_set *set = xcalloc(1, sizeof *set);

	for (size_t i = 0; i < PROMPT_COUNT; i++)
		set->texts[i] = text_of(template);
	prompt_render(set, "turn", values, out, timeless);
	text = text_drain(out, NULL);
	other = text_drain(timeless, NULL);
	assert_string_equal(text, wanted);
	assert_string_equal(other, wanted_timeless);
	free(set);
}

static void test_values(void **state)
{
	struct prompt_values values = {0};

	(void)state;
	prompt_text(&values, "text", text_of("a{{number}}\xff"));
	prompt_number(&values, "number", -7);
	prompt_number(&values, "any", BUDGET_UNLIMITED);
	prompt_money(&values, "money", INT64_C(250000000000));
	prompt_text(&values, "empty", text_of(""));
	assert_rendered("{{text}}|{{number}}{{number}}|{{any}}|{{money}}|{{empty}}|{{other}}|",
			&values, "a{{number}}\xef\xbf\xbd|-7-7|unlimited|$0.25|||",
			"a{{number}}\xef\xbf\xbd|-7-7|unlimited|$0.25|||");
	assert_rendered("no value", &values, "no value", "no value");
	assert_rendered("open {{number", &values, "open {{number", "open {{number");
}

/* Values that depend on the clock stand in what the model is told, and not in what identifies a
 * request. */
static void test_timeless(void **state)
{
	struct prompt_values values = {0};

	(void)state;
	prompt_duration(&values, "time", 1500);
	prompt_estimate(&values, "window", 9);
	prompt_number_left(&values, "tokens", 8);
	prompt_money_left(&values, "cost", INT64_C(1000000000000));
	prompt_text_left(&values, "words", text_of("hurry"));
	prompt_number(&values, "turn", 2);
	assert_rendered("{{turn}}: {{time}},{{window}},{{tokens}},{{cost}},{{words}}.", &values,
			"2: 1.5s,9,8,$1.00,hurry.", "2: ,,,,.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_timeless),
	};

	return cmocka_run_group_tests_name("prompt", tests, NULL, NULL);
}
