/*
 * rlmd trace: a run, put together again from its trace file.
 */
#include <inttypes.h>
#include <rlmd/trace.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/wait.h"
#include "cli/command.h"
#include "cli/figure.h"
#include "cli/session.h"
#include "cli/tell.h"
#include "cli/trace_export.h"
#include "cli/trace_follow.h"
#include "cli/trace_page.h"

#define TRACE_MAX ((size_t)2 << 30) /* bytes of a trace */

static json_t *tree_of(struct rlmd_text lines, const char *name, struct rlmd_error *err)
{
	auto_free char *tree = rlmd_trace_tree(lines, name, err);

	return tree ? json_loads(tree, JSON_ALLOW_NUL, NULL) : NULL;
}

static char *read_stdin(size_t *ret_size, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *lines = buffer_new();
	char piece[1 << 16];
	size_t got;

	do {
		if (!file_take_fd(STDIN_FILENO, piece, sizeof piece, WAIT_FOREVER, &got, err)) {
			error_context(err, "standard input");
			return NULL;
		}
		buffer_add(lines, piece, got);
	} while (got && evbuffer_get_length(lines) <= TRACE_MAX);
	if (!got)
		return text_drain(lines, ret_size);
	error_set(err, RLMD_ERROR_INPUT, "the trace is larger than %zu bytes", TRACE_MAX);
	return NULL;
}

/* --- for a person: turns, code, outputs, calls and sub-runs, with costs and times ---------- */

enum {
	STEP = 2,          /* columns a level */
	ID_SHOWN = 8,      /* characters of a run's id */
	LINES_SHOWN = 12,  /* of a block's code, output and error each */
	SUMMARY_LINES = 3, /* of a task, a call's prompt, its answer */
	LINE_SHOWN = 200,  /* bytes of each of them */
	NO_DURATION = -1,  /* of traces that do not tell it */
};

struct view {
	struct evbuffer *out; /* lent */
	bool whole;
};

static void indent(struct view *view, int columns)
{
	buffer_add_printf(view->out, "%*s", columns, "");
}

/* Lines behind a mark; `most` of them, unless all are wanted. */
static void write_text(struct view *view, int column, const char *prefix, struct rlmd_text text,
		       int most)
{
	size_t left = 0, next;
	int line = 0;

	for (size_t at = 0; at < text.size; at = next) {
		struct rlmd_text shown;

		next = text_line_end(text, at);
		shown = text_from(text.bytes + at, next - at - (text.bytes[next - 1] == '\n'));
		if (!view->whole && line++ >= most) {
			left++;
			continue;
		}
		indent(view, column);
		buffer_add_printf(view->out, "%s ", prefix);
		if (!view->whole && shown.size > LINE_SHOWN) {
			shown = text_clip(shown, LINE_SHOWN);
			buffer_add(view->out, shown.bytes, shown.size);
			buffer_add(view->out, "...", 3);
		} else {
			buffer_add(view->out, shown.bytes, shown.size);
		}
		buffer_add(view->out, "\n", 1);
	}
	if (left) {
		indent(view, column);
		buffer_add_printf(view->out, "%s (%zu more line%s)\n", prefix, left,
				  left == 1 ? "" : "s");
	}
}

/* "1.2s, 1.2k tokens in, 300 out, $0.0004" */
static void write_price(struct view *view, int64_t duration, int64_t in, int64_t out,
			const json_t *cost, bool estimated)
{
	char took[16], input[24], output[24], money[32];

	figure_count(in, input);
	figure_count(out, output);
	figure_cost(cost, money);
	if (duration != NO_DURATION) {
		clock_format(duration, took);
		buffer_add_printf(view->out, "%s, ", took);
	}
	buffer_add_printf(view->out, "%s tokens in, %s out, %s%s\n", input, output, money,
			  estimated ? ", partly estimated" : "");
}

static void write_execution(struct view *view, const json_t *execution, int column)
{
	char took[16];

	clock_format(json_get_integer(execution, "duration", 0), took);
	indent(view, column);
	buffer_add_printf(view->out, "block: %s\n", took);
	column += STEP;
	write_text(view, column, "<", json_get_text(execution, "code"), LINES_SHOWN);
	write_text(view, column, "|", json_get_text(execution, "stdout"), LINES_SHOWN);
	write_text(view, column, "|", json_get_text(execution, "stderr"), LINES_SHOWN);
	write_text(view, column, "!", json_get_text(execution, "error"), LINES_SHOWN);
}

static void write_turn(struct view *view, const json_t *turn, int column)
{
	const json_t *response = json_object_get(turn, "response");
	const json_t *executions = json_object_get(turn, "codeExecutions"), *execution;
	size_t i;

	indent(view, column);
	buffer_add_printf(view->out, "turn %" PRIu64 ": ",
			  (uint64_t)json_get_integer(turn, "index", 0) + 1);
	write_price(view, json_get_integer(turn, "duration", NO_DURATION),
		    json_get_integer(json_object_get(turn, "prompt"), "tokens", 0),
		    json_get_integer(response, "tokens", 0), json_object_get(response, "cost"),
		    false);
	if (!json_array_size(executions))
		write_text(view, column + STEP, "<", json_get_text(response, "content"),
			   SUMMARY_LINES);
	json_array_foreach (executions, i, execution)
		write_execution(view, execution, column + STEP);
}

