/*
 * One request at a time is under way in a session: it is answered by the next hook.
 */
#include "cli/serve_session.h"

#include <inttypes.h>
#include <rlmd/repl.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "cli/job_settings.h"
#include "cli/serve_job.h"
#include "cli/serve_model.h"
#include "cli/serve_params.h"

enum { SESSIONS_MAX = 50 };

struct serve_repl {
	struct serve_client *client; /* lent */
	char name[24];
	struct serve_params params;
	struct rlmd_repl *repl;      /* owned; NULL: its context is loaded, or it is gone */
	struct rpc_request *request; /* lent: under way; or NULL */
	bool gone;
	struct rlmd_error why; /* it is gone */
	LIST_ENTRY(serve_repl) entry;
};

static void session_free(struct serve_repl *repl)
{
	LIST_REMOVE(repl, entry);
	rlmd_repl_free(repl->repl);
	serve_params_done(&repl->params);
	free(repl);
}

void serve_session_free_all(struct serve_client *client)
{
	while (!LIST_EMPTY(&client->repls))
		session_free(LIST_FIRST(&client->repls));
}

static struct serve_repl *find(const struct serve_client *client, const json_t *params,
			       struct rlmd_error *err)
{
	const char *name = json_get_string(params, "session");
	struct serve_repl *repl;

	LIST_FOREACH (repl, &client->repls, entry)
		if (!strcmp(repl->name, name))
			return repl;
	error_set(err, RLMD_ERROR_USAGE, "there is no session '%.40s'", name);
	return NULL;
}

/* --- its words ---------------------------------------------------------------------------- */

static void on_ready(void *owner, struct rlmd_repl *ready)
{
	struct serve_repl *repl = owner;

	(void)ready;
	rpc_reply(take_pointer(&repl->request), json_make("{s:s}", "session", repl->name));
}

static void on_printed(void *owner, struct rlmd_repl *sender, bool is_error, struct rlmd_text text)
{
	const struct serve_repl *repl = owner;

	(void)sender;
	rpc_notify(repl->client->rpc, "session.output",
		   json_make("{s:s, s:s, s:o}", "session", repl->name, "stream",
			     is_error ? "stderr" : "stdout", "text", json_from_text(text)));
}

/* The type and the message stand in the traceback's last line: "ValueError: no such host". */
static json_t *error_of(const struct rlmd_repl_block *block)
{
	struct rlmd_text line = text_error_line(block->error);
	const char *colon = text_find(line, ": ");
	size_t size = colon ? (size_t)(colon - line.bytes) : line.size;
	struct rlmd_text message = colon ? text_slice(line, size + 2, line.size) : text_of("");

	if (!block->failed)
		return json_null();
	return json_make("{s:o, s:o, s:o}", "type", json_from_text(text_slice(line, 0, size)),
			 "message", json_from_text(message), "traceback",
			 json_from_text(block->error));
}

static void on_done(void *owner, struct rlmd_repl *done, const struct rlmd_repl_block *block)
{
	struct serve_repl *repl = owner;

	(void)done;
	rpc_reply(take_pointer(&repl->request),
		  json_make("{s:o, s:o, s:o, s:b, s:I}", "stdout",
			    json_from_text(block->standard_output), "stderr",
			    json_from_text(block->standard_error), "error", error_of(block),
			    "interrupted", (int)block->interrupted, "durationMs",
			    (json_int_t)block->duration_ms));
}

static void on_json(void *owner, struct rlmd_repl *sender, bool found, bool is_json,
		    struct rlmd_text value)
{
	struct serve_repl *repl = owner;
	json_t *answer = json_make("{s:b}", "found", (int)found);

	(void)sender;
	if (found && is_json)
		json_put(answer, "value",
			 json_loadb(value.bytes, value.size, JSON_ALLOW_NUL | JSON_DECODE_ANY,
				    NULL));
	if (found && !json_object_get(answer, "value"))
		json_put(answer, "text", json_from_text(value));
	rpc_reply(take_pointer(&repl->request), answer);
}

