#include "cli/serve_params.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "batch/confine.h"
#include "batch/tenancies.h"
#include "cli/job_settings.h"
#include "cli/serve_blob.h"

/* --- paths ------------------------------------------------------------------------------- */

char *serve_params_path(const struct serve_client *client, const char *path, struct rlmd_error *err)
{
	const struct tenant *settings = client->tenancy ? client->tenancy->settings : NULL;
	const char *root = settings && settings->root ? settings->root
						      : client->serve->session->config.root;
	auto_free char *below = NULL;

	if (!client->serve->confined)
		return xstrdup(path);
	if (!root) {
		error_set(err, RLMD_ERROR_INPUT,
			  "%.200s: the server reads no files for its clients: --root DIR allows "
			  "those below DIR; texts and blobs go without",
			  path);
		return NULL;
	}
	below = *path == '/' ? xstrdup(path) : xasprintf("%s/%s", root, path);
	return confine(root, below, "--trust-clients", err);
}

/* --- options ----------------------------------------------------------------------------- */

static bool has_option(const enum option_id *options, size_t count, enum option_id id)
{
	for (size_t i = 0; i < count; i++)
		if (options[i] == id)
			return true;
	return false;
}

/* No client reaches a file, an address or a program with them that it could not reach itself. */
static bool is_harmless(enum option_id id)
{
	static const enum option_id harmless[] = {
		OPTION_include,
		OPTION_exclude,
		OPTION_allow_secrets,
		OPTION_quick,
		OPTION_deep,
		OPTION_only_changed_lines,
		OPTION_fail_on,
		OPTION_add_rules,
		OPTION_baseline,
		OPTION_fail_on_unanchored,
		OPTION_category,
		OPTION_max_findings,
		OPTION_min_confidence,
		OPTION_max_file_size,
		OPTION_max_context,
		OPTION_provider,
		OPTION_model,
		OPTION_subcall_model,
		OPTION_temperature,
		OPTION_stop,
		OPTION_max_output_tokens,
		OPTION_max_parallel,
		OPTION_max_cost,
		OPTION_max_tokens,
		OPTION_max_time,
		OPTION_max_depth,
		OPTION_max_iterations,
		OPTION_max_calls,
		OPTION_max_subruns,
		OPTION_downgrade,
		OPTION_strict,
		OPTION_grace,
		OPTION_block_timeout,
		OPTION_max_output,
		OPTION_require,
		OPTION_cache_age,
	};

	return has_option(harmless, sizeof harmless / sizeof *harmless, id);
}

/* Of those that stand on a command line only the ones that are about the work itself, and of the
 * settings not those of the process, which all its jobs share. */
static bool is_of_job(enum option_id id)
{
	static const enum option_id reaching[] = {
		OPTION_diff,   OPTION_untracked, OPTION_allow_alternates, OPTION_recurse_submodules,
		OPTION_record, OPTION_replay,
	};

	return is_harmless(id) || has_option(reaching, sizeof reaching / sizeof *reaching, id) ||
	       (option_table[id].scope == OPTION_SETTING && id != OPTION_log_format &&
		id != OPTION_color && id != OPTION_max_workers);
}

/* For a tenant's jobs rlmd.conf decides on these. */
static bool is_of_tenant(enum option_id id)
{
	static const enum option_id settings[] = {
		OPTION_provider,  OPTION_base_url, OPTION_key_file, OPTION_price_table,
		OPTION_no_stream, OPTION_python,   OPTION_preload,  OPTION_worker_memory,
		OPTION_first_uid, OPTION_require,
	};

	return has_option(settings, sizeof settings / sizeof *settings, id);
}

static bool check_option(const struct serve_client *client, enum option_id id,
			 struct rlmd_error *err)
{
	const char *name = option_table[id].name;

	if (!is_of_job(id))
		return error_set(err, RLMD_ERROR_USAGE, "%s is not one of a single job's", name);
	if (client->tenancy && is_of_tenant(id))
		return error_set(err, RLMD_ERROR_USAGE, "%s is the server's to say, for tenants",
				 name);
	if (client->serve->confined && !is_harmless(id))
		return error_set(err, RLMD_ERROR_USAGE,
				 "%s is the server's to say, unless it has --trust-clients", name);
	return true;
}

static bool is_path(enum option_id id)
{
	return id == OPTION_baseline || id == OPTION_add_rules;
}

static bool set_value(struct serve_params *params, enum option_id id, const json_t *value,
		      struct rlmd_error *err)
{
	auto_free char *number = NULL, *path = NULL;
	const char *text = json_string_value(value);

