/*
 * Jobs in groups: who is asked next, where a host holds each request until the test answers it.
 * Plans of many calls, so that no worker and no clock has a part in it: all is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <rlmd/group.h>
#include <rlmd/job.h>
#include <rlmd/plan.h>
#include <rlmd/provider.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { TENANTS = 3, AT_ONCE = 7, ASKED_MAX = 1000, TURNS = 2000, HOUR_MS = 3600000 };

struct tenant {
	struct rlmd_group *group;
	struct rlmd_provider *provider;
	struct rlmd_plan_file *plan;
	struct rlmd_job *job;
	int number, asked, answered;
	bool throttled; /* the host refuses each, for an hour */
};

static struct rlmd_engine *engine;
static struct tenant tenants[TENANTS];
static struct {
	struct tenant *tenant; /* NULL: answered, or cancelled */
	uint64_t id;
} asked[ASKED_MAX];                 /* in their order */
static int asked_count, held_count; /* held: that were not answered */

static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	struct tenant *tenant = owner;
	const struct rlmd_model_failure failure = {
		.size = sizeof failure,
		.kind = RLMD_ERROR_THROTTLED,
		.http_status = 429,
		.retry_after_ms = HOUR_MS / 2,
	};

	tenant->asked++;
	if (tenant->throttled) {
		rlmd_provider_fail(tenant->provider, request->id, &failure);
		return;
	}
	assert_true(asked_count < ASKED_MAX);
	asked[asked_count].tenant = tenant;
	asked[asked_count++].id = request->id;
	held_count++;
}

static void drop(int place)
{
	asked[place].tenant = NULL;
	held_count--;
}

static void on_cancel(void *owner, uint64_t request)
{
	(void)owner;
	for (int i = 0; i < asked_count; i++)
		if (asked[i].tenant && asked[i].id == request)
			drop(i);
}

/* The one that waits longest. */
static void answer(void)
{
	const struct rlmd_model_answer words = {
		.size = sizeof words, .text = rlmd_text_of("yes"), .output_tokens = 1};
	struct tenant *tenant;
	int first = 0;

	assert_true(held_count > 0);
	while (!asked[first].tenant)
		first++;
	tenant = asked[first].tenant;
	drop(first);
	tenant->answered++;
	assert_true(rlmd_provider_answer(tenant->provider, asked[first].id, &words));
}

/* As far as it goes by itself. */
static void go_on(void)
{
	for (int turn = 0; turn < TURNS; turn++)
		event_base_loop(rlmd_engine_base(engine), EVLOOP_NONBLOCK);
}

static void go_on_to(int count)
{
	while (held_count < count)
		event_base_loop(rlmd_engine_base(engine), EVLOOP_ONCE);
}

static struct tenant *open_tenant(int number, struct rlmd_group_options options)
{
	const char *const names[] = {"a", "b", "c"};
	struct tenant *tenant = &tenants[number];
	const struct rlmd_provider_options provider = {
		.size = sizeof provider,
		.name = names[number],
		.ask = on_ask,
		.cancel = on_cancel,
		.owner = tenant,
		.model = "m",
		.costs_nothing = true,
		.patience_ms = HOUR_MS,
	};

	options.size = sizeof options;
	tenant->number = number;
	tenant->provider = rlmd_provider_new(&provider, NULL);
	assert_true(rlmd_engine_add_provider(engine, NULL, tenant->provider, NULL));
	tenant->group = rlmd_group_new(engine, &options, NULL);
	assert_non_null(tenant->group);
	return tenant;
}

/* All of its calls are in line at once. */
static void begin(struct tenant *tenant, int calls)
{
	const struct rlmd_limits limits = {.size = sizeof limits,
					   .tokens = RLMD_UNLIMITED,
					   .time_ms = 4 * HOUR_MS,
					   .calls = RLMD_UNLIMITED};
	struct rlmd_job_options options = {.size = sizeof options,
					   .provider = rlmd_provider_name(tenant->provider),
					   .limits = &limits,
					   .max_parallel = 100000,
					   .group = tenant->group};
	struct evbuffer *text = evbuffer_new();
	struct rlmd_error err = {0};

	evbuffer_add_printf(text, "{\"strategy\":\"Parallel\",\"maxParallel\":%d,\"operations\":[",
			    calls);
	for (int i = 0; i < calls; i++)
		evbuffer_add_printf(text, "%s{\"id\":\"o%d\",\"input\":\"q%d\"}", i ? "," : "", i,
				    i);
	evbuffer_add_printf(text, "]}");
	evbuffer_add(text, "", 1);
	tenant->plan = rlmd_plan_file_new(rlmd_text_of((char *)evbuffer_pullup(text, -1)), NULL);
	evbuffer_free(text);
	assert_non_null(tenant->plan);
	options.plan = tenant->plan;
	tenant->job = rlmd_job_start(engine, &options, &err);
	if (!tenant->job)
		fail_msg("%s", err.text);
}

