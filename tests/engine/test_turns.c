/* Jobs of one engine take turns: one that has many calls waiting, and others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <string.h>

#include "engine/job.h"
#include "engine/stage.h"
#include "fake/outside.h"

enum { MANY = 10000 };

/* How many calls each had that was sent: of "a", of "b". */
static int calls[2];

static const char *answering(const struct llm_request *request)
{
	const struct rlmd_text asked = request->messages[request->message_count - 1].text;

	calls[text_starts(asked, "b")]++;
	return "fine";
}

static struct rlmd_plan_file *plan_of(const char *input, int count)
{
	struct evbuffer *out = evbuffer_new();
	struct rlmd_error err;
	struct rlmd_plan_file *file;

	evbuffer_add_printf(out, "{\"operations\":[");
	for (int i = 0; i < count; i++)
		evbuffer_add_printf(out, "%s{\"id\":\"%d\",\"input\":\"%s\"}", i ? "," : "", i,
				    input);
	evbuffer_add_printf(out, "]}");
	file = rlmd_plan_file_new((struct rlmd_text){(const char *)evbuffer_pullup(out, -1),
						     evbuffer_get_length(out)},
				  &err);
	assert_non_null(file);
	evbuffer_free(out);
	return file;
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	(void)job;
	assert_int_equal(result->error.kind, RLMD_ERROR_NONE);
	++*(int *)owner;
}

static void start(struct rlmd_engine *engine, struct rlmd_plan_file *plan, unsigned weight,
		  int *ends)
{
	const struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = ends};
	struct stage_config config = usual;
	struct rlmd_limits limits;
	struct rlmd_job_options options;

	config.limits.cost = config.limits.tokens = RLMD_UNLIMITED;
	config.limits.calls = RLMD_UNLIMITED;
	config.max_parallel = MANY;
	options = stage_options(&config, &limits);
	options.plan = plan;
	options.weight = weight;
	options.hooks = &hooks;
	assert_non_null(rlmd_job_start(engine, &options, NULL));
}

static struct rlmd_engine *open_engine(struct event_base *base)
{
	const struct rlmd_engine_options options = {
		.size = sizeof options, .base = base, .max_workers = 1, .max_calls = 1};
	struct rlmd_engine *engine = rlmd_engine_new(&options, NULL);

	fake_model = answering;
	memset(calls, 0, sizeof calls);
	fake_provider(engine);
	return engine;
}

static void drive_until(struct event_base *base, const int *count, int enough)
{
	for (int i = 0; i < 100000 && *count < enough; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
	assert_true(*count >= enough);
}

/* Of ten thousand calls that wait no more than one is sent before another job's only call, beside
 * what is sent while that job begins. */
static void test_a_job_beside_ten_thousand_calls(void **state)
{
	struct event_base *base = event_base_new();
	struct rlmd_plan_file *many = plan_of("a", MANY), *one = plan_of("b", 1);
	struct rlmd_engine *engine = open_engine(base);
	int ends[2] = {0}, before;

	(void)state;
	start(engine, many, 1, &ends[0]);
	drive_until(base, &calls[0], 100);
	before = calls[0];
	start(engine, one, 1, &ends[1]);
	drive_until(base, &ends[1], 1);
	assert_in_range(calls[0] - before, 0, 10);
	assert_int_equal(ends[0], 0);
	rlmd_engine_free(engine);
	rlmd_plan_file_free(many);
	rlmd_plan_file_free(one);
	event_base_free(base);
}

/* Two with as many: by their weights. */
static void test_weights(void **state)
{
	struct event_base *base = event_base_new();
	struct rlmd_plan_file *a = plan_of("a", MANY), *b = plan_of("b", MANY);
	struct rlmd_engine *engine = open_engine(base);
	int ends = 0;

	(void)state;
	start(engine, a, 1, &ends);
	start(engine, b, 3, &ends);
	drive_until(base, &calls[0], 200);
	assert_in_range(calls[1], 597, 603);
	rlmd_engine_free(engine);
	rlmd_plan_file_free(a);
	rlmd_plan_file_free(b);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_job_beside_ten_thousand_calls),
		cmocka_unit_test(test_weights),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
