/* batch/batch_job: the options that a line becomes, and the end that a job comes to; the engine is
 * the test's. */
#include "batch/batch_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rlmd/budget.h>
#include <rlmd/context.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/text.h"
#include "batch/contexts.h"
#include "batch/tenancies.h"
#include "batch/tenants.h"
#include "fake_engine.h"

static struct {
	struct event_base *base;
	struct tenants tenants;
	struct tenancies *tenancies;
	struct batch_job_setting setting;
	struct rlmd_account *account;
	struct batch_job *job;
	char directory[32];
	int ended;
	struct batch_job_end end; /* without its texts */
	char result[512], trace[512];
} test;

static void put(struct rlmd_text text, char out[static 512])
{
	snprintf(out, 512, "%.*s", (int)text.size, text.bytes ? text.bytes : "");
}

static void on_done(void *owner, const struct batch_job_end *end)
{
	assert_ptr_equal(owner, &test);
	test.ended++;
	test.end = *end;
	put(end->result, test.result);
	put(end->trace, test.trace);
}

static int set_up(void **state)
{
	auto_free char *path = NULL;
	FILE *file;

	(void)state;
	memset(&test, 0, sizeof test);
	memset(&fake_engine, 0, sizeof fake_engine);
	strcpy(test.directory, "/tmp/rlmd-batch-XXXXXX");
	assert_non_null(mkdtemp(test.directory));
	path = xasprintf("%s/text", test.directory);
	assert_non_null(file = fopen(path, "w"));
	fputs("in a file", file);
	fclose(file);
	test.base = fake_engine.base = loop_new();
	test.account = rlmd_account_new("batch", NULL, NULL, NULL);
	test.tenancies = tenancies_new(&(struct tenancies_options){
		.tenants = &test.tenants, .kind = "openai", .sandbox = fake_engine_sandbox});
	test.setting = (struct batch_job_setting){
		.base = test.base,
		.contexts = contexts_new(test.base, test.directory),
		.directory = test.directory,
		.job = {.provider = "openai", .model = "usual"},
		.limits = {.cost = 7, .tokens = 8, .time_ms = 9, .max_depth = 2, .calls = 11},
	};
	return 0;
}

static int tear_down(void **state)
{
	auto_free char *command = xasprintf("rm -r %s", test.directory);

	(void)state;
	batch_job_free(test.job);
	tenancies_free(test.tenancies);
	contexts_free(test.setting.contexts);
	rlmd_account_unref(test.account);
	event_base_free(test.base);
	assert_int_equal(system(command), 0);
	return 0;
}

static void begin(const char *line)
{
	batch_job_free(take_pointer(&test.job));
	memset(fake_engine.tasks, 0, sizeof fake_engine.tasks);
	test.ended = 0;
	test.job = batch_job_new(&test.setting, tenancies_get(test.tenancies, text_of("")),
				 text_of(line), NULL, test.account, on_done, &test);
	assert_int_equal(test.ended, 0); /* never before it has returned */
}

static void await_end(void)
{
	while (!test.ended)
		event_base_loop(test.base, EVLOOP_ONCE);
	assert_int_equal(test.ended, 1);
}

/* The job of a line, as the engine got it; lent. */
static const struct rlmd_job *job_of(const char *line)
{
	fake_engine.answer = fake_engine_stays;
	begin(line);
	while (!fake_engine.started[0] && !test.ended)
		event_base_loop(test.base, EVLOOP_ONCE);
	assert_string_equal(test.end.error.text, "");
	assert_int_equal(test.ended, 0);
	return fake_engine.started[0];
}

/* --- its options ------------------------------------------------------------------------ */

