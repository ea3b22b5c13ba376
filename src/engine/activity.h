/*
 * engine/activity.h - what a job has under way: its runs, and its calls of models.
 *
 * A run or a call embeds an activity and stands in its scope's list from its start to its end, also
 * while it waits.
 */
#pragma once

#include <rlmd/job.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct llm_request;

struct activity {
	const struct llm_request *request; /* lent: of a call; NULL: it is a run */
	const char *run;                   /* lent: the id of the run, or of who asks */
	const char *parent, *model;        /* lent: of a run; no parent: NULL */
	struct rlmd_text task;             /* lent: of a run */
	int depth, turn;                   /* of the run */
	int64_t since;                     /* on clock_ms() */
	bool sent;                         /* a call: not in line any more */
	TAILQ_ENTRY(activity) entry;
};

TAILQ_HEAD(activity_list, activity);

void activity_begin(struct activity_list *, struct activity *); /* its members are set */
void activity_end(struct activity_list *, struct activity *);

int activity_deepest(const struct activity_list *);   /* depth of the deepest run; or 0 */
int64_t activity_calls(const struct activity_list *); /* that were sent */

struct rlmd_activity activity_show(const struct activity *); /* lent as the activity is */
