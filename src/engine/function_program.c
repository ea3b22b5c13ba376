#include "engine/function_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "sandbox/child.h"
#include "sandbox/program.h"
#include "wire/limit.h"

enum {
	READ_MAX = 64 << 10,  /* at once */
	REAP_MS = 1000,       /* for one that is killed */
	COMPLAINT_SIZE = 300, /* of what it said of its failure */
};

struct function_program {
	pid_t pid, parent;   /* who started it: it is theirs to kill */
	int pidfd;           /* owned: readable when it is over */
	int output;          /* owned: what it writes */
	int complaints;      /* owned: its standard error */
	struct event *read;  /* owned */
	struct event *ended; /* owned */
	struct evbuffer *answer;
	bool reaped;
	function_program_fn *done;
	void *owner; /* lent */
};

void function_program_free(struct function_program *program)
{
	if (!program)
		return;
	if (program->read)
		event_free(program->read);
	if (program->ended)
		event_free(program->ended);
	/* In a forked child it is the parent's. */
	if (program->pid > 0 && !program->reaped && program->parent == getpid()) {
		kill(-program->pid, SIGKILL);
		child_end(program->pid, clock_ms() + REAP_MS, &(int){0});
	}
	cleanup_close(&program->pidfd);
	cleanup_close(&program->output);
	cleanup_close(&program->complaints);
	evbuffer_free(program->answer);
	free(program);
}

/* C3: whoever hears of it frees it. */
static void end_with(struct function_program *program, const struct rlmd_error *err)
{
	event_del(program->read);
	event_del(program->ended);
	program->done(program->owner, err ? text_of("") : text_in(program->answer), err);
}

/* False: nothing more comes, or nothing for now. */
static bool read_piece(struct function_program *program)
{
	char bytes[READ_MAX];
	ssize_t got = read(program->output, bytes, sizeof bytes);

	if (got > 0)
		buffer_add(program->answer, bytes, (size_t)got);
	if (!got)
		event_del(program->read);
	return got > 0 && evbuffer_get_length(program->answer) <= ANSWER_MAX;
}

static bool is_too_long(const struct function_program *program, struct rlmd_error *err)
{
	return evbuffer_get_length(program->answer) > ANSWER_MAX &&
	       !error_set(err, RLMD_ERROR_FUNCTION, "its program wrote more than %d MiB",
			  ANSWER_MAX >> 20);
}

static void on_read(evutil_socket_t fd, short what, void *owner)
{
	struct function_program *program = owner;
	struct rlmd_error err;

	(void)fd;
	(void)what;
	read_piece(program);
	if (is_too_long(program, &err))
		end_with(program, &err);
}

static bool succeeded(struct function_program *program, int status, struct rlmd_error *err)
{
	char complaint[COMPLAINT_SIZE];

	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	program_complaint(program->complaints, complaint, sizeof complaint);
	return error_set(err, RLMD_ERROR_FUNCTION, "its program %s %d%s%s",
			 WIFEXITED(status) ? "ended with exit status" : "was killed by signal",
			 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
			 *complaint ? ": " : "", complaint);
}

/* The pipe still holds what the program wrote before. */
static void on_ended(evutil_socket_t fd, short what, void *owner)
{
	struct function_program *program = owner;
	struct rlmd_error err;
	int status = 0;

	(void)fd;
	(void)what;
	while (read_piece(program))
		;
	kill(-program->pid, SIGKILL); /* what it left in its session; its number is still its own */
	child_end(program->pid, clock_ms() + REAP_MS, &status);
	program->reaped = true;
	if (is_too_long(program, &err) || !succeeded(program, status, &err))
		end_with(program, &err);
	else
		end_with(program, NULL);
}

/* They say where things are and how to speak. */
static const char *const kept[] = {"PATH",   "HOME",  "USER",   "LOGNAME",  "LANG", "TZ",
				   "TMPDIR", "SHELL", "LC_ALL", "LC_CTYPE", NULL};

static bool launch(struct function_program *program, const char *const *argv, int input, int output,
		   struct rlmd_error *err)
{
	const char **environment = program_environment(kept);
	const struct program start = {
		.path = argv[0],
		.argv = argv,
		.envp = environment,
		.fds = {input, output, program->complaints, -1},
	};

	program->pid = program_start(&start, err);
	program_free_environment(environment);
	if (program->pid < 0)
		return false;
	program->pidfd = pidfd_open(program->pid, 0);
	return program->pidfd >= 0 || error_errno(err, RLMD_ERROR_INTERNAL, "pidfd_open");
}

struct function_program *function_program_start(struct event_base *base, const char *const *argv,
						struct rlmd_text text, function_program_fn *done,
						void *owner, struct rlmd_error *err)
{
	struct function_program *program = xcalloc(1, sizeof *program);
	auto_close int input = file_in_memory("rlmd-arguments", text, err);
	int ends[2] = {-1, -1};
	bool ok;

	*program = (struct function_program){
		.pid = -1, .parent = getpid(), .pidfd = -1, .output = -1, .done = done};
	program->owner = owner;
	program->answer = buffer_new();
	program->complaints = program_complaints(err);
	ok = input >= 0 && program->complaints >= 0;
	if (ok && pipe2(ends, O_CLOEXEC))
		ok = error_errno(err, RLMD_ERROR_INTERNAL, "a pipe for a function");
	program->output = ends[0];
	ok = ok && launch(program, argv, input, ends[1], err);
	cleanup_close(&ends[1]);
	if (!ok) {
		function_program_free(program);
		return NULL;
	}
	fcntl(program->output, F_SETFL, O_NONBLOCK);
	program->read = loop_event(base, program->output, EV_READ | EV_PERSIST, on_read, program);
	program->ended = loop_event(base, program->pidfd, EV_READ, on_ended, program);
	loop_add(program->read, NULL);
	loop_add(program->ended, NULL);
	return program;
}
