#include "cli/session.h"

#include <event2/event.h>
#include <rlmd/plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/number.h"
#include "cli/dry_run.h"
#include "cli/interrupt.h"
#include "cli/job_settings.h"
#include "cli/progress.h"
#include "cli/providers.h"
#include "cli/tell.h"

/* --- begin ---------------------------------------------------------------------- */

static void take_strays(struct session *session)
{
	const json_t *stray;
	size_t i;

	session->strays = config_stray_environment();
	json_array_extend(session->strays, session->config.notes);
	session->warnings = xcalloc(json_array_size(session->strays) + 1,
				    sizeof *session->warnings);
	json_array_foreach (session->strays, i, stray)
		session->warnings[i] = json_string_value(stray);
}

/* A line that is rewritten is for a person. */
static bool is_live(const struct session *session)
{
	const struct config *config = &session->config;

	return !config->quiet && log_format_of(config->log_format) == LOG_FORMAT_TEXT &&
	       tell_can_live();
}

/* Libevent's own words join: nobody else has this process. */
static void open_log(struct session *session)
{
	const struct config *config = &session->config;
	bool color = tell_can_color(config->color), live = is_live(session);
	enum rlmd_log_level most = config->quiet         ? RLMD_LOG_ERROR
				   : config->verbose > 1 ? RLMD_LOG_DEBUG
				   : config->verbose     ? RLMD_LOG_INFO
							 : RLMD_LOG_NOTICE;

	tell_setup(most, log_format_of(config->log_format), color);
	progress_setup(live, color);
	session->view = (struct job_view){.verbose = (int)config->verbose, .live = live};
	session->log_level = most;
	session->log = log_root(most, tell_log, NULL);
	log_take_libevent(&session->log);
}

static bool read_settings(struct session *session, struct rlmd_error *err)
{
	struct config *config = &session->config;

	take_strays(session);
	if (!config_environment(config, err) || !config_files(config, err))
		return false;
	if (!config->provider)
		config->provider = xstrdup(providers_usual(config));
	open_log(session);
	session->time = input_time_from(config->max_time);
	return true;
}

static void finish(struct session *session)
{
	session_close(session);
	output_free(session->output);
	span_log_send(session->spans, session->config.otel_content);
	span_log_free(session->spans);
	json_decref(session->strays);
	free(session->warnings);
	json_decref(session->notes);
	json_decref(session->result);
	config_done(&session->config);
	log_take_libevent(NULL);
}

/* A command with --config has settings. */
int session_command(enum command_id id, int argc, char **argv)
{
	struct session session = {.command = id, .notes = json_array()};
	struct rlmd_error err;
	int first, status;

	if (command_begin(id, &session.config, argc, argv, &first, &status)) {
		if (option_is_of(OPTION_store, id))
			config_hide_password(argc, argv);
		if (!option_is_of(OPTION_config, id) || read_settings(&session, &err))
			status = command_table[id].run(&session, argc - first, argv + first);
		else
			status = command_refuse(id, &err);
	}
	finish(&session);
	return status;
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
	if (providers_is_unnamed(&session->config) && strcmp(provider, "ollama"))
		tell("asking %s, whose key is set; -p names another", provider);
	return true;
}

struct rlmd_job_options session_options(const struct session *session)
{
	struct rlmd_job_options options = job_settings_options(&session->config);

	options.sandbox = session->sandbox;
	options.limits = &session->limits;
	options.warnings = session->warnings;
	return options;
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
	session->limits = job_settings_limits(config, left);
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
	session->interrupted = loop_event(session->base, interrupt_fd(), EV_READ | EV_PERSIST,
					  on_signal, session);
	loop_make_urgent(session->interrupted);
	loop_add(session->interrupted, NULL);
}

bool session_wait(struct session *session, const struct session_work *work, struct rlmd_error *err)
{
	session->work = work;
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

/* --- a job ---------------------------------------------------------------------- */

static const char *const *events_of(const struct session *session)
{
	static const char *const none[] = {NULL};

	if (output_has_events(session->output) || session->spans)
		return NULL;
	return session->config.quiet ? none : job_view_events(&session->view);
}

static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text event)
{
	struct session *session = owner;

	(void)job;
	span_log_add(session->spans, event);
	if (session->kind->result_later && output_is_result(event))
		return;
	if (session->config.jsonl)
		progress_clear();
	job_view_event(&session->view, event);
	if (session->broken.kind || output_event(session->output, event, &session->broken))
		return;
	/* The result has no reader any more: there is no reason to go on paying for it. */
	event_base_loopbreak(session->base);
}

