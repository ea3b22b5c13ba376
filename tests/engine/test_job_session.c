/*
 * Sessions whose code asks models, through a job's budget: with real workers, and a provider that
 * is the host's. And what a host hears of a job: what is about to begin, what runs, what is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <rlmd/engine.h>
#include <rlmd/function.h>
#include <rlmd/job.h>
#include <rlmd/price.h>
#include <rlmd/provider.h>
#include <rlmd/repl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TIME_MS = 100000,
	ASKED_MAX = 8,
	INPUT = 1000,
	OUTPUT = 10,
	RATE = 1000000, /* pico-dollars a token */
};

struct host {
	struct rlmd_engine *engine;     /* owned */
	struct rlmd_provider *provider; /* owned */
	struct rlmd_repl *repl;         /* owned */
	bool told;                      /* a hook of the session was called */
	bool holds;                     /* questions are not answered */
	uint64_t held;                  /* the last that was not */
	size_t asked;                   /* of the model */
	size_t printed;                 /* bytes */
	enum rlmd_model_kind kinds[ASKED_MAX];
	char text[4000]; /* printed, or the error */
	char before[1000];
	bool silent;             /* it says not why it refuses */
	const char *refused;     /* a part of prompts that the host refuses; NULL: none */
	bool frees;              /* the session, when a model is to be asked */
	struct rlmd_job *ending; /* to be cancelled when a model is to be asked, if `cancels` */
	bool cancels;
	int ended;
	char running[1000];
	struct rlmd_error error;
};

/* --- the host ------------------------------------------------------------------------- */

static void answer(struct host *host, uint64_t request, const char *text)
{
	const struct rlmd_model_answer reply = {.size = sizeof reply,
						.text = rlmd_text_of(text),
						.input_tokens = INPUT,
						.output_tokens = OUTPUT};

	rlmd_provider_answer(host->provider, request, &reply);
}

/* A run's first turn is answered by code, all else by a word. */
static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	struct host *host = owner;

	host->kinds[host->asked++ % ASKED_MAX] = request->kind;
	host->held = request->id;
	if (!host->holds)
		answer(host, request->id,
		       request->kind == RLMD_MODEL_TURN ? "```python\nFINAL(str(len(context)))\n```"
							: "blue");
}

static void on_ready(void *owner, struct rlmd_repl *repl)
{
	(void)repl;
	((struct host *)owner)->told = true;
}

static void on_done(void *owner, struct rlmd_repl *repl, const struct rlmd_repl_block *block)
{
	struct host *host = owner;

	(void)repl;
	snprintf(host->text, sizeof host->text, "%.*s%.*s", (int)block->standard_output.size,
		 block->standard_output.bytes, (int)block->error.size, block->error.bytes);
	host->told = true;
}

static void on_printed(void *owner, struct rlmd_repl *repl, bool is_error, struct rlmd_text text)
{
	(void)repl;
	(void)is_error;
	((struct host *)owner)->printed += text.size;
}

static void on_gone(void *owner, struct rlmd_repl *repl, const struct rlmd_error *error)
{
	struct host *host = owner;

	(void)repl;
	host->error = *error;
	host->told = true;
}

static bool contains(struct rlmd_text text, const char *part)
{
	return memmem(text.bytes, text.size, part, strlen(part)) != NULL;
}

static bool before(void *owner, struct rlmd_job *job, const struct rlmd_activity *activity,
		   struct rlmd_error *why)
{
	struct host *host = owner;
	size_t used = strlen(host->before);

	snprintf(host->before + used, sizeof host->before - used, "%s%d@%d ",
		 activity->kind == RLMD_SUBCALL_RUN ? "run" : "call", (int)activity->call,
		 (int)activity->depth);
	if (host->frees) {
		rlmd_repl_free(host->repl);
		host->repl = NULL;
		host->told = true;
	}
	if (host->cancels)
		rlmd_job_cancel(job);
	if (!host->refused || !contains(activity->prompt, host->refused))
		return true;
	if (!host->silent)
		snprintf(why->text, sizeof why->text, "not this one");
	return false;
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	(void)job;
	(void)result;
	((struct host *)owner)->ended++;
}

