/*
 * rlmd serve: a process that stays, and answers clients that speak JSON-RPC (docs/serve.md).
 *
 * With --stdio there is one client. The end of standard input, or a hangup, ends everything at
 * once, and Ctrl-C is for the client, whose process group this is. With --listen there are several:
 * the end of one is its own. SIGTERM takes no new work, has all jobs answer from what there is, and
 * ends with the last one, at the latest after the grace; with --listen, so does a hangup or Ctrl-C.
 */
#include "cli/serving.h"

#include <fcntl.h>
#include <rlmd/trace.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/timer.h"
#include "cli/command.h"
#include "cli/serve_client.h"
#include "cli/serve_job.h"
#include "cli/serve_model.h"
#include "cli/serve_socket.h"
#include "cli/serve_tenants.h"
#include "cli/service.h"
#include "cli/span_log.h"
#include "cli/tell.h"

enum { LOOK_MS = 50, LEEWAY_MS = 1000, CLIENTS_MAX = 250, CLIENTS_OF_ANOTHER = 50 };

/* Jobs at work at once, where the machine has files and memory for them: the others wait. */
enum { JOBS_MOST = 1000, MEMORY_LEFT = 256 << 20 };

/* --- the end ----------------------------------------------------------------------------- */

struct drain {
	struct serve *serve;
	struct timer *look; /* owned */
	int64_t deadline;   /* clock_ms(); 0: nobody asked for the end */
};

static bool is_idle(const struct serve *serve)
{
	const struct serve_client *client;

	LIST_FOREACH (client, &serve->clients, entry)
		if (!serve_client_is_idle(client))
			return false;
	return true;
}

static void on_look(void *owner)
{
	struct drain *drain = owner;
	struct serve_client *client;

	if (!is_idle(drain->serve) && clock_ms() < drain->deadline) {
		timer_start(drain->look, LOOK_MS);
		return;
	}
	LIST_FOREACH (client, &drain->serve->clients, entry)
		rpc_finish(client->rpc);
	drain->serve->over |= LIST_EMPTY(&drain->serve->clients);
}

static void stop_listening(struct serve *serve)
{
	serve_socket_free(serve->socket);
	serve->socket = NULL;
}

static void on_terminate(evutil_socket_t number, short what, void *owner)
{
	struct drain *drain = owner;
	struct serve_client *client;

	(void)number;
	(void)what;
	if (drain->deadline) {
		drain->serve->over = true;
		return;
	}
	service_notify("STOPPING=1");
	drain->deadline = clock_ms() + drain->serve->session->config.grace + LEEWAY_MS;
	stop_listening(drain->serve);
	LIST_FOREACH (client, &drain->serve->clients, entry)
		serve_client_drain(client);
	timer_post(drain->look);
}

static void on_hangup(evutil_socket_t number, short what, void *owner)
{
	(void)number;
	(void)what;
	((struct serve *)owner)->over = true;
}

void serve_lose(struct serve_client *client, const struct rlmd_error *why)
{
	struct serve *serve = client->serve;

	if (client->socket < 0)
		serve->end = *why;
	else if (why->kind)
		tell_warning("a client of user %u is gone: %s", (unsigned)client->uid, why->text);
	LIST_REMOVE(client, entry);
	serve->client_count--;
	serve_client_free(client);
	if (serve->socket)
		serve_socket_accept(serve->socket, true);
	else
		serve->over |= LIST_EMPTY(&serve->clients);
}

/* --- clients ----------------------------------------------------------------------------- */

static void add_client(struct serve *serve, struct serve_client *client)
{
	LIST_INSERT_HEAD(&serve->clients, client, entry);
	serve->client_count++;
}

/* So that one user does not keep all others out; who started the server may do as it likes. */
static bool has_too_many(const struct serve *serve, uid_t uid)
{
	const struct serve_client *client;
	size_t count = 0;

	LIST_FOREACH (client, &serve->clients, entry)
		count += client->uid == uid;
	return uid != geteuid() && count >= CLIENTS_OF_ANOTHER;
}

static void on_client(void *owner, int fd, uid_t uid)
{
	struct serve *serve = owner;

	if (has_too_many(serve, uid)) {
		close(fd);
		return;
	}
	add_client(serve, serve_client_accept(serve, fd, uid));
	if (serve->client_count >= CLIENTS_MAX)
		serve_socket_accept(serve->socket, false);
}

static bool listen_at(struct serve *serve, const char *address, struct rlmd_error *err)
{
	const struct config *config = &serve->session->config;

	serve->confined = !config->trust_clients;
	if (config->tenants.count)
		serve->tenants = serve_tenants_new(serve->session, err);
	if (config->tenants.count && !serve->tenants)
		return false;
	serve->socket = serve_socket_open(serve->session->base, address, on_client, serve, err);
	if (!serve->socket)
		return false;
	tell("listening at %s", address);
	service_notify("READY=1");
	return true;
}

