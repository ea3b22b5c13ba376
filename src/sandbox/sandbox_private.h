/*
 * sandbox/sandbox_private.h - what sandbox.c, which builds it and takes it down,
 * and spawn.c, which lets it work, share.
 */
#pragma once

#include "sandbox/mode_search.h"
#include "sandbox/sandbox.h"
#include "sandbox/watch.h"

TAILQ_HEAD(spawn_list, spawn);

struct rlmd_sandbox {
	char *python_version;          /* owned; or NULL */
	struct event_base *base;       /* lent */
	const struct log *log;         /* lent, or NULL */
	struct template_config config; /* its pointers and descriptors are owned */
	size_t worker_memory;
	int life;                        /* owned: hung up when we are gone */
	struct mode_search search;       /* on which it came to what stands */
	struct layer_status status;      /* what stands in each worker */
	rlmd_sandbox_ready_fn *on_ready; /* told once the first template is; or NULL */
	void *ready_owner;               /* lent */
	uint32_t template_layers; /* those that are the template's and the cgroup's, a bit each */
	bool maps_texts;          /* its workers can: sandbox_maps_texts() */
	struct template_process *template_process; /* owned; NULL: the next spawn starts one */
	bool ready;                                /* the template is */
	struct timer *pump;    /* owned: something is to be sent, or has failed */
	struct timer *overdue; /* owned: pending while an answer of the template is */
	int answer_ms;         /* that it may take */
	int64_t crowded_until; /* ms: so long others' descriptors are waited for; 0: they need not
				* be */
	struct spawn_list queued, sent, failed;
	struct process_list processes; /* owned by their receivers, and by us when freed */
	struct watch watch;
	uint64_t sequence; /* of the last request */
	pid_t *sessions;   /* owned: of templates that may have left children */
	size_t session_count;
};

/* For template_new(): it is told what happens to the template. */
void spawn_on_template(void *owner, const struct template_event *);

/* The template is ours from now on, and the children of its session; those that are over are
 * forgotten. */
void sandbox_adopt(struct rlmd_sandbox *, struct template_process *);

/* Its pid, also after it was reaped; 0: there was none. */
pid_t sandbox_template_pid(const struct rlmd_sandbox *);

/* The request for any worker, of any mode. */
struct launch_request spawn_request(uint64_t memory, uint32_t cpu_seconds, size_t file_count);

void spawn_pump(void *sandbox);             /* of the timer of that name */
void spawn_overdue(void *sandbox);          /* likewise */
void spawn_free_all(struct rlmd_sandbox *); /* and tells nobody */