static void wait_for(struct host *host)
{
	while (!host->told)
		event_base_loop(rlmd_engine_base(host->engine), EVLOOP_ONCE);
}

static const struct rlmd_price price = {.size = sizeof price, .input = RATE, .output = RATE};

static int open_engine(void **state)
{
	struct host *host = calloc(1, sizeof *host);
	struct rlmd_provider_options options = {.size = sizeof options,
						.name = "mine",
						.model = "any",
						.ask = on_ask,
						.owner = host,
						.price = &price};

	*state = host;
	host->engine = rlmd_engine_new(NULL, NULL);
	host->provider = rlmd_provider_new(&options, NULL);
	return !rlmd_engine_add_provider(host->engine, NULL, host->provider, NULL);
}

static bool open_session(struct host *host, const struct rlmd_limits *limits,
			 struct rlmd_error *err)
{
	const struct rlmd_hooks job_hooks = {
		.size = sizeof job_hooks, .before = before, .end = on_end, .owner = host};
	const struct rlmd_job_options calls = {
		.size = sizeof calls, .limits = limits, .hooks = &job_hooks};
	const struct rlmd_repl_hooks hooks = {.size = sizeof hooks,
					      .ready = on_ready,
					      .done = on_done,
					      .gone = on_gone,
					      .owner = host,
					      .printed = on_printed};
	const struct rlmd_repl_options options = {
		.size = sizeof options, .hooks = &hooks, .calls = &calls};

	host->told = false;
	host->repl = rlmd_repl_start(host->engine, NULL, &options, err);
	if (host->repl)
		wait_for(host);
	return host->repl;
}

static int set_up(void **state)
{
	struct host *host;

	if (open_engine(state))
		return -1;
	host = *state;
	return !open_session(host, NULL, &host->error) || host->error.kind;
}

static int tear_down(void **state)
{
	struct host *host = *state;

	rlmd_repl_free(host->repl);
	rlmd_engine_free(host->engine);
	rlmd_provider_unref(host->provider);
	free(host);
	return 0;
}

static void begin(struct host *host, const char *code)
{
	host->told = false;
	*host->text = '\0';
	assert_true(rlmd_repl_execute(host->repl, rlmd_text_of(code), TIME_MS, NULL));
}

static const char *run(struct host *host, const char *code)
{
	begin(host, code);
	wait_for(host);
	return host->text;
}

static struct rlmd_job_status status(const struct host *host)
{
	struct rlmd_job_status status = RLMD_JOB_STATUS_INIT;

	assert_true(rlmd_job_get_status(rlmd_repl_job(host->repl), &status));
	return status;
}

static struct rlmd_limits left(const struct host *host)
{
	struct rlmd_limits left = RLMD_LIMITS_INIT;

	assert_true(rlmd_job_get_left(rlmd_repl_job(host->repl), &left));
	return left;
}

/* --- tests ----------------------------------------------------------------------------- */

static void test_calls_are_answered_and_charged(void **state)
{
	struct host *host = *state;
	struct rlmd_limits whole = left(host), rest;

	assert_string_equal(run(host, "print(llm_query('Which colour?'))"), "blue\n");
	assert_int_equal(host->printed, strlen("blue\n"));
	assert_int_equal(host->kinds[0], RLMD_MODEL_SUBCALL);
	assert_int_equal(status(host).tokens, INPUT + OUTPUT);
	assert_int_equal(status(host).cost, (INPUT + OUTPUT) * RATE);
	assert_string_equal(run(host, "print(batch_llm_query(['a', 'b', 'c'])[2])"), "blue\n");
	assert_int_equal(host->asked, 4);
	rest = left(host);
	assert_int_equal(whole.calls - rest.calls, 4);
	assert_int_equal(whole.tokens - rest.tokens, 4 * (INPUT + OUTPUT));
	assert_int_equal(whole.cost - rest.cost, INT64_C(4) * (INPUT + OUTPUT) * RATE);
	assert_true(rest.time_ms <= whole.time_ms);
	assert_string_equal(run(host, "print(budget()['tokens'])"), "495960\n");
}

