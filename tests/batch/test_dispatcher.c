/* batch/dispatcher: which jobs are begun, and what becomes of each, over a real store; the engine
 * is the test's. */
#include "batch/dispatcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rlmd/budget.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "batch/contexts.h"
#include "batch/scoreboard.h"
#include "batch/tenancies.h"
#include "batch/tenants.h"
#include "fake_engine.h"
#include "loaded_store.h"
#include "store/store.h"

enum { LEASE_MS = 60000, ATTEMPTS = 3 };

static struct {
	struct loaded_store loaded;
	struct tenants tenants;
	struct tenancies *tenancies;
	struct scoreboard *board;
	struct contexts *contexts;
	struct dispatcher *dispatcher;
	struct dispatcher_options options;
	int64_t batch;
	int ended, wrote, tells, capped;
	int64_t halted_failed, halted_ended;
	enum rlmd_error_kind error;
	char refused[8][16]; /* tenants, in their order */
	int refusals;
	char said[256]; /* the last `tell` or `capped` */
} test;

/* Each look at the clock takes so long. */
static int64_t step_ms, passed_ms;

int64_t __real_clock_ms(void);
int64_t __wrap_clock_ms(void);

int64_t __wrap_clock_ms(void)
{
	return __real_clock_ms() + (passed_ms += step_ms);
}

/* --- the dispatcher's words ------------------------------------------------------------- */

static void say(const char *text)
{
	strncpy(test.said, text, sizeof test.said - 1);
}

static void on_say(void *owner, const char *text)
{
	(void)owner;
	test.tells++;
	say(text);
}

static void on_capped(void *owner, const char *why)
{
	(void)owner;
	test.capped++;
	say(why);
}

static void on_wrote(void *owner)
{
	(void)owner;
	test.wrote++;
}

static void on_refused(void *owner, const char *tenant, const struct rlmd_error *why)
{
	(void)owner;
	assert_true(why->kind);
	strncpy(test.refused[test.refusals++], tenant, sizeof test.refused[0] - 1);
}

static void on_halted(void *owner, int64_t failed, int64_t ended)
{
	(void)owner;
	test.halted_failed = failed;
	test.halted_ended = ended;
}

static void on_end(void *owner, const struct rlmd_error *err)
{
	(void)owner;
	test.ended++;
	test.error = err ? err->kind : RLMD_ERROR_NONE;
}

/* --- a dispatcher -------------------------------------------------------------------------- */

static int set_up(void **state)
{
	(void)state;
	memset(&test, 0, sizeof test);
	memset(&fake_engine, 0, sizeof fake_engine);
	step_ms = 0;
	loaded_store_open(&test.loaded);
	fake_engine.base = test.loaded.base;
	test.board = scoreboard_new();
	test.contexts = contexts_new(test.loaded.base, "/");
	test.tenancies = tenancies_new(&(struct tenancies_options){
		.tenants = &test.tenants, .kind = "openai", .sandbox = fake_engine_sandbox});
	test.options = (struct dispatcher_options){
		.work = {.base = test.loaded.base,
			 .contexts = test.contexts,
			 .directory = "/",
			 .job = {.provider = "openai"}},
		.tenancies = test.tenancies,
		.store = test.loaded.store,
		.board = test.board,
		.node = "here",
		.max_jobs = 2,
		.max_attempts = ATTEMPTS,
		.lease_ms = LEASE_MS,
		.limit = {RLMD_UNLIMITED, RLMD_UNLIMITED},
		.tenants = &test.tenants,
		.tell = on_say,
		.wrote = on_wrote,
		.capped = on_capped,
		.refused = on_refused,
		.halted = on_halted,
		.end = on_end,
	};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dispatcher_free(test.dispatcher);
	tenancies_free(test.tenancies);
	tenants_done(&test.tenants);
	contexts_free(test.contexts);
	scoreboard_free(test.board);
	loaded_store_close(&test.loaded);
	return 0;
}

static void begin(int jobs)
{
	test.batch = test.options.batch = loaded_store_add(&test.loaded, "batch", "", jobs);
	test.dispatcher = dispatcher_new(&test.options);
}

static void turn(void)
{
	event_base_loop(test.loaded.base, EVLOOP_ONCE);
}

static void await_end(void)
{
	while (!test.ended)
		turn();
	assert_int_equal(test.ended, 1);
}

/* The jobs of the batch in that state, of all tenants. */
static int64_t count(enum store_state state)
{
	int64_t sum = 0;

	DO(&test.loaded, counts, test.batch);
	for (size_t i = 0; i < test.loaded.told.count; i++)
		sum += test.loaded.told.counts[i].jobs[state];
	return sum;
}

