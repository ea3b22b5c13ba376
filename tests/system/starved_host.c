/*
 * A host of the library: three jobs at once, asked of the server at argv[1], about argv[2]. One
 * line for each that ended, "output ..." or "error ...".
 */
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>

enum { JOBS = 3 };

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	(void)owner;
	(void)job;
	if (rlmd_result_success(result))
		printf("output %.*s\n", (int)rlmd_result_output(result).size,
		       rlmd_result_output(result).bytes);
	else
		printf("error %s\n",
		       rlmd_result_error(result) ? rlmd_result_error(result)->text : "");
	fflush(stdout);
}

static bool add_provider(struct rlmd_engine *engine, const char *url, struct rlmd_error *err)
{
	struct rlmd_provider_options options = {
		.size = sizeof options, .kind = "openai", .base_url = url, .key = "the-key"};
	struct rlmd_provider *provider = rlmd_provider_new(&options, err);
	bool added = provider && rlmd_engine_add_provider(engine, NULL, provider, err);

	rlmd_provider_unref(provider);
	return added;
}

static bool work(struct rlmd_engine *engine, const struct rlmd_context *context,
		 struct rlmd_error *err)
{
	struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end};
	struct rlmd_job_options options = {.size = sizeof options,
					   .task = rlmd_text_of("the task"),
					   .context = context,
					   .hooks = &hooks,
					   .model = "gpt-test"};

	for (int i = 0; i < JOBS; i++)
		if (!rlmd_job_start(engine, &options, err))
			return false;
	return rlmd_engine_wait(engine, NULL, err);
}

int main(int argc, char **argv)
{
	struct rlmd_context *context = NULL;
	struct rlmd_engine *engine;
	struct rlmd_error err = {0};

	if (argc < 3)
		return 2;
	engine = rlmd_engine_new(NULL, &err);
	if (engine && add_provider(engine, argv[1], &err))
		context = rlmd_context_load((const char *const *)argv + 2, 1, NULL, &err);
	if (!context || !work(engine, context, &err))
		printf("error %s\n", err.text);
	rlmd_context_unref(context);
	rlmd_engine_free(engine);
	return 0;
}