static void on_check(void *owner, struct rlmd_job *job, struct rlmd_text answer,
		     struct rlmd_check *check)
{
	const struct session_job *kind = ((struct session *)owner)->kind;

	kind->check(kind->owner, job, answer, check);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	const struct rlmd_error *error = rlmd_result_error(result);
	struct session *session = owner;

	(void)job;
	session->result = session_read(rlmd_result_json(result));
	if (error)
		session->failure = *error;
	session->kind->take(session->kind->owner, result);
	session_leave(session);
}

static bool start_job(struct session *session, struct rlmd_job_options options,
		      struct rlmd_error *err)
{
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks,
		.event = on_event,
		.events = events_of(session),
		.check = session->kind->check ? on_check : NULL,
		.end = on_end,
		.owner = session,
	};
	const char *warning;

	options.hooks = &hooks;
	session->job = rlmd_job_start(session->engine, &options, err);
	for (size_t i = 0; (warning = rlmd_job_warning(session->job, i)); i++)
		session_note(session, warning);
	return session->job;
}

static void on_interrupt(void *owner)
{
	rlmd_job_interrupt(((struct session *)owner)->job);
}

static void describe(const void *owner, struct progress_line *line)
{
	const struct session *session = owner;
	struct rlmd_job_status now = {.size = sizeof now};
	char progress[JOB_VIEW_PROGRESS_MAX];

	rlmd_job_get_status(session->job, &now);
	session->kind->progress(&now, progress);
	job_view_describe(&session->view, &now, progress, line);
}

bool session_run(struct session *session, const struct session_job *kind,
		 struct rlmd_job_options options, struct rlmd_error *err)
{
	const struct progress_source source = {.describe = describe, .owner = session};
	const struct session_work work = {
		.interrupt = on_interrupt, .interrupted = kind->interrupted, .owner = session};
	bool ok;

	session->kind = kind;
	session->spans = span_log_new();
	if (!start_job(session, options, err))
		return false;
	progress_start(session->base, &source);
	ok = session_wait(session, &work, err);
	progress_end();
	if (!session->result)
		rlmd_job_cancel(session->job);
	while (!session->result)
		rlmd_engine_wait(session->engine, session->job, NULL);
	session->last.size = sizeof session->last;
	rlmd_job_get_status(session->job, &session->last);
	return ok;
}

/* --- where its code runs: begun early, and waited for late ------------------------- */

static void on_loaded(void *owner)
{
	struct session *session = owner;

	session->loaded = true;
}

bool session_begin_sandbox(struct session *session, struct rlmd_error *err)
{
	const struct rlmd_sandbox_options options = job_settings_sandbox(&session->config);

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
	struct event *woken = loop_event(session->base, interrupt_fd(), EV_READ, on_woken, NULL);

	loop_add(woken, NULL);
	while (!session->loaded && !interrupt_count())
		if (event_base_loop(session->base, EVLOOP_ONCE))
			break;
	event_free(woken);
}

bool session_open_sandbox(struct session *session, bool any, struct rlmd_error *err)
{
	struct rlmd_sandbox_options options = job_settings_sandbox(&session->config);

	options.require = any ? NULL : session->config.require;
	progress_show("starting a worker");
	if (session->loads)
		await_python(session);
	session->sandbox = rlmd_engine_sandbox(session->engine, &options, err);
	progress_end();
	return session_check_signals(session, err) && session->sandbox;
}

static void on_break(evutil_socket_t fd, short what, void *owner)
{
	struct session *session = owner;

	(void)fd;
	(void)what;
	event_base_loopbreak(session->base);
}

bool session_check_schemas(struct session *session, const struct rlmd_job_options *options,
			   struct rlmd_error *err)
{
	struct event *signals = loop_event(session->base, interrupt_fd(), EV_READ, on_break,
					   session);
	bool ok;

