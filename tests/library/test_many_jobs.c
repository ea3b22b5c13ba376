/*
 * 64 jobs at once of eight providers in one process, with real workers: four providers are real
 * HTTP to servers on loopback, two of them of one kind with two keys at one and the same URL, and
 * four are the host's own. Every job's root is asked of one provider and its sub-call of another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rlmd/budget.h>
#include <rlmd/context.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "library/left.h"
#include "llm/server.h"

enum {
	JOBS = 64,
	SERVED = 4, /* providers that are asked by HTTP: the first ones */
	PROVIDERS = 8,
	REFUSED = 13, /* the job whose root a server refuses */
	BROKEN = 23,  /* the job whose root a host refuses */
	HOURS_MS = 3 * 3600 * 1000,
};

struct provider {
	int number;
	char name[16], key[32];
	struct rlmd_provider *provider; /* owned */
	size_t asked, strange;          /* strange: without its key, or with another one's */
};

struct task {
	struct rlmd_job *job;
	struct rlmd_account *account; /* owned */
	struct provider *root, *below;
	int turns, subcalls, ends, foreign; /* foreign: events that speak of another job */
	size_t events;
	uint64_t held; /* the host's request that waits for all the others; 0: none */
	struct provider *holder;
};

static struct rlmd_engine *engine;
static struct provider providers[PROVIDERS];
static struct task tasks[JOBS];
static size_t held; /* jobs whose host's request waits */
static bool all_held;

static int number_behind(const char *text, const char *word)
{
	const char *place = strstr(text, word);

	return place ? atoi(place + strlen(word)) : -1;
}

/* The reply of the model to job `number`; new. Models are called "root-N" and "sub-N". */
static char *words_for(int number, bool is_sub)
{
	struct task *task = &tasks[number];

	if (is_sub) {
		task->subcalls++;
		return xasprintf("seven times %d is %d", number, 7 * number);
	}
	if (++task->turns == 1)
		return xasprintf("```python\npart = llm_query('job-%d.: what is it? ' + context)\n"
				 "print(part)\n```",
				 number);
	return xstrdup("FINAL_VAR(part)");
}

static int64_t input_of(int number)
{
	return 100 + number;
}

enum { OUTPUT_TOKENS = 7 };

/* A server sees the keys of those who are asked there, each with its own models only. */
static void check_key(struct provider *provider, const char *request)
{
	char line[64];

	snprintf(line, sizeof line, "%s%s\r\n",
		 provider->number == 2 ? "x-api-key: " : "authorization: Bearer ", provider->key);
	provider->strange += !strcasestr(request, line);
	for (int i = 0; i < SERVED; i++)
		if (&providers[i] != provider)
			provider->strange += strstr(request, providers[i].key) != NULL;
}

static char *respond(void *owner, const char *request)
{
	bool is_sub = strstr(request, "\"sub-") != NULL;
	int number = number_behind(request, is_sub ? "\"sub-" : "\"root-");
	struct provider *provider;
	char *words, *body, quoted[256];
	size_t used = 0;

	(void)owner;
	assert_in_range(number, 0, JOBS - 1);
	provider = is_sub ? tasks[number].below : tasks[number].root;
	provider->asked++;
	check_key(provider, request);
	if (number == REFUSED)
		return xstrdup("{\"error\":{\"message\":\"the model is not for sale\","
			       "\"type\":\"invalid_request_error\"}}");
	words = words_for(number, is_sub);
	for (const char *c = words; *c; c++)
		used += (size_t)snprintf(quoted + used, sizeof quoted - used,
					 *c == '\n' ? "\\n" : "%c", *c);
	free(words);
	body = provider->number == 2
		       ? xasprintf("{\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","
				   "\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],"
				   "\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":%d,"
				   "\"output_tokens\":%d}}",
				   quoted, (int)input_of(number), OUTPUT_TOKENS)
		       : xasprintf("{\"choices\":[{\"message\":{\"role\":\"assistant\","
				   "\"content\":\"%s\"},\"finish_reason\":\"stop\"}],"
				   "\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}",
				   quoted, (int)input_of(number), OUTPUT_TOKENS);
	return body;
}

