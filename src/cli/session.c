#include "cli/session.h"

#include <event2/event.h>
#include <rlmd/plan.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/number.h"
#include "cli/interrupt.h"
#include "cli/live_line.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/providers.h"
#include "cli/tell.h"

/* --- begin ---------------------------------------------------------------------- */

static void take_strays(struct session *session)
{
	const json_t *stray;
	size_t i;

	session->strays = config_stray_environment();
	session->warnings = xcalloc(json_array_size(session->strays) + 1,
				    sizeof *session->warnings);
	json_array_foreach (session->strays, i, stray)
		session->warnings[i] = json_string_value(stray);
}

/* A line that is rewritten is for a person. */
bool session_is_live(const struct session *session)
{
	const struct config *config = &session->config;

	return !config->quiet && log_format_of(config->log_format) == LOG_FORMAT_TEXT &&
	       status_can_live();
}

/* Libevent's own words join: nobody else has this process. */
static void open_log(struct session *session)
{
	const struct config *config = &session->config;
	bool color = status_can_color(config->color);
	enum rlmd_log_level most = config->quiet         ? RLMD_LOG_ERROR
				   : config->verbose > 1 ? RLMD_LOG_DEBUG
				   : config->verbose     ? RLMD_LOG_INFO
							 : RLMD_LOG_NOTICE;

	tell_setup(most, log_format_of(config->log_format), color);
	live_line_setup(color);
	progress_setup(session_is_live(session));
	session->log_level = most;
	session->log = log_root(most, tell_log, NULL);
	log_take_libevent(&session->log);
}

static bool model_names(const struct config *config, const char *kind)
{
	size_t size = strlen(kind);

	return config->model && !strncmp(config->model, kind, size) && config->model[size] == '/';
}

/* Who gives a key for "anthropic/..." means that provider, whose key then need not be set. */
static const char *provider_meant(const struct config *config)
{
	const char *kind;

	for (size_t i = 0; config->key_file && (kind = rlmd_provider_kind(i)); i++)
		if (!config->base_url && model_names(config, kind))
			return kind;
	return rlmd_provider_default(config->model);
}

static bool read_settings(struct session *session, struct rlmd_error *err)
{
	struct config *config = &session->config;

	take_strays(session);
	if (!config_environment(config, err) || !config_files(config, err))
		return false;
	if (!config->provider)
		config->provider = xstrdup(provider_meant(config));
	open_log(session);
	session->time = input_time_from(config->max_time);
	return true;
}

bool session_begin(struct session *session, enum command_id command, int argc, char **argv,
		   int *ret_first, int *ret_status)
{
	struct rlmd_error err;

	session->command = command;
	session->notes = json_array();
	if (!command_begin(command, &session->config, argc, argv, ret_first, ret_status))
		return false;
	if (read_settings(session, &err))
		return true;
	*ret_status = command_refuse(command, &err);
	return false;
}

/* --- open ----------------------------------------------------------------------- */

bool session_open_output(struct session *session, enum output_form otherwise,
			 struct rlmd_error *err)
{
	const struct config *config = &session->config;
	enum output_form form = config->jsonl  ? OUTPUT_JSONL
				: config->json ? OUTPUT_JSON
					       : otherwise;

	if (config->json && config->jsonl)
		return error_set(err, RLMD_ERROR_USAGE, "--json and --jsonl exclude each other");
	session->output = output_new(form, config->output, config->trace, err);
	return session->output;
}

/* Nobody said whom to ask. */
static bool unnamed_provider(const struct session *session)
{
	const struct config *config = &session->config;

	return !config_given(config, OPTION_provider) && !config->replay &&
	       !model_names(config, config->provider);
}

bool session_open_engine(struct session *session, struct rlmd_error *err)
{
	const struct config *config = &session->config;
	const struct rlmd_engine_options options = {
		.size = sizeof options,
		.log = tell_log,
		.log_level = session->log_level,
		.max_workers = (size_t)config->max_workers,
		.max_calls = (size_t)int64_max(session->max_calls, config->max_parallel),
	};

	session->engine = rlmd_engine_new(&options, err);
	session->base = rlmd_engine_base(session->engine);
	return session->engine;
}

bool session_open(struct session *session, struct rlmd_error *err)
{
	const char *provider = session->config.provider;

	if (!session_open_engine(session, err) ||
	    !providers_open(session->engine, &session->config, err))
		return false;
	if (unnamed_provider(session) && strcmp(provider, "ollama"))
		tell("asking %s, whose key is set; -p names another", provider);
	return true;
}

