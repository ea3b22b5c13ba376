/*
 * sandbox/template.h - the python3 that workers are forked from, and the socket
 * that we talk to it over (the messages: sandbox/launch.h).
 *
 * It is trusted: it runs our code and the operator's preloaded modules, never a
 * tenant's. It may die all the same, and then another one takes its place.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "sandbox/archive.h"
#include "sandbox/cgroup.h"
#include "sandbox/launch.h"
#include "sandbox/steps.h"

struct template_config {
	const char *python;         /* lent for the template's life, like all that follows */
	const char *script;         /* start.py, absolute */
	const char *const *preload; /* NULL-terminated, or NULL */
	int filter;                 /* of filter_memfd() */
	int life;                   /* the reading end of a pipe that lives as long as we */
	struct cgroup *cgroup;      /* for it and its workers */
	struct archive *archive;    /* of what it loads */
	struct launch_terms terms;
	int patience_ms; /* for each word that it has to say; to load it may take as long again */
};

enum template_event_kind {
	TEMPLATE_READY,    /* requests may be sent */
	TEMPLATE_LAUNCHED, /* the answer to a request */
	TEMPLATE_WRITABLE, /* there is room again for what did not fit */
	TEMPLATE_GONE,     /* dead and reaped; only template_free() may follow */
};

struct template_event {
	enum template_event_kind kind;
	uint64_t sequence;               /* TEMPLATE_LAUNCHED */
	int error;                       /* TEMPLATE_LAUNCHED: errno, or 0 */
	pid_t pid;                       /* TEMPLATE_LAUNCHED without an error */
	int pidfd;                       /* likewise; taken by the receiver */
	int status;                      /* likewise: of struct procfs_status, or -1 */
	const struct rlmd_error *reason; /* TEMPLATE_GONE; lent */
	bool again;                      /* TEMPLATE_GONE: see template_may_retry() */
};

typedef void template_event_fn(void *owner, const struct template_event *);

struct template_process;

/* Starts one; NULL where that fails. Everything later comes as an event. */
struct template_process *template_new(struct event_base *, const struct template_config *,
				      template_event_fn *, void *owner, struct rlmd_error *);
void template_free(struct template_process *); /* NULL is fine; kills it and waits for its end */

/* In the child of a fork, before it is freed: nothing that the parent uses is touched any more. */
void template_cut(struct template_process *);

/*
 * Without the loop, while no event can come: waits until it is ready, also where it has told so
 * already, or its end; asks for one process and waits for it.
 */
bool template_await(struct template_process *, struct rlmd_error *);
bool template_launch(struct template_process *, const struct launch_request *, const int *fds,
		     size_t fd_count, struct template_event *ret_launched, struct rlmd_error *);

/* Of one that is ready: its mode, and its layers, a bit each. */
enum mode template_mode(const struct template_process *);
uint32_t template_layers(const struct template_process *);

/* Of one that is ready: its workers can have a str that lies in a memory file. */
bool template_maps_texts(const struct template_process *);

/* The refusals so far, to the template and to us on its behalf. */
const struct steps *template_refusals(const struct template_process *);

/* Of one that ended: it was killed or slow, not unfit, so that another may do better. */
bool template_may_retry(const struct template_process *);

/* The session of the template and of all its workers. */
pid_t template_pid(const struct template_process *);

/* Milliseconds until it is worth a try to send descriptors again. */
#define TEMPLATE_AGAIN_MS 5

enum template_sending { TEMPLATE_SENT, TEMPLATE_FULL, TEMPLATE_CROWDED, TEMPLATE_FAILED };

/* TEMPLATE_FULL: again after TEMPLATE_WRITABLE. TEMPLATE_CROWDED: again after TEMPLATE_AGAIN_MS,
 * for some time. Else template_refused() says why. */
enum template_sending template_send(struct template_process *, const struct launch_request *,
				    const int *fds, size_t fd_count);

/* Where a request cannot be sent, as errno says. False. */
bool template_refused(struct rlmd_error *);