	if (json_is_boolean(value))
		text = json_is_true(value) ? "yes" : "no";
	else if (json_is_number(value))
		text = number = json_to_string(value);
	if (!text || (json_is_string(value) && strlen(text) != json_string_length(value)))
		return error_set(err, RLMD_ERROR_USAGE, "a text, a number or a switch is wanted");
	if (is_path(id)) {
		path = serve_params_path(params->client, text, err);
		if (!path)
			return false;
		text = path;
	}
	return config_set(&params->config, CONFIG_JOB, id, text, err);
}

static bool set_option(struct serve_params *params, enum option_id id, const json_t *value,
		       struct rlmd_error *err)
{
	const json_t *each;
	size_t i;

	if (json_is_null(value))
		return true;
	if (!json_is_array(value))
		return set_value(params, id, value, err);
	json_array_foreach (value, i, each)
		if (!set_value(params, id, each, err))
			return false;
	return true;
}

static bool read_options(struct serve_params *params, enum command_id command,
			 const json_t *options, struct rlmd_error *err)
{
	const char *key, *near;
	json_t *value;

	if (options && !json_is_object(options))
		return error_set(err, RLMD_ERROR_USAGE, "options are an object");
	json_object_foreach ((json_t *)options, key, value) {
		enum option_id id = option_find(command, key);

		if (id == OPTION_COUNT) {
			near = option_nearest_name(command, key);
			return error_set(
				err, RLMD_ERROR_USAGE, "options: there is no '%.60s'%s%s%s", key,
				near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
		}
		if (!check_option(params->client, id, err))
			return error_context(err, "options");
		if (!set_option(params, id, value, err))
			return error_context(err, "options: %s", key);
	}
	return true;
}

/* --- contexts ---------------------------------------------------------------------------- */

static bool is_text(const json_t *object, const char *key)
{
	return json_is_string(json_object_get(object, key));
}

/* A path to a text, new, which is good while the parameters are there. */
static char *text_path(struct serve_params *params, const json_t *context, struct rlmd_error *err)
{
	int fd = file_in_memory("text", json_get_text(context, "text"), err);

	if (fd < 0)
		return NULL;
	params->fds[params->fd_count++] = fd;
	return xasprintf("/proc/self/fd/%d", fd);
}

static char *blob_path(struct serve_params *params, const char *name, struct rlmd_error *err)
{
	struct serve_blob *blob = serve_blob_use(params->client, name, err);

	if (!blob)
		return NULL;
	params->blobs[params->blob_count++] = blob;
	return serve_blob_path(blob);
}

/* A revision of the server's directory, new. */
static char *git_source(const struct serve_client *client, const char *revision,
			struct rlmd_error *err)
{
	if (!client->serve->confined)
		return xasprintf("git:%s", revision);
	error_set(err, RLMD_ERROR_INPUT,
		  "git:%.200s: revisions of the server's directory are not for its clients, unless "
		  "it has --trust-clients",
		  revision);
	return NULL;
}

/* A source as rlmd_context_load() reads it, new. A name that is no variable's is refused there. */
static char *source_of(struct serve_params *params, const json_t *context, struct rlmd_error *err)
{
	const char *name = json_get_string(context, "name");
	auto_free char *path = NULL;

	if (is_text(context, "text"))
		path = text_path(params, context, err);
	else if (is_text(context, "blob"))
		path = blob_path(params, json_get_string(context, "blob"), err);
	else if (is_text(context, "path"))
		path = serve_params_path(params->client, json_get_string(context, "path"), err);
	else
		path = git_source(params->client, json_get_string(context, "git"), err);
	if (!path)
		return NULL;
	return *name ? xasprintf("%s=%s", name, path) : take_pointer(&path);
}

static bool check_context(const json_t *context, size_t count, struct rlmd_error *err)
{
	static const char *const kinds[] = {"text", "path", "git", "blob"};
	const char *path = json_get_string(context, "path");
	size_t found = 0;

	if (!json_is_object(context))
		return error_set(err, RLMD_ERROR_USAGE, "an object is wanted");
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		found += is_text(context, kinds[i]);
	if (found != 1)
		return error_set(err, RLMD_ERROR_USAGE,
				 "one of text, path, git and blob is wanted, a string");
	if (!strcmp(path, "-"))
		return error_set(err, RLMD_ERROR_USAGE, "standard input has the messages");
	if (count > 1 && !is_text(context, "name") &&
	    (is_text(context, "text") || is_text(context, "blob")))
		return error_set(err, RLMD_ERROR_USAGE,
				 "of several contexts a text and a blob have names");
	return true;
}

/* A text alone needs no file: it is a context at once. */
static bool take_text(struct serve_params *params, const json_t *context, struct rlmd_error *err)
{
	const char *name = is_text(context, "name") ? json_get_string(context, "name") : NULL;

	params->context = rlmd_context_from_text(name, json_get_text(context, "text"), err);
	params->source_count = 0;
	return params->context;
}

static bool open_texts(struct serve_params *params, const json_t *contexts, struct rlmd_error *err)
{
	bool alone = json_array_size(contexts) == 1;
	const json_t *context;
	size_t i;

	json_array_foreach (contexts, i, context) {
		bool ok = params->sources[i];

		if (!ok && alone)
			ok = take_text(params, context, err);
		else if (!ok)
			ok = (params->sources[i] = source_of(params, context, err));
		if (!ok)
			return error_context(err, "contexts[%zu]", i);
	}
	return true;
}

bool serve_params_open_texts(struct serve_params *params, struct rlmd_error *err)
{
	json_auto_t *contexts = take_pointer(&params->contexts);

	return open_texts(params, contexts, err);
}

/* The client has the bytes until its job or session has ended. */
static bool hold(struct serve_params *params, const json_t *context, struct rlmd_error *err)
{
	struct serve_client *client = params->client;
	size_t size = json_get_text(context, "text").size;

	if (client->serve->confined && client->held_bytes + size > SERVE_HELD_MAX)
		return error_set(err, RLMD_ERROR_USAGE,
				 "all blobs and texts of a client have at most 4 GiB here: wait "
				 "for the end of a job");
	client->held_bytes += size;
	params->text_bytes += size;
	return true;
}

/* Of a text only what it is called is looked at: a job that waits for its turn has no file. */
static bool read_contexts(struct serve_params *params, json_t *contexts, struct rlmd_error *err)
{
	size_t count = json_array_size(contexts), i;
	const json_t *context;

	if (contexts && !json_is_array(contexts))
		return error_set(err, RLMD_ERROR_USAGE, "contexts are an array");
	if (count > RLMD_CONTEXT_INPUTS_MAX)
		return error_set(err, RLMD_ERROR_USAGE, "there are at most %d contexts",
				 RLMD_CONTEXT_INPUTS_MAX);
	params->contexts = json_incref(contexts);
	params->sources = xcalloc(count + 1, sizeof *params->sources);
	params->fds = xcalloc(count + 1, sizeof *params->fds);
	params->blobs = xcalloc(count + 1, sizeof *params->blobs);
	params->source_count = count;
	json_array_foreach (contexts, i, context) {
		if (!check_context(context, count, err))
			return error_context(err, "contexts[%zu]", i);
		if (is_text(context, "text") && !hold(params, context, err))
			return error_context(err, "contexts[%zu]", i);
		if (is_text(context, "text"))
			continue;
		params->sources[i] = source_of(params, context, err);
		if (!params->sources[i])
			return error_context(err, "contexts[%zu]", i);
	}
	return true;
}

static void on_loaded(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct serve_params *params = owner;

	params->loading = NULL;
	params->context = context;
	params->loaded(params->owner, context, err);
}

bool serve_params_load(struct serve_params *params, serve_loaded_fn *loaded, void *owner,
		       bool *ret_waits, struct rlmd_error *err)
{
	const struct rlmd_context_options options = job_settings_context(&params->config,
									 params->config.max_time);

	if (!serve_params_open_texts(params, err))
		return false;
	*ret_waits = params->source_count;
	if (!params->source_count)
		return true;
	params->loaded = loaded;
	params->owner = owner;
	params->loading = rlmd_context_load_start(
		params->client->serve->session->base, (const char *const *)params->sources,
		params->source_count, &options, on_loaded, params, err);
	return params->loading;
}

/* --- tools ------------------------------------------------------------------------------- */

/* A call of a tool, until the client has answered. */
struct tool_call {
	struct serve_tool *tool;             /* lent */
	struct rlmd_function_call *function; /* lent: to be answered */
	struct rpc_call *asked;              /* lent */
	LIST_ENTRY(tool_call) entry;
};

struct serve_tool {
	struct serve_params *params;  /* lent */
	char *name, *doc, *schema;    /* owned */
	LIST_HEAD(, tool_call) calls; /* owned */
};

static void on_answer(void *owner, const json_t *result, const char *why)
{
	struct tool_call *call = owner;
	struct rlmd_function_call *function = call->function;
	auto_free char *json = result ? json_to_string(result) : NULL;

	LIST_REMOVE(call, entry);
	free(call);
	if (result)
		rlmd_function_reply(function, text_of(json));
	else
		rlmd_function_fail(function, why);
}

static void on_call(void *owner, struct rlmd_function_call *function, struct rlmd_text arguments)
{
	struct serve_tool *tool = owner;
	const struct serve_params *params = tool->params;
	struct tool_call *call = xcalloc(1, sizeof *call);
	json_t *value = session_read(arguments);

	call->tool = tool;
	call->function = function;
	LIST_INSERT_HEAD(&tool->calls, call, entry);
	call->asked = rpc_ask(params->client->rpc, "tool.call",
			      json_make("{s:s, s:s, s:o}", params->kind, params->name, "name",
					tool->name, "arguments", value),
			      on_answer, call);
}

static void on_cancel(void *owner, struct rlmd_function_call *function)
{
	struct serve_tool *tool = owner;
	struct tool_call *call;

	LIST_FOREACH (call, &tool->calls, entry)
		if (call->function == function)
			break;
	if (!call)
		return;
	LIST_REMOVE(call, entry);
	rpc_cancel(call->asked);
	free(call);
}

static bool read_tool(struct serve_params *params, const json_t *given, struct rlmd_error *err)
{
	const json_t *schema = json_object_get(given, "schema");
	struct serve_tool *tool = &params->tools[params->tool_count];

	if (!is_text(given, "name"))
		return error_set(err, RLMD_ERROR_USAGE, "an object with a name is wanted");
	if (schema && !json_is_null(schema) && !json_is_object(schema))
		return error_set(err, RLMD_ERROR_USAGE, "the schema is an object");
	tool->params = params;
	tool->name = xstrdup(json_get_string(given, "name"));
	tool->doc = xstrdup(json_get_string(given, "doc"));
	tool->schema = json_is_object(schema) ? json_to_string(schema) : NULL;
	LIST_INIT(&tool->calls);
	params->functions[params->tool_count++] = (struct rlmd_function){
		.size = sizeof *params->functions,
		.name = tool->name,
		.doc = tool->doc,
		.schema = tool->schema,
		.call = on_call,
		.cancel = on_cancel,
		.owner = tool,
		.timeout_ms = json_get_integer(given, "timeoutMs", 0),
	};
	return true;
}

static bool read_tools(struct serve_params *params, const json_t *tools, struct rlmd_error *err)
{
	size_t count = json_array_size(tools), i;
	const json_t *tool;

	if (tools && !json_is_array(tools))
		return error_set(err, RLMD_ERROR_USAGE, "tools are an array");
	params->tools = xcalloc(count + 1, sizeof *params->tools);
	params->functions = xcalloc(count + 1, sizeof *params->functions); /* + 1: a review's */
	json_array_foreach (tools, i, tool)
		if (!read_tool(params, tool, err))
			return error_context(err, "tools[%zu]", i);
	return true;
}

/* --- all of it --------------------------------------------------------------------------- */

bool serve_params_read(struct serve_params *params, struct serve_client *client,
		       enum command_id command, const json_t *given, struct rlmd_error *err)
{
	params->client = client;
	LIST_INSERT_HEAD(&client->works, params, entry);
	config_copy(&params->config, &client->serve->session->config);
	return read_options(params, command, json_object_get(given, "options"), err) &&
	       read_contexts(params, json_object_get(given, "contexts"), err) &&
	       read_tools(params, json_object_get(given, "tools"), err);
}

struct rlmd_sandbox *serve_params_sandbox(const struct serve_params *params, struct rlmd_error *err)
{
	struct rlmd_sandbox_options options = job_settings_sandbox(&params->config);

	if (params->client->tenancy)
		return params->client->tenancy->sandbox;
	options.require = params->config.require;
	return rlmd_engine_sandbox(params->client->serve->session->engine, &options, err);
}

static void free_tool(struct serve_tool *tool)
{
	while (!LIST_EMPTY(&tool->calls))
		on_cancel(tool, LIST_FIRST(&tool->calls)->function);
	free(tool->name);
	free(tool->doc);
	free(tool->schema);
}

void serve_params_done(struct serve_params *params)
{
	if (params->loading)
		rlmd_context_load_cancel(params->loading);
	rlmd_context_unref(params->context);
	for (size_t i = 0; i < params->tool_count; i++)
		free_tool(&params->tools[i]);
	free(params->tools);
	free(params->functions);
	json_decref(params->contexts);
	for (size_t i = 0; params->sources && i < params->source_count; i++)
		free(params->sources[i]);
	free(params->sources);
	for (size_t i = 0; i < params->fd_count; i++)
		close(params->fds[i]);
	free(params->fds);
	for (size_t i = 0; i < params->blob_count; i++)
		serve_blob_unuse(params->blobs[i]);
	free(params->blobs);
	if (params->client) {
		LIST_REMOVE(params, entry);
		params->client->held_bytes -= params->text_bytes;
		config_done(&params->config);
	}
	*params = (struct serve_params){0};
}
