#include "cli/serve_client.h"

#include <rlmd/group.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/timer.h"
#include "cli/serve_blob.h"
#include "cli/serve_job.h"
#include "cli/serve_session.h"
#include "cli/serve_tenants.h"

#define PROTOCOL_VERSION "1"

enum { GREETING_MS = 30000 };

typedef void method_fn(struct serve_client *, const json_t *params, struct rpc_request *);

/* Whose the client is, where that matters. It stays. */
static bool find_tenant(struct serve_client *client, const json_t *params, struct rlmd_error *err)
{
	const char *name = json_get_string(params, "tenant");

	if (!client->serve->tenants)
		return !*name || error_set(err, RLMD_ERROR_USAGE, "there are no tenants here");
	if (!client->tenancy)
		client->tenancy = serve_tenants_of(client->serve->tenants, client->uid, name, err);
	return client->tenancy;
}

/* A version that is not spoken is answered with the one that is. */
static void initialize(struct serve_client *client, const json_t *params,
		       struct rpc_request *request)
{
	struct rlmd_error err;

	if (!find_tenant(client, params, &err)) {
		rpc_fail(request, &err);
		return;
	}
	client->known = true;
	timer_stop(client->greeting);
	rpc_reply(request, json_make("{s:s, s:{s:s, s:s}, s:{s:i, s:i, s:i}}", "protocolVersion",
				     PROTOCOL_VERSION, "server", "name", "rlmd", "version",
				     rlmd_version(), "limits", "line", RPC_LINE_MAX, "unreadBytes",
				     RPC_UNREAD_BYTES, "unreadMs", RPC_UNREAD_MS));
}

/* All that was begun ends, and then the connection. */
static void shut_down(struct serve_client *client, const json_t *params,
		      struct rpc_request *request)
{
	(void)params;
	serve_job_free_all(client);
	serve_session_free_all(client);
	rpc_reply(request, json_make_object());
	rpc_finish(client->rpc);
}

/* An answer that is not wanted any more is given all the same: the client passes it over. */
static void cancel_request(struct serve_client *client, const json_t *params,
			   struct rpc_request *request)
{
	(void)client;
	(void)params;
	rpc_reply(request, json_make_object());
}

static const struct {
	const char *name;
	method_fn *call;
	bool begins; /* new work */
} methods[] = {
	{"initialize", initialize, false},
	{"shutdown", shut_down, false},
	{"$/cancelRequest", cancel_request, false},
	{"job.start", serve_job_start, true},
	{"job.interrupt", serve_job_interrupt, false},
	{"job.cancel", serve_job_cancel, false},
	{"job.status", serve_job_status, false},
	{"job.activity", serve_job_activity, false},
	{"session.open", serve_session_open, true},
	{"session.execute", serve_session_execute, true},
	{"session.get", serve_session_get, false},
	{"session.set", serve_session_set, false},
	{"session.status", serve_session_status, false},
	{"session.interrupt", serve_session_interrupt, false},
	{"session.close", serve_session_close, false},
	{"blob.begin", serve_blob_begin, false},
	{"blob.append", serve_blob_append, false},
	{"blob.end", serve_blob_end, false},
	{"blob.free", serve_blob_free, false},
};

static void refuse(struct rpc_request *request, int code, const char *method, const char *why)
{
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_USAGE, "%.60s: %s", method, why);
	rpc_refuse(request, code, &err);
}

static void on_asked(void *owner, const char *method, const json_t *params,
		     struct rpc_request *request)
{
	struct serve_client *client = owner;
	size_t count = sizeof methods / sizeof *methods, i = 0;

	while (i < count && strcmp(methods[i].name, method) != 0)
		i++;
	if (!client->known && i)
		refuse(request, RPC_TOO_EARLY, method, "initialize comes first");
	else if (i == count)
		refuse(request, RPC_NO_METHOD, method, "there is no such method");
	else if (client->drains && methods[i].begins)
		refuse(request, RPC_FAILED, method, "the server is about to end");
	else
		methods[i].call(client, params, request);
}

static void on_end(void *owner, const struct rlmd_error *why)
{
	struct serve_client *client = owner;

	serve_lose(client, why);
}

struct serve_client *serve_client_new(struct serve *serve, int in, int out)
{
	struct serve_client *client = xcalloc(1, sizeof *client);

	client->serve = serve;
	client->socket = -1;
	LIST_INIT(&client->jobs);
	TAILQ_INIT(&client->line);
	LIST_INIT(&client->repls);
	LIST_INIT(&client->blobs);
	LIST_INIT(&client->works);
	client->rpc = rpc_new(serve->session->base, in, out, on_asked, on_end, client);
	return client;
}

/* It would keep others out who have something to say. */
static void on_silence(void *owner)
{
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_NETWORK, "it did not say initialize within %d s",
		  GREETING_MS / 1000);
	serve_lose(owner, &err);
}

struct serve_client *serve_client_accept(struct serve *serve, int socket, uid_t uid)
{
	struct serve_client *client = serve_client_new(serve, socket, socket);

	client->socket = socket;
	client->uid = uid;
	client->greeting = timer_new(serve->session->base, on_silence, client);
	timer_start(client->greeting, GREETING_MS);
	if (!serve->tenants)
		client->group = rlmd_group_new(serve->session->engine, NULL, NULL);
	return client;
}

void serve_client_free(struct serve_client *client)
{
	if (!client)
		return;
	serve_job_free_all(client);
	serve_session_free_all(client);
	serve_blob_free_all(client);
	rpc_free(client->rpc);
	timer_free(client->greeting);
	rlmd_group_unref(client->group);
	if (client->socket >= 0)
		close(client->socket);
	free(client);
}

void serve_client_drain(struct serve_client *client)
{
	client->drains = true;
	serve_job_interrupt_all(client);
}

bool serve_client_is_idle(const struct serve_client *client)
{
	return LIST_EMPTY(&client->jobs);
}
