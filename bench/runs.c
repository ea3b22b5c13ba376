/*
 * Many whole runs in one process, against bench/answers: what one by itself takes where models
 * answer at once, what it costs in CPU time, how many there are a second, and a thousand at once.
 * Each makes three turns with eight model calls at once in each, in a worker of its own.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "bench/measure.h"
#include "bench/server.h"
#include "engine/job.h"
#include "llm/provider.h"

enum {
	WAITS = 6,  /* that no run can do without */
	CALLS = 27, /* of a run */
	BATCH = 8,  /* calls of a run at once */
	SOME = 200, /* runs at once for how many there are a second */
	THOUSAND = 1000,
	OPEN = 16000,   /* descriptors: workers and connections of a thousand runs */
	LOOK_MS = 1000, /* at the memory that all use */
};

struct bench {
	struct rlmd_engine *engine;
	struct rlmd_sandbox *sandbox;
	struct rlmd_context *context;
	struct server soon, usual, late; /* that answer after 0, 50 and 500 ms */
	const char *task;
	int calls;                 /* that the task makes */
	struct samples *latencies; /* lent: of the jobs that end */
	double start, megabytes;
};

/* --- one round ---------------------------------------------------------------------- */

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct bench *bench = owner;
	struct rlmd_text answer = rlmd_result_output(result);
	struct rlmd_usage usage = {.size = sizeof usage};

	if (!rlmd_result_success(result))
		measure_fail("a run failed: %s", rlmd_result_error(result)->text);
	if (!rlmd_result_usage(result, &usage) || usage.llm_calls != bench->calls)
		measure_fail("a run made %d calls, not %d", (int)usage.llm_calls, bench->calls);
	if (!text_equal(answer, "done"))
		measure_fail("an answer is wrong: %.*s", (int)answer.size, answer.bytes);
	samples_add(bench->latencies, measure_now() - bench->start);
	rlmd_job_free(job);
}

static void start_job(struct bench *bench, const char *provider)
{
	const struct rlmd_limits limits = {.size = sizeof limits,
					   .cost = RLMD_UNLIMITED,
					   .tokens = 10000000,
					   .time_ms = 600000};
	const struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = bench};
	const struct rlmd_job_options options = {
		.size = sizeof options,
		.task = text_of(bench->task),
		.context = bench->context,
		.provider = provider,
		.model = "bench",
		.sandbox = bench->sandbox,
		.limits = &limits,
		.max_parallel = BATCH,
		.without_tree = true,
		.hooks = &hooks,
	};
	struct rlmd_error err;

	if (!rlmd_job_start(bench->engine, &options, &err))
		measure_fail("%s", err.text);
}

/* So many runs at once; returns the time that all take, in microseconds. */
static double round_of(struct bench *bench, const char *provider, int runs,
		       struct samples *ret_latencies)
{
	struct rlmd_error err;

	bench->latencies = ret_latencies;
	bench->start = measure_now();
	for (int i = 0; i < runs; i++)
		start_job(bench, provider);
	if (!rlmd_engine_wait(bench->engine, NULL, &err))
		measure_fail("%s", err.text);
	return measure_now() - bench->start;
}

