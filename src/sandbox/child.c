#include "sandbox/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { LOOK_MS = 5 }; /* between two looks, where no event tells of the end */

static int end(pid_t child, int pidfd)
{
	return pidfd < 0 ? kill(child, SIGKILL) : pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

bool child_end(pid_t child, int64_t deadline, int *ret_status)
{
	auto_close int pidfd = pidfd_open(child, 0); /* without one, poll() only sleeps */
	struct pollfd over = {.fd = pidfd, .events = POLLIN};
	bool killed = false, refused = false;

	*ret_status = CHILD_STATUS_UNKNOWN;
	for (;;) {
		pid_t got = waitpid(child, ret_status, WNOHANG);
		int64_t left = deadline - clock_ms();

		if (got == child || (got < 0 && errno != EINTR))
			return true;
		/* Only now is it known to be ours, and so not a stranger that got its number. */
		if (!got && !killed) {
			refused = end(child, pidfd) && errno == EPERM;
			killed = true;
			continue;
		}
		if (left <= 0)
			break;
		poll(&over, 1, pidfd < 0 ? LOOK_MS : (int)left);
	}
	errno = refused ? EPERM : ETIMEDOUT;
	return false;
}

const char *child_status_words(int status, char out[static CHILD_WORDS])
{
	if (status == CHILD_STATUS_UNKNOWN)
		return "how is not known";
	snprintf(out, CHILD_WORDS, "%s %d", WIFSIGNALED(status) ? "signal" : "status",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return out;
}

bool child_session_lives(pid_t session)
{
	siginfo_t info;

	return !waitid(P_PGID, (id_t)session, &info, WEXITED | WNOHANG | WNOWAIT);
}

bool child_end_session(pid_t session, int64_t deadline)
{
	while (child_session_lives(session)) {
		siginfo_t info = {0};

		kill(-session, SIGKILL);
		if (!waitid(P_PGID, (id_t)session, &info, WEXITED | WNOHANG) && info.si_pid)
			continue;
		if (clock_ms() >= deadline)
			return false;
		poll(NULL, 0, LOOK_MS);
	}
	return true;
}

bool child_open_pipes(int ret_ours[2], int ret_theirs[2], struct rlmd_error *err)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC))
		return error_errno(err, RLMD_ERROR_SANDBOX, "no pipes for a worker");
	if (pipe2(from, O_CLOEXEC)) {
		error_errno(err, RLMD_ERROR_SANDBOX, "no pipes for a worker");
		close(to[0]);
		close(to[1]);
		return false;
	}
	ret_ours[0] = from[0];
	ret_ours[1] = to[1];
	ret_theirs[0] = to[0];
	ret_theirs[1] = from[1];
	return true;
}
