/*
 * Whole runs against bench/model: three turns, each a model call and a block
 * with eight model calls. Where they are made at once nothing can be faster than
 * the six waits in a row that this makes; four at a time and one after the other
 * stand beside that. The template is warm; each run has a worker of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/measure.h"
#include "bench/server.h"
#include "engine/job.h"
#include "llm/provider.h"

enum { WAITS = 6, SLOW_EACH = 4 /* runs with all at once, for one run with fewer */ };

static double run_time(struct rlmd_engine *engine, struct rlmd_sandbox *sandbox, size_t at_once)
{
	const struct rlmd_limits limits = {
		.size = sizeof limits, .cost = RLMD_NOTHING, .tokens = 10000000, .time_ms = 60000};
	struct rlmd_job_options options = {
		.size = sizeof options,
		.model = "bench",
		.sandbox = sandbox,
		.limits = &limits,
		.max_parallel = at_once,
	};
	struct rlmd_error err = {.text = "it has no context"};
	struct rlmd_context *context = rlmd_context_from_text(NULL, text_of("eight parts"), &err);
	double start = measure_now();
	struct rlmd_text answer;
	struct rlmd_job *job;

	options.context = context;
	options.task = text_of("What do the parts say?");
	job = rlmd_job_start(engine, &options, &err);
	if (!job || !rlmd_engine_wait(engine, job, &err))
		measure_fail("%s", err.text);
	start = measure_now() - start;
	answer = rlmd_result_output(rlmd_job_result(job));
	if (!rlmd_result_success(rlmd_job_result(job)))
		measure_fail("the run failed: %s", rlmd_result_error(rlmd_job_result(job))->text);
	if (!text_equal(answer, "done"))
		measure_fail("the answer is wrong: %.*s", (int)answer.size, answer.bytes);
	rlmd_job_free(job);
	rlmd_context_unref(context);
	return start;
}

int main(int argc, char **argv)
{
	struct samples runs = {.what = "a run: 3 turns, 8 calls at once in each"};
	struct samples path = {.what = "floor: six waits in a row"};
	struct samples four = {.what = "the same, 4 calls at once"};
	struct samples one = {.what = "the same, one call after the other"};
	struct rlmd_engine *engine;
	struct event_base *base;
	struct rlmd_sandbox *sandbox;
	struct rlmd_provider *provider;
	struct server model;
	struct rlmd_error err;
	int count;

	if (argc != 6)
		measure_fail("usage: run PYTHON WORKER_DIR MODEL DELAY_MS COUNT");
	count = measure_count(argv[5]);
	model = server_start(argv[3], argv[4], NULL);
	alloc_install();
	engine = rlmd_engine_new(
		&(struct rlmd_engine_options){.size = sizeof(struct rlmd_engine_options),
					      .max_workers = 1},
		&err);
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
	provider = provider_new(
		&(struct rlmd_provider_options){.kind = "ollama", .base_url = model.url}, &err);
	if (!provider || !rlmd_engine_add_provider(engine, NULL, provider, &err))
		measure_fail("%s", err.text);
	provider_unref(provider);

	run_time(engine, sandbox, 8); /* the template loads, the connections open */
	for (int i = 0; i < count; i++) {
		samples_add(&runs, run_time(engine, sandbox, 8));
		samples_add(&path, WAITS * 1e3 * measure_count(argv[4]));
		if (i % SLOW_EACH)
			continue;
		samples_add(&four, run_time(engine, sandbox, 4));
		samples_add(&one, run_time(engine, sandbox, 1));
	}
	measure_at_most("10", &runs, &path, 1.05);
	measure_at_least("16", &runs, &one, 4);
	measure_at_least("16", &four, &one, 2.8);

	samples_done(&runs);
	samples_done(&path);
	samples_done(&four);
	samples_done(&one);
	sandbox_free(sandbox);
	rlmd_engine_free(engine);
	server_stop(&model);
	return measure_end();
}
