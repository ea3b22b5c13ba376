/* Whose bytes the workers of a tree of runs are given: real descriptors, a fake sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engine/job.h"
#include "fake/model.h"
#include "fake/sandbox.h"
#include "pool/script.h"

enum { CONTEXT_SIZE = 200000 }; /* more than lies on the heap */

json_t *sandbox_report(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return json_object();
}

static void say_answer(int out)
{
	say(out, "{\"type\":\"done\",\"block\":2,\"stdout\":\"\",\"stderr\":\"\",\"error\":null,"
		 "\"missing\":null,\"final\":\"final_direct\",\"answer\":\"the end\"}");
}

/* Of the blocks "share" and "slice" each hands a context on and ends with an answer; so does any
 * other, which hands nothing on. */
static int script(int in, int out)
{
	const char *exec;

	handshake(in, out);
	hear(in); /* the look at the input */
	say_done(out, "");
	exec = hear(in);
	if (strstr(exec, "share"))
		say(out, "{\"type\":\"rlm_query\",\"id\":1,\"tasks\":[\"t\"],"
			 "\"subsets\":[],\"contexts\":[null],\"models\":[null]}");
	else if (strstr(exec, "slice"))
		say(out, "{\"type\":\"rlm_query\",\"id\":1,\"tasks\":[\"t\"],"
			 "\"subsets\":[],\"contexts\":[\"a slice\"],\"models\":[null]}");
	if (strstr(exec, "share") || strstr(exec, "slice"))
		expect(in, "\"type\":\"reply\"");
	say_answer(out);
	hear(in);
	return 0;
}

static const char *handing_on(const struct llm_request *request)
{
	static const char *const blocks[] = {"share", "slice", "share", "share", "end"};
	static char answer[64];

	snprintf(answer, sizeof answer, "```repl\n%s\n```", blocks[request->depth]);
	return answer;
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	(void)job;
	*(bool *)owner = true;
	assert_true(text_equal(result->output, "the end"));
}

static ino_t inode_of(struct memfile *file)
{
	struct stat stat;

	assert_int_equal(fstat(memfile_fd(file, NULL), &stat), 0);
	return stat.st_ino;
}

/* LIB-9: what a run shares is the very memory file that it has itself, and what it hands on is put
 * into one, which is shared in its turn. */
static void test_inodes(void **state)
{
	static const struct rlmd_limits limits = {
		.size = sizeof limits,
		.cost = RLMD_UNLIMITED,
		.tokens = RLMD_UNLIMITED,
		.time_ms = 600000,
		.max_depth = 5,
		.max_iterations = 100,
		.calls = RLMD_UNLIMITED,
		.subruns = RLMD_UNLIMITED,
	};
	struct event_base *base = event_base_new();
	struct rlmd_sandbox *sandbox = fake_sandbox_new(base);
	char *bytes = xcalloc(1, CONTEXT_SIZE);
	struct rlmd_context *context;
	bool over = false;
	const struct rlmd_engine_options options = {
		.size = sizeof options, .base = base, .max_workers = 1};
	const struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = &over};
	struct rlmd_job_options job = {.size = sizeof job,
				       .task = text_of("the task"),
				       .limits = &limits,
				       .block_timeout_ms = 20000,
				       .max_output = 1000,
				       .max_parallel = 1,
				       .grace_ms = 1000};
	struct rlmd_engine *engine;
	ino_t whole, slice;

	(void)state;
	memset(bytes, 'x', CONTEXT_SIZE);
	context = rlmd_context_from_text(NULL, text_from(bytes, CONTEXT_SIZE), NULL);
	whole = inode_of(context_of(context)->inputs[0].file);
	fake_model = handing_on;
	fake_sandbox_script(sandbox, script);
	engine = rlmd_engine_new(&options, NULL);
	fake_provider(engine);
	job.context = context;
	job.sandbox = sandbox;
	job.hooks = &hooks;
	assert_non_null(rlmd_job_start(engine, &job, NULL));
	while (!over)
		event_base_loop(base, EVLOOP_ONCE);
	slice = fake_sandbox_file(sandbox, 2);
	assert_true(fake_sandbox_file(sandbox, 0) == whole);
	assert_true(fake_sandbox_file(sandbox, 1) == whole);
	assert_true(slice && slice != whole);
	assert_true(fake_sandbox_file(sandbox, 3) == slice);
	assert_true(fake_sandbox_file(sandbox, 4) == slice);
	rlmd_engine_free(engine);
	assert_int_equal(fake_sandbox_living(sandbox), 0);
	rlmd_context_unref(context);
	free(bytes);
	sandbox_free(sandbox);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_inodes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
