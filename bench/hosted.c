/*
 * The floor of bench/served.py: jobs of one turn in this process, whose model is a function of ours
 * that answers at once. Each line of standard input is the number of jobs that are done one after
 * the other; answers how many milliseconds one took.
 */
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <string.h>

#include "bench/measure.h"

static struct rlmd_provider *provider;

static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	const struct rlmd_model_answer answer = {
		.size = sizeof answer,
		.text = rlmd_text_of("```python\nFINAL(6 * 7)\n```"),
		.input_tokens = 10,
		.output_tokens = 5,
	};

	(void)owner;
	rlmd_provider_answer(provider, request->id, &answer);
}

static void do_job(struct rlmd_engine *engine)
{
	const struct rlmd_job_options options = {.size = sizeof options,
						 .task = rlmd_text_of("Multiply."),
						 .provider = "host",
						 .model = "bench"};
	struct rlmd_error err;
	struct rlmd_job *job = rlmd_job_start(engine, &options, &err);

	if (!job || !rlmd_engine_wait(engine, job, &err))
		measure_fail("%s", err.text);
	if (!rlmd_result_success(rlmd_job_result(job)))
		measure_fail("the job failed: %s", rlmd_result_error(rlmd_job_result(job))->text);
	rlmd_job_free(job);
}

int main(void)
{
	const struct rlmd_provider_options options = {.size = sizeof options,
						      .name = "host",
						      .model = "bench",
						      .ask = on_ask,
						      .costs_nothing = true};
	struct rlmd_error err;
	struct rlmd_engine *engine = rlmd_engine_new(NULL, &err);
	char line[20];

	provider = rlmd_provider_new(&options, &err);
	if (!engine || !provider || !rlmd_engine_add_provider(engine, NULL, provider, &err))
		measure_fail("%s", err.text);
	while (fgets(line, sizeof line, stdin)) {
		double start = measure_now();
		int count;

		line[strcspn(line, "\n")] = '\0';
		count = measure_count(line);
		for (int i = 0; i < count; i++)
			do_job(engine);
		printf("%f\n", (measure_now() - start) / 1e3 / count);
		fflush(stdout);
	}
	rlmd_engine_free(engine);
	rlmd_provider_unref(provider);
	return 0;
}
