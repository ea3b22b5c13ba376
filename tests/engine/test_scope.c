/* engine/scope: models that code may name, sampling, and the permits of one job. */
#include "engine/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/loop.h"

/* A job's own two models may be named always, others by its list, NULL and "" mean its own. */
static void test_models(void **state)
{
	char any[] = "big-*", exact[] = "exact", *models[] = {any, exact};
	struct scope scope = {.model = "root", .subcall_model = "sub"};

	(void)state;
	assert_true(scope_may_ask(&scope, "anything"));
	scope.config.models = models;
	scope.config.model_count = 2;
	assert_true(scope_may_ask(&scope, NULL));
	assert_true(scope_may_ask(&scope, ""));
	assert_true(scope_may_ask(&scope, "root"));
	assert_true(scope_may_ask(&scope, "sub"));
	assert_true(scope_may_ask(&scope, "big-1"));
	assert_true(scope_may_ask(&scope, "exact"));
	assert_false(scope_may_ask(&scope, "exact-2"));
	assert_false(scope_may_ask(&scope, "big"));
	scope.config.model_count = 0;
	assert_false(scope_may_ask(&scope, "big-1"));
}

/* A call's own sampling goes before that of the options; the limit on a reply holds for both. */
static void test_sampling(void **state)
{
	const char *const given[] = {"END"}, *const own[] = {"a", "b"};
	struct scope scope = {
		.config = {.max_output_tokens = 100, .sampling = {true, 0.5, given, 1}}};
	struct llm_request bare = {.max_tokens = 8192};
	struct llm_request full = {.max_tokens = 50, .sampling = {true, 1.5, own, 2}};

	(void)state;
	scope_use(&scope, &bare);
	assert_int_equal(bare.max_tokens, 100);
	assert_true(bare.sampling.with_temperature && bare.sampling.temperature == 0.5);
	assert_int_equal(bare.sampling.stop_count, 1);
	assert_string_equal(bare.sampling.stops[0], "END");
	scope_use(&scope, &full);
	assert_int_equal(full.max_tokens, 50);
	assert_true(full.sampling.temperature == 1.5);
	assert_int_equal(full.sampling.stop_count, 2);
	scope = (struct scope){0};
	bare = (struct llm_request){.max_tokens = 8192};
	scope_use(&scope, &bare);
	assert_int_equal(bare.max_tokens, 8192);
	assert_false(bare.sampling.with_temperature);
}

static void on_permit(void *owner)
{
	++*(int *)owner;
}

static int turn(struct event_base *base, const int *had)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_loop(base, EVLOOP_NONBLOCK);
	return *had;
}

/* At each depth as many may be alive as may compute and have a call in flight, and no more: each
 * depth by itself, so that the deepest never wait. */
static void test_alive(void **state)
{
	struct event_base *base = loop_new();
	struct scheduler *calls = scheduler_new(base, 10), *workers = scheduler_new(base, 2);
	struct scope scope = {.base = base, .config = {.max_parallel = 1}};
	struct permit *permits[5];
	int had = 0, deeper = 0;

	(void)state;
	scope_share(&scope, scheduler_flow(calls), 10, scheduler_flow(workers), 2, 1);
	assert_int_equal(scope.alive_max, 3);
	for (int i = 0; i < 4; i++)
		permits[i] = scope_ask_alive(&scope, 1, on_permit, &had);
	assert_int_equal(had, 0); /* never before it returns */
	assert_int_equal(turn(base, &had), 3);
	permits[4] = scope_ask_alive(&scope, 2, on_permit, &deeper);
	assert_int_equal(turn(base, &deeper), 1);
	permit_free(permits[0]);
	assert_int_equal(turn(base, &had), 4);
	for (int i = 1; i < 5; i++)
		permit_free(permits[i]);
	scope_unshare(&scope);
	scope_unshare(&scope);
	scheduler_free(calls);
	scheduler_free(workers);
	event_base_free(base);
}

/* Deeper runs compute first, and of one depth those that go on. */
static void test_workers(void **state)
{
	struct event_base *base = loop_new();
	struct scheduler *calls = scheduler_new(base, 1), *workers = scheduler_new(base, 1);
	struct scope scope = {.base = base, .config = {.max_parallel = 1}};
	int first = 0, root = 0, deep = 0, goes_on = 0;
	struct permit *one, *two, *three, *four;

	(void)state;
	scope_share(&scope, scheduler_flow(calls), 1, scheduler_flow(workers), 1, 1);
	one = scope_ask_worker(&scope, 0, false, on_permit, &first);
	assert_int_equal(turn(base, &first), 1);
	two = scope_ask_worker(&scope, 0, false, on_permit, &root);
	three = scope_ask_worker(&scope, 1, false, on_permit, &deep);
	four = scope_ask_worker(&scope, 1, true, on_permit, &goes_on);
	permit_free(one);
	assert_int_equal(turn(base, &goes_on), 1);
	assert_int_equal(deep + root, 0);
	permit_free(four);
	assert_int_equal(turn(base, &deep), 1);
	assert_int_equal(root, 0);
	permit_free(three);
	assert_int_equal(turn(base, &root), 1);
	permit_free(two);
	scope_unshare(&scope);
	scheduler_free(calls);
	scheduler_free(workers);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_sampling),
		cmocka_unit_test(test_alive),
		cmocka_unit_test(test_workers),
	};

	return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