	loop_add(signals, NULL);
	ok = rlmd_job_check_schemas(session->engine, options, err);
	event_free(signals);
	return session_check_signals(session, err) && ok;
}

/* --- close ------------------------------------------------------------------------ */

void session_close(struct session *session)
{
	rlmd_job_free(take_pointer(&session->job));
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

	if (!printed && output_reader_gone(session->output))
		return rlmd_error_exit_status(RLMD_ERROR_INTERNAL);
	if (result->work)
		job_view_summary(&session->view, result->object, session->notes,
				 session->signal   ? "interrupted after"
				 : result->failure ? "failed after"
						   : "done in",
				 result->work, session->last.max_cost);
	if (!printed) {
		tell_error("%s", session->broken.text);
		return session->broken.kind == RLMD_ERROR_CANCELLED
			       ? 128 + interrupt_signal()
			       : rlmd_error_exit_status(RLMD_ERROR_INTERNAL);
	}
	if (result->failure)
		tell_error("%s", result->failure->text);
	if (result->failure && result->failure->kind == RLMD_ERROR_NETWORK &&
	    providers_is_unnamed(&session->config))
		tell("no provider was named, so %s was asked: -p openai and -p anthropic ask "
		     "others, with their keys in OPENAI_API_KEY and ANTHROPIC_API_KEY",
		     session->config.provider);
	return session->signal ? 128 + session->signal : result->status;
}

static int show(struct session *session, const json_t *object, struct rlmd_text text)
{
	const struct config *config = &session->config;
	auto_evbuffer struct evbuffer *line = buffer_new();
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
	auto_evbuffer struct evbuffer *largest = buffer_new();

	if (!session->config.strict || !json_array_size(misfits))
		return 0;
	dry_run_largest(object, largest);
	tell_error("reading everything once does not fit the budget: %s%s",
		   json_string_value(json_array_get(misfits, 0)),
		   text_in(largest).size ? text_in(largest).bytes : "");
	return rlmd_error_exit_status(RLMD_ERROR_BUDGET);
}

int session_show_job(struct session *session, const struct rlmd_job_options *given,
		     void (*format)(const json_t *, struct evbuffer *out))
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	const struct rlmd_sandbox_options sandbox = job_settings_sandbox(&session->config);
	struct rlmd_job_options options = *given;
	auto_free char *text = NULL;
	struct rlmd_error err;
	json_auto_t *object = NULL;
	const json_t *warning;
	int status;
	size_t i;

	options.shown_sandbox = &sandbox;
	text = rlmd_job_dry_run(session->engine, &options, &err);
	object = text ? session_read(text_of(text)) : NULL;
	if (!object) {
		tell_error("%s", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	json_array_foreach (json_object_get(object, "warnings"), i, warning)
		session_note(session, json_string_value(warning));
	format(object, out);
	status = show(session, object, text_in(out));
	return status ? status : gate(session, object);
}

json_t *session_read(struct rlmd_text json)
{
	return json_loadb(json.bytes, json.size, JSON_ALLOW_NUL, NULL);
}

static json_t *no_usage(void)
{
	static const char *const counts[] = {
		"tokens",   "inputTokens", "outputTokens",    "duration",     "iterations",
		"subcalls", "llmCalls",    "maxDepthReached", "cachedTokens",
	};
	json_t *usage = json_pack("{s:f, s:b, s:b}", "cost", 0.0, "estimated", 0, "costComplete",
				  1);

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		json_object_set_new(usage, counts[i], json_integer(0));
	return usage;
}

json_t *session_no_result(const struct session *session, const struct rlmd_error *err)
{
	json_t *object = json_pack("{s:b, s:s, s:s?, s:n, s:n, s:o, s:o}", "success", !err,
				   "output", "", "stopReason",
				   err ? rlmd_stop_name(error_stop(err)) : NULL, "trace", "sandbox",
				   "usage", no_usage(), "warnings", json_copy(session->notes));

	if (err)
		json_object_set_new(object, "error",
				    json_pack("{s:s, s:o}", "kind", rlmd_error_name(err->kind),
					      "message", json_from_text(text_of(err->text))));
	return object;
}
