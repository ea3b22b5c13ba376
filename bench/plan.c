/*
 * Plans of model calls against bench/model, beside what is ideal for them: calls
 * in parallel beside the same calls one after the other, a graph beside its
 * longest path, a race beside its fastest alternative by itself. All in one run,
 * in turn, through the same engine.
 */
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "bench/measure.h"
#include "bench/server.h"
#include "engine/job.h"
#include "llm/provider.h"

enum { CALLS = 16 };

struct bench {
	struct rlmd_engine *engine;
	double wait; /* microseconds: the model's shortest */
};

static double plan_time(struct bench *bench, const char *text)
{
	const struct rlmd_limits limits = {
		.size = sizeof limits, .cost = RLMD_NOTHING, .tokens = 10000000, .time_ms = 60000};
	struct rlmd_error err;
	struct rlmd_plan_file *file = rlmd_plan_file_new(text_of(text), &err);
	struct rlmd_job_options options = {
		.size = sizeof options,
		.model = "bench",
		.limits = &limits,
		.plan = file,
		.max_parallel = CALLS,
	};
	struct rlmd_error why;
	struct rlmd_job *job;
	double start;

	if (!file)
		measure_fail("%s", err.text);
	start = measure_now();
	job = rlmd_job_start(bench->engine, &options, &why);
	if (!job || !rlmd_engine_wait(bench->engine, job, &why))
		measure_fail("%s", why.text);
	start = measure_now() - start;
	if (!rlmd_result_success(rlmd_job_result(job)))
		measure_fail("the plan failed: %s", rlmd_result_error(rlmd_job_result(job))->text);
	rlmd_job_free(job);
	rlmd_plan_file_free(file);
	return start;
}

/* Calls that do not need each other; new. */
static char *calls(const char *strategy, int at_once)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	evbuffer_add_printf(out, "{\"strategy\": \"%s\", \"maxParallel\": %d, \"operations\": [",
			    strategy, at_once);
	for (int i = 0; i < CALLS; i++)
		evbuffer_add_printf(out, "%s{\"id\": \"%d\", \"input\": \"wait 1\"}", i ? ", " : "",
				    i);
	evbuffer_add_printf(out, "]}");
	return text_drain(out, NULL);
}

/* Its longest path is a, c, e, g: 1 + 3 + 2 + 1 waits. In rounds it would be 1 + 3 + 4 + 1. */
enum { LONGEST_PATH = 7 };
static const char graph[] =
	"{\"maxParallel\": 8, \"operations\": ["
	"{\"id\": \"a\", \"input\": \"wait 1\"},"
	"{\"id\": \"b\", \"input\": \"wait 1 {{a}}\", \"dependsOn\": [\"a\"]},"
	"{\"id\": \"c\", \"input\": \"wait 3 {{a}}\", \"dependsOn\": [\"a\"]},"
	"{\"id\": \"d\", \"input\": \"wait 4 {{b}}\", \"dependsOn\": [\"b\"]},"
	"{\"id\": \"e\", \"input\": \"wait 2 {{c}}\", \"dependsOn\": [\"c\"]},"
	"{\"id\": \"f\", \"input\": \"wait 1 {{b}}{{c}}\", \"dependsOn\": [\"b\", \"c\"]},"
	"{\"id\": \"g\", \"input\": \"wait 1 {{d}}{{e}}{{f}}\","
	" \"dependsOn\": [\"d\", \"e\", \"f\"]}]}";

static const char race[] = "{\"strategy\": \"Speculative\", \"operations\": ["
			   "{\"id\": \"a\", \"input\": \"wait 5\"},"
			   "{\"id\": \"b\", \"input\": \"wait 3\"},"
			   "{\"id\": \"c\", \"input\": \"wait 2\"},"
			   "{\"id\": \"d\", \"input\": \"wait 8\"}]}";
static const char fastest[] = "{\"operations\": [{\"id\": \"c\", \"input\": \"wait 2\"}]}";

/* The measured time, and the ideal that belongs to it. */
struct row {
	struct samples samples, ideal;
	const char *plan;       /* lent */
	const char *ideal_plan; /* lent; NULL: waits */
	int waits;
};

static void measure(struct bench *bench, struct row *rows, size_t count, int times)
{
	for (int i = 0; i < times; i++)
		for (size_t k = 0; k < count; k++) {
			struct row *row = &rows[k];

			samples_add(&row->samples, plan_time(bench, row->plan));
			samples_add(&row->ideal, row->ideal_plan ? plan_time(bench, row->ideal_plan)
								 : bench->wait * row->waits);
		}
}

static void compare(struct bench *bench, int times)
{
	auto_free char *sequential = calls("Sequential", 1);
	auto_free char *four = calls("Parallel", 4), *eight = calls("Parallel", 8);
	struct row rows[] = {
		{{.what = "16 calls one after the other"},
		 {.what = "ideal: 16 waits"},
		 sequential,
		 NULL,
		 CALLS},
		{{.what = "16 calls, 4 at once"},
		 {.what = "ideal: 4 waits"},
		 four,
		 NULL,
		 CALLS / 4},
		{{.what = "16 calls, 8 at once"},
		 {.what = "ideal: 2 waits"},
		 eight,
		 NULL,
		 CALLS / 8},
		{{.what = "a graph of 7 calls"},
		 {.what = "ideal: its longest path, 7 waits"},
		 graph,
		 NULL,
		 LONGEST_PATH},
		{{.what = "a race of 4"},
		 {.what = "ideal: the fastest by itself"},
		 race,
		 fastest,
		 0},
	};
	enum { ROWS = sizeof rows / sizeof *rows };
	plan_time(bench, eight); /* the connections open */
	measure(bench, rows, ROWS, times);
	for (size_t k = 0; k < ROWS; k++)
		samples_print(&rows[k].samples, &rows[k].ideal, NULL);
	for (size_t k = 0; k < ROWS; k++) {
		samples_done(&rows[k].samples);
		samples_done(&rows[k].ideal);
	}
}

int main(int argc, char **argv)
{
	struct rlmd_provider *provider;
	struct server model;
	struct bench bench;
	struct rlmd_error err;

	if (argc != 4)
		measure_fail("usage: plan MODEL DELAY_MS COUNT");
	model = server_start(argv[1], argv[2], NULL);
	alloc_install();
	bench.engine = rlmd_engine_new(
		&(struct rlmd_engine_options){.size = sizeof(struct rlmd_engine_options)}, &err);
	bench.wait = 1e3 * measure_count(argv[2]);
	provider = provider_new(
		&(struct rlmd_provider_options){.kind = "ollama", .base_url = model.url}, &err);
	if (!provider || !rlmd_engine_add_provider(bench.engine, NULL, provider, &err))
		measure_fail("%s", err.text);
	provider_unref(provider);
	compare(&bench, measure_count(argv[3]));
	rlmd_engine_free(bench.engine);
	server_stop(&model);
	return measure_end();
}