/* Zero means the default to a job. */
static int64_t given(int64_t value)
{
	return value ? value : RLMD_NOTHING;
}

struct rlmd_job_options session_job(const struct session *session)
{
	const struct config *config = &session->config;

	return (struct rlmd_job_options){
		.size = sizeof(struct rlmd_job_options),
		.provider = config->provider,
		.model = config->model,
		.subcall_model = config->subcall_model,
		.sandbox = session->sandbox,
		.limits = &session->limits,
		.block_timeout_ms = config->block_timeout,
		.max_output = config->max_output,
		.max_output_tokens = config->max_output_tokens,
		.grace_ms = given(config->grace),
		.max_parallel = config_given(config, OPTION_max_parallel) ? config->max_parallel
									  : 0,
		.downgrade = given(config->downgrade),
		.strict = config->strict,
		.with_temperature = config_given(config, OPTION_temperature),
		.temperature = config->temperature,
		.stops = (const char *const *)config->stop.items,
		.prompt = config->prompt,
		.record_dir = config->record,
		.replay_dir = config->replay,
		.cache_dir = config->cache,
		.cache_age_ms = config->cache_age,
		.cache_size = config->cache_size,
		.warnings = session->warnings,
	};
}

bool session_check_signals(struct session *session, struct rlmd_error *err)
{
	if (!interrupt_count())
		return true;
	session->signal = interrupt_signal();
	return error_set(err, RLMD_ERROR_CANCELLED, "stopped before anything was begun");
}

bool session_spend_time(struct session *session, struct rlmd_error *err)
{
	const struct config *config = &session->config;
	int64_t left = session->time.deadline - clock_ms();
	char allowed[16];

	clock_format(session->time.allowed, allowed);
	session->limits = (struct rlmd_limits){
		.size = sizeof session->limits,
		.cost = config_given(config, OPTION_max_cost) ? given(config->max_cost) : 0,
		.tokens = config->max_tokens,
		.time_ms = left,
		.max_depth = given(config->max_depth),
		.max_iterations = config->max_iterations,
		.calls = config->max_calls,
		.subruns = given(config->max_subruns),
	};
	return left > 0 ||
	       error_limit(err, RLMD_STOP_MAX_TIME,
			   "reading the input took all of the %s that --max-time allows", allowed);
}

static bool is_noted(const struct session *session, const char *warning)
{
	const json_t *note;
	size_t i;

	json_array_foreach (session->notes, i, note)
		if (!strcmp(json_string_value(note), warning))
			return true;
	return false;
}

void session_note(struct session *session, const char *warning)
{
	if (is_noted(session, warning))
		return;
	json_array_append_new(session->notes, json_from_text(text_of(warning)));
	tell_warning("%s", warning);
}

void session_note_strays(struct session *session)
{
	for (size_t i = 0; session->warnings[i]; i++)
		session_note(session, session->warnings[i]);
}

void session_note_job(struct session *session, const struct rlmd_job *job)
{
	const char *warning;

	for (size_t i = 0; (warning = rlmd_job_warning(job, i)); i++)
		session_note(session, warning);
}

/* --- wait ------------------------------------------------------------------------ */

/* Two may have come at once. */
static void on_signal(evutil_socket_t fd, short what, void *owner)
{
	struct session *session = owner;

	(void)fd;
	(void)what;
	interrupt_clear();
	if (interrupt_count() > 1) {
		session->signal = interrupt_signal();
		event_base_loopbreak(session->base);
	}
	if (session->signal)
		return;
	session->signal = interrupt_signal();
	if (session->work->interrupted)
		tell("%s", session->work->interrupted);
	session->work->interrupt(session->work->owner);
}

static void hear_signals(struct session *session)
{
	session->interrupted = event_new(session->base, interrupt_fd(), EV_READ | EV_PERSIST,
					 on_signal, session);
	loop_make_urgent(session->interrupted);
	event_add(session->interrupted, NULL);
}

static struct status_options status_options(const struct session *session)
{
	const struct config *config = &session->config;

	return (struct status_options){
		.live = session_is_live(session),
		.verbose = (int)config->verbose,
	};
}

bool session_wait(struct session *session, const struct session_work *work, struct rlmd_error *err)
{
	struct status_options options = status_options(session);

	session->work = work;
	if (work->status)
		session->status = status_new(session->base, &options, work->status, work->owner);
	hear_signals(session);
	if (!session->broken.kind)
		event_base_dispatch(session->base);
	session->work = NULL;
	if (session->broken.kind)
		*err = session->broken;
	else if (session->over)
		return true;
	else if (session->signal)
		error_set(err, RLMD_ERROR_CANCELLED, "stopped before there was a result");
	else
		error_set(err, RLMD_ERROR_INTERNAL, "nothing is left to wait for");
	return false;
}

