#include "bench/python.h"

#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"
#include "sandbox/launch.h"

struct python python_start(const char *const *argv)
{
	const char *envp[] = {LAUNCH_ENVIRONMENT, NULL};
	posix_spawn_file_actions_t actions;
	struct python python;
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		measure_fail("no pipes");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	if (posix_spawnp(&python.pid, *argv, &actions, NULL, (char **)argv, (char **)envp))
		measure_fail("%s did not start", *argv);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	python.in = fdopen(in[1], "w");
	python.out = fdopen(out[0], "r");
	return python;
}

struct python python_start_in_process(const char *path, const char *script)
{
	return python_start((const char *[]){path, "-I", "-S", "-B", "-X", "utf8", script, NULL});
}

double python_time(const struct python *python, const char *code)
{
	double took;

	for (; *code; code++)
		fputs(*code == '\n' ? "\\n" : (char[]){*code, '\0'}, python->in);
	fputs("\n", python->in);
	fflush(python->in);
	if (fscanf(python->out, "%lf", &took) != 1)
		measure_fail("what runs blocks beside ours failed");
	return took;
}

void python_stop(struct python *python)
{
	fclose(python->in);
	fclose(python->out);
	waitpid(python->pid, NULL, 0);
}