static void serve_until_over(struct serve *serve)
{
	while (!serve->over)
		event_base_loop(serve->session->base, EVLOOP_ONCE);
	stop_listening(serve);
	while (!LIST_EMPTY(&serve->clients)) {
		struct serve_client *client = LIST_FIRST(&serve->clients);

		LIST_REMOVE(client, entry);
		serve_client_free(client);
	}
}

/* Standard input's and output's own flags come back: others may hold the same pipe or terminal. */
static void serve_one(struct serve *serve)
{
	int in = fcntl(STDIN_FILENO, F_GETFL), out = fcntl(STDOUT_FILENO, F_GETFL);

	fcntl(STDIN_FILENO, F_SETFL, in | O_NONBLOCK);
	fcntl(STDOUT_FILENO, F_SETFL, out | O_NONBLOCK);
	add_client(serve, serve_client_new(serve, STDIN_FILENO, STDOUT_FILENO));
	serve_until_over(serve);
	fcntl(STDIN_FILENO, F_SETFL, in);
	fcntl(STDOUT_FILENO, F_SETFL, out);
}

static void on_room(void *owner)
{
	serve_job_call_next(owner);
}

static void serve_all(struct serve *serve)
{
	struct event_base *base = serve->session->base;
	struct drain drain = {.serve = serve};
	struct event *hangup, *terminate, *interrupt;
	const char *address = serve->session->config.listen;

	hangup = address ? loop_event(base, SIGHUP, EV_SIGNAL | EV_PERSIST, on_terminate, &drain)
			 : loop_event(base, SIGHUP, EV_SIGNAL | EV_PERSIST, on_hangup, serve);
	terminate = loop_event(base, SIGTERM, EV_SIGNAL | EV_PERSIST, on_terminate, &drain);
	interrupt = loop_event(base, SIGINT, EV_SIGNAL | EV_PERSIST, on_terminate, &drain);
	drain.look = timer_new(base, on_look, &drain);
	serve->room = timer_new(base, on_room, serve);
	loop_add(hangup, NULL);
	loop_add(terminate, NULL);
	if (address)
		loop_add(interrupt, NULL);
	if (!address)
		serve_one(serve);
	else if (listen_at(serve, address, &serve->end))
		serve_until_over(serve);
	event_free(hangup);
	event_free(terminate);
	event_free(interrupt);
	timer_free(drain.look);
	timer_free(serve->room);
}

static bool check_words(const struct config *config, int count, char **words,
			struct rlmd_error *err)
{
	if (count)
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is one argument too many", words[0]);
	if (config->stdio && config->listen)
		return error_set(err, RLMD_ERROR_USAGE, "--stdio and --listen exclude each other");
	if (config->stdio && (config->root || config->trust_clients))
		return error_set(err, RLMD_ERROR_USAGE,
				 "%s is for --listen: the client of --stdio is trusted",
				 config->root ? "--root" : "--trust-clients");
	return config->stdio || config->listen ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "say where clients are: --stdio is standard input and output, --listen "
			 "unix:PATH a socket");
}

/* Tenants have sandboxes of their own. */
static bool begin_sandbox(struct session *session, struct rlmd_error *err)
{
	return (session->config.listen && session->config.tenants.count) ||
	       session_begin_sandbox(session, err);
}

int command_serve(struct session *session, int count, char **words)
{
	struct serve serve = {.session = session, .clients = LIST_HEAD_INITIALIZER(clients)};
	struct rlmd_error err;

	free(concurrency_open(&serve.jobs, MEMORY_LEFT, JOBS_MOST)); /* fewer are no news */
	if (!config_given(&session->config, OPTION_max_parallel))
		session->max_calls = serve.jobs.limit;

	if (!check_words(&session->config, count, words, &err))
		return command_refuse(COMMAND_SERVE, &err);
	session_note_strays(session);
	if (session->config.stdio)
		signal(SIGINT, SIG_IGN);
	if (session_open(session, &err) && begin_sandbox(session, &err)) {
		serve.spans = span_log_exporter(session->base, session->config.otel_content);
		serve_all(&serve);
		span_log_flush(serve.spans);
		rlmd_span_exporter_free(serve.spans);
	} else {
		serve.end = err;
	}
	serve_tenants_free(serve.tenants);
	session_close(session);
	serve_model_free(serve.model);
	json_decref(serve.providers);
	if (serve.end.kind)
		tell_error("%s", serve.end.text);
	return rlmd_error_exit_status(serve.end.kind);
}
