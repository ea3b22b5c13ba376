/*
 * Several engines in one process, each in a thread of its own, with real workers; jobs that are
 * freed in any order at any moment; sandboxes by their options; and who may not wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "library/left.h"
#include "llm/server.h"

enum { ENGINES = 2, JOBS = 6, ROUNDS = 3, HOURS_MS = 3 * 3600 * 1000 };

/* An engine with a provider of the host's, and what its jobs have come to. */
struct hosted {
	int number;
	struct rlmd_engine *engine;     /* owned */
	struct rlmd_provider *provider; /* owned */
	struct rlmd_job *jobs[JOBS];    /* lent */
	size_t asked, ends, waits;
	char complaint[200]; /* empty: none. Only the main thread may fail a test */
};

/* The model multiplies in Python, and then answers with what it got. */
static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	struct hosted *hosted = owner;
	int number = atoi(request->model);
	const struct rlmd_text last = request->messages[request->message_count - 1].text;
	char words[100], printed[40];

	hosted->asked++;
	snprintf(printed, sizeof printed, "product=%d", 1009 * number);
	if (memmem(last.bytes, last.size, printed, strlen(printed)))
		snprintf(words, sizeof words, "FINAL_VAR(product)");
	else
		snprintf(words, sizeof words,
			 "```python\nproduct = 1009 * %d\nprint(f'{product=}')\n```", number);
	rlmd_provider_answer(hosted->provider, request->id,
			     &(struct rlmd_model_answer){.size = sizeof(struct rlmd_model_answer),
							 .text = rlmd_text_of(words),
							 .input_tokens = 10,
							 .output_tokens = 10});
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct hosted *hosted = owner;

	(void)job;
	(void)result;
	hosted->ends++;
}

static void open_hosted(struct hosted *hosted, int number)
{
	struct rlmd_provider_options options = {
		.size = sizeof options, .name = "host", .ask = on_ask, .owner = hosted};

	*hosted = (struct hosted){.number = number};
	hosted->engine = rlmd_engine_new(NULL, NULL);
	hosted->provider = rlmd_provider_new(&options, NULL);
	rlmd_engine_add_provider(hosted->engine, NULL, hosted->provider, NULL);
}

static void close_hosted(struct hosted *hosted)
{
	rlmd_engine_free(hosted->engine);
	rlmd_provider_unref(hosted->provider);
}

static struct rlmd_job *start(struct hosted *hosted, int number, const struct rlmd_hooks *hooks)
{
	struct rlmd_limits limits = {.size = sizeof limits, .time_ms = HOURS_MS};
	struct rlmd_job_options options = {.size = sizeof options,
					   .task = rlmd_text_of("Multiply."),
					   .limits = &limits,
					   .hooks = hooks,
					   .block_timeout_ms = HOURS_MS / 10};
	struct rlmd_error err = {0};
	struct rlmd_job *job;
	char model[16];

	snprintf(model, sizeof model, "%d", number);
	options.model = model;
	job = rlmd_job_start(hosted->engine, &options, &err);
	if (!job)
		snprintf(hosted->complaint, sizeof hosted->complaint, "start: %.150s", err.text);
	return job;
}

static void check(struct hosted *hosted, int index, int number)
{
	const struct rlmd_result *result = rlmd_job_result(hosted->jobs[index]);
	struct rlmd_text output = rlmd_result_output(result);
	char wanted[40];

	snprintf(wanted, sizeof wanted, "%d", 1009 * number);
	if (!rlmd_result_success(result))
		snprintf(hosted->complaint, sizeof hosted->complaint, "job %d: %.150s", number,
			 result ? rlmd_result_error(result)->text : "no result");
	else if (output.size != strlen(wanted) || memcmp(output.bytes, wanted, output.size) != 0)
		snprintf(hosted->complaint, sizeof hosted->complaint, "job %d: %.*s", number,
			 (int)(output.size < 100 ? output.size : 100), output.bytes);
}

static void *live(void *owner)
{
	struct hosted *hosted = owner;
	const struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = hosted};
	struct rlmd_error err = {0};

	for (int round = 0; round < ROUNDS && !*hosted->complaint; round++) {
		int first = 100 * hosted->number + 10 * round;

		for (int i = 0; i < JOBS; i++)
			hosted->jobs[i] = start(hosted, first + i, &hooks);
		if (!rlmd_engine_wait(hosted->engine, NULL, &err))
			snprintf(hosted->complaint, sizeof hosted->complaint, "wait: %.150s",
				 err.text);
		for (int i = 0; i < JOBS && !*hosted->complaint; i++)
			check(hosted, i, first + i);
		for (int i = 0; i < JOBS; i++)
			rlmd_job_free(hosted->jobs[(5 * i + round) % JOBS]);
	}
	return NULL;
}

