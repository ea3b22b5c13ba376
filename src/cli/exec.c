/*
 * rlmd exec: one task, one answer.
 *
 * What is wrong with the command line, the input and the settings is found
 * before anything is started, and what is started is stopped before anything
 * is printed.
 */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/dry_run.h"
#include "cli/input.h"
#include "cli/isolation.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/status.h"
#include "cli/tell.h"
#include "engine/engine.h"

enum { SIGNALS = 3, MAX_RETRIES = 2 };

struct exec {
	struct config config;
	struct input input;
	struct output *output;          /* owned */
	struct event_base *base;        /* owned */
	struct event *signals[SIGNALS]; /* owned; NULL where it is ignored */
	struct llm *llm;                /* owned */
	struct sandbox *sandbox;        /* owned */
	struct engine *engine;          /* owned */
	struct status *status;          /* owned */
	struct engine_config settings;

	int signal;     /* the first that came, or 0 */
	json_t *result; /* owned; NULL until the engine is done */
	char *answer;   /* owned; NULL: none */
	size_t answer_size;
	struct error error;  /* why there is no answer, or none that counts */
	struct error broken; /* why the output could not be written */

	json_t *usage; /* owned: of a run that was stopped without a result; else NULL */
};

/* --- the engine's callbacks, and signals --------------------------------------- */

static void on_event(void *owner, json_t *event)
{
	struct exec *exec = owner;

	if (exec->config.jsonl)
		status_clear(exec->status);
	status_event(exec->status, event);
	if (exec->broken.kind || output_event(exec->output, event, &exec->broken))
		return;
	/* Nobody is going to read the answer: there is no reason to go on paying for it. */
	event_base_loopbreak(exec->base);
}

static void on_done(void *owner, const struct engine_result *result)
{
	struct exec *exec = owner;

	exec->result = json_incref(result->object);
	exec->error = result->error;
	exec->error.kind = result->failure;
	if (result->failure == ERROR_NONE || result->output.size) {
		exec->answer = xstrndup(result->output.bytes, result->output.size);
		exec->answer_size = result->output.size;
	}
	event_base_loopbreak(exec->base);
}

static void on_signal(evutil_socket_t number, short what, void *owner)
{
	struct exec *exec = owner;

	(void)what;
	if (exec->signal) {
		event_base_loopbreak(exec->base);
		return;
	}
	exec->signal = number == SIGHUP ? SIGTERM : (int)number;
	tell("interrupted: an answer is made of what there is; once more stops it now");
	engine_interrupt(exec->engine);
}