/* Microseconds of CPU of this process for each of so many runs of a task. */
static double cpu_of_task(struct bench *bench, const char *task, int calls, int runs)
{
	const struct bench before = *bench;
	struct samples unused = {0};
	double own = measure_cpu();

	bench->task = task;
	bench->calls = calls;
	round_of(bench, "soon", runs, &unused);
	bench->task = before.task;
	bench->calls = before.calls;
	samples_done(&unused);
	return (measure_cpu() - own) / runs;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

/* Microseconds of CPU that this process and the workers that have ended have used. */
static double cpu_of_all(void)
{
	struct rusage workers;

	getrusage(RUSAGE_CHILDREN, &workers);
	return measure_cpu() + seconds(workers.ru_utime) + seconds(workers.ru_stime);
}

/* --- memory ------------------------------------------------------------------------- */

/* Kilobytes in the lines of these names, of a process; -1: it may not be looked at. */
static long kilobytes(const char *pid, const char *file, const char *name)
{
	auto_free char *path = xasprintf("/proc/%s/%s", pid, file);
	FILE *stream = fopen(path, "re");
	size_t size = strlen(name);
	char line[256];
	long found = -1;

	while (stream && found < 0 && fgets(line, sizeof line, stream))
		if (!strncmp(line, name, size))
			found = strtol(line + size, NULL, 10);
	if (stream)
		fclose(stream);
	return found;
}

static bool is_ours(const char *pid)
{
	return kilobytes(pid, "status", "PPid:") == getpid() || strtol(pid, NULL, 10) == getpid();
}

/* The memory of this process and its children, each shared page once, with page tables. */
static double megabytes_of_all(void)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;
	long all = 0;

	while (processes && (entry = readdir(processes)))
		if (*entry->d_name >= '0' && *entry->d_name <= '9' && is_ours(entry->d_name)) {
			long pages = kilobytes(entry->d_name, "smaps_rollup", "Pss:");
			long tables = kilobytes(entry->d_name, "status", "VmPTE:");

			all += (pages > 0 ? pages : 0) + (tables > 0 ? tables : 0);
		}
	if (processes)
		closedir(processes);
	return (double)all / 1024;
}

static void on_look(evutil_socket_t fd, short what, void *owner)
{
	struct bench *bench = owner;
	double now = megabytes_of_all();

	(void)fd;
	(void)what;
	bench->megabytes = now > bench->megabytes ? now : bench->megabytes;
}

/* The most that was seen while so many runs were under way; a round of its own, for to look takes
 * time. */
static double memory_of(struct bench *bench, int runs)
{
	const struct timeval every = {.tv_usec = 1000 * (LOOK_MS % 1000), .tv_sec = LOOK_MS / 1000};
	struct samples unused = {0};
	struct event *look = event_new(rlmd_engine_base(bench->engine), -1, EV_PERSIST, on_look,
				       bench);

	bench->megabytes = 0;
	event_add(look, &every);
	round_of(bench, "late", runs, &unused);
	event_free(look);
	samples_done(&unused);
	return bench->megabytes;
}

/* --- the rows ----------------------------------------------------------------------- */

static void measure_alone(struct bench *bench, int times)
{
	struct samples runs = {.what = "a run by itself, models answer at once"};

	for (int i = 0; i < (times > 1 ? times * 5 : 1); i++)
		round_of(bench, "soon", 1, &runs);
	measure_limit("10", &runs, 8000);
	samples_done(&runs);
}

static void measure_rate(struct bench *bench, int times, int runs)
{
	struct samples rate = {.what = "time a run, 200 at once"}, latencies = {0};
	struct samples cpu = {.what = "CPU a run, workers too"};
	struct samples call = {.what = "CPU of this process a call, in runs"};

	for (int i = 0; i < times; i++) {
		double before = cpu_of_all(), own = measure_cpu();

		samples_add(&rate, round_of(bench, "usual", runs, &latencies) / runs);
		samples_add(&call, (measure_cpu() - own) / runs / CALLS);
		samples_add(&cpu, (cpu_of_all() - before) / runs);
	}
	measure_limit("11", &call, 100);
	measure_limit("11", &cpu, 8000);
	measure_limit("12", &rate, 1e6 / 200);
	samples_done(&rate);
	samples_done(&cpu);
	samples_done(&call);
	samples_done(&latencies);
}

static void measure_turn(struct bench *bench, int times, int runs)
{
	struct samples job = {.what = "CPU of this process, a job of one turn"};
	struct samples turn = {.what = "CPU of this process, a further turn and its call"};

	for (int i = 0; i < times; i++) {
		double one = cpu_of_task(bench, "Think. turns=1 alone=1", 1, runs);
		double all = cpu_of_task(bench, "Think. turns=9 alone=1", 9, runs);

		samples_add(&job, one);
		samples_add(&turn, (all - one) / (9 - 1));
	}
	measure_limit("27", &job, 1000);
	measure_limit("27", &turn, 300);
	samples_done(&job);
	samples_done(&turn);
}

static double slowest(const struct samples *samples)
{
	double most = 0;

	for (size_t i = 0; i < samples->count; i++)
		most = samples->values[i] > most ? samples->values[i] : most;
	return most;
}

