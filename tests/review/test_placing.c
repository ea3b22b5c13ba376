/* review/placing: what is left out where there is too much to look for. */
#include "review/anchor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { COUNT = 3 };

static const char text[] = "one\ntwo\nthree\nfour\nfive\nsix\n";
static const char patch[] = "@@ -1 +1 @@\n-five\n+5\n";

/* Where a note, a warning and an error stand, in this order, each with its patch and with so much
 * left to be looked for. */
static void place(enum finding_anchoring ret[static COUNT], size_t left)
{
	static const char *const quotes[COUNT] = {"one", "two", "three"};
	struct finding items[COUNT] = {0};
	struct findings findings = {items, COUNT};
	struct code code = {.work = CODE_WORK_MAX - left};

	for (size_t i = 0; i < COUNT; i++)
		items[i] = (struct finding){
			.rule = xstrdup("r"),
			.path = xstrdup("a"),
			.quote = xstrdup(quotes[i]),
			.patch = xstrdup(patch),
			.severity = SEVERITY_NOTE + (enum severity)i,
		};
	code_add(&code, text_of("a"), text_of(text));
	code_seal(&code);
	anchor_all(&findings, &code, &(struct ruleset){0}, false);
	for (size_t i = 0; i < COUNT; i++) {
		ret[i] = items[i].anchoring;
		finding_done(&items[i]);
	}
	code_done(&code);
}

/* The writer of the answer could else fill it, so that no error is looked for. */
static void test_the_worst_first(void **state)
{
	enum finding_anchoring places[COUNT];

	(void)state;
	place(places, 0);
	assert_int_equal(places[0], FINDING_NOT_TRIED);
	assert_int_equal(places[1], FINDING_NOT_TRIED);
	assert_int_equal(places[2], FINDING_ANCHORED);
}

static void test_patches_last(void **state)
{
	enum finding_anchoring places[COUNT];

	(void)state;
	place(places, 2);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(places[i], FINDING_ANCHORED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_worst_first),
		cmocka_unit_test(test_patches_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
