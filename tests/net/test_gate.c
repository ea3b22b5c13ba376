#include "net/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

enum { DEADLINE = 1000000, WALL = 1700000000 };

struct setting {
	struct gate *gate;
	struct rlmd_error error, why;
	struct gate_failure failure;
	int64_t at;
};

static int setup(void **state)
{
	static struct setting setting;

	setting = (struct setting){.gate = gate_new(2, 0)};
	setting.failure = (struct gate_failure){
		.error = &setting.error, .retry = true, .attempt = 1, .deadline = DEADLINE};
	*state = &setting;
	return 0;
}

static int teardown(void **state)
{
	struct setting *setting = *state;

	gate_free(setting->gate);
	return 0;
}

static bool fails(struct setting *s, enum rlmd_error_kind kind, int status, int64_t now,
		  double jitter)
{
	error_set(&s->error, kind, "the provider's words");
	s->error.http_status = status;
	return gate_retry(s->gate, &s->failure, now, WALL, jitter, &s->at, &s->why);
}

/* The back-off is the SDKs': half a second doubled, eight at most, less up to a quarter. */
static void test_backoff(void **state)
{
	struct setting *s = *state;

	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 500, 100, 0));
	assert_int_equal(s->at, 600);
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 500, 100, 1));
	assert_int_equal(s->at, 475);
	s->failure.attempt = 2;
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 500, 100, 0));
	assert_int_equal(s->at, 1100);
}

/* A call that no wait makes better is tried again at once, and no more often than all else. */
static void test_at_once(void **state)
{
	struct setting *s = *state;

	s->failure.at_once = true;
	assert_true(fails(s, RLMD_ERROR_NETWORK, 0, 100, 0));
	assert_int_equal(s->at, 100);
	s->failure.attempt = 3;
	assert_false(fails(s, RLMD_ERROR_NETWORK, 0, 100, 0));
}

/* After the retries are used up the error says how many attempts there were. */
static void test_gives_up(void **state)
{
	struct setting *s = *state;

	s->failure.attempt = 3;
	assert_false(fails(s, RLMD_ERROR_NETWORK, 0, 100, 0));
	assert_int_equal(s->why.kind, RLMD_ERROR_NETWORK);
	assert_string_equal(s->why.text, "the provider's words; gave up after 3 attempts");
}

/* x-should-retry decides before anything else, both ways; but never about money and keys. */
static void test_should_retry(void **state)
{
	struct setting *s = *state;

	s->failure.should_retry = "false";
	assert_false(fails(s, RLMD_ERROR_OVERLOADED, 503, 0, 0));
	s->failure.should_retry = "true";
	s->failure.retry = false;
	assert_true(fails(s, RLMD_ERROR_BAD_REQUEST, 400, 0, 0));
	assert_false(fails(s, RLMD_ERROR_BILLING, 429, 0, 0));
}

/* The server's wait is honoured; one that is too long ends the call, and the text says so. */
static void test_retry_after(void **state)
{
	struct setting *s = *state;

	s->failure.retry_after = "7";
	assert_true(fails(s, RLMD_ERROR_THROTTLED, 429, 1000, 0));
	assert_int_equal(s->at, 8000);
	s->failure.retry_after_ms = "1500";
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 500, 1000, 0));
	assert_int_equal(s->at, 2500);
	s->failure.retry_after_ms = NULL;
	s->failure.retry_after = "3600";
	assert_false(fails(s, RLMD_ERROR_THROTTLED, 429, 1000, 0));
	assert_non_null(strstr(s->why.text, "longer wait"));
}

/* A retry that could not even start before the deadline is not waited for. */
static void test_deadline(void **state)
{
	struct setting *s = *state;

	s->failure.retry_after = "60";
	s->failure.deadline = 30000;
	assert_false(fails(s, RLMD_ERROR_THROTTLED, 429, 1000, 0));
	assert_int_equal(s->why.kind, RLMD_ERROR_THROTTLED);
	assert_non_null(strstr(s->why.text, "60000 ms"));
}

/* One throttled call makes the others wait, spread a little; later reports of calls that were
 * under way then do not prolong it. */
static void test_slows_all_once(void **state)
{
	struct setting *s = *state;
	int64_t first, at;

	s->failure.started = 900;
	assert_true(fails(s, RLMD_ERROR_THROTTLED, 429, 1000, 0));
	first = s->at;
	assert_int_equal(first, 1500);
	assert_true(gate_admit(s->gate, 1010, 0, &at, NULL));
	assert_int_equal(at, 1500);
	assert_true(gate_admit(s->gate, 1010, 1, &at, NULL));
	assert_int_equal(at, 1625);

	s->failure.started = 950;
	assert_true(fails(s, RLMD_ERROR_THROTTLED, 429, 1400, 0));
	assert_true(gate_admit(s->gate, 1410, 0, &at, NULL));
	assert_int_equal(at, first);
	assert_true(gate_admit(s->gate, first, 0.5, &at, NULL));
	assert_int_equal(at, first);
}