/* Engines of their own are used, opened and closed by threads of their own. */
static void *open_and_live(void *owner)
{
	struct hosted *hosted = owner;

	open_hosted(hosted, hosted->number);
	live(hosted);
	close_hosted(hosted);
	return NULL;
}

static void test_threads(void **state)
{
	size_t descriptors = descriptors_open();
	struct hosted hosted[ENGINES];
	pthread_t threads[ENGINES];

	(void)state;
	for (int i = 0; i < ENGINES; i++) {
		hosted[i].number = i;
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_live, &hosted[i]), 0);
	}
	for (int i = 0; i < ENGINES; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < ENGINES; i++) {
		assert_string_equal(hosted[i].complaint, "");
		assert_int_equal(hosted[i].ends, ROUNDS * JOBS);
		assert_int_equal(hosted[i].asked, 2 * ROUNDS * JOBS);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(descriptors_open(), descriptors);
}

/* One is closed while the other is at work. */
static void test_beside_each_other(void **state)
{
	size_t descriptors = descriptors_open();
	struct hosted hosted[ENGINES];

	(void)state;
	for (int i = 0; i < ENGINES; i++) {
		open_hosted(&hosted[i], i);
		for (int k = 0; k < JOBS; k++)
			hosted[i].jobs[k] = start(&hosted[i], 10 * i + k, NULL);
	}
	assert_true(rlmd_engine_wait(hosted[0].engine, hosted[0].jobs[0], NULL));
	close_hosted(&hosted[0]);
	assert_true(rlmd_engine_wait(hosted[1].engine, NULL, NULL));
	for (int k = 0; k < JOBS; k++)
		check(&hosted[1], k, 10 + k);
	assert_string_equal(hosted[1].complaint, "");
	close_hosted(&hosted[1]);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(descriptors_open(), descriptors);
}

static bool some_run(const struct hosted *hosted)
{
	for (int i = 0; i < JOBS; i++)
		if (!rlmd_job_result(hosted->jobs[i]))
			return true;
	return false;
}

/* After any number of the loop's turns, by themselves or with the engine: no worker stays. */
static void test_any_order(void **state)
{
	size_t descriptors = descriptors_open(), children;
	struct hosted hosted;

	(void)state;
	open_hosted(&hosted, 0);
	assert_non_null(rlmd_engine_sandbox(hosted.engine, NULL, NULL));
	children = children_alive();
	for (int turns = 0; turns < 24; turns++) {
		for (int i = 0; i < JOBS; i++)
			assert_non_null(hosted.jobs[i] = start(&hosted, i, NULL));
		for (int i = 0; i < turns && some_run(&hosted); i++)
			event_base_loop(rlmd_engine_base(hosted.engine), EVLOOP_ONCE);
		for (int i = 0; i < JOBS - turns % 2; i++)
			rlmd_job_free(hosted.jobs[(5 * i + turns) % JOBS]);
		if (turns % 2) {
			struct rlmd_job *last = hosted.jobs[(5 * (JOBS - 1) + turns) % JOBS];

			assert_true(rlmd_engine_wait(hosted.engine, last, NULL));
			assert_true(rlmd_result_success(rlmd_job_result(last)));
			rlmd_job_free(last);
		}
	}
	/* A process that was killed is collected by the loop. */
	while (children_alive() > children)
		event_base_loop(rlmd_engine_base(hosted.engine), EVLOOP_NONBLOCK);
	start(&hosted, 1, NULL);
	close_hosted(&hosted);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(descriptors_open(), descriptors);
}

static void on_ready(void *owner)
{
	++*(size_t *)owner;
}

