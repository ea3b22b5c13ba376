#include "bench/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"

enum { ARGUMENTS = 8 };

struct server server_start(const char *program, ...)
{
	const char *argv[ARGUMENTS + 2] = {program};
	struct server server;
	int out[2], port, got;
	va_list arguments;
	FILE *said;

	va_start(arguments, program);
	for (int i = 1; i <= ARGUMENTS && (argv[i] = va_arg(arguments, const char *)); i++)
		;
	va_end(arguments);
	if (pipe2(out, O_CLOEXEC))
		measure_fail("no pipe");
	server.pid = fork();
	if (server.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		execv(program, (char **)argv);
		_exit(127);
	}
	close(out[1]);
	said = fdopen(out[0], "r");
	got = said ? fscanf(said, "%d", &port) : 0;
	if (server.pid < 0 || got != 1)
		measure_fail("%s did not start", program);
	fclose(said);
	snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d", port);
	return server;
}

void server_stop(struct server *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
}