static void measure_thousand(struct bench *bench, int times, int runs)
{
	struct samples middle = {.what = "a run of 1,000 at once, the median"};
	struct samples last = {.what = "a run of 1,000 at once, the slowest"};
	struct samples path = {.what = "six waits of 500 ms in a row"};
	struct samples memory = {.what = "memory of all, 1,000 at once", .unit = "MB"};

	for (int i = 0; i < times; i++) {
		struct samples latencies = {0};

		round_of(bench, "late", runs, &latencies);
		samples_add(&middle, samples_median(&latencies));
		samples_add(&last, slowest(&latencies));
		samples_add(&path, WAITS * 500e3);
		samples_done(&latencies);
	}
	measure_at_most("13", &middle, &path, 1.6);
	measure_at_most("13", &last, &path, 2.2);
	samples_add(&memory, memory_of(bench, runs));
	if (geteuid())
		measure_missing("13", "root, for the memory of workers",
				"they let nobody else look");
	else
		measure_limit("13", &memory, 2500);
	samples_done(&middle);
	samples_done(&last);
	samples_done(&path);
	samples_done(&memory);
}

/* --- the whole ---------------------------------------------------------------------- */

static void add_model(struct bench *bench, const char *name, struct server *server)
{
	auto_free char *url = xasprintf("%s/v1", server->url);
	const struct rlmd_provider_options config = {
		.kind = "openai", .name = name, .model = "bench", .base_url = url, .key = "none"};
	struct rlmd_error err;
	struct rlmd_provider *provider = provider_new(&config, &err);

	if (!provider || !rlmd_engine_add_provider(bench->engine, NULL, provider, &err))
		measure_fail("%s", err.text);
	provider_unref(provider);
}

static void open_bench(struct bench *bench, char **argv)
{
	const struct rlmd_engine_options options = {
		.size = sizeof options, .max_workers = 32, .max_calls = BATCH * THOUSAND};
	const struct sandbox_config sandbox = {
		.python = argv[1], .worker_memory = (size_t)1 << 30, .worker_dir = argv[2]};
	struct rlmd_error err = {.text = "no context"};

	bench->engine = rlmd_engine_new(&options, &err);
	if (!bench->engine)
		measure_fail("%s", err.text);
	bench->sandbox = sandbox_new(rlmd_engine_base(bench->engine), &sandbox, &err);
	bench->context = rlmd_context_from_text(NULL, text_of("eight parts"), &err);
	if (!bench->sandbox || !bench->context)
		measure_fail("%s", err.text);
	bench->soon = server_start(argv[3], "0", NULL);
	bench->usual = server_start(argv[3], "50", NULL);
	bench->late = server_start(argv[3], "500", NULL);
	add_model(bench, "soon", &bench->soon);
	add_model(bench, "usual", &bench->usual);
	add_model(bench, "late", &bench->late);
}

static void close_bench(struct bench *bench)
{
	rlmd_context_unref(bench->context);
	sandbox_free(bench->sandbox);
	rlmd_engine_free(bench->engine);
	server_stop(&bench->soon);
	server_stop(&bench->usual);
	server_stop(&bench->late);
}

int main(int argc, char **argv)
{
	struct samples unused = {0};
	struct bench bench = {.task = "What do the parts say? turns=3", .calls = CALLS};
	int times, part;

	if (argc != 5)
		measure_fail("usage: runs PYTHON WORKER_DIR ANSWERS COUNT");
	if (!measure_descriptors("13", OPEN))
		return (int)measure_end();
	times = measure_count(argv[4]);
	part = times > 1 ? 1 : 50; /* one sample shows that it runs */
	setenv("no_proxy", "*", 1);
	alloc_install();
	open_bench(&bench, argv);
	round_of(&bench, "soon", 1, &unused); /* the template loads, the connections open */
	measure_alone(&bench, times);
	measure_rate(&bench, times, SOME / part);
	measure_turn(&bench, times, SOME / part);
	measure_thousand(&bench, (times + 4) / 5, THOUSAND / part);
	samples_done(&unused);
	close_bench(&bench);
	return (int)measure_end();
}
