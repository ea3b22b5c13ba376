/*
 * examples/cloud.c - one job, two providers: a strong model leads, a cheap one does the reading.
 *
 *     cc cloud.c $(pkg-config --cflags --libs rlmd) -o cloud
 *     ANTHROPIC_API_KEY=... OPENAI_API_KEY=... ./cloud QUESTION FILE-OR-DIRECTORY...
 */
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdint.h>
#include <stdio.h>

#define DOLLAR INT64_C(1000000000000) /* pico-dollars: the unit of all money */

static bool add_provider(struct rlmd_engine *engine, const char *kind, struct rlmd_error *err)
{
	struct rlmd_provider_options options = {.size = sizeof options, .kind = kind};
	struct rlmd_provider *provider = rlmd_provider_new(&options, err);
	bool added = provider && rlmd_engine_add_provider(engine, NULL, provider, err);

	rlmd_provider_unref(provider);
	return added;
}

static struct rlmd_job *start(struct rlmd_engine *engine, const char *question,
			      const struct rlmd_context *context, struct rlmd_error *err)
{
	/* Members that stay zero have their defaults: 300 seconds, 500,000 tokens, two levels of
	 * runs. */
	struct rlmd_limits limits = {.size = sizeof limits, .cost = DOLLAR / 2};
	struct rlmd_job_options options = {.size = sizeof options, .context = context};

	options.task = rlmd_text_of(question);
	options.model = "anthropic/claude-sonnet-4-5";
	options.subcall_model = "openai/gpt-5-mini"; /* whatever its code asks of models */
	options.limits = &limits;
	return rlmd_job_start(engine, &options, err);
}

static void show(const struct rlmd_result *result)
{
	struct rlmd_text output = rlmd_result_output(result);
	struct rlmd_usage usage = {.size = sizeof usage};

	printf("%.*s\n", (int)output.size, output.bytes);
	if (rlmd_result_usage(result, &usage))
		printf("%lld calls, %lld tokens, $%.6f%s\n", (long long)usage.llm_calls,
		       (long long)usage.tokens, (double)usage.cost / (double)DOLLAR,
		       usage.cost_complete ? "" : " and what has no known price");
}

int main(int argc, char **argv)
{
	struct rlmd_context *context = NULL;
	struct rlmd_engine *engine;
	struct rlmd_job *job = NULL;
	struct rlmd_error err = {0};

	if (argc < 3) {
		fprintf(stderr, "usage: cloud QUESTION FILE-OR-DIRECTORY...\n");
		return 2;
	}
	engine = rlmd_engine_new(NULL, &err);
	if (engine && add_provider(engine, "anthropic", &err) &&
	    add_provider(engine, "openai", &err))
		context = rlmd_context_load((const char *const *)argv + 2, (size_t)argc - 2, NULL,
					    &err);
	if (context)
		job = start(engine, argv[1], context, &err);
	if (job && rlmd_engine_wait(engine, job, &err)) {
		const struct rlmd_result *result = rlmd_job_result(job);

		if (rlmd_result_error(result))
			err = *rlmd_result_error(result);
		show(result); /* a failure has its costs, too, and may have an answer */
	}
	if (err.kind)
		fprintf(stderr, "cloud: %s\n", err.text);
	rlmd_context_unref(context);
	rlmd_engine_free(engine);
	return rlmd_error_exit_status(err.kind);
}