static void assert_jobs(int64_t succeeded, int64_t failed, int64_t pending)
{
	assert_int_equal(count(STORE_JOB_SUCCEEDED), succeeded);
	assert_int_equal(count(STORE_JOB_FAILED), failed);
	assert_int_equal(count(STORE_JOB_PENDING), pending);
	assert_int_equal(count(STORE_JOB_RUNNING), 0);
}

/* The job as the store has it. */
static const struct told_job *job_of(const char *id)
{
	const struct rlmd_text name = text_of(id);

	DO(&test.loaded, jobs, test.batch, &name, 1);
	assert_true(test.loaded.told.jobs[0].id);
	return &test.loaded.told.jobs[0];
}

/* --- what becomes of jobs -------------------------------------------------------------------- */

static struct fake_answer costs(const char *task)
{
	(void)task;
	return (struct fake_answer){.cost = 5, .tokens = 3};
}

static void await_jobs(int64_t jobs)
{
	while (fake_engine.now < jobs)
		turn();
}

/* So many at once, in the order of the file; each result is in the store before the end. */
static void test_all_succeed(void **state)
{
	const struct told_job *job;

	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin(5);
	await_jobs(2);
	fake_engine.answer = costs;
	for (size_t i = 0; i < 2; i++)
		fake_engine_end(fake_engine.started[i], costs(NULL));
	await_end();
	assert_int_equal(test.error, RLMD_ERROR_NONE);
	assert_string_equal(fake_engine.tasks, "abcde");
	assert_int_equal(fake_engine.most, 2);
	assert_int_equal(test.wrote, 5);
	assert_jobs(5, 0, 0);
	job = job_of("c");
	assert_string_equal(job->result, "{\"success\":true,\"output\":\"c\"}");
	assert_int_equal(job->cost, 5);
	assert_int_equal(job->tokens, 3);
	assert_int_equal(test.tells, 0);
}

/* By the kind of its error: some are results, some wait as another attempt, some as they were. */
static void test_failures(void **state)
{
	static const struct {
		enum rlmd_error_kind kind;
		enum store_state becomes;
		int attempts;
	} rows[] = {
		{RLMD_ERROR_NO_ANSWER, STORE_JOB_FAILED, 1},
		{RLMD_ERROR_BUDGET, STORE_JOB_FAILED, 1},
		{RLMD_ERROR_NETWORK, STORE_JOB_PENDING, 1},
		{RLMD_ERROR_WORKER, STORE_JOB_PENDING, 1},
		{RLMD_ERROR_CANCELLED, STORE_JOB_PENDING, 0},
		{RLMD_ERROR_AUTH, STORE_JOB_PENDING, 0},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		fake_engine.answer = fake_engine_stays;
		begin(1);
		await_jobs(1);
		dispatcher_drain(test.dispatcher); /* it is not tried again here */
		fake_engine_end(fake_engine.started[0],
				(struct fake_answer){.error = rows[i].kind});
		await_end();
		assert_int_equal(count(rows[i].becomes), 1);
		assert_int_equal(job_of("a")->attempts, rows[i].attempts);
		assert_int_equal(test.wrote, rows[i].becomes == STORE_JOB_FAILED);
		tear_down(state);
		set_up(state);
	}
}

static struct fake_answer fails_by_network(const char *task)
{
	return (struct fake_answer){.error = *task == 'a' ? RLMD_ERROR_NETWORK : RLMD_ERROR_NONE};
}

/* The last attempt is a result, with its trace. */
static void test_the_last_attempt(void **state)
{
	(void)state;
	fake_engine.answer = fails_by_network;
	test.options.max_attempts = 1;
	begin(2);
	await_end();
	assert_jobs(1, 1, 0);
	assert_string_equal(job_of("a")->error, "network");
	assert_string_equal(job_of("a")->trace, "{\"event\":\"run\",\"run\":\"r\"}\n");
}

static struct fake_answer fails_once(const char *task)
{
	static int before;

	if (*task != 'a')
		return (struct fake_answer){0};
	return (struct fake_answer){.error = before++ ? RLMD_ERROR_NONE : RLMD_ERROR_THROTTLED};
}

/* After a while, and after the others. */
static void test_another_attempt(void **state)
{
	(void)state;
	fake_engine.answer = fails_once;
	test.options.max_jobs = 1;
	begin(2);
	await_end();
	assert_string_equal(fake_engine.tasks, "aba");
	assert_jobs(2, 0, 0);
	assert_int_equal(job_of("a")->attempts, 2);
}

/* A machine that has too little for two: no attempt, and fewer at once from then on. */
static void test_fewer_at_once(void **state)
{
	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin(3);
	await_jobs(2);
	fake_engine_end(fake_engine.started[0], (struct fake_answer){.error = RLMD_ERROR_MACHINE});
	while (!test.tells)
		turn();
	assert_non_null(strstr(test.said, "fewer"));
	fake_engine.answer = NULL;
	for (size_t i = 0; i < 3; i++)
		if (fake_engine.started[i])
			fake_engine_end(fake_engine.started[i], (struct fake_answer){0});
	await_end();
	assert_jobs(3, 0, 0);
	assert_int_equal(job_of("a")->attempts, 1);
}

