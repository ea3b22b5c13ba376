/*
 * What the walls cost while code runs: the same block in a worker and in a python3 that nothing
 * confines, in turn. One that only computes, and one that asks the kernel for paths all the time.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "bench/measure.h"
#include "bench/pool.h"
#include "sandbox/launch.h"

/* Long enough that sending it counts for nothing. */
static const char computing[] = "import json, re\n"
				"text = 'key = value; ' * 4000\n"
				"found = re.findall('(\\\\w+) = (\\\\w+)', text)\n"
				"value = json.loads(json.dumps([dict(found), found]))\n"
				"total = 0\n"
				"for i in range(200000): total = total * 31 + i & 0xffffffff";
/* Not by `os`, whose functions know the session's own files before they ask the kernel. */
static const char asking[] = "import ctypes\n"
			     "access = ctypes.CDLL(None).access\n"
			     "for i in range(20000): access(b'/', 0)";

struct plain {
	pid_t pid;
	FILE *in;
	int out;
};

static void expect(const struct plain *plain)
{
	char byte;

	if (read(plain->out, &byte, 1) != 1)
		measure_fail("plain.py failed");
}

static struct plain plain_start(const char *python, const char *script)
{
	const char *argv[] = {python, "-I", "-S", "-B", "-X", "utf8", script, NULL};
	const char *envp[] = {LAUNCH_ENVIRONMENT, NULL};
	posix_spawn_file_actions_t actions;
	struct plain plain;
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		measure_fail("no pipes");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	if (posix_spawnp(&plain.pid, python, &actions, NULL, (char **)argv, (char **)envp))
		measure_fail("%s did not start", python);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	plain.in = fdopen(in[1], "w");
	plain.out = out[0];
	expect(&plain);
	return plain;
}

/* The code is one line there, its line feeds escaped. */
static double plain_time(const struct plain *plain, const char *code)
{
	double start = measure_now();

	for (; *code; code++)
		fputs(*code == '\n' ? "\\n" : (char[]){*code, '\0'}, plain->in);
	fputs("\n", plain->in);
	fflush(plain->in);
	expect(plain);
	return measure_now() - start;
}

static void plain_stop(struct plain *plain)
{
	fclose(plain->in);
	close(plain->out);
	waitpid(plain->pid, NULL, 0);
}

static double worker_time(struct pool *pool, const char *code)
{
	double start = measure_now();

	pool_exec(pool, code);
	return measure_now() - start;
}

static void compare(struct pool *pool, const struct plain *plain, const char *code, int count,
		    const char *what, double target)
{
	struct samples confined = {.what = what}, free = {.what = "floor: nothing confines it"};

	for (int i = -2; i < count; i++) {
		double in_worker = worker_time(pool, code), outside = plain_time(plain, code);

		if (i < 0) /* warming up */
			continue;
		samples_add(&confined, in_worker);
		samples_add(&free, outside);
	}
	measure_at_most("15", &confined, &free, target);
	samples_done(&confined);
	samples_done(&free);
}

int main(int argc, char **argv)
{
	struct plain plain;
	struct pool pool;
	int count;

	if (argc != 5)
		measure_fail("usage: confined PYTHON WORKER_DIR PLAIN COUNT");
	count = measure_count(argv[4]);
	plain = plain_start(argv[1], argv[3]);
	pool_init(&pool, argv[1], argv[2], NULL);
	pool_start_worker(&pool);
	compare(&pool, &plain, computing, count, "confined code that computes", 1.05);
	compare(&pool, &plain, asking, count, "confined code that looks up paths", 1.2);
	pool_done(&pool);
	plain_stop(&plain);
	return measure_end();
}
