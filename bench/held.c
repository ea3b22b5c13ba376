/*
 * How long the event loop is held at once by a run whose code has an answer of 7 MB and gives 7 MB
 * back, plain and with what is kept of it all; and by one that gives a sub-run 50 MB. Against
 * bench/answers.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "bench/loop_held.h"
#include "bench/measure.h"
#include "bench/server.h"
#include "engine/job.h"
#include "llm/provider.h"

enum { HELD_MS = 5, PATH_SIZE = 64 };

struct bench {
	struct rlmd_engine *engine;
	struct rlmd_sandbox *sandbox;
	struct rlmd_context *context;
	struct server server;
	struct loop_held *held; /* of the run */
	double most;            /* ... when it had ended */
	char directory[PATH_SIZE];
};

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct bench *bench = owner;
	struct rlmd_text answer = rlmd_result_output(result);

	if (!rlmd_result_success(result) || !text_equal(answer, "done"))
		measure_fail("a run failed: %s", rlmd_result_error(result)->text);
	rlmd_job_free(job);
	bench->most = loop_held_end(bench->held);
}

static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text line)
{
	(void)owner, (void)job, (void)line;
}

/* The parts of the run that are kept. */
enum held_kind { NOTHING, TRACE, CACHE, CACHED, RECORD, GIVEN, KINDS };

static const char *const names[KINDS] = {"the loop, held while 7 MB go to a worker, CPU",
					 "... traced",
					 "... kept in a cache",
					 "... found in a cache",
					 "... recorded",
					 "the loop, held while 50 MB go to a sub-run, CPU"};

static void empty(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *file;

	while (dir && (file = readdir(dir)))
		if (file->d_name[0] != '.')
			unlinkat(dirfd(dir), file->d_name, 0);
	if (dir)
		closedir(dir);
}

static double run(struct bench *bench, enum held_kind kept, const char *task)
{
	const struct rlmd_limits limits = {.size = sizeof limits,
					   .cost = RLMD_UNLIMITED,
					   .tokens = 1000000000,
					   .time_ms = 60000};
	const struct rlmd_hooks hooks = {.size = sizeof hooks,
					 .end = on_end,
					 .event = kept == TRACE ? on_event : NULL,
					 .owner = bench};
	const struct rlmd_job_options options = {
		.size = sizeof options,
		.task = text_of(task),
		.context = bench->context,
		.model = "bench",
		.sandbox = bench->sandbox,
		.limits = &limits,
		.without_tree = kept != TRACE,
		.record_dir = kept == RECORD ? bench->directory : NULL,
		.cache_dir = kept == CACHE || kept == CACHED ? bench->directory : NULL,
		.cache_age_ms = 1000000,
		.cache_size = 1 << 30,
		.hooks = &hooks,
	};
	struct rlmd_error err;

	if (kept != CACHED)
		empty(bench->directory);
	bench->held = loop_held_begin(rlmd_engine_base(bench->engine));
	if (!rlmd_job_start(bench->engine, &options, &err))
		measure_fail("%s", err.text);
	if (!rlmd_engine_wait(bench->engine, NULL, &err))
		measure_fail("%s", err.text);
	return bench->most;
}

static void open_bench(struct bench *bench, char **argv)
{
	const struct rlmd_engine_options options = {.size = sizeof options};
	const struct sandbox_config sandbox = {
		.python = argv[1], .worker_memory = (size_t)1 << 30, .worker_dir = argv[2]};
	struct rlmd_provider_options config = {.kind = "openai",
					       .model = "bench",
					       .key = "none",
					       .no_stream = true,
					       .window = 10000000};
	struct rlmd_error err = {.text = "no context"};
	struct rlmd_provider *provider;
	char url[80];

	bench->server = server_start(argv[3], "0", NULL);
	snprintf(url, sizeof url, "%s/v1", bench->server.url);
	config.base_url = url;
	bench->engine = rlmd_engine_new(&options, &err);
	provider = provider_new(&config, &err);
	if (!bench->engine || !provider ||
	    !rlmd_engine_add_provider(bench->engine, NULL, provider, &err))
		measure_fail("%s", err.text);
	provider_unref(provider);
	bench->sandbox = sandbox_new(rlmd_engine_base(bench->engine), &sandbox, &err);
	bench->context = rlmd_context_from_text(NULL, text_of("a long answer"), &err);
	if (!bench->sandbox || !bench->context)
		measure_fail("%s", err.text);
	snprintf(bench->directory, sizeof bench->directory, "/tmp/rlmd-bench-XXXXXX");
	if (!mkdtemp(bench->directory))
		measure_fail("no directory in /tmp");
}

static void close_bench(struct bench *bench)
{
	empty(bench->directory);
	rmdir(bench->directory);
	rlmd_context_unref(bench->context);
	sandbox_free(bench->sandbox);
	rlmd_engine_free(bench->engine);
	server_stop(&bench->server);
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	const char *large, *given;
	int times;

	if (argc != 5)
		measure_fail("usage: held PYTHON WORKER_DIR ANSWERS COUNT");
	times = measure_count(argv[4]);
	/* One sample shows that it runs. */
	large = times > 1 ? "How long is it? turns=1 large=7000000"
			  : "How long is it? turns=1 large=70000";
	given = times > 1 ? "How long is it? turns=1 given=50000000"
			  : "How long is it? turns=1 given=500000";
	setenv("no_proxy", "*", 1);
	alloc_install();
	open_bench(&bench, argv);
	run(&bench, NOTHING, large); /* the template loads, the connections open */
	for (enum held_kind kept = 0; kept < KINDS; kept++) {
		struct samples held = {.what = names[kept], .unit = "ms"};

		for (int i = 0; i < times; i++)
			samples_add(&held, run(&bench, kept, kept == GIVEN ? given : large));
		measure_limit("17", &held, HELD_MS);
		samples_done(&held);
	}
	close_bench(&bench);
	return (int)measure_end();
}
