/*
 * fake_engine.h - jobs, groups and sandboxes of an engine as batch uses them, for tests of batch.
 *
 * The test says how a job ends: by its task, from the loop after its start; or one that `stays`
 * ends by fake_engine_end(). No model is asked, and no code runs.
 */
#pragma once

#include <rlmd/job.h>

struct event_base;

struct fake_answer {
	enum rlmd_error_kind error; /* NONE: there is an answer */
	bool stays, degraded, forced;
	int64_t cost, tokens, journaled_cost, journaled_tokens;
	const char *limited_by;
	enum rlmd_stop stop;
};

/* The options that it was started with, copied. */
struct rlmd_job {
	char *task, *schema, *model, *provider; /* owned; NULL: not said */
	struct rlmd_limits limits;
	const struct rlmd_context *context; /* lent */
	bool ends_with_account;
	/* private */
	struct rlmd_hooks hooks;
	struct fake_answer answer;
	struct event *end;
	bool over;
};

enum { FAKE_ENGINE_MOST = 64 };

extern struct fake_engine {
	struct event_base *base; /* lent */
	struct fake_answer (*answer)(const char *task);
	bool refuses;                     /* jobs are not started: RLMD_ERROR_INPUT */
	int64_t wait_ms;                  /* the provider is busy for so long, once */
	const char *level;                /* of its sandboxes; NULL: L3 */
	int64_t now, most;                /* jobs at work: now, and at most */
	char tasks[FAKE_ENGINE_MOST + 1]; /* the first letters, in the order of starts */
	char spans[64]; /* the attributes' values of those that were sent, one after the other */
	struct rlmd_job *started[FAKE_ENGINE_MOST]; /* lent; NULL: it was freed */
} fake_engine;

struct tenancy_needs;

/* For struct tenancies_options. */
struct rlmd_sandbox *fake_engine_sandbox(void *owner, const struct tenancy_needs *,
					 struct rlmd_error *);

/* An `answer`: each job stays. */
struct fake_answer fake_engine_stays(const char *task);

void fake_engine_end(struct rlmd_job *, struct fake_answer);
