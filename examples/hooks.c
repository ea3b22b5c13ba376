/*
 * examples/hooks.c - what a job does, told while it does it; and a job ended from inside a hook.
 *
 *     cc hooks.c $(pkg-config --cflags --libs rlmd) -o hooks
 *     OPENAI_API_KEY=... ./hooks QUESTION FILE-OR-DIRECTORY...
 *
 * Words of the model go to standard output as they come, all else to standard error. A model whose
 * code fails three times is given up.
 */
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>

enum { PATIENCE = 3 };

static void on_iteration(void *owner, struct rlmd_job *job, const struct rlmd_iteration *turn)
{
	(void)owner;
	(void)job;
	fprintf(stderr, "[turn %lld of %s at depth %lld: %lld tokens]\n", (long long)turn->number,
		turn->model, (long long)turn->depth,
		(long long)(turn->input_tokens + turn->output_tokens));
}

static void on_output(void *owner, struct rlmd_job *job, const struct rlmd_output *output)
{
	int *failures = owner;

	fprintf(stderr, "[code printed %zu bytes%s]\n", output->standard_output.size,
		output->error.size ? " and failed" : "");
	if (output->error.size && ++*failures == PATIENCE)
		rlmd_job_cancel(job); /* takes effect from the loop: this hook goes on */
}

static void on_subcall(void *owner, struct rlmd_job *job, const struct rlmd_subcall *call)
{
	(void)owner;
	(void)job;
	fprintf(stderr, "[%s by %s: %s]\n", call->kind == RLMD_SUBCALL_RUN ? "sub-run" : "call",
		call->model, call->error ? call->error : "answered");
}

static void on_warning(void *owner, struct rlmd_job *job, const char *text)
{
	(void)owner;
	(void)job;
	fprintf(stderr, "[%s]\n", text);
}

static void on_delta(void *owner, struct rlmd_job *job, struct rlmd_text words)
{
	(void)owner;
	(void)job;
	fwrite(words.bytes, 1, words.size, stdout);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	const int *failures = owner;
	enum rlmd_stop stop = rlmd_result_stop(result);

	(void)job;
	fprintf(stderr, "[ended: %s, %d blocks failed]\n", stop ? rlmd_stop_name(stop) : "error",
		*failures);
}

static bool watch(struct rlmd_engine *engine, const char *question,
		  const struct rlmd_context *context, struct rlmd_error *err)
{
	int failures = 0;
	struct rlmd_hooks hooks = {.size = sizeof hooks,
				   .iteration = on_iteration,
				   .output = on_output,
				   .subcall = on_subcall,
				   .budget_warning = on_warning,
				   .delta = on_delta,
				   .end = on_end,
				   .owner = &failures};
	struct rlmd_job_options options = {
		.size = sizeof options, .context = context, .hooks = &hooks};
	struct rlmd_job *job;
	bool ended;

	options.task = rlmd_text_of(question);
	job = rlmd_job_start(engine, &options, err);
	ended = job && rlmd_engine_wait(engine, job, err);
	if (ended && rlmd_result_error(rlmd_job_result(job)))
		*err = *rlmd_result_error(rlmd_job_result(job));
	rlmd_job_free(job); /* `failures` was lent to its hooks */
	return ended && !err->kind;
}

int main(int argc, char **argv)
{
	struct rlmd_provider_options options = {.size = sizeof options, .kind = "openai"};
	struct rlmd_error err = {0};
	struct rlmd_engine *engine = rlmd_engine_new(NULL, &err);
	struct rlmd_provider *provider = rlmd_provider_new(&options, &err);
	struct rlmd_context *context = NULL;

	if (argc > 2)
		context = rlmd_context_load((const char *const *)argv + 2, (size_t)argc - 2, NULL,
					    &err);
	else
		fprintf(stderr, "usage: hooks QUESTION FILE-OR-DIRECTORY...\n");
	if (engine && provider && context && rlmd_engine_add_provider(engine, NULL, provider, &err))
		watch(engine, argv[1], context, &err);
	if (err.kind)
		fprintf(stderr, "hooks: %s\n", err.text);
	rlmd_context_unref(context);
	rlmd_provider_unref(provider);
	rlmd_engine_free(engine);
	return argc > 2 ? rlmd_error_exit_status(err.kind) : 2;
}