/* A signal that our parent had ignored stays ignored: nohup(1), jobs in the background. */
static void catch_signals(struct exec *exec)
{
	static const int numbers[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction now;

	for (size_t i = 0; i < SIGNALS; i++) {
		if (sigaction(numbers[i], NULL, &now) || now.sa_handler == SIG_IGN)
			continue;
		exec->signals[i] = evsignal_new(exec->base, numbers[i], on_signal, exec);
		event_add(exec->signals[i], NULL);
	}
}

/* --- before the start ----------------------------------------------------------- */

static void use_settings(struct exec *exec)
{
	const struct config *config = &exec->config;

	exec->settings = (struct engine_config){
		.model = config->model,
		.subcall_model = config->subcall_model,
		.limits = {.cost = config->max_cost,
			   .tokens = config->max_tokens,
			   .time_ms = config->max_time,
			   .max_depth = (int)config->max_depth,
			   .max_iterations = (int)config->max_iterations},
		.block_timeout_ms = config->block_timeout,
		.max_output = config->max_output,
		.max_parallel = (int)config->max_parallel,
		.grace_ms = config->grace,
		.strict = config->strict,
	};
}

static bool open_output(struct exec *exec, struct error *err)
{
	const struct config *config = &exec->config;
	enum output_form form = config->jsonl  ? OUTPUT_JSONL
				: config->json ? OUTPUT_JSON
					       : OUTPUT_ANSWER;

	if (config->json && config->jsonl)
		return error_set(err, ERROR_USAGE, "--json and --jsonl exclude each other");
	exec->output = output_new(form, config->output, config->trace, err);
	return exec->output;
}

static bool open_llm(struct exec *exec, struct error *err)
{
	const struct config *config = &exec->config;
	struct llm_config settings = {
		.provider = config->provider,
		.model = config->model,
		.base_url = config->base_url,
		.key_file = config->key_file,
		.price_table = config->price_table,
		.record_dir = config->record,
		.replay_dir = config->replay,
		.offline = config->dry_run,
		.no_stream = config->no_stream,
		.max_retries = MAX_RETRIES,
	};

	exec->llm = llm_new(exec->base, &settings, err);
	return exec->llm;
}

/* A limit that somebody asked for is kept or refused; one that nobody asked for may be lifted. */
static bool check_price(struct exec *exec, const char *model, struct error *err)
{
	int64_t cost;

	if (exec->settings.limits.cost == BUDGET_UNLIMITED ||
	    llm_price(exec->llm, model, 1, 1, &cost))
		return true;
	if (config_given(&exec->config, OPTION_max_cost))
		return error_set(err, ERROR_USAGE,
				 "the price of model '%s' is not known, so --max-cost cannot be "
				 "kept: give the price with --price-table, or leave the limit out",
				 model);
	exec->settings.limits.cost = BUDGET_UNLIMITED;
	llm_warn_unpriced(exec->llm, model);
	return true;
}

static bool check_prices(struct exec *exec, struct error *err)
{
	const char *root = exec->settings.model ? exec->settings.model
						: llm_default_model(exec->llm);
	const char *subcall = exec->settings.subcall_model ? exec->settings.subcall_model : root;

	return check_price(exec, root, err) && check_price(exec, subcall, err);
}

static bool open_sandbox(struct exec *exec, struct error *err)
{
	json_auto_t *report = NULL;

	exec->sandbox = isolation_open(exec->base, &exec->config, err);
	if (!exec->sandbox)
		return false;
	report = sandbox_report(exec->sandbox);
	return isolation_suffices(report, exec->config.require, err);
}

/* What there is to warn of before the start goes into the result too, as notes on the input do. */
static void tell_notes(struct exec *exec)
{
	json_auto_t *warnings = exec->llm ? llm_take_warnings(exec->llm) : NULL;
	const json_t *note;
	size_t i;

	json_array_extend(exec->input.context.notes, warnings);
	json_array_foreach (exec->input.context.notes, i, note)
		tell_warning("%s", json_string_value(note));
}

static bool prepare(struct exec *exec, struct error *err)
{
	bool ok;

	use_settings(exec);
	if (!open_output(exec, err) || !input_context(&exec->input, &exec->config, err))
		return false;
	exec->base = event_base_new();
	if (!exec->base)
		return error_set(err, ERROR_INTERNAL, "cannot make an event loop");
	ok = open_llm(exec, err) && check_prices(exec, err);
	tell_notes(exec);
	return ok;
}

/* --- the run ---------------------------------------------------------------------- */

static void work(struct exec *exec)
{
	const struct config *config = &exec->config;
	struct status_options options = {
		.live = !config->quiet && status_can_live(),
		.color = status_can_color(config->color),
		.verbose = (int)config->verbose,
		.max_cost = exec->settings.limits.cost,
	};
	struct text task = text_from(exec->input.task, exec->input.task_size);

	exec->engine = engine_start(exec->base, exec->sandbox, exec->llm, &exec->settings, task,
				    &exec->input.context, on_event, on_done, exec);
	exec->status = status_new(exec->base, exec->engine, &options);
	catch_signals(exec);
	if (!exec->broken.kind)
		event_base_dispatch(exec->base);
}

static bool answer_task(struct exec *exec, struct error *err)
{
	if (!open_sandbox(exec, err))
		return false;
	work(exec);
	if (exec->broken.kind)
		*err = exec->broken;
	else if (exec->error.kind)
		*err = exec->error;
	else if (!exec->result && exec->signal)
		error_set(err, ERROR_CANCELLED, "stopped before there was an answer");
	else if (!exec->result)
		error_set(err, ERROR_INTERNAL, "nothing is left to wait for");
	else
		return true;
	return false;
}

static int show_dry_run(struct exec *exec)
{
	struct text task = text_from(exec->input.task, exec->input.task_size);
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	json_auto_t *object = engine_dry_run(exec->llm, &exec->settings, task,
					     &exec->input.context);
	struct error err;

	if (exec->config.json || exec->config.jsonl)
		json_write_line(object, out);
	else
		dry_run_format(object, exec->settings.limits.cost, out);
	if (output_text(exec->output, text_in(out), &err) && output_commit(exec->output, &err))
		return 0;
	tell_error("%s", err.text);
	return error_exit_status(err.kind);
}

/* Workers, transfers and the live line are gone before the answer is printed. */
static void stop(struct exec *exec)
{
	status_free(take_pointer(&exec->status));
	if (exec->engine && !exec->result)
		exec->usage = engine_usage(exec->engine);
	engine_free(take_pointer(&exec->engine));
	if (exec->sandbox)
		sandbox_free(take_pointer(&exec->sandbox));
	llm_free(take_pointer(&exec->llm));
	for (size_t i = 0; i < SIGNALS; i++)
		if (exec->signals[i])
			event_free(take_pointer(&exec->signals[i]));
	if (exec->base)
		event_base_free(take_pointer(&exec->base));
}

static const char *stop_reason(const struct exec *exec, enum error_kind kind)
{
	if (exec->signal)
		return "interrupted";
	switch (kind) {
	case ERROR_SANDBOX:
	case ERROR_WORKER:
		return "sandbox_error";
	case ERROR_NOT_FOUND:
	case ERROR_AUTH:
	case ERROR_BILLING:
	case ERROR_THROTTLED:
	case ERROR_OVERLOADED:
	case ERROR_NETWORK:
	case ERROR_TIMEOUT:
	case ERROR_BAD_REPLY:
	case ERROR_BAD_REQUEST:
	case ERROR_CONTEXT_OVERFLOW:
		return "provider_error";
	case ERROR_REFUSED:
		return "refused";
	case ERROR_NONE:
	case ERROR_INTERNAL:
	case ERROR_USAGE:
	case ERROR_BUDGET:
	case ERROR_INPUT:
	case ERROR_REPLAY:
	case ERROR_CANCELLED:
		break;
	}
	return NULL;
}

/* Of a run that was stopped at once, the calls in flight are missing. */
static json_t *known_usage(const struct exec *exec)
{
	static const char *const counts[] = {
		"tokens",   "inputTokens", "outputTokens",    "duration",     "iterations",
		"subcalls", "llmCalls",    "maxDepthReached", "cachedTokens",
	};
	json_t *usage = exec->usage ? json_copy(exec->usage) : json_pack("{s:f}", "cost", 0.0);

	for (size_t i = 0; !exec->usage && i < sizeof counts / sizeof *counts; i++)
		json_object_set_new(usage, counts[i], json_integer(0));
	json_object_set_new(usage, "estimated", json_boolean(exec->usage));
	json_object_set_new(usage, "costComplete", json_boolean(!exec->usage));
	return usage;
}

/* The object where the engine did not get to make one. */
static json_t *failed_result(const struct exec *exec, const struct error *err)
{
	json_t *notes = exec->input.context.notes;

	return json_pack("{s:b, s:s, s:s?, s:n, s:n, s:o, s:o, s:{s:s, s:o}}", "success", 0,
			 "output", "", "stopReason", stop_reason(exec, err->kind), "trace",
			 "sandbox", "usage", known_usage(exec), "warnings",
			 notes ? json_copy(notes) : json_array(), "error", "kind",
			 error_name(err->kind), "message", json_from_text(text_of(err->text)));
}

static int report(struct exec *exec, const struct error *failure)
{
	int status = failure ? error_exit_status(failure->kind) : 0;
	bool begun = exec->result || exec->usage;
	struct error err;

	if (!exec->result)
		exec->result = failed_result(exec, failure);
	if (exec->output && !exec->broken.kind &&
	    !output_result(exec->output, exec->result, text_from(exec->answer, exec->answer_size),
			   &err))
		exec->broken = err;
	if (exec->broken.kind && output_reader_gone(exec->output))
		return error_exit_status(ERROR_INTERNAL);
	if (begun)
		status_summary(exec->result, exec->input.context.notes,
			       exec->signal ? "interrupted after"
			       : failure    ? "failed after"
					    : "done in",
			       exec->settings.limits.cost);
	if (exec->broken.kind) {
		tell_error("%s", exec->broken.text);
		return error_exit_status(ERROR_INTERNAL);
	}
	if (failure)
		tell_error("%s", failure->text);
	return exec->signal ? 128 + exec->signal : status;
}

static int run(struct exec *exec)
{
	struct error err;
	bool ok = prepare(exec, &err);

	if (ok && exec->config.dry_run)
		return show_dry_run(exec);
	ok = ok && answer_task(exec, &err);
	stop(exec);
	return report(exec, ok ? NULL : &err);
}

/* --- the command line --------------------------------------------------------------- */

static int show_help(void)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	evbuffer_add_printf(out, "usage: rlmd exec [OPTIONS] [--] TASK\n"
				 "       COMMAND | rlmd exec [OPTIONS] [--] TASK\n\n"
				 "Answers TASK about any amount of input. TASK '-' is read from "
				 "standard input.\n");
	option_help(out);
	return print_text(text_in(out));
}

