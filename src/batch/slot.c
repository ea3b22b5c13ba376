#include "batch/slot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "batch/dispatcher_private.h"
#include "batch/disposition.h"
#include "batch/job_journal.h"
#include "batch/purse.h"
#include "batch/scoreboard.h"
#include "batch/tenancies.h"
#include "batch/turns.h"
#include "batch/work.h"
#include "store/store.h"

enum { SHORT_MS = 1000 };

void slot_free(struct slot *slot)
{
	struct dispatcher *dispatcher = slot->dispatcher;

	TAILQ_REMOVE(&dispatcher->slots, slot, next);
	dispatcher->used--;
	slot->turn->at_work--;
	store_forget(slot->query);
	scoreboard_leave(slot->shown, false);
	work_free(slot->work);
	job_journal_free(slot->journal);
	purse_leave(slot->purse, slot->succeeded);
	free((char *)slot->line.bytes);
	free(slot);
	dispatcher_proceed(dispatcher);
}

/* --- what became of a job ------------------------------------------------------------- */

static void on_written(void *owner, const struct store_result *result)
{
	struct slot *slot = owner;
	struct dispatcher *dispatcher = slot->dispatcher;

	slot->query = NULL;
	dispatcher->looked = false;
	if (result->fault && result->fault != STORE_REFUSED)
		dispatcher_fail(dispatcher, result);
	scoreboard_leave(take_pointer(&slot->shown), !result->fault);
	slot_free(slot);
}

static void on_finished(void *owner, const struct store_result *result)
{
	struct slot *slot = owner;
	struct dispatcher *dispatcher = slot->dispatcher;

	on_written(slot, result);
	if (!result->fault)
		dispatcher->options.wrote(dispatcher->options.owner);
}

static void finish(struct slot *slot, const struct work_end *end, bool untried)
{
	const struct store_outcome outcome = {
		.succeeded = !end->error.kind,
		.result = end->result,
		.error = text_of(end->error.kind ? rlmd_error_name(end->error.kind) : NULL),
		.cost = end->cost,
		.tokens = end->tokens,
		.trace = end->trace,
		.untried = untried,
	};

	slot->succeeded = !end->error.kind;
	scoreboard_end(slot->shown, end,
		       end->error.kind ? SCOREBOARD_FAILED : SCOREBOARD_SUCCEEDED);
	dispatcher_note_end(slot->dispatcher, !end->error.kind);
	slot->query = store_finish(slot->dispatcher->options.store, &slot->claim, &outcome,
				   on_finished, slot);
}

/* Back to those that wait, as if it had not been begun; or later, as another attempt. */
static void give_back(struct slot *slot, int64_t delay_ms, enum rlmd_error_kind kind, bool counts)
{
	int64_t due_ms = clock_ms() + delay_ms;

	slot->query = store_postpone(slot->dispatcher->options.store, &slot->claim, delay_ms,
				     text_of(kind ? rlmd_error_name(kind) : NULL), counts,
				     on_written, slot);
	if (due_ms < slot->turn->due_ms)
		slot->turn->due_ms = due_ms;
}

static void retry(struct slot *slot, const struct work_end *end)
{
	uint32_t random = 0;

	if (slot->attempts >= slot->dispatcher->options.max_attempts) {
		finish(slot, end, false);
		return;
	}
	if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
		random = (uint32_t)clock_us();
	scoreboard_end(slot->shown, end, SCOREBOARD_RETRIED);
	give_back(slot, disposition_delay(slot->attempts, random), end->error.kind, true);
}

static void trip(struct slot *slot, const struct work_end *end)
{
	struct dispatcher *dispatcher = slot->dispatcher;
	const struct dispatcher_options *options = &dispatcher->options;
	struct turn *turn = slot->turn;
	const char *provider = turn->tenancy->provider ? turn->tenancy->provider
						       : options->work.job.provider;

	if (turn->stop != TURN_KEY) {
		turns_stop(&dispatcher->turns, turn, TURN_KEY, INT64_MAX);
		store_breaker_open(options->store, options->batch, text_of(turn->tenant),
				   text_of(provider), text_of(end->error.text), NULL, NULL);
		scoreboard_explain(options->board, turn->tenant, end->error.text);
		options->refused(options->owner, turn->tenant, &end->error);
	}
	scoreboard_end(slot->shown, end, SCOREBOARD_RETURNED);
	give_back(slot, 0, end->error.kind, false);
}

