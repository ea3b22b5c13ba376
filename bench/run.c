/*
 * Whole runs against bench/model: three turns, each a model call and a block
 * with eight model calls at once. Nothing can be faster than the six waits in
 * a row that this makes. The template is warm; each run has a worker of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/measure.h"
#include "engine/job.h"
#include "llm/provider.h"

enum { WAITS = 6 };

static void on_end(void *owner, const struct rlmd_result *result)
{
	bool *done = owner;

	if (result->error.kind)
		measure_fail("the run failed: %s", result->error.text);
	if (!text_equal(result->output, "done"))
		measure_fail("the answer is wrong: %.*s", (int)result->output.size,
			     result->output.bytes);
	*done = true;
}

static double run_time(struct rlmd_engine *engine, struct rlmd_sandbox *sandbox)
{
	const struct job_config config = {
		.model = "bench",
		.limits = {.cost = 0,
			   .tokens = 10000000,
			   .time_ms = 60000,
			   .max_depth = 2,
			   .max_iterations = 30,
			   .calls = BUDGET_UNLIMITED,
			   .subruns = BUDGET_UNLIMITED},
		.block_timeout_ms = 30000,
		.max_output = 50000,
		.max_parallel = 8,
		.grace_ms = 1000,
	};
	struct context context;
	struct job_options options = {
		.config = config, .sandbox = sandbox, .context = &context, .end = on_end};
	struct rlmd_job *job;
	struct rlmd_error err;
	bool done = false;
	double start;

	if (!context_from_text(text_of("eight parts"), &context, &err))
		measure_fail("%s", err.text);
	start = measure_now();
	options.task = text_of("What do the parts say?");
	options.owner = &done;
	job = rlmd_job_start(engine, &options, &err);
	if (!job || !rlmd_engine_wait(engine, job, &err) || !done)
		measure_fail("%s", err.text);
	start = measure_now() - start;
	rlmd_job_free(job);
	context_done(&context);
	return start;
}

int main(int argc, char **argv)
{
	struct samples runs = {.what = "a run: 3 turns, 8 calls at once in each"};
	struct samples path = {.what = "floor: six waits in a row"};
	struct rlmd_engine *engine;
	struct event_base *base;
	struct rlmd_sandbox *sandbox;
	struct rlmd_provider *provider;
	struct rlmd_error err;
	int count;

	if (argc != 6)
		measure_fail("usage: run PYTHON WORKER_DIR BASE_URL DELAY_MS COUNT");
	count = measure_count(argv[5]);
	alloc_install();
	engine = rlmd_engine_new(&(struct engine_options){.max_workers = 1, .max_calls = 8}, &err);
	base = rlmd_engine_base(engine);
	sandbox = sandbox_new(base,
			      &(struct sandbox_config){
				      .python = argv[1],
				      .worker_memory = (size_t)1 << 30,
				      .worker_dir = argv[2],
			      },
			      &err);
	if (!sandbox)
		measure_fail("%s", err.text);
	provider = provider_new(&(struct provider_config){.kind = "ollama", .base_url = argv[3]},
				&err);
	if (!provider || !rlmd_engine_add_provider(engine, NULL, provider, &err))
		measure_fail("%s", err.text);
	provider_unref(provider);

	run_time(engine, sandbox); /* the template loads, the connections open */
	for (int i = 0; i < count; i++) {
		samples_add(&runs, run_time(engine, sandbox));
		samples_add(&path, WAITS * 1e3 * measure_count(argv[4]));
	}
	samples_print(&runs, &path, NULL);

	samples_done(&runs);
	samples_done(&path);
	sandbox_free(sandbox);
	rlmd_engine_free(engine);
	return 0;
}
