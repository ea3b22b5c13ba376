/*
 * examples/basic.c - a question about files, answered by a model of this machine's Ollama.
 *
 *     cc basic.c $(pkg-config --cflags --libs rlmd) -o basic
 *     ./basic QUESTION FILE-OR-DIRECTORY...
 */
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>

/* The engine takes a reference of its own, so ours is given back at once. */
static bool add_ollama(struct rlmd_engine *engine, struct rlmd_error *err)
{
	struct rlmd_provider_options options = {.size = sizeof options, .kind = "ollama"};
	struct rlmd_provider *provider = rlmd_provider_new(&options, err);
	bool added = provider && rlmd_engine_add_provider(engine, NULL, provider, err);

	rlmd_provider_unref(provider);
	return added;
}

/* A job that could not begin, and one that failed, both leave their reason in `err`. */
static bool answer(struct rlmd_engine *engine, const char *question,
		   const struct rlmd_context *context, struct rlmd_error *err)
{
	struct rlmd_job_options options = {.size = sizeof options, .context = context};
	const struct rlmd_result *result;
	struct rlmd_text output;
	struct rlmd_job *job;

	options.task = rlmd_text_of(question);
	job = rlmd_job_start(engine, &options, err);
	if (!job || !rlmd_engine_wait(engine, job, err))
		return false;
	result = rlmd_job_result(job);
	if (!rlmd_result_success(result)) {
		*err = *rlmd_result_error(result);
		return false;
	}
	output = rlmd_result_output(result);
	printf("%.*s\n", (int)output.size, output.bytes);
	rlmd_job_free(job);
	return true;
}

int main(int argc, char **argv)
{
	struct rlmd_context *context = NULL;
	struct rlmd_engine *engine;
	struct rlmd_error err = {0};

	if (argc < 3) {
		fprintf(stderr, "usage: basic QUESTION FILE-OR-DIRECTORY...\n");
		return 2;
	}
	engine = rlmd_engine_new(NULL, &err);
	if (engine && add_ollama(engine, &err))
		context = rlmd_context_load((const char *const *)argv + 2, (size_t)argc - 2, NULL,
					    &err);
	if (!context || !answer(engine, argv[1], context, &err))
		fprintf(stderr, "basic: %s\n", err.text);
	rlmd_context_unref(context);
	rlmd_engine_free(engine); /* and the job, where it was not freed before */
	return rlmd_error_exit_status(err.kind);
}