static void answer(struct provider *provider, uint64_t id, int number, bool is_sub)
{
	char *words;

	if (number == BROKEN) {
		rlmd_provider_fail(
			provider->provider, id,
			&(struct rlmd_model_failure){.size = sizeof(struct rlmd_model_failure),
						     .kind = RLMD_ERROR_INPUT,
						     .message = "the host has no such model"});
		return;
	}
	words = words_for(number, is_sub);
	rlmd_provider_answer(provider->provider, id,
			     &(struct rlmd_model_answer){.size = sizeof(struct rlmd_model_answer),
							 .text = rlmd_text_of(words),
							 .input_tokens = input_of(number),
							 .output_tokens = OUTPUT_TOKENS});
	free(words);
}

/* Of each job the host is asked either for the sub-call, or for the turn after it: that waits until
 * all jobs have come so far, each with a worker that lives. */
static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	struct provider *provider = owner;
	bool is_sub = !strncmp(request->model, "sub-", 4);
	int number = number_behind(request->model, "-");
	struct task *task;

	assert_in_range(number, 0, JOBS - 1);
	task = &tasks[number];
	assert_ptr_equal(provider, is_sub ? task->below : task->root);
	provider->asked++;
	if (all_held || number == BROKEN || (!is_sub && !task->turns)) {
		answer(provider, request->id, number, is_sub);
		return;
	}
	assert_int_equal(task->held, 0);
	task->held = request->id;
	task->holder = provider;
	held++;
}

/* "job-N." in a trace is of job N. */
static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text json)
{
	struct task *task = owner;
	char *text = xstrndup(json.bytes, json.size);

	assert_ptr_equal(job, task->job);
	task->events++;
	for (const char *at = text; (at = strstr(at, "job-")); at++)
		task->foreign += atoi(at + 4) != task - tasks;
	free(text);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct task *task = owner;

	assert_ptr_equal(rlmd_job_result(job), result);
	task->ends++;
}

static void add_providers(struct server *const servers[SERVED])
{
	for (int i = 0; i < PROVIDERS; i++) {
		struct provider *provider = &providers[i];
		struct rlmd_provider_options options = {.size = sizeof options};

		*provider = (struct provider){.number = i};
		snprintf(provider->name, sizeof provider->name, "p%d", i);
		snprintf(provider->key, sizeof provider->key, "the-key-of-p%d", i);
		options.name = provider->name;
		if (i < SERVED) {
			options.kind = i == 2 ? "anthropic" : "openai";
			options.base_url = servers[i]->url;
			options.key = provider->key;
		} else {
			options.ask = on_ask;
			options.owner = provider;
		}
		provider->provider = rlmd_provider_new(&options, NULL);
		assert_non_null(provider->provider);
		assert_true(rlmd_engine_add_provider(engine, NULL, provider->provider, NULL));
	}
}

/* Even jobs have their roots at a server and their sub-calls at a host, odd ones the other way. */
static void start(int number)
{
	struct task *task = &tasks[number];
	struct provider *served = &providers[number / 2 % SERVED];
	struct provider *host = &providers[SERVED + number / 8 % (PROVIDERS - SERVED)];
	struct rlmd_limits limits = {.size = sizeof limits, .time_ms = HOURS_MS};
	struct rlmd_hooks hooks = {
		.size = sizeof hooks, .event = on_event, .end = on_end, .owner = task};
	struct rlmd_job_options options = {.size = sizeof options,
					   .limits = &limits,
					   .hooks = &hooks,
					   .block_timeout_ms = HOURS_MS / 10};
	char text[64], model[32], below[32], account[16];
	struct rlmd_context *context;
	struct rlmd_error err = {0};

	*task = (struct task){.root = number % 2 && number != REFUSED ? host : served,
			      .below = number % 2 && number != REFUSED ? served : host};
	snprintf(text, sizeof text, "job-%d. of many", number);
	snprintf(model, sizeof model, "root-%d", number);
	snprintf(below, sizeof below, "%s/sub-%d", task->below->name, number);
	snprintf(account, sizeof account, "tenant %d", number);
	context = rlmd_context_from_text(NULL, rlmd_text_of(text), NULL);
	task->account = rlmd_account_new(account, NULL, NULL, NULL);
	options.task = rlmd_text_of(text);
	options.context = context;
	options.provider = task->root->name;
	options.model = model;
	options.subcall_model = below;
	options.account = task->account;
	task->job = rlmd_job_start(engine, &options, &err);
	if (!task->job)
		fail_msg("job %d: %s", number, err.text);
	rlmd_context_unref(context);
}