static void end(struct serve_repl *repl, const struct rlmd_error *error)
{
	struct rpc_request *request = take_pointer(&repl->request);

	repl->gone = true;
	repl->why = *error;
	rpc_fail(request, error);
}

static void on_gone(void *owner, struct rlmd_repl *gone, const struct rlmd_error *error)
{
	(void)gone;
	end(owner, error);
}

/* --- its start --------------------------------------------------------------------------- */

/* It stays as long as its client likes, unless somebody has said how long. */
static struct rlmd_limits limits_of(const struct config *config)
{
	bool given = config->layers[OPTION_max_time] != CONFIG_DEFAULT;

	return job_settings_limits(config, given ? config->max_time : RLMD_UNLIMITED);
}

static bool begin(struct serve_repl *repl, struct rlmd_error *err)
{
	const struct rlmd_repl_hooks hooks = {
		.size = sizeof hooks,
		.ready = on_ready,
		.done = on_done,
		.json = on_json,
		.gone = on_gone,
		.owner = repl,
		.printed = on_printed,
	};
	struct rlmd_repl_options options = {
		.size = sizeof options,
		.context = repl->params.context,
		.max_output = repl->params.config.max_output,
		.hooks = &hooks,
		.functions = repl->params.functions,
		.function_count = repl->params.tool_count,
	};
	const struct rlmd_limits limits = limits_of(&repl->params.config);
	struct rlmd_job_options calls = job_settings_options(&repl->params.config);
	struct rlmd_sandbox *sandbox = serve_params_sandbox(&repl->params, err);

	calls.limits = &limits;
	if (repl->params.provider)
		options.calls = &calls;
	if (!sandbox || (options.calls && !serve_model_give(&repl->params, &calls, err)))
		return false;
	repl->repl = rlmd_repl_start(repl->client->serve->session->engine, sandbox, &options, err);
	repl->params.job = rlmd_repl_job(repl->repl);
	return repl->repl;
}

static void on_loaded(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct serve_repl *repl = owner;
	struct rlmd_error why;

	if (!context)
		end(repl, err);
	else if (!begin(repl, &why))
		end(repl, &why);
}

/* Each is a process: a client that is not trusted has not all of them. */
static bool has_room(const struct serve_client *client, struct rlmd_error *err)
{
	const struct serve_repl *repl;
	size_t count = 0;

	LIST_FOREACH (repl, &client->repls, entry)
		count++;
	return !client->serve->confined || count <= SESSIONS_MAX ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "a client has at most %d sessions here: session.close gives one back",
			 SESSIONS_MAX);
}

/* Without both its code has no model. */
static bool take_model(struct serve_repl *repl, const json_t *params, struct rlmd_error *err)
{
	const json_t *model = json_object_get(params, "model");

	if (!model && !json_is_true(json_object_get(params, "models")))
		return true;
	return serve_model_take(&repl->params, model, err);
}

static bool open(struct serve_repl *repl, const json_t *params, struct rlmd_error *err)
{
	bool waits;

	return has_room(repl->client, err) &&
	       serve_params_read(&repl->params, repl->client, COMMAND_EXEC, params, err) &&
	       take_model(repl, params, err) &&
	       serve_params_load(&repl->params, on_loaded, repl, &waits, err) &&
	       (waits || begin(repl, err));
}

void serve_session_open(struct serve_client *client, const json_t *params,
			struct rpc_request *request)
{
	struct serve_repl *repl = xcalloc(1, sizeof *repl);
	struct rlmd_error err = {0};

	repl->client = client;
	snprintf(repl->name, sizeof repl->name, "s%" PRId64, ++client->last_repl);
	repl->params.kind = "session";
	repl->params.name = repl->name;
	repl->request = request;
	LIST_INSERT_HEAD(&client->repls, repl, entry);
	if (open(repl, params, &err))
		return;
	session_free(repl);
	rpc_fail(request, &err);
}

/* --- its other methods ------------------------------------------------------------------- */

/* A session that waits for a request. */
static struct serve_repl *idle(const struct serve_client *client, const json_t *params,
			       struct rlmd_error *err)
{
	struct serve_repl *repl = find(client, params, err);