static void write_call(struct view *view, const json_t *call, int column)
{
	const json_t *error = json_object_get(call, "error");
	const char *reason = json_get_string(call, "reason");

	indent(view, column);
	buffer_add_printf(view->out, "%s%s%s%s: ", json_get_string(call, "kind"),
			  *reason ? " (" : "", reason, *reason ? ")" : "");
	write_price(view, json_get_integer(call, "duration", 0),
		    json_get_integer(call, "inputTokens", 0),
		    json_get_integer(call, "outputTokens", 0), json_object_get(call, "cost"),
		    false);
	column += STEP;
	write_text(view, column, "<", json_get_text(call, "prompt"), SUMMARY_LINES);
	write_text(view, column, "|", json_get_text(call, "response"), SUMMARY_LINES);
	write_text(view, column, "!", json_get_text(error, "message"), SUMMARY_LINES);
}

static void write_head(struct view *view, const json_t *run, int column)
{
	const json_t *usage = json_object_get(run, "usage");

	indent(view, column);
	buffer_add_printf(view->out, "run %.*s at depth %" PRId64 ", %s: ", ID_SHOWN,
			  json_get_string(run, "id"), json_get_integer(run, "depth", 0),
			  json_get_string(run, "model"));
	if (usage)
		write_price(view, json_get_integer(usage, "duration", NO_DURATION),
			    json_get_integer(usage, "inputTokens", 0),
			    json_get_integer(usage, "outputTokens", 0),
			    json_object_get(usage, "cost"),
			    json_get_bool(usage, "estimated", false));
	else
		buffer_add_printf(view->out, "it has no end\n");
	write_text(view, column + STEP, "?", json_get_text(run, "task"), SUMMARY_LINES);
}

static void write_end(struct view *view, const json_t *run, int column)
{
	const char *stopped = json_get_string(run, "stopReason");

	indent(view, column);
	buffer_add_printf(view->out, "%s%s%s%s\n", json_get_string(run, "answerSource"),
			  *stopped ? " (" : "", stopped, *stopped ? ")" : "");
	column += STEP;
	write_text(view, column, "=", json_get_text(run, "finalAnswer"), LINES_SHOWN);
	write_text(view, column, "!", json_get_text(json_object_get(run, "error"), "message"),
		   LINES_SHOWN);
}

static void write_run(struct view *view, const json_t *run, int column)
{
	const json_t *look = json_object_get(run, "demonstration");
	const json_t *part;
	size_t i;

	write_head(view, run, column);
	column += STEP;
	if (look) {
		indent(view, column);
		buffer_add_printf(view->out, "a look at the inputs:\n");
		write_execution(view, look, column + STEP);
	}
	json_array_foreach (json_object_get(run, "iterations"), i, part)
		write_turn(view, part, column);
	json_array_foreach (json_object_get(run, "llmCalls"), i, part)
		write_call(view, part, column);
	json_array_foreach (json_object_get(run, "subcalls"), i, part)
		write_run(view, part, column);
	write_end(view, run, column);
}

static int show(const json_t *tree, const struct config *config)
{
	auto_evbuffer struct evbuffer *out = NULL;
	struct view view;

	if (config->json || (!config->tree_text && !isatty(STDOUT_FILENO)))
		return command_print_json(tree);
	out = buffer_new();
	view = (struct view){.out = out, .whole = config->verbose > 0};
	write_run(&view, tree, 0);
	return command_print(text_in(out));
}

static bool check(const struct config *config, int words, struct rlmd_error *err)
{
	if (config->json && config->tree_text)
		return error_set(err, RLMD_ERROR_USAGE, "--json and --text exclude each other");
	if ((config->html != NULL) + (config->chrome != NULL) + (config->otlp != NULL) > 1)
		return error_set(err, RLMD_ERROR_USAGE,
				 "--html, --chrome and --otlp exclude each other");
	if (config->follow && (config->chrome || config->otlp))
		return error_set(err, RLMD_ERROR_USAGE,
				 "--follow prints events, or writes a page with --html");
	if (config->otel_content && !config->otlp)
		return error_set(err, RLMD_ERROR_USAGE, "--otel-content is for --otlp");
	if ((config->chrome || config->otlp) && config->tree_text)
		return error_set(err, RLMD_ERROR_USAGE, "%s shows no tree: leave --text out",
				 config->chrome ? "--chrome" : "--otlp");
	if ((config->html || config->follow) && (config->json || config->tree_text))
		return error_set(err, RLMD_ERROR_USAGE, "%s shows no tree: leave %s out",
				 config->html ? "--html" : "--follow",
				 config->json ? "--json" : "--text");
	return words == 1 || error_set(err, RLMD_ERROR_USAGE, "trace needs one FILE");
}

/* The file as a tree, or as a page. */
static int show_file(const struct config *config, const char *path, struct rlmd_error *err)
{
	bool is_stdin = !strcmp(path, "-");
	const char *name = is_stdin ? "standard input" : path;
	auto_free char *bytes = NULL;
	json_auto_t *tree = NULL;
	struct rlmd_text lines;

	bytes = is_stdin ? read_stdin(&lines.size, err)
			 : file_read(path, TRACE_MAX, &lines.size, err);
	if (!bytes)
		return rlmd_error_exit_status(err->kind);
	lines.bytes = bytes;
	if (config->chrome || config->otlp)
		return trace_export(lines, name, config, err) ? 0
							      : rlmd_error_exit_status(err->kind);
	if (config->html)
		return trace_page_write(lines, name, false, config->html, err)
			       ? 0
			       : rlmd_error_exit_status(err->kind);
	tree = tree_of(lines, name, err);
	return tree ? show(tree, config) : rlmd_error_exit_status(err->kind);
}

int command_trace(struct session *session, int count, char **words)
{
	const struct config *config = &session->config;
	struct rlmd_error err = {0};
	int status;

	if (!check(config, count, &err))
		return command_refuse(COMMAND_TRACE, &err);
	status = config->follow ? trace_follow(words[0], config->html, &err)
				: show_file(config, words[0], &err);
	if (err.kind)
		tell_error("%s", err.text);
	return status;
}
