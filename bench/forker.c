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

#define BUBBLEWRAP "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"
enum { BUBBLEWRAP_WORDS = 6 };

bool forker_has_bubblewrap(void)
{
	const char *argv[] = {BUBBLEWRAP, "true", NULL};
	const char *envp[] = {LAUNCH_ENVIRONMENT, NULL};
	posix_spawn_file_actions_t actions;
	int status = 1;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!posix_spawnp(&pid, *argv, &actions, NULL, (char **)argv, (char **)envp))
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	return !status;
}

struct forker forker_start(const struct forker_config *config)
{
	/* Words before the interpreter, where there are any, come first. */
	const char *argv[] = {
		BUBBLEWRAP,         config->python,  "-I", "-S", "-B", "-X", "utf8", config->script,
		config->worker_dir, config->library, NULL};
	const char **first = config->in_bubblewrap ? argv : argv + BUBBLEWRAP_WORDS;
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
