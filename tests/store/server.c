#include "server.h"

#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <libpq-fe.h>

static char programs[256], home[128], data[160], log_file[160], address[256];
static pid_t server;

const char *server_missing(void)
{
	glob_t found;

	if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) || !found.gl_pathc)
		return "PostgreSQL's server is not installed (tools/setup --all installs it)";
	snprintf(programs, sizeof programs, "%s", found.gl_pathv[found.gl_pathc - 1]);
	*strrchr(programs, '/') = 0;
	globfree(&found);
	return NULL;
}

/* A program of the server's, in a session of its own, as somebody who may run it. It looks for the
 * others where its own name says that it is itself: `args` have room for that. */
static pid_t run(const char *name, const char **args)
{
	struct passwd *nobody = geteuid() ? NULL : getpwnam("nobody");
	char path[512];
	pid_t parent = getpid(), pid;

	snprintf(path, sizeof path, "%s/%s", programs, name);
	if ((pid = fork()))
		return pid;
	if (nobody && (setgid(nobody->pw_gid) || setuid(nobody->pw_uid)))
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGQUIT); /* it ends its own processes, at once */
	if (getppid() != parent || chdir(home))
		_exit(126);
	setsid();
	dup2(open(log_file, O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
	dup2(1, 2);
	setenv("LC_ALL", "C", 1);
	args[0] = path;
	execv(path, (char *const *)args);
	_exit(127);
}

void server_make(const char *directory)
{
	const char *args[] = {"initdb", "-D", data, "-A",   "trust",       "-U",
			      "rlmd",   "-N", "-E", "UTF8", "--no-locale", NULL};
	struct passwd *nobody = getpwnam("nobody");
	int status;

	snprintf(home, sizeof home, "%s", directory);
	snprintf(data, sizeof data, "%s/data", directory);
	snprintf(log_file, sizeof log_file, "%s/log", directory);
	snprintf(address, sizeof address, "postgresql://rlmd@/postgres?host=%s", directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	if (!geteuid())
		assert_int_equal(chown(directory, nobody->pw_uid, nobody->pw_gid), 0);
	assert_true(waitpid(run("initdb", args), &status, 0) > 0);
	assert_int_equal(status, 0);
}

void server_start(void)
{
	const char *args[] = {"postgres",
			      "-D",
			      data,
			      "-k",
			      home,
			      "-c",
			      "listen_addresses=",
			      "-c",
			      "fsync=off",
			      "-c",
			      "full_page_writes=off",
			      "-c",
			      "shared_buffers=8MB",
			      "-c",
			      "max_connections=20",
			      "-c",
			      "autovacuum=off",
			      "-c",
			      "max_worker_processes=0",
			      "-c",
			      "max_parallel_workers=0",
			      "-c",
			      "wal_level=minimal",
			      "-c",
			      "max_wal_senders=0",
			      "-c",
			      "dynamic_shared_memory_type=mmap",
			      NULL};
	PGPing ping;

	server = run("postgres", args);
	while ((ping = PQping(address)) != PQPING_OK) {
		int status;

		assert_int_equal(waitpid(server, &status, WNOHANG), 0);
		usleep(10 * 1000);
	}
}

static void end(int signal)
{
	int status;

	kill(server, signal);
	assert_int_equal(waitpid(server, &status, 0), server);
	server = 0;
}

void server_kill(void)
{
	end(SIGQUIT);
}

void server_stop(void)
{
	if (server)
		end(SIGINT);
}

void server_ask(const char *sql)
{
	PGconn *conn = PQconnectdb(address);
	PGresult *answer;

	PQclear(PQexec(conn, "SET client_min_messages = warning"));
	answer = PQexec(conn, sql);

	if (PQresultStatus(answer) != PGRES_COMMAND_OK && PQresultStatus(answer) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(conn));
	PQclear(answer);
	PQfinish(conn);
}

const char *server_address(void)
{
	return address;
}