/* It was not its own limit: with more money it may have an answer, and until then it waits. After
 * others, for it may be one that wants more than they do. */
static void run_short(struct slot *slot, const struct work_end *end)
{
	purse_note_short(slot->purse, end->limited_by, end->error.stop);
	scoreboard_end(slot->shown, end, SCOREBOARD_RETURNED);
	give_back(slot, SHORT_MS, RLMD_ERROR_NONE, false);
}

static void on_work(void *owner, const struct work_end *end)
{
	struct slot *slot = owner;

	if (slot->lost || slot->dispatcher->error.kind) {
		slot_free(slot);
		return;
	}
	if (end->limited_by) {
		run_short(slot, end);
		work_free(take_pointer(&slot->work));
		return;
	}
	switch (disposition_of(end->error.kind)) {
	case DISPOSITION_FAIL:
		finish(slot, end, false);
		break;
	case DISPOSITION_RETRY:
		retry(slot, end);
		break;
	case DISPOSITION_BREAKER:
		trip(slot, end);
		break;
	case DISPOSITION_BACK:
		scoreboard_end(slot->shown, end, SCOREBOARD_RETURNED);
		give_back(slot, slot->dispatcher->draining ? 0 : SOON_MS, RLMD_ERROR_NONE, false);
		break;
	}
	work_free(take_pointer(&slot->work));
}

/* --- its work ------------------------------------------------------------------------ */

static void on_journal(void *owner, const struct rlmd_error *err)
{
	struct slot *slot = owner;
	struct dispatcher *dispatcher = slot->dispatcher;

	if (slot->lost) {
		slot_free(slot);
		return;
	}
	if (err || dispatcher->draining) {
		if (err && !dispatcher->error.kind)
			dispatcher->error = *err;
		dispatcher->draining = true;
		give_back(slot, 0, RLMD_ERROR_NONE, false);
		return;
	}
	slot->work = work_new(&dispatcher->options.work, slot->turn->tenancy, slot->line,
			      job_journal_hooks(slot->journal), slot->account, on_work, slot);
	free((char *)slot->line.bytes);
	slot->line = (struct rlmd_text){0};
}

/* Nobody said how its last attempt ended: rlmd or the machine went with it. One such job must not
 * take down for ever who begins it. */
static void bury(struct slot *slot)
{
	struct work_end end = {.error.kind = RLMD_ERROR_NONE};
	auto_free char *result = NULL;

	error_set(&end.error, RLMD_ERROR_WORKER,
		  "begun %" PRId64
		  " times, and the last time rlmd was ended with it (killed, out of "
		  "memory, or the machine stopped): it is not begun again, as it may be the cause; "
		  "--rerun-failed tries it anew",
		  slot->attempts - 1);
	result = work_no_result(&end.error);
	end.result = text_of(result);
	finish(slot, &end, true);
}

void slot_begin(struct slot *slot, const struct store_job *job)
{
	struct dispatcher *dispatcher = slot->dispatcher;

	slot->claim = (struct store_claim){job->id, job->token};
	slot->attempts = job->attempts;
	slot->shown = scoreboard_begin(dispatcher->options.board, job);
	if (slot->attempts > dispatcher->options.max_attempts) {
		bury(slot);
		return;
	}
	slot->line = text_from(xstrndup(job->line.bytes, job->line.size), job->line.size);
	slot->journal = job_journal_new(dispatcher->options.store, &slot->claim, slot->purse,
					on_journal, slot);
}

void slot_lose(struct slot *slot)
{
	slot->lost = true;
	if (slot->work)
		work_cancel(slot->work);
}
