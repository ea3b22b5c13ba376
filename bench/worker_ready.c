/*
 * From asking for a worker until its Python, confined, has said that it is
 * ready; beside it what forks of an interpreter with the same things loaded
 * take, without walls and without a word. The three are taken in turn.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/pool.h"
#include "sandbox/launch.h"

/* bench/forker.py: forks at each byte that it gets. */
struct forker {
	pid_t pid;
	int in, out;
};

static struct forker forker_start(const char *python, const char *script, const char *worker_dir,
				  const char *library)
{
	const char *argv[] = {python, "-I",   "-S",       "-B",    "-X",
			      "utf8", script, worker_dir, library, NULL};
	const char *envp[] = {LAUNCH_ENVIRONMENT, NULL};
	posix_spawn_file_actions_t actions;
	struct forker forker;
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		measure_fail("no pipes");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	if (posix_spawnp(&forker.pid, python, &actions, NULL, (char **)argv, (char **)envp))
		measure_fail("%s did not start", python);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	forker.in = in[1];
	forker.out = out[0];
	return forker;
}

static void expect(const struct forker *forker, char wanted)
{
	char byte;

	if (read(forker->out, &byte, 1) != 1 || byte != wanted)
		measure_fail("forker.py failed");
}

static double forker_time(const struct forker *forker, char how)
{
	double start = measure_now(), end;

	if (write(forker->in, &how, 1) != 1)
		measure_fail("forker.py is gone");
	expect(forker, '!');
	end = measure_now();
	expect(forker, '.'); /* the child is reaped */
	return end - start;
}

static void forker_stop(struct forker *forker)
{
	close(forker->in);
	close(forker->out);
	waitpid(forker->pid, NULL, 0);
}

int main(int argc, char **argv)
{
	struct samples ready = {.what = "worker ready: forked, confined, in touch"};
	struct samples python = {.what = "floor: os.fork + os.write, the same preloaded"};
	struct samples bare = {.what = "floor: bare fork of the same interpreter"};
	struct forker forker;
	struct pool pool;
	int count;

	if (argc != 6)
		measure_fail("usage: worker_ready PYTHON WORKER_DIR FORKER LIBRARY COUNT");
	count = measure_count(argv[5]);
	forker = forker_start(argv[1], argv[3], argv[2], argv[4]);
	expect(&forker, '.');
	pool_init(&pool, argv[1], argv[2], NULL);

	for (int i = -5; i < count; i++) {
		double start = measure_now(), worker, fork_python, fork_bare;

		pool_start_worker(&pool);
		worker = measure_now() - start;
		pool_stop_worker(&pool);
		pool_settle(&pool, 5);
		fork_python = forker_time(&forker, 'p');
		fork_bare = forker_time(&forker, 'b');
		if (i < 0) /* warming up */
			continue;
		samples_add(&ready, worker);
		samples_add(&python, fork_python);
		samples_add(&bare, fork_bare);
	}
	measure_at_most("1", &ready, &python, 2);
	measure_at_most("1", &ready, &bare, 4);

	samples_done(&ready);
	samples_done(&python);
	samples_done(&bare);
	pool_done(&pool);
	forker_stop(&forker);
	return measure_end();
}