	if (!repl)
		return NULL;
	if (repl->gone) {
		error_set(err, RLMD_ERROR_WORKER, "the session is gone: %.400s", repl->why.text);
		return NULL;
	}
	if (repl->request || !repl->repl) {
		error_set(err, RLMD_ERROR_USAGE, "the session is at work: wait for its end");
		return NULL;
	}
	return repl;
}

static int64_t time_of(const struct serve_repl *repl, const json_t *params)
{
	return json_get_integer(params, "timeoutMs", repl->params.config.block_timeout);
}

static void await(struct serve_repl *repl, bool began, struct rpc_request *request,
		  const struct rlmd_error *err)
{
	if (began)
		repl->request = request;
	else
		rpc_fail(request, err);
}

void serve_session_execute(struct serve_client *client, const json_t *params,
			   struct rpc_request *request)
{
	struct rlmd_error err;
	struct serve_repl *repl = idle(client, params, &err);
	bool ok = repl && (json_is_string(json_object_get(params, "code")) ||
			   error_set(&err, RLMD_ERROR_USAGE, "code is a text"));

	ok = ok && rlmd_repl_execute(repl->repl, json_get_text(params, "code"),
				     time_of(repl, params), &err);
	await(repl, ok, request, &err);
}

void serve_session_get(struct serve_client *client, const json_t *params,
		       struct rpc_request *request)
{
	struct rlmd_error err;
	struct serve_repl *repl = idle(client, params, &err);
	bool ok = repl && rlmd_repl_get_json(repl->repl, json_get_string(params, "name"),
					     time_of(repl, params), &err);

	await(repl, ok, request, &err);
}

void serve_session_set(struct serve_client *client, const json_t *params,
		       struct rpc_request *request)
{
	struct rlmd_error err;
	const json_t *value = json_object_get(params, "value");
	auto_free char *json = value ? json_to_string(value) : NULL;
	struct serve_repl *repl = idle(client, params, &err);
	bool ok = repl && (value || error_set(&err, RLMD_ERROR_USAGE, "there is no value"));

	ok = ok && rlmd_repl_set_json(repl->repl, json_get_string(params, "name"), text_of(json),
				      time_of(repl, params), &err);
	await(repl, ok, request, &err);
}

void serve_session_status(struct serve_client *client, const json_t *params,
			  struct rpc_request *request)
{
	struct rlmd_error err;
	struct serve_repl *repl = find(client, params, &err);
	struct rlmd_job_status used = RLMD_JOB_STATUS_INIT;
	json_t *shown;

	if (!repl) {
		rpc_fail(request, &err);
		return;
	}
	shown = json_make("{s:b, s:b}", "busy", (int)(repl->request != NULL), "gone",
			  (int)repl->gone);
	if (rlmd_job_get_status(repl->params.job, &used)) {
		json_put(shown, "tokens", json_make_integer(used.tokens));
		json_put(shown, "cost", json_make_real(money_to_dollars(used.cost)));
		serve_job_show(repl->params.job, shown);
	}
	rpc_reply(request, shown);
}

void serve_session_interrupt(struct serve_client *client, const json_t *params,
			     struct rpc_request *request)
{
	struct rlmd_error err;
	struct serve_repl *repl = find(client, params, &err);

	if (!repl) {
		rpc_fail(request, &err);
		return;
	}
	rlmd_repl_interrupt(repl->repl);
	rpc_reply(request, json_make_object());
}

/* A request that is under way is answered, too. */
void serve_session_close(struct serve_client *client, const json_t *params,
			 struct rpc_request *request)
{
	struct rlmd_error err, closed;
	struct serve_repl *repl = find(client, params, &err);

	if (!repl) {
		rpc_fail(request, &err);
		return;
	}
	error_set(&closed, RLMD_ERROR_CANCELLED, "the session was closed");
	rpc_fail(take_pointer(&repl->request), &closed);
	session_free(repl);
	rpc_reply(request, json_make_object());
}