/* They load beside each other, and are told of once. */
static void begin_both(struct rlmd_engine *engine, const struct rlmd_sandbox_options *one,
		       const struct rlmd_sandbox_options *other)
{
	struct rlmd_sandbox_options odd = {.size = sizeof odd, .python = "/nowhere/python3"};
	struct rlmd_error err;
	size_t ready = 0;

	for (int twice = 0; twice < 2; twice++) {
		assert_true(rlmd_engine_begin_sandbox(engine, one, on_ready, &ready, NULL));
		assert_true(rlmd_engine_begin_sandbox(engine, other, on_ready, &ready, NULL));
		assert_int_equal(ready, 0);
	}
	while (ready < 2)
		event_base_loop(rlmd_engine_base(engine), EVLOOP_ONCE);
	assert_int_equal(ready, 2);
	assert_false(rlmd_engine_begin_sandbox(engine, &odd, on_ready, &ready, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_false(rlmd_engine_begin_sandbox(NULL, one, NULL, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

/* The same one for the same options, however they are written, and else another; begun before or
 * not. What nobody waits for goes with the engine. */
static void test_sandboxes(void **state)
{
	static const char *const modules[] = {"json", NULL}, *const none[] = {NULL};
	const struct rlmd_sandbox_options usual = {.size = sizeof usual,
						   .python = "python3",
						   .preload = none},
					  preloaded = {.size = sizeof usual, .preload = modules},
					  smaller = {.size = sizeof usual,
						     .worker_memory = (size_t)256 << 20},
					  unused = {.size = sizeof usual,
						    .worker_memory = (size_t)128 << 20};
	struct rlmd_engine *engine = rlmd_engine_new(NULL, NULL);
	struct rlmd_sandbox *first = rlmd_engine_sandbox(engine, NULL, NULL), *second, *third;
	size_t children = children_alive();

	(void)state;
	assert_non_null(first);
	assert_ptr_equal(rlmd_engine_sandbox(engine, &usual, NULL), first);
	assert_int_equal(children_alive(), children);
	begin_both(engine, &preloaded, &smaller);
	second = rlmd_engine_sandbox(engine, &preloaded, NULL);
	assert_non_null(second);
	assert_ptr_not_equal(second, first);
	assert_true(children_alive() > children);
	third = rlmd_engine_sandbox(engine, &smaller, NULL);
	assert_non_null(third);
	assert_ptr_not_equal(third, first);
	assert_ptr_not_equal(third, second);
	assert_ptr_equal(rlmd_engine_sandbox(engine, &preloaded, NULL), second);
	assert_ptr_equal(rlmd_engine_sandbox(engine, &smaller, NULL), third);
	assert_true(rlmd_engine_begin_sandbox(engine, &unused, NULL, NULL, NULL));
	rlmd_engine_free(engine);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* While there is something to wait for, it is refused; what has ended needs no waiting. */
static void wait_inside(struct hosted *hosted, const struct rlmd_job *job)
{
	struct rlmd_error err = {0};

	if (rlmd_job_result(job)) {
		assert_true(rlmd_engine_wait(hosted->engine, job, NULL));
		return;
	}
	for (int i = 0; i < 2; i++) {
		assert_false(rlmd_engine_wait(hosted->engine, i ? job : NULL, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, "callback"));
	}
}

static void on_code_wait(void *owner, struct rlmd_job *job, const struct rlmd_code *code)
{
	struct hosted *hosted = owner;

	(void)code;
	hosted->waits++;
	wait_inside(hosted, job);
}

static void on_end_wait(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	(void)result;
	wait_inside(owner, job);
	on_end(owner, job, result);
}

/* Neither where rlmd_engine_wait() runs the loop nor where its owner does. */
static void test_wait_inside(void **state)
{
	struct hosted hosted;
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks, .code = on_code_wait, .end = on_end_wait, .owner = &hosted};

	(void)state;
	open_hosted(&hosted, 0);
	hosted.jobs[0] = start(&hosted, 1, &hooks);
	assert_true(rlmd_engine_wait(hosted.engine, NULL, NULL));
	check(&hosted, 0, 1);
	hosted.jobs[0] = start(&hosted, 2, &hooks);
	while (hosted.ends < 2)
		assert_int_equal(event_base_loop(rlmd_engine_base(hosted.engine), EVLOOP_ONCE), 0);
	check(&hosted, 0, 2);
	assert_string_equal(hosted.complaint, "");
	assert_true(hosted.waits >= 2);
	close_hosted(&hosted);
}

/* --- words as they come ------------------------------------------------------------- */

#define WORDS(text) "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define END         "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

struct heard {
	char words[200];
	size_t deltas;
	bool iterated, late; /* late: words after the turn was told whole */
};

static void on_delta(void *owner, struct rlmd_job *job, struct rlmd_text words)
{
	struct heard *heard = owner;
	size_t used = strlen(heard->words);

	assert_null(rlmd_job_result(job));
	heard->late |= heard->iterated;
	heard->deltas += words.size > 0;
	snprintf(heard->words + used, sizeof heard->words - used, "%.*s", (int)words.size,
		 words.bytes);
}

static void on_iteration(void *owner, struct rlmd_job *job, const struct rlmd_iteration *iteration)
{
	struct heard *heard = owner;

	(void)job;
	heard->iterated = true;
	assert_int_equal(iteration->response.size, strlen(heard->words));
	assert_memory_equal(iteration->response.bytes, heard->words, iteration->response.size);
}

static void test_delta(void **state)
{
	struct rlmd_engine *engine = rlmd_engine_new(NULL, NULL);
	struct server *server = server_new(rlmd_engine_base(engine));
	struct rlmd_provider_options provider_options = {.size = sizeof provider_options,
							 .kind = "openai",
							 .base_url = server->url,
							 .key = "the-key"};
	struct rlmd_provider *provider = rlmd_provider_new(&provider_options, NULL);
	struct heard heard = {0};
	const struct rlmd_hooks hooks = {.size = sizeof hooks,
					 .delta = on_delta,
					 .iteration = on_iteration,
					 .owner = &heard};
	struct rlmd_job_options options = {.size = sizeof options,
					   .task = rlmd_text_of("Speak."),
					   .model = "m",
					   .hooks = &hooks};
	const struct rlmd_result *result;
	struct rlmd_job *job;

	(void)state;
	server_sse(server, WORDS("FINAL(") WORDS("by ") WORDS("and ") WORDS("by)") END, 16);
	assert_true(rlmd_engine_add_provider(engine, NULL, provider, NULL));
	job = rlmd_job_start(engine, &options, NULL);
	assert_true(rlmd_engine_wait(engine, job, NULL));
	result = rlmd_job_result(job);
	assert_true(rlmd_result_success(result));
	assert_int_equal(rlmd_result_output(result).size, strlen("by and by"));
	assert_string_equal(heard.words, "FINAL(by and by)");
	assert_true(heard.deltas > 1);
	assert_true(heard.iterated && !heard.late);
	server_free(server);
	rlmd_engine_free(engine);
	rlmd_provider_unref(provider);
}

/* A sub-run's code calls a model, and tells what it knows of the time. */
static void on_ask_below(void *owner, const struct rlmd_model_request *request)
{
	static const char root[] = "```python\nFINAL(rlm_query('How much time?'))\n```",
			  below[] = "```python\nFINAL(llm_query('So?') + str(budget()['time_ms']))"
				    "\n```";
	struct hosted *hosted = owner;
	const char *words = request->kind == RLMD_MODEL_SUBCALL ? "It is " : below;

	if (request->kind == RLMD_MODEL_TURN && !request->depth)
		words = root;
	rlmd_provider_answer(hosted->provider, request->id,
			     &(struct rlmd_model_answer){.size = sizeof(struct rlmd_model_answer),
							 .text = rlmd_text_of(words),
							 .input_tokens = 10,
							 .output_tokens = 10});
}

/* The time has no limit, nor has that of its sub-runs, and code is told so. */
static void test_no_limit_on_time(void **state)
{
	struct hosted hosted = {0};
	struct rlmd_provider_options provider = {
		.size = sizeof provider, .name = "host", .ask = on_ask_below, .owner = &hosted};
	const struct rlmd_limits limits = {.size = sizeof limits, .time_ms = RLMD_UNLIMITED};
	const struct rlmd_job_options options = {.size = sizeof options,
						 .task = rlmd_text_of("How much time is left?"),
						 .model = "m",
						 .limits = &limits};
	struct rlmd_error err = {0};
	struct rlmd_job *job;
	struct rlmd_text output;

	(void)state;
	hosted.engine = rlmd_engine_new(NULL, NULL);
	hosted.provider = rlmd_provider_new(&provider, NULL);
	rlmd_engine_add_provider(hosted.engine, NULL, hosted.provider, NULL);
	job = rlmd_job_start(hosted.engine, &options, &err);
	if (!job)
		fail_msg("%s", err.text);
	assert_true(rlmd_engine_wait(hosted.engine, job, &err));
	output = rlmd_result_output(rlmd_job_result(job));
	if (output.size != strlen("It is None") || memcmp(output.bytes, "It is None", output.size))
		fail_msg("%.*s", (int)output.size, output.bytes);
	rlmd_job_free(job);
	close_hosted(&hosted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),          cmocka_unit_test(test_beside_each_other),
		cmocka_unit_test(test_any_order),        cmocka_unit_test(test_sandboxes),
		cmocka_unit_test(test_wait_inside),      cmocka_unit_test(test_delta),
		cmocka_unit_test(test_no_limit_on_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