static void test_as_the_command_says(void **state)
{
	const struct rlmd_job *job = job_of("{\"custom_id\":\"1\",\"task\":\"count\"}");

	(void)state;
	assert_string_equal(job->task, "count");
	assert_string_equal(job->model, "usual");
	assert_string_equal(job->provider, "openai");
	assert_null(job->schema);
	assert_null(job->context);
	assert_true(job->ends_with_account);
	assert_int_equal(job->limits.cost, 7);
	assert_int_equal(job->limits.tokens, 8);
	assert_int_equal(job->limits.time_ms, 9);
	assert_int_equal(job->limits.calls, 11);
}

static void test_as_the_line_says(void **state)
{
	const struct rlmd_job *job = job_of(
		"{\"custom_id\":\"1\",\"task\":\"t\",\"model\":\"other\",\"schema\":{\"type\":"
		"\"object\"},\"budget\":{\"maxCost\":0.5,\"maxTokens\":9000,\"maxIterations\":3}}");

	(void)state;
	assert_string_equal(job->model, "other");
	assert_non_null(strstr(job->schema, "object"));
	assert_int_equal(job->limits.cost, 500000000000);
	assert_int_equal(job->limits.tokens, 9000);
	assert_int_equal(job->limits.max_iterations, 3);
	assert_int_equal(job->limits.time_ms, 9);
}

/* Zero of a line is nothing, and not the command's limit. */
static void test_a_limit_of_nothing(void **state)
{
	const struct rlmd_job *job = job_of("{\"custom_id\":\"1\",\"task\":\"t\",\"budget\":"
					    "{\"maxCost\":0,\"maxDepth\":0}}");

	(void)state;
	assert_int_equal(job->limits.cost, RLMD_NOTHING);
	assert_int_equal(job->limits.max_depth, RLMD_NOTHING);
}

