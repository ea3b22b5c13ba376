/*
 * sandbox/mode_search.h - finds the best mode that stands, by standing in it.
 *
 * A template is started for the best mode, and tries it; then a worker that runs
 * nothing raises its walls. Where the kernel refuses a step that costs the whole
 * mode, all of it is started again one mode down, so that nothing is ever half
 * of one mode and half of another. Where it was killed or slow without a word of
 * why, there is a second try.
 */
#pragma once

#include "sandbox/layer_status.h"
#include "sandbox/template.h"
#include "sandbox/uids.h"

struct mode_search {
	struct event_base *base;        /* lent */
	struct template_config *config; /* lent: `terms.modes` is left at the mode that stands */
	struct uids *uids;              /* lent */
	template_event_fn *fn;          /* of the template that stands */
	void *owner;
	bool retried; /* there was a second try, with twice the patience; there is one in all */

	struct layer_status status; /* the result; what is noted in it already stays */

	struct template_process *begun; /* owned: the first one; NULL: none */
	uint32_t uid;                   /* for a first worker; 0: none */
};

/* Starts the first template, and waits for nothing. */
bool mode_search_begin(struct mode_search *, struct rlmd_error *);
void mode_search_done(struct mode_search *); /* where nobody awaited it, its end */

/* Of one that was begun: the template, ready, without any process; NULL where not even the last
 * mode stands. */
struct template_process *mode_search_await(struct mode_search *, const struct launch_request *usual,
					   struct rlmd_error *);

/* The request for a worker of the mode, made from the one for any worker. */
struct launch_request mode_search_request(const struct layer_status *,
					  const struct launch_request *usual, uint32_t uid);
