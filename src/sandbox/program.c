#include "sandbox/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

/* clang-format off */
#define STEPS(X) \
	X(DEATH_SIGNAL, "cannot tie it to this process") \
	X(SESSION,      "cannot give it a session") \
	X(PERSONALITY,  "cannot reset its personality") \
	X(CORE,         "cannot forbid core files") \
	X(DESCRIPTORS,  "cannot arrange its descriptors") \
	X(DIRECTORY,    "cannot change to /") \
	X(EXEC,         "cannot be executed")

enum exec_step {
#define X(step, text) STEP_##step,
	STEPS(X)
#undef X
};

static const char *const step_texts[] = {
#define X(step, text) text,
	STEPS(X)
#undef X
};
/* clang-format on */

struct report {
	enum exec_step step;
	int error;
};

static void report_exit(int fd, enum exec_step step)
{
	struct report report = {step, errno};

	(void)!write(fd, &report, sizeof report);
	_exit(127);
}

/* Out of the way first, so that no descriptor is overwritten before it was moved. */
static bool arrange_descriptors(const struct program *program, int *report)
{
	int moved[PROGRAM_FDS], count, i;

	*report = fcntl(*report, F_DUPFD_CLOEXEC, 2 * PROGRAM_FDS);
	if (*report < 0)
		return false;
	for (count = 0; count < PROGRAM_FDS && program->fds[count] >= 0; count++) {
		moved[count] = fcntl(program->fds[count], F_DUPFD_CLOEXEC, 2 * PROGRAM_FDS);
		if (moved[count] < 0)
			return false;
	}
	for (i = 0; i < count; i++)
		if (dup2(moved[i], i) < 0)
			return false;
	return !close_range((unsigned)count, ~0U, CLOSE_RANGE_CLOEXEC);
}

/* In the memory of the parent, which waits: system calls only, and nothing is changed. */
static void become(const struct program *program, pid_t parent, int report)
{
	const struct rlimit none = {0, 0};
	const unsigned long usual[16] = {0}; /* the kernel's struct sigaction, of SIG_DFL */
	sigset_t empty;
	int signal;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		report_exit(report, STEP_DEATH_SIGNAL);
	if (getppid() != parent)
		_exit(127);
	if (setsid() < 0)
		report_exit(report, STEP_SESSION);
	for (signal = 1; signal < NSIG; signal++)
		syscall(SYS_rt_sigaction, signal, usual, NULL, NSIG / 8); /* not glibc's: of all */
	if (personality(PER_LINUX) < 0)
		report_exit(report, STEP_PERSONALITY);
	if (setrlimit(RLIMIT_CORE, &none))
		report_exit(report, STEP_CORE);
	if (!arrange_descriptors(program, &report))
		report_exit(report, STEP_DESCRIPTORS);
	if (chdir("/"))
		report_exit(report, STEP_DIRECTORY);
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	execve(program->path, (char *const *)program->argv, (char *const *)program->envp);
	report_exit(report, STEP_EXEC);
}

/* A function of its own: what a vfork's caller keeps in registers is at risk. */
static pid_t split(const struct program *program, int report)
{
	pid_t parent = getpid(), child = vfork();

	if (!child)
		become(program, parent, report);
	return child;
}

pid_t program_start(const struct program *program, struct rlmd_error *err)
{
	auto_close int receiving = -1, sending = -1;
	sigset_t every, before;
	struct report report;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC)) {
		error_errno(err, RLMD_ERROR_SANDBOX, "pipe");
		return -1;
	}
	receiving = ends[0];
	sending = ends[1];

	/* A handler of ours must not run in the child, which has our memory. */
	sigfillset(&every);
	sigprocmask(SIG_SETMASK, &every, &before);
	child = split(program, sending);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (child < 0) {
		error_errno(err, RLMD_ERROR_SANDBOX, "cannot start %s", program->path);
		return -1;
	}

	close(take_fd(&sending));
	if (read(receiving, &report, sizeof report) != (ssize_t)sizeof report)
		return child;
	waitpid(child, NULL, 0);
	errno = report.error;
	error_errno(err, report.step == STEP_EXEC ? RLMD_ERROR_USAGE : RLMD_ERROR_SANDBOX, "%s %s",
		    program->path, step_texts[report.step]);
	return -1;
}

const char **program_environment(const char *const *names)
{
	const char **environment;
	size_t count = 0;

	while (names[count])
		count++;
	environment = xcalloc(count + 1, sizeof *environment);
	for (count = 0; *names; names++)
		if (getenv(*names))
			environment[count++] = xasprintf("%s=%s", *names, getenv(*names));
	return environment;
}

void program_free_environment(const char **environment)
{
	for (size_t i = 0; environment[i]; i++)
		free((char *)environment[i]);
	free(environment);
}

int program_complaints(struct rlmd_error *err)
{
	int fd = memfd_create("complaints", MFD_CLOEXEC);

	if (fd < 0)
		error_errno(err, RLMD_ERROR_SANDBOX, "memfd_create");
	return fd;
}

/* Where it is too long, what went wrong stands in the last line. */
void program_complaint(int complaints, char *out, size_t out_size)
{
	char bytes[384];
	off_t end = lseek(complaints, 0, SEEK_END);
	off_t start = end > (off_t)sizeof bytes ? end - (off_t)sizeof bytes : 0;
	ssize_t got = pread(complaints, bytes, sizeof bytes, start);
	struct rlmd_text words = text_trim(text_from(bytes, got > 0 ? (size_t)got : 0));
	const char *line = start ? memrchr(words.bytes, '\n', words.size) : NULL;

	if (line)
		words = text_from(line + 1, words.size - (size_t)(line + 1 - words.bytes));
	text_escape(words, out, out_size);
}
