/*
 * A host that forks while jobs and sessions are at work: the child frees what it has inherited, and
 * the parent goes on as if nothing had been. With real workers and real HTTP.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rlmd/context.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <rlmd/repl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "child.h"
#include "library/left.h"
#include "llm/server.h"

enum { JOBS = 3, ROUNDS = 6 };

struct stage {
	struct rlmd_engine *engine;
	struct server *server;
	struct rlmd_provider *provider;
	struct rlmd_job *jobs[JOBS];
	struct rlmd_repl *repl;
	size_t asked, ready,
		done; /* requests that came; sessions that are ready, blocks that ended */
	bool held;    /* answers to the first questions wait */
};

/* The first turn of each job asks the model out of its block, the second one ends it. */
static char *respond(void *owner, const char *request)
{
	struct stage *stage = owner;

	stage->asked++;
	if (strstr(request, "\"sub-model\""))
		return xstrdup("{\"choices\":[{\"message\":{\"content\":\"said\"},"
			       "\"finish_reason\":\"stop\"}],"
			       "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}");
	if (strstr(request, "block-has-run"))
		return xstrdup("{\"choices\":[{\"message\":{\"content\":\"FINAL(done)\"},"
			       "\"finish_reason\":\"stop\"}],"
			       "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}");
	return xstrdup("{\"choices\":[{\"message\":{\"content\":"
		       "\"```python\\nprint('block-has-' + 'run', llm_query('q'))\\n```\"},"
		       "\"finish_reason\":\"stop\"}],"
		       "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}");
}

static void on_ready(void *owner, struct rlmd_repl *repl)
{
	struct stage *stage = owner;

	(void)repl;
	stage->ready++;
}

static void on_done(void *owner, struct rlmd_repl *repl, const struct rlmd_repl_block *block)
{
	struct stage *stage = owner;

	(void)repl;
	(void)block;
	stage->done++;
}

static void start(struct stage *stage)
{
	struct rlmd_provider_options options = {
		.size = sizeof options, .kind = "openai", .key = "the-key"};
	struct rlmd_repl_hooks hooks = {
		.size = sizeof hooks, .ready = on_ready, .done = on_done, .owner = stage};
	const struct rlmd_job_options calls = {.size = sizeof calls, .model = "sub-model"};
	struct rlmd_repl_options session = {
		.size = sizeof session, .hooks = &hooks, .calls = &calls};
	struct rlmd_job_options job = {.size = sizeof job,
				       .task = rlmd_text_of("the task"),
				       .model = "root-model",
				       .subcall_model = "sub-model"};
	struct rlmd_error err = {0};

	*stage = (struct stage){.engine = rlmd_engine_new(NULL, NULL)};
	stage->server = server_new(rlmd_engine_base(stage->engine));
	server_respond(stage->server, respond, stage);
	options.base_url = stage->server->url;
	stage->provider = rlmd_provider_new(&options, NULL);
	assert_true(rlmd_engine_add_provider(stage->engine, NULL, stage->provider, NULL));
	stage->repl = rlmd_repl_start(stage->engine, NULL, &session, &err);
	if (!stage->repl)
		fail_msg("%s", err.text);
	for (int i = 0; i < JOBS; i++) {
		stage->jobs[i] = rlmd_job_start(stage->engine, &job, &err);
		if (!stage->jobs[i])
			fail_msg("%s", err.text);
	}
}

static void turn_until(struct stage *stage, const size_t *count, size_t wanted)
{
	run_until_count(rlmd_engine_base(stage->engine), count, wanted);
}

/* The child does `step` and ends; in whatever way, it ends by itself. */
static void fork_and(struct stage *stage, void (*step)(struct stage *))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		alarm(60);
		step(stage);
		child_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* All that was begun comes to its end, as it should. */
static void finish(struct stage *stage)
{
	struct rlmd_error err = {0};

	turn_until(stage, &stage->ready, 1);
	assert_true(rlmd_repl_execute(stage->repl, rlmd_text_of("print(6 * 7)"), 0, &err));
	turn_until(stage, &stage->done, 1);
	if (!rlmd_engine_wait(stage->engine, NULL, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < JOBS; i++) {
		const struct rlmd_result *result = rlmd_job_result(stage->jobs[i]);

		if (!rlmd_result_success(result))
			fail_msg("%s", rlmd_result_error(result)->text);
		assert_memory_equal(rlmd_result_output(result).bytes, "done", 4);
	}
	server_free(stage->server);
	rlmd_engine_free(stage->engine);
	rlmd_provider_unref(stage->provider);
}

static void free_session(struct stage *stage)
{
	rlmd_repl_free(stage->repl);
}

static void free_jobs(struct stage *stage)
{
	for (int i = 0; i < JOBS; i++)
		rlmd_job_free(stage->jobs[i]);
}

static void free_engine(struct stage *stage)
{
	rlmd_engine_free(stage->engine);
}

static void check_refused(const struct rlmd_error *err)
{
	char whose[64];

	snprintf(whose, sizeof whose, "that of process %d", (int)getppid());
	if (err->kind != RLMD_ERROR_USAGE || !strstr(err->text, whose)) {
		fprintf(stderr, "refused with: %s\n", err->text);
		child_exit(1);
	}
}

/* In a child nothing else is done with what it inherited; and an engine of its own works. */
static void use(struct stage *stage)
{
	struct rlmd_job_options job = {.size = sizeof job, .task = rlmd_text_of("the task")};
	struct rlmd_engine *own = rlmd_engine_new(NULL, NULL);
	struct rlmd_error err = {0};

	if (rlmd_job_start(stage->engine, &job, &err))
		child_exit(2);
	check_refused(&err);
	if (rlmd_engine_wait(stage->engine, NULL, &err))
		child_exit(3);
	check_refused(&err);
	if (rlmd_repl_execute(stage->repl, rlmd_text_of("1"), 0, &err))
		child_exit(4);
	check_refused(&err);
	if (rlmd_repl_start(stage->engine, NULL, NULL, &err))
		child_exit(5);
	check_refused(&err);
	if (rlmd_engine_sandbox(stage->engine, NULL, &err))
		child_exit(6);
	check_refused(&err);
	if (!rlmd_engine_sandbox(own, NULL, &err)) {
		fprintf(stderr, "an engine of its own: %s\n", err.text);
		child_exit(7);
	}
	rlmd_engine_free(own);
}

/* At several moments, from the first start of a worker to answers that are on their way. */
static void fork_in_between(void (*step)(struct stage *))
{
	for (size_t round = 0; round < ROUNDS; round++) {
		size_t descriptors = descriptors_open();
		struct stage stage;

		start(&stage);
		if (round)
			turn_until(&stage, &stage.asked, round);
		if (round >= ROUNDS / 2)
			turn_until(&stage, &stage.ready, 1);
		fork_and(&stage, step);
		finish(&stage);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(descriptors_open(), descriptors);
	}
}

static void test_a_child_frees_a_session(void **state)
{
	(void)state;
	fork_in_between(free_session);
}

static void test_a_child_frees_jobs(void **state)
{
	(void)state;
	fork_in_between(free_jobs);
}

static void test_a_child_frees_an_engine(void **state)
{
	(void)state;
	fork_in_between(free_engine);
}

static void test_a_child_uses_it(void **state)
{
	(void)state;
	fork_in_between(use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_child_frees_a_session),
		cmocka_unit_test(test_a_child_frees_jobs),
		cmocka_unit_test(test_a_child_frees_an_engine),
		cmocka_unit_test(test_a_child_uses_it),
	};

	signal(SIGPIPE, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