void session_leave(struct session *session)
{
	session->over = true;
	event_base_loopbreak(session->base);
}

const char *const *session_events(const struct session *session)
{
	const struct status_options options = status_options(session);

	if (output_has_events(session->output))
		return NULL;
	return session->config.quiet ? status_events(NULL) : status_events(&options);
}

void session_event(struct session *session, struct rlmd_text event)
{
	if (session->config.jsonl)
		live_line_clear();
	status_event(session->status, event);
	if (session->broken.kind || output_event(session->output, event, &session->broken))
		return;
	/* Nobody is going to read the result: there is no reason to go on paying for it. */
	event_base_loopbreak(session->base);
}

/* --- close ------------------------------------------------------------------------ */

void session_close(struct session *session)
{
	status_free(take_pointer(&session->status));
	if (session->interrupted)
		event_free(take_pointer(&session->interrupted));
	session->base = NULL;
	session->sandbox = NULL;
	rlmd_engine_free(take_pointer(&session->engine));
}

static bool print_result(struct session *session, const struct session_result *result)
{
	if (session->output && result->object && !session->broken.kind)
		output_result(session->output, result->object, result->answer, &session->broken);
	return !session->broken.kind;
}

int session_report(struct session *session, const struct session_result *result)
{
	bool printed = print_result(session, result);
	struct status_options options = status_options(session);

	if (!printed && output_reader_gone(session->output))
		return rlmd_error_exit_status(RLMD_ERROR_INTERNAL);
	if (result->work)
		status_summary(result->object, session->notes,
			       session->signal   ? "interrupted after"
			       : result->failure ? "failed after"
						 : "done in",
			       result->work, result->max_cost, &options);
	if (!printed) {
		tell_error("%s", session->broken.text);
		return session->broken.kind == RLMD_ERROR_CANCELLED
			       ? 128 + interrupt_signal()
			       : rlmd_error_exit_status(RLMD_ERROR_INTERNAL);
	}
	if (result->failure)
		tell_error("%s", result->failure->text);
	if (result->failure && result->failure->kind == RLMD_ERROR_NETWORK &&
	    unnamed_provider(session))
		tell("no provider was named, so %s was asked: -p openai and -p anthropic ask "
		     "others, with their keys in OPENAI_API_KEY and ANTHROPIC_API_KEY",
		     session->config.provider);
	return session->signal ? 128 + session->signal : result->status;
}

int session_show(struct session *session, const json_t *object, struct rlmd_text text)
{
	const struct config *config = &session->config;
	auto_evbuffer struct evbuffer *line = evbuffer_new();
	struct rlmd_error err;

	json_write_line(object, line);
	if (output_text(session->output, config->json || config->jsonl ? text_in(line) : text,
			&err) &&
	    output_commit(session->output, &err))
		return 0;
	tell_error("%s", err.text);
	return rlmd_error_exit_status(err.kind);
}

/* Whether it may begin: with --strict a dry run decides about what costs something. */
static int gate(const struct session *session, const json_t *object)
{
	const json_t *misfits = json_object_get(object, "misfits");

	if (!session->config.strict || !json_array_size(misfits))
		return 0;
	tell_error("reading everything once does not fit the budget: %s",
		   json_string_value(json_array_get(misfits, 0)));
	return rlmd_error_exit_status(RLMD_ERROR_BUDGET);
}

int session_show_job(struct session *session, const struct rlmd_job_options *options,
		     void (*format)(const json_t *, struct evbuffer *out))
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	struct rlmd_error err;
	auto_free char *text = rlmd_job_dry_run(session->engine, options, &err);
	json_auto_t *object = text ? session_read(text_of(text)) : NULL;
	const json_t *warning;
	int status;
	size_t i;

	if (!object) {
		tell_error("%s", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	json_array_foreach (json_object_get(object, "warnings"), i, warning)
		session_note(session, json_string_value(warning));
	format(object, out);
	status = session_show(session, object, text_in(out));
	return status ? status : gate(session, object);
}

void session_done(struct session *session)
{
	session_close(session);
	output_free(session->output);
	json_decref(session->strays);
	free(session->warnings);
	json_decref(session->notes);
	config_done(&session->config);
	log_take_libevent(NULL);
}

json_t *session_read(struct rlmd_text json)
{
	return json_loadb(json.bytes, json.size, JSON_ALLOW_NUL, NULL);
}
