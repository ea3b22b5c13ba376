#include "sandbox/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/wait.h"
#include "sandbox/footprint.h"
#include "sandbox/reap.h"

/* Where the host ignores SIGCHLD a worker that has ended is gone at once, and refuses nothing. */
static long unless_gone(long failed)
{
	return failed && errno == ESRCH ? 0 : failed;
}

/* That it can be killed is a wall too: it is done even where the process ends of itself. */
static bool end_process(pid_t pid, int pidfd, struct steps *steps, struct rlmd_error *err)
{
	int status;

	STEP_TRY(steps, kill, unless_gone(syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0)));
	if (!reap_child(pid, clock_ms() + REAP_TIME_MS, &status))
		return error_set(err, RLMD_ERROR_SANDBOX, "the first worker does not end");
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		return error_set(err, RLMD_ERROR_SANDBOX, "the first worker died of SIG%s",
				 sigabbrev_np(WTERMSIG(status)));
	return true;
}

static void take_report(struct trial *trial, const struct launch_trial *report)
{
	static const char *const meanings[] = {
#define WALL(name, layer, meaning) meaning,
#include "sandbox/walls.def"
#undef WALL
	};

	trial->layers |= report->layers;
	if (report->fallen >= 0 && report->fallen < WALL_COUNT)
		trial->fallen = meanings[report->fallen];
	else if (!(trial->layers & BIT(watch)))
		trial->fallen = meanings[WALL_watched];
	for (uint32_t i = 0; i < report->failure_count && i < LAUNCH_FAILURES_MAX; i++) {
		if (report->failures[i].step >= STEP_COUNT)
			continue;
		errno = report->failures[i].error;
		steps_note(&trial->steps, (enum step)report->failures[i].step, -1);
	}
}

/* The namespace's refusal, where there is one, is the mode's; any other is that of a fork. */
static bool note_fork(struct trial *trial, const struct launch_request *request, int error)
{
	errno = error;
	steps_note(&trial->steps, request->layers & BIT(pid) ? STEP_pid_namespace : STEP_fork, -1);
	trial->fallen = "a process of its own";
	return true;
}

bool trial_run(struct template_process *template, const struct launch_request *request,
	       int patience_ms, struct trial *trial, struct rlmd_error *err)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC), receiving = -1, sending = -1,
		       pidfd = -1, status = -1;
	struct launch_request try = *request;
	struct template_event launched;
	struct launch_trial report;
	struct footprint footprint;
	bool told, spoke;
	int ends[2];

	*trial = (struct trial){.steps = *template_refusals(template)};
	trial->steps.count = 0;
	try.trial = 1;
	if (null < 0 || pipe2(ends, O_CLOEXEC))
		return error_errno(err, RLMD_ERROR_SANDBOX, "no descriptors for the first worker");
	receiving = ends[0];
	sending = ends[1];
	if (!template_launch(template, &try, (int[]){null, null, sending}, 3, &launched, err))
		return false;
	if (launched.error)
		return note_fork(trial, request, launched.error);
	pidfd = launched.pidfd;
	status = launched.status;
	close(take_fd(&sending));
	spoke = wait_for(receiving, POLLIN, clock_ms() + patience_ms, 0) == WAIT_READY;
	told = spoke && read(receiving, &report, sizeof report) == sizeof report;
	/* Tried here too: it is we who will look. Where it could not open it, it says so itself. */
	if (status >= 0 && !STEP_TRY(&trial->steps, watch,
				     unless_gone(footprint_read(status, &footprint) ? 0 : -1)))
		trial->layers = BIT(watch);
	if (!end_process(launched.pid, pidfd, &trial->steps, err))
		return false;
	if (told)
		take_report(trial, &report);
	trial->hapless = !told;
	return told || error_set(err, RLMD_ERROR_SANDBOX, "the first worker %s",
				 spoke ? "ended without a word" : "is too slow");
}