static bool fails(int number)
{
	return number == REFUSED || number == BROKEN;
}

static void check(int number)
{
	struct task *task = &tasks[number];
	const struct rlmd_result *result = rlmd_job_result(task->job);
	struct rlmd_usage usage = {.size = sizeof usage};
	struct rlmd_spending spent = {.size = sizeof spent};
	struct rlmd_text output = rlmd_result_output(result);
	char wanted[64];

	assert_int_equal(task->ends, 1);
	assert_int_equal(task->foreign, 0);
	assert_true(task->events > 2);
	assert_true(rlmd_account_save(task->account, &spent, NULL));
	assert_true(rlmd_result_usage(result, &usage));
	assert_int_equal(spent.tokens, usage.tokens);
	if (fails(number)) {
		assert_false(rlmd_result_success(result));
		assert_non_null(strstr(rlmd_result_error(result)->text,
				       number == REFUSED ? "not for sale" : "no such model"));
		return;
	}
	snprintf(wanted, sizeof wanted, "seven times %d is %d", number, 7 * number);
	if (!rlmd_result_success(result))
		fail_msg("job %d: %s", number, rlmd_result_error(result)->text);
	assert_int_equal(output.size, strlen(wanted));
	assert_memory_equal(output.bytes, wanted, output.size);
	assert_int_equal(usage.llm_calls, 3);
	assert_int_equal(task->subcalls, 1);
	assert_int_equal(task->turns, 2);
	assert_int_equal(usage.iterations, 2);
	assert_int_equal(usage.input_tokens, 3 * input_of(number));
	assert_int_equal(usage.output_tokens, 3 * OUTPUT_TOKENS);
}

static void release(void)
{
	all_held = true;
	for (int i = 0; i < JOBS; i++)
		if (tasks[i].held)
			answer(tasks[i].holder, tasks[i].held, i,
			       tasks[i].holder == tasks[i].below);
}

/* So many compute at once as there are processors; those that wait for a model do not count. */
static struct rlmd_engine_options engine_options(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return (struct rlmd_engine_options){.size = sizeof(struct rlmd_engine_options),
					    .max_workers = processors > 0 ? (size_t)processors : 1,
					    .max_calls = 2 * JOBS};
}

static void test_many_jobs(void **state)
{
	struct rlmd_engine_options options = engine_options();
	size_t descriptors = descriptors_open();
	struct server *servers[SERVED];
	struct rlmd_error err = {0};

	(void)state;
	engine = rlmd_engine_new(&options, NULL);
	for (int i = 0; i < SERVED; i++) {
		servers[i] = i == 1 ? servers[0] : server_new(rlmd_engine_base(engine));
		server_respond(servers[i], respond, NULL);
	}
	add_providers(servers);
	for (int i = 0; i < JOBS; i++)
		start(i);
	while (held < JOBS - 2 || !tasks[REFUSED].ends || !tasks[BROKEN].ends)
		assert_int_equal(event_base_loop(rlmd_engine_base(engine), EVLOOP_ONCE), 0);
	for (int i = 0; i < JOBS; i++)
		if (tasks[i].ends != fails(i))
			fail_msg("job %d: %.*s", i,
				 (int)rlmd_result_json(rlmd_job_result(tasks[i].job)).size,
				 rlmd_result_json(rlmd_job_result(tasks[i].job)).bytes);
	assert_true(children_alive() >= JOBS - 2);
	release();
	if (!rlmd_engine_wait(engine, NULL, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < JOBS; i++)
		check(i);
	for (int i = 0; i < PROVIDERS; i++) {
		assert_true(providers[i].asked >= JOBS / PROVIDERS);
		assert_int_equal(providers[i].strange, 0);
	}
	for (int i = 0; i < SERVED; i++)
		if (i != 1)
			server_free(servers[i]);
	rlmd_engine_free(engine);
	for (int i = 0; i < JOBS; i++)
		rlmd_account_unref(tasks[i].account);
	for (int i = 0; i < PROVIDERS; i++)
		rlmd_provider_unref(providers[i].provider);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left to wait for */
	assert_int_equal(descriptors_open(), descriptors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_jobs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