/* An answer that was forced counts, and is told from others. */
static struct fake_answer degrades(const char *task)
{
	return (struct fake_answer){.degraded = *task == 'a', .forced = *task == 'b'};
}

static void test_degraded(void **state)
{
	(void)state;
	fake_engine.answer = degrades;
	begin(3);
	await_end();
	assert_jobs(3, 0, 0);
	assert_string_equal(job_of("a")->error, STORE_DEGRADED);
	assert_string_equal(job_of("b")->error, STORE_DEGRADED);
	assert_string_equal(job_of("c")->error, "");
}

/* The engine refuses a job before it begins: that is its result. */
static void test_jobs_that_cannot_start(void **state)
{
	(void)state;
	fake_engine.refuses = true;
	begin(2);
	await_end();
	assert_jobs(0, 2, 0);
	assert_string_equal(job_of("b")->error, "input");
	assert_non_null(strstr(job_of("b")->result, "\"success\":"));
}

/* --- its end ------------------------------------------------------------------------------ */

static struct fake_answer fails_for_good(const char *task)
{
	return (struct fake_answer){.error = *task == 'a' ? RLMD_ERROR_NONE : RLMD_ERROR_SCHEMA};
}

/* All jobs but the first fail, one at a time. */
static void assert_halts_at_second(struct halt halt)
{
	fake_engine.answer = fails_for_good;
	test.options.max_jobs = 1;
	test.options.halt = halt;
	begin(6);
	await_end();
	assert_int_equal(test.halted_failed, 2);
	assert_int_equal(test.halted_ended, 3);
	assert_jobs(1, 2, 3);
}

static void test_halt(void **state)
{
	(void)state;
	assert_halts_at_second((struct halt){.failures = 2});
}

/* Both have to be reached. */
static void test_halt_by_a_share(void **state)
{
	(void)state;
	assert_halts_at_second((struct halt){.failures = 1, .percent = 60});
}

/* Those at work end; no other one begins. */
static void test_drain(void **state)
{
	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin(5);
	await_jobs(2);
	dispatcher_drain(test.dispatcher);
	fake_engine_end(fake_engine.started[0], (struct fake_answer){0});
	fake_engine_end(fake_engine.started[1], (struct fake_answer){0});
	await_end();
	assert_jobs(2, 0, 3);
}

/* Those at work wait as if they had not been begun. */
static void test_stop(void **state)
{
	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin(5);
	await_jobs(2);
	dispatcher_stop(test.dispatcher);
	await_end();
	assert_jobs(0, 0, 5);
	assert_int_equal(job_of("a")->attempts, 0);
	assert_int_equal(test.error, RLMD_ERROR_NONE);
}

/* Another process has the job by now: it is stopped here, and nothing is written. */
static void test_a_lost_claim(void **state)
{
	int64_t token;

	(void)state;
	fake_engine.answer = fake_engine_stays;
	test.options.lease_ms = 150; /* renewed each 50 */
	begin(1);
	await_jobs(1);
	store_release(test.loaded.store, text_of("here"), NULL, NULL); /* no renewal between */
	DO(&test.loaded, claim, test.batch, NULL, text_of("there"), 1, LEASE_MS);
	assert_int_equal(test.loaded.told.count, 1);
	token = test.loaded.told.jobs[0].token;
	while (fake_engine.now)
		turn();
	dispatcher_drain(test.dispatcher);
	await_end();
	assert_int_equal(test.wrote, 0);
	assert_int_equal(count(STORE_JOB_RUNNING), 1);
	assert_int_equal(job_of("a")->token, token);
}

/* Jobs whose process died may be the cause of that: each is alone. */
static void test_suspects(void **state)
{
	(void)state;
	test.batch = test.options.batch = loaded_store_add(&test.loaded, "batch", "", 4);
	DO(&test.loaded, claim, test.batch, NULL, text_of("dead"), 2, LEASE_MS);
	assert_int_equal(test.loaded.told.count, 2);
	DO(&test.loaded, release, text_of("dead"));
	test.dispatcher = dispatcher_new(&test.options);
	while (strlen(fake_engine.tasks) < 2)
		turn();
	assert_int_equal(fake_engine.most, 1);
	await_end();
	assert_jobs(4, 0, 0);
}

/* --- waits ----------------------------------------------------------------------------------- */

/* No job is begun while the provider is busy, which is told once; also where that is over by the
 * time that the dispatcher has looked at all others. */
static void test_a_busy_provider(void **state)
{
	(void)state;
	fake_engine.wait_ms = 1;
	step_ms = 1;
	begin(2);
	await_end();
	assert_int_equal(test.tells, 1);
	assert_non_null(strstr(test.said, "openai limits the rate"));
	assert_jobs(2, 0, 0);
}

