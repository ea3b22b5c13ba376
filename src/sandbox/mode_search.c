#include "sandbox/mode_search.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/wait.h"
#include "sandbox/child.h"
#include "sandbox/procfs.h"

#define ALL_MODES ((1U << MODE_COUNT) - 1)

struct launch_request mode_search_request(const struct layer_status *status,
					  const struct launch_request *usual, uint32_t uid)
{
	uint32_t promised = layer_status_promised(status->mode);
	struct launch_request request = *usual;

	request.layers = (status->layers | promised) & ~SUPERVISED;
	request.uid = promised & BIT(uid) ? uid : 0;
	request.threads = request.uid ? LAUNCH_THREADS : LAUNCH_THREADS_OF_ALL;
	/* From within a pid namespace the parent has no pid. */
	request.parent = promised & BIT(pid) ? 0 : getpid();
	return request;
}

static const struct launch_failure *last(const struct steps *steps)
{
	return steps->count ? &steps->failures[steps->count - 1] : NULL;
}

/* The refusal that costs the whole mode, the last of them; NULL where there is none. */
static const struct launch_failure *worst(const struct steps *steps)
{
	for (size_t i = steps->count; i; i--)
		if (layer_status_loss(&steps->failures[i - 1]) == LAYER_whole_mode)
			return &steps->failures[i - 1];
	return NULL;
}

/*
 * The first step that failed because the machine had no memory, descriptor or process left; NULL:
 * none did. Such a failure says nothing about the walls that the kernel has: neither a layer nor a
 * mode is given up for it.
 */
static const struct launch_failure *starved(const struct steps *steps)
{
	for (size_t i = 0; i < steps->count; i++)
		if (error_kind_of(steps->failures[i].error, RLMD_ERROR_SANDBOX) ==
		    RLMD_ERROR_MACHINE)
			return &steps->failures[i];
	return NULL;
}

/* A worker that raises its walls, says which of them stand, and runs nothing. */
struct trial {
	uint32_t layers;    /* that stand, also those of its template */
	const char *fallen; /* the wall that does not stand though it must, or NULL */
	struct steps steps; /* what was refused */
	bool hapless;       /* it was killed or slow, so that another may do better */
};

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
	if (!child_end(pid, clock_ms() + CHILD_END_MS, &status))
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

/* Waits for it, without the loop. False where it did not get as far as to tell. */
static bool run_trial(struct template_process *template, const struct launch_request *request,
		      int patience_ms, struct trial *trial, struct rlmd_error *err)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC), receiving = -1, sending = -1,
		       pidfd = -1, status = -1;
	struct launch_request try = *request;
	struct template_event launched;
	struct launch_trial report;
	struct procfs_status used;
	bool reported, spoke;
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
	reported = spoke && read(receiving, &report, sizeof report) == sizeof report;
	/* Tried here too: it is we who will look. Where it could not open it, it says so itself. */
	if (status >= 0 &&
	    !STEP_TRY(&trial->steps, watch, unless_gone(procfs_read(status, &used) ? 0 : -1)))
		trial->layers = BIT(watch);
	if (!end_process(launched.pid, pidfd, &trial->steps, err))
		return false;
	if (reported)
		take_report(trial, &report);
	trial->hapless = !reported;
	return reported || error_set(err, RLMD_ERROR_SANDBOX, "the first worker %s",
				     spoke ? "ended without a word" : "is too slow");
}

/* How to go on if a template, or its first worker, failed. */
enum failing { FAILS_FOR_GOOD, FAILS_IN_THIS_MODE, FAILS_BY_CHANCE };

/* Whether a worker of this template has all that its mode promises. */
static bool try_worker(struct mode_search *search, struct template_process *template,
		       const struct launch_request *usual, enum failing *ret_failing,
		       struct rlmd_error *err)
{
	struct layer_status *status = &search->status;
	struct launch_request request;
	struct trial trial;
	bool tried;

	status->layers = template_layers(template);
	request = mode_search_request(status, usual, search->uid);
	tried = run_trial(template, &request, search->config->patience_ms, &trial, err);
	if (starved(&trial.steps)) {
		*ret_failing = FAILS_BY_CHANCE;
		return layer_status_error(starved(&trial.steps), err);
	}
	layer_status_note_all(status, &trial.steps);
	if (worst(&trial.steps)) {
		*ret_failing = FAILS_IN_THIS_MODE;
		return layer_status_error(worst(&trial.steps), err);
	}
	if (trial.hapless || template_may_retry(template))
		*ret_failing = FAILS_BY_CHANCE;
	if (!tried)
		return false;
	if (trial.fallen && last(&trial.steps))
		return layer_status_error(last(&trial.steps), err);
	if (trial.fallen)
		return error_set(err, RLMD_ERROR_SANDBOX, "a wall does not stand: %s",
				 trial.fallen);
	status->layers = trial.layers;
	return true;
}

