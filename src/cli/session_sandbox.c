/* Where a session's code will run: begun early, and waited for late. */
#include <event2/event.h>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"

static struct rlmd_sandbox_options sandbox_options(const struct session *session)
{
	const struct config *config = &session->config;

	return (struct rlmd_sandbox_options){
		.size = sizeof(struct rlmd_sandbox_options),
		.python = config->python,
		.preload = (const char *const *)config->preload.items,
		.worker_memory = (size_t)config->worker_memory,
		.first_uid = (uint32_t)config->first_uid,
	};
}

static void on_loaded(void *owner)
{
	struct session *session = owner;

	session->loaded = true;
}

bool session_begin_sandbox(struct session *session, struct rlmd_error *err)
{
	const struct rlmd_sandbox_options options = sandbox_options(session);

	session->loads = rlmd_engine_begin_sandbox(session->engine, &options, on_loaded, session,
						   err);
	return session->loads;
}

static void on_woken(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	(void)owner;
}

/* The connection to the provider is made meanwhile, if any is. */
static void await_python(struct session *session)
{
	struct event *woken = event_new(session->base, interrupt_fd(), EV_READ, on_woken, NULL);

	event_add(woken, NULL);
	while (!session->loaded && !interrupt_count())
		if (event_base_loop(session->base, EVLOOP_ONCE))
			break;
	event_free(woken);
}

bool session_open_sandbox(struct session *session, bool any, struct rlmd_error *err)
{
	struct rlmd_sandbox_options options = sandbox_options(session);

	options.require = any ? NULL : session->config.require;
	progress_show("starting a worker");
	if (session->loads)
		await_python(session);
	session->sandbox = rlmd_engine_sandbox(session->engine, &options, err);
	progress_end();
	return session_check_signals(session, err) && session->sandbox;
}