/* A limit of the batch that is too small for any job: they stay pending, with the reason. */
static struct fake_answer is_short(const char *task)
{
	(void)task;
	return (struct fake_answer){
		.error = RLMD_ERROR_BUDGET, .limited_by = "this batch", .stop = RLMD_STOP_MAX_COST};
}

static void test_too_little_money(void **state)
{
	(void)state;
	fake_engine.answer = is_short;
	test.options.limit.cost = 100;
	test.options.max_jobs = 1;
	begin(3);
	await_end();
	assert_int_equal(test.capped, 1);
	assert_non_null(strstr(test.said, "the limit of this batch"));
	assert_non_null(strstr(test.said, "--max-batch-cost"));
	assert_jobs(0, 0, 3);
	assert_int_equal(job_of("a")->attempts, 0);
}

/* --- tenants -----------------------------------------------------------------------------------
 */

static const char *const ids[] = {"a", "b", "c", "d", "x", "y"};
static char lines[6][100];

/* a, b, c and d of ada; x and y of bob. */
static void begin_with_two(void)
{
	struct store_line loaded[6];
	struct store_load load;

	for (size_t i = 0; i < 6; i++) {
		const char *tenant = i < 4 ? "ada" : "bob";

		snprintf(lines[i], sizeof lines[i],
			 "{\"custom_id\":\"%s\",\"task\":\"%s\",\"tenant\":\"%s\"}", ids[i], ids[i],
			 tenant);
		loaded[i] = (struct store_line){(int64_t)i + 1, text_of(ids[i]), text_of(tenant),
						text_of("00000000000000ab00"), text_of(lines[i])};
	}
	DO(&test.loaded, load_begin, text_of("batch"), false);
	load = test.loaded.told.load;
	DO(&test.loaded, load_add, &load, loaded, (size_t)6);
	DO(&test.loaded, load_end, &load, text_of("digest"));
	test.batch = test.options.batch = load.batch;
	test.dispatcher = dispatcher_new(&test.options);
}

static void test_tenants_take_turns(void **state)
{
	(void)state;
	test.options.max_jobs = 1;
	begin_with_two();
	await_end();
	assert_string_equal(fake_engine.tasks, "axbycd");
	assert_jobs(6, 0, 0);
}

static struct fake_answer has_no_key(const char *task)
{
	return (struct fake_answer){.error = *task < 'x' ? RLMD_ERROR_AUTH : RLMD_ERROR_NONE};
}

/* A refused key stops its tenant alone. */
static void test_a_refused_key(void **state)
{
	(void)state;
	fake_engine.answer = has_no_key;
	test.options.max_jobs = 1;
	begin_with_two();
	await_end();
	assert_string_equal(fake_engine.tasks, "axy");
	assert_jobs(2, 0, 4);
	assert_int_equal(test.refusals, 1);
	assert_string_equal(test.refused[0], "ada");
	assert_int_equal(job_of("a")->attempts, 0);
}

/* The board has all of it, and lends no job that is over. */
static void test_the_board(void **state)
{
	struct scoreboard_sum sum;

	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin(3);
	await_jobs(2);
	dispatcher_show(test.dispatcher);
	sum = scoreboard_sum(test.board, 0);
	assert_int_equal(sum.at_work, 2);
	assert_int_equal(TAILQ_FIRST(&test.board->jobs)->status.turn, 1);
	assert_false(test.board->draining);
	dispatcher_stop(test.dispatcher);
	await_end();
	dispatcher_show(test.dispatcher);
	assert_true(test.board->draining);
	assert_int_equal(scoreboard_sum(test.board, 0).at_work, 0);
}

/* Freed in the midst of it: jobs are given up, and others find the claims when they are over. */
static void test_freed_at_work(void **state)
{
	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin(3);
	await_jobs(2);
	dispatcher_free(take_pointer(&test.dispatcher));
	assert_int_equal(fake_engine.now, 0);
	assert_int_equal(test.ended, 0);
	assert_int_equal(count(STORE_JOB_RUNNING), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_succeed),
		TEST(test_failures),
		TEST(test_the_last_attempt),
		TEST(test_another_attempt),
		TEST(test_fewer_at_once),
		TEST(test_degraded),
		TEST(test_jobs_that_cannot_start),
		TEST(test_halt),
		TEST(test_halt_by_a_share),
		TEST(test_drain),
		TEST(test_stop),
		TEST(test_a_lost_claim),
		TEST(test_suspects),
		TEST(test_a_busy_provider),
		TEST(test_too_little_money),
		TEST(test_tenants_take_turns),
		TEST(test_a_refused_key),
		TEST(test_the_board),
		TEST(test_freed_at_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