static int refuse(const struct error *err)
{
	tell_error("%s", err->text);
	if (err->kind == ERROR_USAGE)
		fputs("usage: rlmd exec [OPTIONS] TASK; 'rlmd exec --help' lists the options\n",
		      stderr);
	return error_exit_status(err->kind);
}

static int start(struct exec *exec, int argc, char **argv)
{
	struct config *config = &exec->config;
	struct error err;
	int first;

	if (!config_arguments(config, argc, argv, &first, &err))
		return refuse(&err);
	if (config->help)
		return show_help();
	if (config->version)
		return print_version();
	if (!config_environment(config, &err) || !config_files(config, &err))
		return refuse(&err);
	tell_setup(config->quiet, status_can_color(config->color));
	log_set_level(config->quiet         ? LOG_ERROR
		      : config->verbose > 2 ? LOG_DEBUG
		      : config->verbose > 0 ? LOG_INFO
					    : LOG_WARNING);
	if (!input_task(&exec->input, config, argc - first, argv + first, &err))
		return refuse(&err);
	return run(exec);
}

int cmd_exec(int argc, char **argv)
{
	struct exec exec = {0};
	int status;

	config_init(&exec.config);
	status = start(&exec, argc, argv);
	stop(&exec);
	output_free(exec.output);
	json_decref(exec.result);
	json_decref(exec.usage);
	free(exec.answer);
	input_done(&exec.input);
	config_done(&exec.config);
	return status;
}
