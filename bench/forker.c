#include "bench/forker.h"

#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"
#include "sandbox/launch.h"

static void expect(const struct forker *forker, char wanted)
{
	char byte;

	if (read(forker->out, &byte, 1) != 1 || byte != wanted)
		measure_fail("forker.py failed");
}

struct forker forker_start(const struct forker_config *config)
{
	/* What precedes the interpreter, where there is something, comes first. */
	const char *argv[] = {config->bubblewrap,
			      "--unshare-all",
			      "--die-with-parent",
			      "--ro-bind",
			      "/",
			      "/",
			      config->python,
			      "-I",
			      "-S",
			      "-B",
			      "-X",
			      "utf8",
			      config->script,
			      config->worker_dir,
			      config->library,
			      NULL};
	const char **first = config->bubblewrap ? argv : argv + 6;
	const char *envp[] = {LAUNCH_ENVIRONMENT, NULL};
	posix_spawn_file_actions_t actions;
	struct forker forker;
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		measure_fail("no pipes");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	if (posix_spawnp(&forker.pid, *first, &actions, NULL, (char **)first, (char **)envp))
		measure_fail("%s did not start", *first);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	forker.in = in[1];
	forker.out = out[0];
	expect(&forker, '.');
	return forker;
}

double forker_time(const struct forker *forker, char how)
{
	double start = measure_now(), end;

	if (write(forker->in, &how, 1) != 1)
		measure_fail("forker.py is gone");
	expect(forker, '!');
	end = measure_now();
	expect(forker, '.'); /* the child is reaped */
	return end - start;
}

void forker_stop(struct forker *forker)
{
	close(forker->in);
	close(forker->out);
	waitpid(forker->pid, NULL, 0);
}