/* A failing server is no reason to hold back other calls; only a limited rate is. */
static void test_overload_of_one_call(void **state)
{
	struct setting *s = *state;
	int64_t at;

	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 500, 1000, 0));
	assert_true(gate_admit(s->gate, 1001, 0, &at, NULL));
	assert_int_equal(at, 1001);
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 529, 1000, 0));
	assert_true(gate_admit(s->gate, 1001, 0, &at, NULL));
	assert_int_equal(at, 1500);
}

/* A refused key or an unpaid bill ends all later calls at once, with the same error. */
static void test_breaker(void **state)
{
	static const struct {
		enum rlmd_error_kind kind;
		int status;
		bool breaks;
	} cases[] = {
		{RLMD_ERROR_BILLING, 429, true},
		{RLMD_ERROR_BILLING, 400, true},
		{RLMD_ERROR_AUTH, 401, true},
		{RLMD_ERROR_AUTH, 403, false}, /* perhaps of one model only */
		{RLMD_ERROR_NOT_FOUND, 404, false},
	};
	struct setting *s = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rlmd_error why = {0};
		int64_t at;

		s->failure.retry = false;
		assert_false(fails(s, cases[i].kind, cases[i].status, 0, 0));
		assert_int_equal(gate_admit(s->gate, 1, 0, &at, &why), !cases[i].breaks);
		assert_int_equal(why.kind, cases[i].breaks ? cases[i].kind : RLMD_ERROR_NONE);
		if (cases[i].breaks)
			assert_string_equal(why.text, "the provider's words");
		gate_free(s->gate);
		s->gate = gate_new(2, 0);
	}
}

/* However long the provider's words are, ours at the end are whole. */
static void test_long_error(void **state)
{
	struct setting *s = *state;

	s->failure.attempt = 3;
	error_set(&s->error, RLMD_ERROR_NETWORK, "x");
	memset(s->error.text, 'x', sizeof s->error.text - 1);
	assert_false(gate_retry(s->gate, &s->failure, 0, WALL, 0, &s->at, &s->why));
	assert_non_null(strstr(s->why.text, "x; gave up after 3 attempts"));
}

/* A busy provider is asked again as long as the call's time allows and patience lasts ... */
static void test_busy(void **state)
{
	struct setting *s = *state;

	gate_free(s->gate);
	s->gate = gate_new(2, 60000);
	s->failure.busy = true;
	for (s->failure.attempt = 1; s->failure.attempt < 100; s->failure.attempt++) {
		s->failure.waited = 599 * s->failure.attempt;
		assert_true(fails(s, RLMD_ERROR_OVERLOADED, 503, 1000, 0));
		assert_true(s->at > 1000 && s->at <= 31000);
	}
	assert_in_range(gate_busy_until(s->gate), 1001, 31000);
	s->failure.waited = 60000;
	assert_false(fails(s, RLMD_ERROR_OVERLOADED, 503, 1000, 0));
	assert_string_equal(s->why.text, "the provider's words; gave up after waiting 1m00s");

	/* New work waits at most two minutes, whatever it says. */
	s->failure.retry_after = "1000";
	fails(s, RLMD_ERROR_OVERLOADED, 503, 40000, 0);
	assert_int_equal(gate_busy_until(s->gate), 160000);
	s->failure.retry_after = NULL;
	s->failure.waited = 0;
	s->failure.busy = false;
	assert_false(fails(s, RLMD_ERROR_OVERLOADED, 500, 1000, 0));
	assert_non_null(strstr(s->why.text, "gave up after 100 attempts"));
}

/* ... by its word too, however long that is; and before the end there is a last attempt. */
static void test_busy_until_the_end(void **state)
{
	struct setting *s = *state;

	gate_free(s->gate);
	s->gate = gate_new(2, 60000);
	s->failure.busy = true;
	s->failure.attempt = 50;
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 503, DEADLINE - 20000, 0));
	assert_int_equal(s->at, DEADLINE - 10000);
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 503, DEADLINE - 2000, 0));
	assert_int_equal(s->at, DEADLINE - 1000);
	assert_false(fails(s, RLMD_ERROR_OVERLOADED, 503, DEADLINE - 1999, 0));
	assert_non_null(strstr(s->why.text, "the call's time is over"));
	s->failure.retry_after = "300";
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 503, 1000, 0));
	assert_int_equal(s->at, 301000);
	assert_false(fails(s, RLMD_ERROR_OVERLOADED, 503, DEADLINE - 20000, 0));
}

/* A server that says "at once" for ever is believed twenty times, and asked once a second then; or
 * halfway to the call's end, where that is nearer. */
static void test_busy_without_a_pause(void **state)
{
	struct setting *s = *state;

	gate_free(s->gate);
	s->gate = gate_new(2, 60000);
	s->failure.busy = true;
	s->failure.retry_after_ms = "1";
	s->failure.attempt = 20;
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 503, 1000, 0));
	assert_int_equal(s->at, 1001);
	s->failure.attempt = 21;
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 503, 1000, 0));
	assert_int_equal(s->at, 2000);
	assert_true(fails(s, RLMD_ERROR_OVERLOADED, 503, DEADLINE - 800, 0));
	assert_int_equal(s->at, DEADLINE - 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_backoff, setup, teardown),
		cmocka_unit_test_setup_teardown(test_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gives_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_should_retry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retry_after, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slows_all_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overload_of_one_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_breaker, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_until_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_without_a_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_error, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
