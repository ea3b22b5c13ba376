#include "sandbox/reap.h"

#include <errno.h>
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

bool reap_child(pid_t child, int64_t deadline, int *ret_status)
{
	auto_close int pidfd = pidfd_open(child, 0); /* without one, poll() only sleeps */
	struct pollfd over = {.fd = pidfd, .events = POLLIN};
	bool killed = false, refused = false;

	*ret_status = REAP_UNKNOWN;
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

const char *reap_words(int status, char out[static REAP_WORDS])
{
	if (status == REAP_UNKNOWN)
		return "how is not known";
	snprintf(out, REAP_WORDS, "%s %d", WIFSIGNALED(status) ? "signal" : "status",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return out;
}

bool reap_session_lives(pid_t session)
{
	siginfo_t info;

	return !waitid(P_PGID, (id_t)session, &info, WEXITED | WNOHANG | WNOWAIT);
}

bool reap_session(pid_t session, int64_t deadline)
{
	while (reap_session_lives(session)) {
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
