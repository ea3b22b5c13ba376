/*
 * rlmd serve: a process that stays, and answers a client that speaks JSON-RPC (docs/serve.md).
 *
 * The end of standard input, or a hangup, ends everything at once. SIGTERM takes no new work, has
 * all jobs answer from what there is, and ends with the last one, at the latest after the grace.
 * Ctrl-C is for the client, whose process group this is.
 */
#include "cli/serving.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "cli/command.h"
#include "cli/serve_client.h"
#include "cli/serve_model.h"
#include "cli/tell.h"

enum { LOOK_MS = 50, LEEWAY_MS = 1000 };

static void on_hangup(evutil_socket_t number, short what, void *owner)
{
	(void)number;
	(void)what;
	((struct serve *)owner)->over = true;
}

/* --- a slow end -------------------------------------------------------------------------- */

struct drain {
	struct serve *serve;
	struct event *look; /* owned */
	int64_t deadline;   /* clock_ms(); 0: nobody asked for the end */
};

static void on_look(evutil_socket_t fd, short what, void *owner)
{
	struct drain *drain = owner;
	struct timeval soon = clock_timeval(LOOK_MS);

	(void)fd;
	(void)what;
	if (!serve_client_is_idle(drain->serve->client) && clock_ms() < drain->deadline)
		loop_add(drain->look, &soon);
	else
		rpc_finish(drain->serve->client->rpc);
}

static void on_terminate(evutil_socket_t number, short what, void *owner)
{
	struct drain *drain = owner;

	(void)number;
	(void)what;
	if (drain->deadline) {
		drain->serve->over = true;
		return;
	}
	drain->deadline = clock_ms() + drain->serve->session->config.grace + LEEWAY_MS;
	serve_client_drain(drain->serve->client);
	loop_post(drain->look);
}

/* --- standard input and output ----------------------------------------------------------- */

/* Their own flags come back: others may hold the same pipe or terminal. */
static void serve_client(struct serve *serve)
{
	int in = fcntl(STDIN_FILENO, F_GETFL), out = fcntl(STDOUT_FILENO, F_GETFL);
	struct event_base *base = serve->session->base;
	struct drain drain = {.serve = serve};
	struct event *hangup = evsignal_new(base, SIGHUP, on_hangup, serve),
		     *terminate = evsignal_new(base, SIGTERM, on_terminate, &drain);

	drain.look = loop_timer(base, on_look, &drain);
	loop_add(hangup, NULL);
	loop_add(terminate, NULL);
	fcntl(STDIN_FILENO, F_SETFL, in | O_NONBLOCK);
	fcntl(STDOUT_FILENO, F_SETFL, out | O_NONBLOCK);
	serve->client = serve_client_new(serve, STDIN_FILENO, STDOUT_FILENO);
	while (!serve->over)
		event_base_loop(base, EVLOOP_ONCE);
	serve_client_free(serve->client);
	serve->client = NULL;
	fcntl(STDIN_FILENO, F_SETFL, in);
	fcntl(STDOUT_FILENO, F_SETFL, out);
	event_free(hangup);
	event_free(terminate);
	event_free(drain.look);
}

static bool check_words(const struct config *config, int count, char **words,
			struct rlmd_error *err)
{
	if (count)
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is one argument too many", words[0]);
	return config->stdio ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "say where the client is: --stdio is standard input and output");
}

int command_serve(struct session *session, int count, char **words)
{
	struct serve serve = {.session = session};
	struct rlmd_error err;

	if (!check_words(&session->config, count, words, &err))
		return command_refuse(COMMAND_SERVE, &err);
	session_note_strays(session);
	signal(SIGINT, SIG_IGN);
	if (!session_open(session, &err) || !session_begin_sandbox(session, &err)) {
		tell_error("%s", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	serve_client(&serve);
	session_close(session);
	serve_model_free(serve.model);
	json_decref(serve.providers);
	if (serve.end.kind)
		tell_error("%s", serve.end.text);
	return rlmd_error_exit_status(serve.end.kind);
}