static int set_up(void **state)
{
	const struct rlmd_engine_options options = {.size = sizeof options, .max_calls = AT_ONCE};

	(void)state;
	memset(tenants, 0, sizeof tenants);
	asked_count = held_count = 0;
	engine = rlmd_engine_new(&options, NULL);
	return engine ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < TENANTS; i++) {
		rlmd_job_free(tenants[i].job);
		rlmd_group_unref(tenants[i].group);
		rlmd_plan_file_free(tenants[i].plan);
		rlmd_provider_unref(tenants[i].provider);
	}
	rlmd_engine_free(engine);
	return 0;
}

/* Of every 70 calls that are served 10, 20 and 40, within a tenth. */
static void test_weights(void **state)
{
	enum { WINDOW = 210 };

	(void)state;
	for (int i = 0; i < TENANTS; i++)
		begin(open_tenant(i, (struct rlmd_group_options){.weight = 1U << i}), WINDOW);
	for (int n = 0; n < AT_ONCE; n++) { /* who came first had them all */
		go_on_to(AT_ONCE);
		answer();
	}
	for (int i = 0; i < TENANTS; i++)
		tenants[i].answered = 0;
	for (int n = 0; n < WINDOW; n++) {
		go_on_to(AT_ONCE);
		answer();
	}
	for (int i = 0; i < TENANTS; i++) {
		int share = (WINDOW / 7) << i;

		assert_in_range(tenants[i].answered, share - share / 10, share + share / 10);
	}
}

/* A call beside ten thousand of another: the next that ends makes place for it. */
static void test_a_call_beside_ten_thousand(void **state)
{
	struct tenant *many = open_tenant(0, (struct rlmd_group_options){.weight = 4});
	struct tenant *one = open_tenant(1, (struct rlmd_group_options){0});

	(void)state;
	begin(many, 10000);
	go_on_to(AT_ONCE);
	for (int n = 0; n < 20; n++) {
		answer();
		go_on_to(AT_ONCE);
	}
	begin(one, 1);
	go_on();
	assert_int_equal(one->asked, 0);
	many->asked = 0;
	while (!one->asked) {
		answer();
		go_on_to(AT_ONCE);
	}
	assert_in_range(many->asked, 0, 1);
}

/* A tenant whose provider refuses it waits by itself. */
static void test_a_throttled_key(void **state)
{
	struct tenant *throttled = open_tenant(0, (struct rlmd_group_options){0});
	struct tenant *one = open_tenant(1, (struct rlmd_group_options){0});

	(void)state;
	throttled->throttled = true;
	begin(throttled, 100);
	go_on();
	assert_in_range(throttled->asked, 1, AT_ONCE);
	begin(one, 1);
	go_on();
	assert_int_equal(one->asked, 1);
	assert_in_range(throttled->asked, 1, AT_ONCE);
}

static void test_caps(void **state)
{
	struct tenant *few = open_tenant(0, (struct rlmd_group_options){.max_calls = 2});
	struct tenant *slow = open_tenant(1, (struct rlmd_group_options){.calls_per_minute = 5});

	(void)state;
	begin(few, 100);
	go_on();
	assert_int_equal(few->asked, 2);
	begin(slow, 100);
	for (int n = 0; n < 20; n++) {
		go_on();
		answer();
	}
	assert_int_equal(slow->asked, 5);
	assert_true(few->asked > 10);
}

static void test_what_makes_no_sense(void **state)
{
	struct rlmd_group_options options = {.size = sizeof options, .weight = 1001};
	struct rlmd_engine *other = rlmd_engine_new(NULL, NULL);
	struct tenant *tenant = open_tenant(0, (struct rlmd_group_options){0});
	const struct rlmd_job_options job = {
		.size = sizeof job, .task = rlmd_text_of("t"), .group = tenant->group};
	struct rlmd_error err = {0};

	(void)state;
	assert_null(rlmd_group_new(engine, &options, &err));
	assert_string_equal(err.text, "weight is 1001, and may be from 0 to 1000");
	options = (struct rlmd_group_options){.size = sizeof options, .calls_per_minute = -1};
	assert_null(rlmd_group_new(engine, &options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_null(rlmd_group_new(NULL, NULL, &err));
	assert_null(rlmd_job_start(other, &job, &err));
	assert_non_null(strstr(err.text, "another engine"));
	rlmd_group_unref(NULL);
	rlmd_engine_free(other);
}

/* Its maker may let go of it while its jobs are at work. */
static void test_who_keeps_it(void **state)
{
	struct tenant *tenant = open_tenant(0, (struct rlmd_group_options){.max_calls = 1});

	(void)state;
	begin(tenant, 3);
	rlmd_group_unref(tenant->group);
	tenant->group = NULL;
	for (int n = 0; n < 3; n++) {
		go_on_to(1);
		assert_int_equal(held_count, 1);
		answer();
	}
	assert_true(rlmd_engine_wait(engine, tenant->job, NULL));
	assert_true(rlmd_result_success(rlmd_job_result(tenant->job)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_weights),
		TEST(test_a_call_beside_ten_thousand),
		TEST(test_a_throttled_key),
		TEST(test_caps),
		TEST(test_what_makes_no_sense),
		TEST(test_who_keeps_it),
	};

	return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