static uint32_t left_to_try(struct mode_search *search, enum failing failing, enum mode mode)
{
	uint32_t modes = search->config->terms.modes;

	switch (failing) {
	case FAILS_FOR_GOOD:
		break;
	case FAILS_IN_THIS_MODE: /* those above it were refused already, or not to be tried */
		return modes & ~((2U << mode) - 1);
	case FAILS_BY_CHANCE:
		if (search->retried)
			break;
		search->retried = true;
		search->config->patience_ms *= 2;
		return modes;
	}
	return 0;
}

static enum failing failing_of(const struct template_process *template)
{
	const struct launch_failure *refusal = last(template_refusals(template));

	/* A template that could not leave a mode again ends with that refusal. */
	if (refusal && layer_status_loss(refusal) == LAYER_whole_mode)
		return FAILS_IN_THIS_MODE;
	return template_may_retry(template) ? FAILS_BY_CHANCE : FAILS_FOR_GOOD;
}

/* One mode: the best of those that may be tried. `ret_modes` are those left to try. */
static struct template_process *search_once(struct mode_search *search,
					    const struct launch_request *usual, uint32_t *ret_modes,
					    struct rlmd_error *err)
{
	enum failing failing = FAILS_FOR_GOOD;
	const struct steps *refusals;
	struct template_process *template = take_pointer(&search->begun);
	enum mode mode;
	bool ready;

	*ret_modes = 0;
	if (!template)
		template = template_new(search->base, search->config, search->fn, search->owner,
					err);
	if (!template)
		return NULL;
	ready = template_await(template, err);
	refusals = template_refusals(template);
	if (starved(refusals)) {
		ready = layer_status_error(starved(refusals), err);
		failing = FAILS_BY_CHANCE;
	} else {
		layer_status_note_all(&search->status, refusals);
		if (!ready)
			failing = failing_of(template);
	}
	mode = failing == FAILS_IN_THIS_MODE ? (enum mode)last(refusals)->mode
					     : template_mode(template);
	search->status.mode = mode;
	if (ready && try_worker(search, template, usual, &failing, err)) {
		search->config->terms.modes = 1U << mode;
		return template;
	}
	template_free(template);
	*ret_modes = left_to_try(search, failing, mode);
	return NULL;
}

/* Without CAP_KILL, who has another uid than ours is not ours to end. */
static bool may_not_kill_strangers(const struct layer_status *status)
{
	const struct cause *cause = &status->causes[LAYER_user];

	return status->mode == MODE_userns && cause->error && cause->step == STEP_kill;
}

bool mode_search_begin(struct mode_search *search, struct rlmd_error *err)
{
	struct launch_terms *terms = &search->config->terms;
	struct steps steps = {.without = terms->without, .mode = MODE_root};

	terms->modes = ALL_MODES;
	/* Modes for root are nobody else's failure. */
	if (!geteuid())
		STEP_TRY(&steps, uid_lock, uids_lock(search->uids, UIDS_FILE));
	if (geteuid() ||
	    STEP_TRY(&steps, uid_range, uids_take(search->uids, &search->uid, err) ? 0 : -1))
		terms->modes &= ~(1U << MODE_root | 1U << MODE_uid);
	layer_status_note_all(&search->status, &steps);
	terms->uid = search->uid;
	search->begun = template_new(search->base, search->config, search->fn, search->owner, err);
	return search->begun;
}

void mode_search_done(struct mode_search *search)
{
	template_free(take_pointer(&search->begun));
}

struct template_process *mode_search_await(struct mode_search *search,
					   const struct launch_request *usual,
					   struct rlmd_error *err)
{
	struct layer_status *status = &search->status;
	struct launch_terms *terms = &search->config->terms;
	uint32_t modes = terms->modes;
	struct template_process *template = NULL;

	while (!template && modes) {
		terms->modes = modes;
		template = search_once(search, usual, &modes, err);
		if (!template && terms->uid && may_not_kill_strangers(status)) {
			terms->uid = 0; /* with our own, like an ordinary user's */
			modes |= 1U << MODE_userns;
		}
	}
	/* In a user namespace the template itself may have it. */
	if (search->uid && status->mode != MODE_userns)
		uids_give(search->uids, search->uid);
	return template;
}
