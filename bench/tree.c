/*
 * The cost of a repository of 20,000 files and 100 MB, or of so many files and lines, as a context:
 * the time beside git that lists the same files and cat that reads them, and the memory that it
 * holds beside the bytes of its text.
 */
#include <rlmd/context.h>

#include <event2/event.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "bench/loop_held.h"
#include "bench/measure.h"

enum { FOLDERS = 200, HELD_MS = 5 };

static char room[] = "/tmp/rlmd-bench-XXXXXX";

/* Source code, in folders two levels deep. `lines` of each file; 0: 60 and 100 in turn. */
static void make_files(int files, int lines)
{
	for (int i = 0; i < files; i++) {
		auto_free char *folder = xasprintf("%s/part%d", room, i % FOLDERS);
		auto_free char *path = xasprintf("%s/file%d.c", folder, i);
		FILE *file;

		mkdir(folder, 0755);
		file = fopen(path, "we");
		if (!file)
			measure_fail("cannot write %s", path);
		for (int line = 0; line < (lines ? lines : 60 + i % 2 * 40); line++)
			fprintf(file,
				"%s_%d_%d(int given) { return given + %d; } /* what it is */\n",
				"static int value", i, line, line);
		fclose(file);
	}
}

/* A shell, in the directory that is ours. */
static void run(const char *command)
{
	char shell[] = "sh", option[] = "-c";
	char *arguments[] = {shell, option, (char *)command, NULL};
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, "sh", NULL, NULL, arguments, environ) ||
	    waitpid(pid, &status, 0) != pid || status)
		measure_fail("failed: %s", command);
}

static void make_repository(int files, int lines)
{
	auto_free char *command = NULL;

	if (!mkdtemp(room))
		measure_fail("no directory for a repository");
	make_files(files, lines);
	command = xasprintf("cd %s && git init -q . && git add -A", room);
	run(command);
}

static void remove_repository(void)
{
	auto_free char *command = xasprintf("rm -rf %s", room);

	run(command);
}

static double time_of_floor(void)
{
	auto_free char *command = xasprintf("cd %s && git ls-files -z --cached --others "
					    "--exclude-standard | xargs -0 cat >/dev/null",
					    room);
	double start = measure_now();

	run(command);
	return measure_now() - start;
}

static double anonymous(void)
{
	char line[256];
	double value = 0;
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, "RssAnon:", 8))
			value = strtod(line + 8, NULL) * 1024;
	if (file)
		fclose(file);
	return value;
}

/* Of every memory file that this process has. */
static double memory_files(void)
{
	double sum = 0;

	for (int fd = 3; fd < 256; fd++) {
		auto_free char *path = xasprintf("/proc/self/fd/%d", fd);
		char target[64] = "";
		struct stat st;

		if (readlink(path, target, sizeof target - 1) > 0 &&
		    !strncmp(target, "/memfd:", 7) && !fstat(fd, &st))
			sum += (double)st.st_blocks * 512;
	}
	return sum;
}

static double load(struct samples *held, struct samples *bytes)
{
	const char *const sources[] = {room};
	struct rlmd_context_input input = {.size = sizeof input};
	struct rlmd_error err;
	double before = anonymous(), start = measure_now(), took;
	struct rlmd_context *context = rlmd_context_load(sources, 1, NULL, &err);

	if (!context)
		measure_fail("%s", err.text);
	took = measure_now() - start;
	rlmd_context_get_input(context, 0, &input);
	samples_add(held, (anonymous() - before + memory_files()) / (1 << 20));
	samples_add(bytes, (double)input.content.size / (1 << 20));
	rlmd_context_unref(context);
	return took;
}

struct loading {
	struct loop_held *held;
	double most;
};

static void on_loaded(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct loading *loading = owner;

	if (!context)
		measure_fail("%s", err->text);
	rlmd_context_unref(context);
	loading->most = loop_held_end(loading->held);
}

static double hold(void)
{
	const char *source = room;
	struct event_base *base = loop_new();
	struct loading loading = {.held = loop_held_begin(base)};
	struct rlmd_error err;

	if (!rlmd_context_load_start(base, &source, 1, NULL, on_loaded, &loading, &err))
		measure_fail("%s", err.text);
	event_base_dispatch(base);
	event_base_free(base);
	return loading.most;
}

int main(int argc, char **argv)
{
	struct samples ours = {.what = "a repository as a context"};
	struct samples floor = {.what = "floor: git ls-files, and cat"};
	struct samples held = {.what = "the memory that it holds", .unit = "MB"};
	struct samples bytes = {.what = "floor: the bytes of the text", .unit = "MB"};
	struct samples loop = {.what = "the loop, held while they load, CPU", .unit = "ms"};
	struct samples warming = {0};
	int count;

	if (argc != 2 && argc != 4)
		measure_fail("usage: tree COUNT [FILES LINES]");
	count = measure_count(argv[1]);
	if (argc == 4)
		make_repository(measure_count(argv[2]), measure_count(argv[3]));
	else
		make_repository(count > 1 ? 20000 : 200, 0); /* one sample shows that it runs */
	for (int i = -1; i < count; i++) {
		double took = load(i < 0 ? &warming : &held, i < 0 ? &warming : &bytes);
		double listed = time_of_floor();

		if (i < 0)
			continue;
		samples_add(&ours, took);
		samples_add(&floor, listed);
		samples_add(&loop, hold());
	}
	remove_repository();
	measure_at_most("19", &ours, &floor, 1.5);
	measure_at_most("19", &held, &bytes, 1.2);
	measure_limit("17", &loop, HELD_MS);
	samples_done(&ours);
	samples_done(&floor);
	samples_done(&held);
	samples_done(&bytes);
	samples_done(&loop);
	samples_done(&warming);
	return measure_end();
}
