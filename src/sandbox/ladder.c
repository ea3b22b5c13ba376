#include "sandbox/ladder.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/trial.h"

#define ALL_MODES ((1U << MODE_COUNT) - 1)

struct launch_request ladder_request(const struct layer_status *status,
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

/* What to do where a template, or its first worker, came to nothing. */
enum failing { FAILS_FOR_GOOD, FAILS_IN_THIS_MODE, FAILS_BY_CHANCE };

/* Whether a worker of this template has all that its mode promises. */
static bool try_worker(struct ladder *ladder, struct template_process *template,
		       const struct launch_request *usual, enum failing *ret_failing,
		       struct rlmd_error *err)
{
	struct layer_status *status = &ladder->status;
	struct launch_request request;
	struct trial trial;
	bool tried;

	status->layers = template_layers(template);
	request = ladder_request(status, usual, ladder->uid);
	tried = trial_run(template, &request, ladder->config->patience_ms, &trial, err);
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

static uint32_t left_to_try(struct ladder *ladder, enum failing failing, enum mode mode)
{
	uint32_t modes = ladder->config->terms.modes;

	switch (failing) {
	case FAILS_FOR_GOOD:
		break;
	case FAILS_IN_THIS_MODE: /* those above it were refused already, or not to be tried */
		return modes & ~((2U << mode) - 1);
	case FAILS_BY_CHANCE:
		if (ladder->retried)
			break;
		ladder->retried = true;
		ladder->config->patience_ms *= 2;
		return modes;
	}
	return 0;
}

/* One mode: the best of those that may be tried. `ret_modes` are those left to try. */
static struct template_process *climb_once(struct ladder *ladder,
					   const struct launch_request *usual, uint32_t *ret_modes,
					   struct rlmd_error *err)
{
	enum failing failing = FAILS_FOR_GOOD;
	const struct steps *refusals;
	struct template_process *template = take_pointer(&ladder->begun);
	enum mode mode;
	bool ready;

	*ret_modes = 0;
	if (!template)
		template = template_new(ladder->base, ladder->config, ladder->fn, ladder->owner,
					err);
	if (!template)
		return NULL;
	ready = template_await(template, err);
	refusals = template_refusals(template);
	layer_status_note_all(&ladder->status, refusals);
	/* Stuck in a mode, the refusal was the last thing that was heard of it. */
	if (!ready && last(refusals) && layer_status_loss(last(refusals)) == LAYER_whole_mode)
		failing = FAILS_IN_THIS_MODE;
	else if (!ready && template_may_retry(template))
		failing = FAILS_BY_CHANCE;
	mode = failing == FAILS_IN_THIS_MODE ? (enum mode)last(refusals)->mode
					     : template_mode(template);
	ladder->status.mode = mode;
	if (ready && try_worker(ladder, template, usual, &failing, err)) {
		ladder->config->terms.modes = 1U << mode;
		return template;
	}
	template_free(template);
	*ret_modes = left_to_try(ladder, failing, mode);
	return NULL;
}

/* Without CAP_KILL, who has another uid than ours is not ours to end. */
static bool may_not_kill_strangers(const struct layer_status *status)
{
	const struct cause *cause = &status->causes[LAYER_user];

	return status->mode == MODE_userns && cause->error && cause->step == STEP_kill;
}

bool ladder_begin(struct ladder *ladder, struct rlmd_error *err)
{
	struct launch_terms *terms = &ladder->config->terms;
	struct steps steps = {.without = terms->without, .mode = MODE_root};

	terms->modes = ALL_MODES;
	/* Modes for root are nobody else's failure. */
	if (!geteuid())
		STEP_TRY(&steps, uid_lock, uids_lock(ladder->uids, UIDS_FILE));
	if (geteuid() ||
	    STEP_TRY(&steps, uid_range, uids_take(ladder->uids, &ladder->uid, err) ? 0 : -1))
		terms->modes &= ~(1U << MODE_root | 1U << MODE_uid);
	layer_status_note_all(&ladder->status, &steps);
	terms->uid = ladder->uid;
	ladder->begun = template_new(ladder->base, ladder->config, ladder->fn, ladder->owner, err);
	return ladder->begun;
}

void ladder_done(struct ladder *ladder)
{
	template_free(take_pointer(&ladder->begun));
}

struct template_process *ladder_climb(struct ladder *ladder, const struct launch_request *usual,
				      struct rlmd_error *err)
{
	struct layer_status *status = &ladder->status;
	struct launch_terms *terms = &ladder->config->terms;
	uint32_t modes = terms->modes;
	struct template_process *template = NULL;

	while (!template && modes) {
		terms->modes = modes;
		template = climb_once(ladder, usual, &modes, err);
		if (!template && terms->uid && may_not_kill_strangers(status)) {
			terms->uid = 0; /* with our own, like an ordinary user's */
			modes |= 1U << MODE_userns;
		}
	}
	/* In a user namespace the template itself may have it. */
	if (ladder->uid && status->mode != MODE_userns)
		uids_give(ladder->uids, ladder->uid);
	return template;
}
