/* Options that a job is refused for, with words that say what to do; and what a broken caller does
 * to an engine: nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "engine/stage.h"
#include "fake/outside.h"

static struct rlmd_engine *engine;

static int open_engine(void **state)
{
	const struct rlmd_engine_options options = {.size = sizeof options};

	(void)state;
	engine = rlmd_engine_new(&options, NULL);
	fake_provider(engine);
	return 0;
}

static int close_engine(void **state)
{
	(void)state;
	rlmd_engine_free(engine);
	return 0;
}

static struct rlmd_job_options good(void)
{
	return (struct rlmd_job_options){
		.size = sizeof(struct rlmd_job_options),
		.task = text_of("the task"),
		.sandbox = fake_outside_sandbox,
	};
}

/* All three refuse, with the same words. */
static void refuses(const struct rlmd_job_options *options, const char *why)
{
	struct rlmd_error err = {0}, checked = {0}, shown = {0};

	assert_null(rlmd_job_start(engine, options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
	assert_false(rlmd_job_check(engine, options, &checked));
	assert_string_equal(checked.text, err.text);
	assert_null(rlmd_job_dry_run(engine, options, &shown));
	assert_string_equal(shown.text, err.text);
	assert_null(rlmd_job_start(engine, options, NULL)); /* nobody wants to know */
}

static void test_numbers(void **state)
{
	static const struct {
		struct rlmd_limits limits;
		const char *why;
	} rows[] = {
		{{.cost = -5}, "limits.cost is -5, and may be from 0"},
		{{.tokens = RLMD_NOTHING}, "limits.tokens is -1, and may be from 1"},
		{{.time_ms = INT64_C(2592000001)},
		 "may be from 1 to 2592000000, or RLMD_UNLIMITED"},
		{{.max_depth = 17}, "limits.max_depth is 17, and may be from 0 to 16"},
		{{.max_iterations = -2}, "limits.max_iterations is -2"},
		{{.calls = -2}, "limits.calls is -2"},
		{{.subruns = -2}, "limits.subruns is -2"},
	};
	struct rlmd_job_options options;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rlmd_limits limits = rows[i].limits;

		limits.size = sizeof limits;
		options = good();
		options.limits = &limits;
		refuses(&options, rows[i].why);
	}
#define REFUSES(member, value, why)                                                                \
	options = good();                                                                          \
	options.member = value;                                                                    \
	refuses(&options, why)

	REFUSES(block_timeout_ms, -3, "block_timeout_ms is -3");
	REFUSES(block_timeout_ms, RLMD_NOTHING, "block_timeout_ms is -1, and may be from 1");
	REFUSES(max_output, 99, "max_output is 99, and may be from 100");
	REFUSES(max_output_tokens, -2, "max_output_tokens is -2");
	REFUSES(grace_ms, 3600001, "grace_ms is 3600001");
	REFUSES(max_parallel, -2, "max_parallel is -2");
	REFUSES(downgrade, 101, "downgrade is 101, and may be from 0 to 100");
	REFUSES(weight, 1001, "weight is 1001, and may be from 1 to 1000");
#undef REFUSES
}

static void test_work(void **state)
{
	static const char *const many[] = {"a", "a", "a", "a", "a", "a", "a", "a", "a",
					   "a", "a", "a", "a", "a", "a", "a", "a", NULL};
	struct rlmd_plan_file *plan = rlmd_plan_file_new(
		text_of("{\"operations\":[{\"id\":\"a\",\"input\":\"b\"}]}"), NULL);
	struct rlmd_job_options options = good();

	(void)state;
	options.task = text_of("");
	refuses(&options, "neither a task nor a plan");
	options.task = (struct rlmd_text){NULL, 7};
	refuses(&options, "the task of 7 bytes is NULL");
	options = good();
	options.function_count = 3;
	refuses(&options, "3 functions are NULL");
	options = good();
	options.plan = plan;
	refuses(&options, "a task or a plan");
	options = good();
	options.setup = text_of("x = 1");
	refuses(&options, "a setup needs a first_code");
	options = good();
	options.task = text_of("");
	options.plan = plan;
	options.first_code = text_of("print(1)");
	refuses(&options, "a plan has no first code");
	options = good();
	options.provider = "nobody";
	refuses(&options, "no provider is called 'nobody'");
	options = good();
	options.prompt = "/nowhere";
	refuses(&options, "/nowhere");
	options = good();
	options.with_temperature = true;
	options.temperature = 2.5;
	refuses(&options, "the temperature is 2.5, and may be from 0 to 2");
	options = good();
	options.stops = many;
	refuses(&options, "16 texts");
	rlmd_plan_file_free(plan);
}

/* The size of each struct that may grow. */
static void test_sizes(void **state)
{
	struct rlmd_job_options options = good();
	struct rlmd_limits limits = {.size = 3};
	struct rlmd_hooks hooks = {.size = 0};
	struct rlmd_job_status status = {.size = 1};
	struct rlmd_engine_options engine_options = {.size = 2};
	struct rlmd_error err = {0};
	struct rlmd_job *job;

	(void)state;
	options.size--;
	refuses(&options, "the size of struct rlmd_job_options is");
	options = good();
	options.limits = &limits;
	refuses(&options, "the size of struct rlmd_limits is 3");
	options = good();
	options.hooks = &hooks;
	refuses(&options, "the size of struct rlmd_hooks is 0");
	assert_null(rlmd_engine_new(&engine_options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	options = good();
	job = rlmd_job_start(engine, &options, NULL);
	assert_false(rlmd_job_get_status(job, &status));
	status.size = sizeof status;
	assert_true(rlmd_job_get_status(job, &status));
	rlmd_job_free(job);
}

/* NULL is fine, or refused; nothing aborts. */
static void test_nothing(void **state)
{
	const struct rlmd_job_options options = good();
	struct rlmd_job_status status = {.size = sizeof status};
	struct rlmd_error err = {0};

	(void)state;
	refuses(NULL, "a job needs options");
	assert_null(rlmd_job_start(NULL, &options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_false(rlmd_engine_add_provider(engine, NULL, NULL, NULL));
	assert_null(rlmd_engine_base(NULL));
	rlmd_engine_free(NULL);
	rlmd_job_free(NULL);
	rlmd_job_cancel(NULL);
	rlmd_job_interrupt(NULL);
	assert_false(rlmd_job_get_status(NULL, &status));
	assert_null(rlmd_job_warning(NULL, 0));
	assert_null(rlmd_job_result(NULL));
	assert_false(rlmd_result_success(NULL));
	assert_null(rlmd_result_error(NULL));
	assert_int_equal(rlmd_result_output(NULL).size, 0);
	assert_int_equal(rlmd_result_json(NULL).size, 0);
	assert_int_equal(rlmd_result_stop(NULL), RLMD_STOP_NONE);
}

/* The caller's arguments are its own again at once. */
static void test_copies(void **state)
{
	char task[] = "the task", model[] = "a-model", stop[] = "END", warning[] = "beware";
	const char *stops[] = {stop, NULL}, *warnings[] = {warning, NULL};
	struct rlmd_job_options options = good();
	struct rlmd_job *job;

	(void)state;
	fake_model = recursing;
	options.task = text_of(task);
	options.model = model;
	options.stops = stops;
	options.warnings = warnings;
	job = rlmd_job_start(engine, &options, NULL);
	assert_non_null(job);
	memset(task, 'x', sizeof task - 1);
	memset(model, 'x', sizeof model - 1);
	memset(stop, 'x', sizeof stop - 1);
	memset(warning, 'x', sizeof warning - 1);
	stops[0] = warnings[0] = NULL;
	assert_string_equal(rlmd_job_warning(job, 0), "beware");
	assert_null(rlmd_job_warning(job, 1));
	assert_string_equal(job->scope.model, "a-model");
	assert_string_equal(job->scope.config.sampling.stops[0], "END");
	while (!rlmd_job_result(job))
		event_base_loop(rlmd_engine_base(engine), EVLOOP_ONCE);
	assert_non_null(
		strstr(rlmd_result_json(rlmd_job_result(job)).bytes, "\"task\":\"the task\""));
	assert_non_null(strstr(rlmd_result_json(rlmd_job_result(job)).bytes, "beware"));
}

/* Of all that are open: freed in any order, with the rest alive, by themselves or by the engine. */
static void test_any_order(void **state)
{
	enum { JOBS = 6 };
	struct rlmd_job_options options = good();
	struct rlmd_job *jobs[JOBS];

	(void)state;
	fake_model = recursing;
	for (int gone = 0; gone < 40; gone++) {
		for (size_t i = 0; i < JOBS; i++)
			assert_non_null(jobs[i] = rlmd_job_start(engine, &options, NULL));
		for (int i = 0; i < gone; i++)
			event_base_loop(rlmd_engine_base(engine), EVLOOP_NONBLOCK);
		for (size_t i = 0; i < JOBS - 1; i++)
			rlmd_job_free(jobs[(i * 5 + (size_t)gone) % JOBS]);
		if (gone % 2)
			rlmd_job_free(jobs[((JOBS - 1) * 5 + (size_t)gone) % JOBS]);
	}
	close_engine(NULL);
	assert_int_equal(fake_calls, 0);
	assert_int_equal(fake_workers, 0);
	open_engine(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_work),
		cmocka_unit_test(test_sizes),   cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_copies),  cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, open_engine, close_engine);
}
