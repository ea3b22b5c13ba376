/*
 * The cost of a large context to a worker: the time until it has the text, beside a python3 that
 * maps and decodes the same file, and one that has it as JSON; and the memory of each further
 * worker that has the same context. Beside that, the memory of a worker that has none and has run
 * nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "bench/measure.h"
#include "bench/pool.h"
#include "bench/python.h"

enum { MEGABYTE = 1 << 20, MORE = 8 /* workers beside a first one */ };

/* Log lines with quotes, ASCII. */
static struct memfile *context_of(size_t megabytes)
{
	static const char line[] = "2026-11-22 10:00:01 \"GET /index\" 200 ok, all is well here\n";
	struct memfile *file = memfile_new("bench context");
	auto_free char *piece = xcalloc(MEGABYTE, 1);
	struct rlmd_error err;

	for (size_t i = 0; i < MEGABYTE; i++)
		piece[i] = line[i % (sizeof line - 1)];
	for (size_t i = 0; i < megabytes; i++)
		if (!memfile_append(file, text_from(piece, MEGABYTE), &err))
			measure_fail("%s", err.text);
	if (!memfile_seal(file, &err) || memfile_fd(file, &err) < 0)
		measure_fail("%s", err.text);
	return file;
}

/* The number behind a name in a file of /proc, in kB. */
static int64_t field_of(const char *path, const char *name)
{
	char line[256];
	int64_t sum = 0, value;
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, name, strlen(name)) &&
		    sscanf(line + strcspn(line, ":"), ": %" SCNd64, &value) == 1)
			sum += value;
	if (file)
		fclose(file);
	return sum;
}

/* The private memory of all descendants of a process, and their page tables; kB. */
static int64_t memory_below(pid_t pid)
{
	auto_free char *list = xasprintf("/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *children = fopen(list, "re");
	int64_t sum = 0;
	int child;

	while (children && fscanf(children, "%d", &child) == 1) {
		auto_free char *maps = xasprintf("/proc/%d/smaps_rollup", child);
		auto_free char *status = xasprintf("/proc/%d/status", child);

		sum += field_of(maps, "Private_") + field_of(status, "VmPTE") + memory_below(child);
	}
	if (children)
		fclose(children);
	return sum;
}

/* Of each worker more, in MB; the first one has what all share. */
static double memory_of_more(struct pool *pool)
{
	struct worker *workers[MORE + 1];
	int64_t before;

	pool_start_worker(pool);
	workers[MORE] = pool->worker;
	pool_settle(pool, 50);
	before = memory_below(getpid());
	for (int i = 0; i < MORE; i++) {
		pool_start_worker(pool);
		workers[i] = pool->worker;
	}
	pool_settle(pool, 50);
	before = memory_below(getpid()) - before;
	for (int i = 0; i <= MORE; i++) {
		pool->worker = workers[i];
		pool_stop_worker(pool);
	}
	pool_settle(pool, 50);
	return (double)before / MORE / 1024;
}

static double time_of_context(struct pool *pool)
{
	double start = measure_now();

	pool_start_worker(pool);
	pool_exec(pool, "assert len(context) > 1 << 20");
	start = measure_now() - start;
	pool_stop_worker(pool);
	pool_settle(pool, 20);
	return start;
}

static void measure_time(struct pool *pool, struct python *python, int count)
{
	const size_t megabytes = count > 1 ? 100 : 2;
	struct samples ours = {.what = "a worker with a context of 100 MB, and a block"};
	struct samples decode = {.what = "peer: python3 maps and decodes it"};
	struct samples json = {.what = "peer: python3 has it as JSON"};
	struct memfile *file = context_of(megabytes);
	struct rlmd_error err;
	auto_free char *map = xasprintf(
		"import mmap, os; fd = os.open('/proc/%d/fd/%d', 0); text = "
		"str(mmap.mmap(fd, 0, prot=mmap.PROT_READ), 'utf8'); os.close(fd); del text",
		(int)getpid(), memfile_fd(file, &err));
	auto_free char *frame = xasprintf(
		"import json\nframe = json.dumps(('a \"line\" of a log' + "
		"chr(10)) * %zu)",
		megabytes * MEGABYTE / 18);

	pool->context = file;
	python_time(python, frame);
	for (int i = -1; i < count; i++) {
		double took = time_of_context(pool), mapped = python_time(python, map);
		double parsed = python_time(python, "text = json.loads(frame); del text");

		if (i < 0) /* warming up */
			continue;
		samples_add(&ours, took);
		samples_add(&decode, mapped);
		samples_add(&json, parsed);
	}
	measure_at_least("7", &ours, &json, 8);
	measure_at_most("7", &ours, &decode, 1.3);
	pool->context = NULL;
	memfile_unref(file);
	samples_done(&ours);
	samples_done(&decode);
	samples_done(&json);
}

static void measure_memory(struct pool *pool, int count)
{
	struct samples large = {.what = "a further worker of a context of 256 MB", .unit = "MB"};
	struct samples idle = {.what = "a further worker that is idle", .unit = "MB"};
	struct memfile *file = context_of(count > 1 ? 256 : 2);

	for (int i = 0; i < count; i++) {
		pool->context = file;
		samples_add(&large, memory_of_more(pool));
		pool->context = NULL;
		samples_add(&idle, memory_of_more(pool));
	}
	measure_limit("8", &large, 3);
	measure_limit("9", &idle, 1);
	memfile_unref(file);
	samples_done(&large);
	samples_done(&idle);
}

int main(int argc, char **argv)
{
	struct python python;
	struct pool pool;
	int count;

	if (argc != 5)
		measure_fail("usage: context PYTHON WORKER_DIR IN_PROCESS COUNT");
	count = measure_count(argv[4]);
	python = python_start_in_process(argv[1], argv[3]);
	pool_init(&pool, argv[1], argv[2], NULL);
	measure_memory(&pool, count);
	measure_time(&pool, &python, count);
	pool_done(&pool);
	python_stop(&python);
	return measure_end();
}
