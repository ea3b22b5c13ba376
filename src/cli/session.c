#include "cli/session.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "cli/isolation.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/providers.h"
#include "cli/tell.h"

/* --- begin ---------------------------------------------------------------------- */

static void use_settings(struct session *session)
{
	const struct config *config = &session->config;

	session->settings = (struct job_config){
		.model = config->model,
		.subcall_model = config->subcall_model,
		.prompts = session->prompts,
		.preload = (const char *const *)config->preload.items,
		.limits = {.cost = config->max_cost,
			   .tokens = config->max_tokens,
			   .time_ms = config->max_time,
			   .max_depth = (int)config->max_depth,
			   .max_iterations = (int)config->max_iterations,
			   .calls = config->max_calls,
			   .subruns = config->max_subruns},
		.block_timeout_ms = config->block_timeout,
		.max_output = config->max_output,
		.max_output_tokens = config->max_output_tokens,
		.sampling = {.with_temperature = config_given(config, OPTION_temperature),
			     .temperature = config->temperature,
			     .stops = (const char *const *)config->stop.items,
			     .stop_count = config->stop.count},
		.max_parallel = (int)config->max_parallel,
		.downgrade = (int)config->downgrade,
		.grace_ms = config->grace,
		.strict = config->strict,
	};
}

static bool open_prompts(struct session *session, struct rlmd_error *err)
{
	const char *name = session->config.prompt;

	if (!name || !option_is_of(OPTION_prompt, session->command))
		return true;
	session->prompts = prompt_set_open(name, err);
	return session->prompts || error_context(err, "--prompt");
}

/* A line that is rewritten is for a person. */
static bool is_live(const struct config *config)
{
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
	progress_setup(is_live(config), color);
	session->log = log_root(most, tell_log, NULL);
	log_take_libevent(&session->log);
}

static bool read_settings(struct session *session, struct rlmd_error *err)
{
	struct config *config = &session->config;
	json_auto_t *strays = config_stray_environment();

	json_array_extend(session->notes, strays);
	if (!config_environment(config, err) || !config_files(config, err))
		return false;
	if (!config->provider)
		config->provider = xstrdup(llm_default_provider(config->model));
	open_log(session);
	if (!open_prompts(session, err))
		return false;
	use_settings(session);
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
	return !config_given(&session->config, OPTION_provider) && !session->config.replay;
}

/* What it asks here are prices; jobs open recordings themselves. */
static bool open_llm(struct session *session, struct rlmd_error *err)
{
	const struct config *config = &session->config;
	struct llm_config settings = {
		.provider = config->provider,
		.model = config->model,
		.offline = config->dry_run || config->replay,
	};

	if (!providers_open(session->engine, config, err))
		return false;
	session->llm = llm_new(session->engine->registry, &settings, err);
	if (session->llm && unnamed_provider(session) && strcmp(config->provider, "ollama"))
		tell("asking %s, whose key is set; -p names another", config->provider);
	return session->llm && llm_allow(session->llm, config->subcall_model, err);
}

/* A limit that somebody asked for is kept or refused; one that nobody asked for may be lifted. */
bool session_check_price(struct session *session, const char *model, struct rlmd_error *err)
{
	int64_t cost;

	if (session->settings.limits.cost == BUDGET_UNLIMITED ||
	    llm_price(session->llm, model, 1, 1, &cost))
		return true;
	if (config_given(&session->config, OPTION_max_cost))
		return error_set(
			err, RLMD_ERROR_USAGE,
			"the price of model '%.100s' is not known, so --max-cost cannot be "
			"kept: leave the limit out, or give --price-table a file like "
			"{\"%.100s\": {\"input_cost_per_token\": 2e-06, "
			"\"output_cost_per_token\": 8e-06}}",
			model, model);
	session->settings.limits.cost = BUDGET_UNLIMITED;
	llm_warn_unpriced(session->llm, model);
	return true;
}

/* With nothing to spend a run cannot so much as begin with a model that has a price. */
static bool check_free(const struct session *session, const char *model, struct rlmd_error *err)
{
	int64_t cost;

	if (session->settings.limits.cost || session->config.dry_run ||
	    !llm_price(session->llm, model, 1, 1, &cost) || !cost)
		return true;
	return error_limit(err, RLMD_STOP_MAX_COST,
			   "model '%.100s' has a price, and --max-cost 0 allows only what is free: "
			   "choose a local model, or allow an amount",
			   model);
}

static bool check_prices(struct session *session, struct rlmd_error *err)
{
	const struct job_config *settings = &session->settings;
	const char *root = settings->model ? settings->model : llm_default_model(session->llm);
	const char *subcall = settings->subcall_model ? settings->subcall_model : root;

	return session_check_price(session, root, err) &&
	       session_check_price(session, subcall, err) && check_free(session, root, err);
}

bool session_open_loop(struct session *session, struct rlmd_error *err)
{
	const struct engine_options options = {
		.log = &session->log,
		.max_workers = (size_t)session->config.max_workers,
		.max_calls = (size_t)session->settings.max_parallel,
	};

	session->engine = rlmd_engine_new(&options, err);
	if (session->engine)
		session->base = rlmd_engine_base(session->engine);
	return session->engine;
}

bool session_open(struct session *session, struct rlmd_error *err)
{
	return session_open_loop(session, err) && open_llm(session, err) &&
	       check_prices(session, err);
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
	int64_t left = session->time.deadline - clock_ms();
	char allowed[16];

	clock_format(session->time.allowed, allowed);
	session->settings.limits.time_ms = left;
	return left > 0 ||
	       error_limit(err, RLMD_STOP_MAX_TIME,
			   "reading the input took all of the %s that --max-time allows", allowed);
}

bool session_open_sandbox(struct session *session, bool any, struct rlmd_error *err)
{
	json_auto_t *report = NULL;
	struct rlmd_error reason;

	progress_show("starting a worker");
	session->sandbox = isolation_open(session->base, &session->config, &session->log, err);
	progress_end();
	if (!session_check_signals(session, err) || !session->sandbox)
		return false;
	if (any)
		return true;
	report = sandbox_report(session->sandbox);
	return isolation_suffices(report, session->config.require, &reason) ||
	       error_set(err, reason.kind,
			 "%s; 'rlmd doctor' tells which layers are missing, and what would add "
			 "them",
			 reason.text);
}

void session_note(struct session *session, const json_t *notes)
{
	json_auto_t *warnings = session->llm ? llm_take_warnings(session->llm) : NULL;
	const json_t *note;
	size_t i;

	json_array_extend(session->notes, (json_t *)notes);
	json_array_extend(session->notes, warnings);
	json_array_foreach (session->notes, i, note)
		tell_warning("%s", json_string_value(note));
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
		.live = is_live(config),
		.color = status_can_color(config->color),
		.verbose = (int)config->verbose,
		.max_cost = session->settings.limits.cost,
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

void session_event(struct session *session, json_t *event)
{
	if (session->config.jsonl)
		status_clear(session->status);
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
	if (session->sandbox)
		sandbox_free(take_pointer(&session->sandbox));
	llm_free(take_pointer(&session->llm));
	if (session->interrupted)
		event_free(take_pointer(&session->interrupted));
	session->base = NULL;
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
			       result->work, &options);
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

void session_done(struct session *session)
{
	session_close(session);
	output_free(session->output);
	prompt_set_free(session->prompts);
	json_decref(session->notes);
	config_done(&session->config);
	log_take_libevent(NULL);
}