static void test_sub_runs(void **state)
{
	struct host *host = *state;

	assert_string_equal(run(host, "print(rlm_query('How long is it?', context='12345'))"),
			    "5\n");
	assert_int_equal(host->kinds[0], RLMD_MODEL_TURN);
	assert_int_equal(left(host).subruns, 999);
	assert_non_null(strstr(host->before, "run0@1 call0@1"));
}

static void test_a_limit_is_kept(void **state)
{
	struct host *host = *state;
	const struct rlmd_limits limits = {.size = sizeof limits, .calls = 2};

	assert_true(open_session(host, &limits, NULL));
	run(host, "for i in range(3):\n    print(i, llm_query(str(i)))");
	assert_non_null(strstr(host->text, "0 blue\n1 blue\n"));
	assert_null(strstr(host->text, "2 blue"));
	assert_int_equal(host->asked, 2);
	assert_int_equal(left(host).calls, RLMD_NOTHING);
}

/* No more is spent than was allowed, whose price the host has told beforehand. */
static void test_a_limit_on_cost(void **state)
{
	struct host *host = *state;
	const struct rlmd_limits limits = {.size = sizeof limits, .cost = 2500 * (int64_t)RATE};

	assert_true(open_session(host, &limits, NULL));
	run(host, "for i in range(9): llm_query('x' * 2000)");
	assert_true(host->asked >= 1 && host->asked <= 2);
	assert_true(status(host).cost <= limits.cost);
}

static void test_the_host_refuses(void **state)
{
	struct host *host = *state;

	host->refused = "secret";
	run(host, "print(llm_query('hello'))\nllm_query('a secret')");
	assert_non_null(strstr(host->text, "blue\n"));
	assert_non_null(strstr(host->text, "not this one"));
	assert_int_equal(host->asked, 1);
	run(host, "rlm_query('another secret')");
	assert_non_null(strstr(host->text, "not this one"));
	assert_int_equal(host->asked, 1);
	assert_int_equal(left(host).subruns, 1000);
	host->silent = true;
	run(host, "llm_query('a secret')");
	assert_non_null(strstr(host->text, "the host refuses it"));
	assert_string_equal(run(host, "print(llm_query('hello'))"), "blue\n");
}

static void note_running(void *owner, const struct rlmd_activity *activity)
{
	struct host *host = owner;
	size_t used = strlen(host->running);

	snprintf(host->running + used, sizeof host->running - used, "%s %s %d %.*s\n",
		 activity->kind == RLMD_SUBCALL_RUN ? "run" : "call",
		 activity->waits ? "waits" : "runs", (int)activity->depth,
		 activity->prompt.size > 20 ? 20 : (int)activity->prompt.size,
		 activity->prompt.bytes);
}

static void test_what_runs_is_listed(void **state)
{
	struct host *host = *state;

	host->holds = true;
	begin(host, "import concurrent.futures as f\n"
		    "with f.ThreadPoolExecutor(5) as pool:\n"
		    "    list(pool.map(llm_query, ['a question'] * 5))");
	while (strlen(host->running) < 5 * strlen("call runs 0 a question\n")) {
		assert_true(rlmd_engine_turn(host->engine, NULL));
		*host->running = '\0';
		rlmd_job_each_activity(rlmd_repl_job(host->repl), note_running, host);
	}
	assert_string_equal(host->running, "call runs 0 a question\ncall runs 0 a question\n"
					   "call runs 0 a question\ncall runs 0 a question\n"
					   "call waits 0 a question\n");
	assert_int_equal(status(host).calls_in_flight, 4);
	rlmd_repl_free(host->repl);
	host->repl = NULL;
}

