/*
 * How long the event loop is held at once by a run whose code has an answer of 7 MB and gives 7 MB
 * back, in CPU time of this thread, so that nobody else on the machine counts: plain, and with what
 * is kept of it all. Against bench/answers.
 */
#include <dirent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/loop.h"
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
	struct event *turn; /* due in each turn of the loop */
	double last, held;  /* milliseconds of CPU: at the last turn, most between two */
	char directory[PATH_SIZE];
};

static double thread_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void look(struct bench *bench)
{
	double now = thread_ms();

	if (now - bench->last > bench->held)
		bench->held = now - bench->last;
	bench->last = now;
}

static void on_turn(evutil_socket_t fd, short what, void *owner)
{
	struct bench *bench = owner;

	(void)fd, (void)what;
	look(bench);
	loop_post(bench->turn);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct bench *bench = owner;
	struct rlmd_text answer = rlmd_result_output(result);

	if (!rlmd_result_success(result) || !text_equal(answer, "done"))
		measure_fail("a run failed: %s", rlmd_result_error(result)->text);
	rlmd_job_free(job);
	look(bench);
	event_del(bench->turn);
}

static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text line)
{
	(void)owner, (void)job, (void)line;
}

/* The parts of the run that are kept. */
enum held_kind { NOTHING, TRACE, CACHE, CACHED, RECORD, KINDS };

static const char *const names[KINDS] = {"the loop, held while 7 MB go to a worker, CPU",
					 "... traced", "... kept in a cache",
					 "... found in a cache", "... recorded"};

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
	bench->held = 0;
	bench->last = thread_ms();
	if (!rlmd_job_start(bench->engine, &options, &err))
		measure_fail("%s", err.text);
	loop_post(bench->turn);
	if (!rlmd_engine_wait(bench->engine, NULL, &err))
		measure_fail("%s", err.text);
	return bench->held;
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
	bench->turn = evtimer_new(rlmd_engine_base(bench->engine), on_turn, bench);
	snprintf(bench->directory, sizeof bench->directory, "/tmp/rlmd-bench-XXXXXX");
	if (!mkdtemp(bench->directory))
		measure_fail("no directory in /tmp");
}

static void close_bench(struct bench *bench)
{
	empty(bench->directory);
	rmdir(bench->directory);
	event_free(bench->turn);
	rlmd_context_unref(bench->context);
	sandbox_free(bench->sandbox);
	rlmd_engine_free(bench->engine);
	server_stop(&bench->server);
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	const char *task;
	int times;

	if (argc != 5)
		measure_fail("usage: held PYTHON WORKER_DIR ANSWERS COUNT");
	times = measure_count(argv[4]);
	task = times > 1 ? "How long is it? turns=1 large=7000000"
			 : /* one sample shows that it runs */
		       "How long is it? turns=1 large=70000";
	setenv("no_proxy", "*", 1);
	alloc_install();
	open_bench(&bench, argv);
	run(&bench, NOTHING, task); /* the template loads, the connections open */
	for (enum held_kind kept = 0; kept < KINDS; kept++) {
		struct samples held = {.what = names[kept], .unit = "ms"};

		for (int i = 0; i < times; i++)
			samples_add(&held, run(&bench, kept, task));
		measure_limit("17", &held, HELD_MS);
		samples_done(&held);
	}
	close_bench(&bench);
	return (int)measure_end();
}