static void test_contexts(void **state)
{
	static const char *const with[] = {
		"{\"custom_id\":\"1\",\"task\":\"t\",\"context\":\"in the line\"}",
		"{\"custom_id\":\"1\",\"task\":\"t\",\"context_file\":\"text\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof with / sizeof *with; i++)
		assert_non_null(job_of(with[i])->context);
}

/* --- its end ----------------------------------------------------------------------------- */

/* It ends with an object, as one that was begun does. */
static void assert_fails(const char *line, enum rlmd_error_kind kind, const char *words)
{
	begin(line);
	await_end();
	assert_string_equal(fake_engine.tasks, "");
	assert_int_equal(test.end.error.kind, kind);
	assert_non_null(strstr(test.end.error.text, words));
	assert_non_null(strstr(test.result, "\"success\":false"));
	assert_non_null(strstr(test.result, words));
	assert_int_equal(test.end.cost, 0);
	assert_false(test.end.degraded);
}

static void test_what_cannot_begin(void **state)
{
	(void)state;
	assert_fails("{\"custom_id\":\"1\"}", RLMD_ERROR_INPUT, "task");
	assert_fails("no JSON", RLMD_ERROR_INPUT, "JSON");
	assert_fails("{\"custom_id\":\"1\",\"task\":\"t\",\"context_file\":\"nowhere\"}",
		     RLMD_ERROR_INPUT, "nowhere");
	fake_engine.refuses = true;
	assert_fails("{\"custom_id\":\"1\",\"task\":\"t\"}", RLMD_ERROR_INPUT, "no such model");
}

static void assert_answer(struct fake_answer answer)
{
	fake_engine_end((struct rlmd_job *)job_of("{\"custom_id\":\"1\",\"task\":\"t\"}"), answer);
	await_end();
}

/* The part that a journal had was paid before. */
static void test_an_answer(void **state)
{
	(void)state;
	assert_answer((struct fake_answer){
		.cost = 10, .tokens = 20, .journaled_cost = 4, .journaled_tokens = 5});
	assert_int_equal(test.end.error.kind, RLMD_ERROR_NONE);
	assert_string_equal(test.result, "{\"success\":true,\"output\":\"t\"}");
	assert_string_equal(test.trace, "");
	assert_false(test.end.degraded);
	assert_int_equal(test.end.cost, 10);
	assert_int_equal(test.end.paid_cost, 6);
	assert_int_equal(test.end.tokens, 20);
	assert_int_equal(test.end.paid_tokens, 15);
}

/* A cost that nobody knows is none. */
static void test_a_cost_that_is_not_known(void **state)
{
	(void)state;
	assert_answer((struct fake_answer){.cost = -1, .tokens = 20});
	assert_int_equal(test.end.cost, 0);
	assert_int_equal(test.end.paid_cost, 0);
}

static void test_degraded(void **state)
{
	(void)state;
	assert_answer((struct fake_answer){.degraded = true});
	assert_true(test.end.degraded);
	assert_answer((struct fake_answer){.forced = true});
	assert_true(test.end.degraded);
	assert_answer((struct fake_answer){.forced = true, .error = RLMD_ERROR_BUDGET});
	assert_false(test.end.degraded); /* there is no answer */
}

/* With the trace; and with the account whose limit it was. */
static void test_a_failure(void **state)
{
	(void)state;
	assert_answer((struct fake_answer){.error = RLMD_ERROR_BUDGET,
					   .cost = 3,
					   .limited_by = "batch",
					   .stop = RLMD_STOP_MAX_COST});
	assert_int_equal(test.end.error.kind, RLMD_ERROR_BUDGET);
	assert_string_equal(test.trace, "{\"event\":\"run\",\"run\":\"r\"}\n");
	assert_string_equal(test.end.limited_by, "batch");
	assert_int_equal(test.end.cost, 3);
}

static void test_spans(void **state)
{
	(void)state;
	test.setting.spans = (struct rlmd_span_exporter *)&test;
	fake_engine_end((struct rlmd_job *)job_of("{\"custom_id\":\"the id\",\"task\":\"t\","
						  "\"tenant\":\"ada\"}"),
			(struct fake_answer){0});
	await_end();
	assert_string_equal(fake_engine.spans, "the idada");
}

/* --- before its end -------------------------------------------------------------------------- */

static void test_cancelled_at_work(void **state)
{
	(void)state;
	job_of("{\"custom_id\":\"1\",\"task\":\"t\"}");
	batch_job_cancel(test.job);
	await_end();
	assert_int_equal(test.end.error.kind, RLMD_ERROR_CANCELLED);
}

/* Its file is being read: it is never begun. */
static void test_cancelled_before(void **state)
{
	struct rlmd_job_status status;

	(void)state;
	begin("{\"custom_id\":\"1\",\"task\":\"t\",\"context_file\":\"text\"}");
	assert_false(batch_job_status(test.job, &status));
	batch_job_cancel(test.job);
	batch_job_cancel(test.job);
	await_end();
	assert_int_equal(test.end.error.kind, RLMD_ERROR_CANCELLED);
	assert_non_null(strstr(test.result, "stopped before it was begun"));
	assert_string_equal(fake_engine.tasks, "");
}

static void test_freed(void **state)
{
	struct rlmd_job_status status = {.size = sizeof status};

	(void)state;
	job_of("{\"custom_id\":\"1\",\"task\":\"t\"}");
	assert_true(batch_job_status(test.job, &status));
	assert_int_equal(status.turn, 1);
	batch_job_free(take_pointer(&test.job));
	assert_int_equal(fake_engine.now, 0);
	begin("{\"custom_id\":\"1\",\"task\":\"t\",\"context_file\":\"text\"}");
	batch_job_free(take_pointer(&test.job));
	batch_job_free(NULL);
	event_base_loop(test.base, EVLOOP_NONBLOCK);
	assert_int_equal(test.ended, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_as_the_command_says),
		TEST(test_as_the_line_says),
		TEST(test_a_limit_of_nothing),
		TEST(test_contexts),
		TEST(test_what_cannot_begin),
		TEST(test_an_answer),
		TEST(test_a_cost_that_is_not_known),
		TEST(test_degraded),
		TEST(test_a_failure),
		TEST(test_spans),
		TEST(test_cancelled_at_work),
		TEST(test_cancelled_before),
		TEST(test_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
