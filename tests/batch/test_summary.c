/* batch/summary: an exit status that hides nothing, and a line that says why. */
#include "batch/summary.h"

#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/money.h"
#include "base/text.h"

static void test_statuses(void **state)
{
	static const struct {
		struct summary summary;
		int status;
	} cases[] = {
		{{.succeeded = 2}, 0},
		{{.succeeded = 2, .bad = 1}, 3},
		{{.succeeded = 2, .failed = 1, .kinds[RLMD_ERROR_NETWORK] = 1}, 3},
		{{.failed = 2, .kinds[RLMD_ERROR_NETWORK] = 1, .kinds[RLMD_ERROR_TIMEOUT] = 1}, 5},
		{{.failed = 2, .kinds[RLMD_ERROR_NETWORK] = 1, .kinds[RLMD_ERROR_SCHEMA] = 1}, 3},
		{{.pending = 2, .refused = true}, 4},
		{{.succeeded = 1, .pending = 2, .refused = true}, 3},
		{{.succeeded = 1, .pending = 2}, 6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(summary_exit_status(&cases[i].summary), cases[i].status);
}

static void test_words(void **state)
{
	const struct summary summary = {
		.succeeded = 7,
		.failed = 3,
		.kinds = {[RLMD_ERROR_SCHEMA] = 1, [RLMD_ERROR_INPUT] = 2},
		.pending = 1,
		.bad = 1,
		.cost = MONEY_DOLLAR / 4,
		.tokens = 99,
	};
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *text = NULL;

	(void)state;
	summary_write(&summary, out);
	text = text_drain(out, NULL);
	assert_string_equal(text, "11 jobs: 7 succeeded, 3 failed (2 input, 1 schema), 1 still "
				  "pending, 1 bad line passed over; $0.25, 99 tokens");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests_name("summary", tests, NULL, NULL);
}