static void test_a_sub_run_is_listed(void **state)
{
	struct host *host = *state;

	host->holds = true;
	begin(host, "rlm_query('How long is it?', context='12345')");
	while (!host->asked)
		assert_true(rlmd_engine_turn(host->engine, NULL));
	rlmd_job_each_activity(rlmd_repl_job(host->repl), note_running, host);
	assert_non_null(strstr(host->running, "run runs 1 How long is it?\ncall runs 1 "));
	assert_int_equal(status(host).depth, 1);
	host->holds = false;
	answer(host, host->held, "```python\nFINAL(str(len(context)))\n```");
	wait_for(host);
	*host->running = '\0';
	rlmd_job_each_activity(rlmd_repl_job(host->repl), note_running, host);
	assert_string_equal(host->running, "");
}

static void test_freed_while_a_model_is_to_be_asked(void **state)
{
	struct host *host = *state;

	host->frees = true;
	run(host, "import threading\n"
		  "def say():\n"
		  "    while True: print('more', flush=True)\n"
		  "threading.Thread(target=say, daemon=True).start()\n"
		  "llm_query('x')");
	assert_null(host->repl);
	for (int i = 0; i < 3; i++)
		event_base_loop(rlmd_engine_base(host->engine), EVLOOP_NONBLOCK);
}

static void test_cancelled(void **state)
{
	struct host *host = *state;

	host->cancels = host->holds = true;
	run(host, "print(llm_query('x'))");
	assert_non_null(strstr(host->text, "cancelled"));
	assert_int_equal(host->ended, 1);
	run(host, "print(llm_query('y'))");
	assert_non_null(strstr(host->text, "no model may be asked any more"));
	assert_string_equal(run(host, "print(6 * 7)"), "42\n");
}

static void test_a_worker_that_dies_while_it_asks(void **state)
{
	struct host *host = *state;

	host->holds = true;
	begin(host, "import threading, os, time\n"
		    "threading.Thread(target=llm_query, args=['x'], daemon=True).start()\n"
		    "while True: time.sleep(0.01)");
	while (!host->asked)
		assert_true(rlmd_engine_turn(host->engine, NULL));
	rlmd_repl_interrupt(host->repl);
	wait_for(host);
	run(host, "import os; os._exit(1)");
	assert_int_equal(host->error.kind, RLMD_ERROR_WORKER);
	assert_int_equal(status(host).calls_in_flight, 0);
}

static void test_refused_options(void **state)
{
	struct host *host = *state;
	const struct rlmd_price negative = {.size = sizeof negative, .input = -1};
	struct rlmd_job_options calls = {.size = sizeof calls, .task = rlmd_text_of("x")};
	struct rlmd_repl_options options = {.size = sizeof options, .calls = &calls};
	struct rlmd_provider_options provider = {
		.size = sizeof provider, .name = "its", .ask = on_ask, .price = &negative};
	struct rlmd_error err;

	assert_null(rlmd_repl_start(host->engine, NULL, &options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	calls = (struct rlmd_job_options){.size = sizeof calls, .provider = "nobody"};
	assert_null(rlmd_repl_start(host->engine, NULL, &options, &err));
	assert_null(rlmd_provider_new(&provider, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	provider.price = &price;
	provider.costs_nothing = true;
	assert_null(rlmd_provider_new(&provider, &err));
	assert_non_null(strstr(err.text, "costs nothing, and has a price"));
	assert_null(rlmd_repl_job(NULL));
	assert_false(rlmd_job_get_left(NULL, NULL));
	rlmd_job_each_activity(NULL, note_running, NULL);
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define WITHOUT(name) cmocka_unit_test_setup_teardown(name, open_engine, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_calls_are_answered_and_charged),
		TEST(test_sub_runs),
		WITHOUT(test_a_limit_is_kept),
		WITHOUT(test_a_limit_on_cost),
		TEST(test_the_host_refuses),
		TEST(test_what_runs_is_listed),
		TEST(test_a_sub_run_is_listed),
		TEST(test_freed_while_a_model_is_to_be_asked),
		TEST(test_cancelled),
		TEST(test_a_worker_that_dies_while_it_asks),
		WITHOUT(test_refused_options),
	};

	return cmocka_run_group_tests_name("job_session", tests, NULL, NULL);
}
