#include "cli/job_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/money.h"
#include "cli/figure.h"
#include "cli/progress.h"
#include "cli/tell.h"

enum {
	TASK_SHOWN = 100,      /* bytes of a sub-run's task */
	BUSY_EVERY_MS = 20000, /* between two lines about calls that wait, at least */
};

/* --- a line an event --------------------------------------------------------- */

/* For -v, and for -vv. */
#define narrate(level, event, ...)                                                                 \
	tell_event(level, json_get_string(event, "event"), json_get_string(event, "run"),          \
		   __VA_ARGS__)

static void tell_call(const json_t *event, const char *what, int64_t in, int64_t out,
		      const json_t *cost)
{
	char input[24], output[24], money[32], took[16];

	figure_count(in, input);
	figure_count(out, output);
	figure_cost(cost, money);
	clock_format(json_get_integer(event, "duration", 0), took);
	if (json_get_bool(event, "cached", false))
		narrate(RLMD_LOG_INFO, event, "%s: %s, answered before, from the cache", what,
			json_get_string(event, "model"));
	else
		narrate(RLMD_LOG_INFO, event, "%s: %s, %s tokens in, %s out, %s, %s", what,
			json_get_string(event, "model"), input, output, money, took);
}

/* A text of several lines, at the margin of its run. */
static void tell_lines(const json_t *event, const char *prefix, struct rlmd_text text)
{
	for (size_t at = 0, next; at < text.size; at = next) {
		next = text_line_end(text, at);
		narrate(RLMD_LOG_DEBUG, event, "%s %.*s", prefix,
			(int)(next - at - (text.bytes[next - 1] == '\n')), text.bytes + at);
	}
}

/* Tells the model's words: its code is about to run. */
static void tell_words(const json_t *event)
{
	tell_lines(event, "<", json_get_text(json_object_get(event, "response"), "content"));
}

/* Tells the output of a block, and its error. */
static void tell_prints(const json_t *event)
{
	tell_lines(event, "|", json_get_text(event, "stdout"));
	tell_lines(event, "|", json_get_text(event, "stderr"));
	tell_lines(event, "!", json_get_text(event, "error"));
}

static void tell_response(const json_t *event)
{
	const json_t *response = json_object_get(event, "response");
	char what[32];

	snprintf(what, sizeof what, "turn %" PRId64, json_get_integer(event, "index", 0) + 1);
	tell_call(event, what, json_get_integer(json_object_get(event, "prompt"), "tokens", 0),
		  json_get_integer(response, "tokens", 0), json_object_get(response, "cost"));
}

/* A failure is in the log, with more about it, unless we ended the call ourselves. */
static void tell_query(const json_t *event)
{
	const json_t *error = json_object_get(event, "error");

	if (error && text_equal(json_get_text(error, "kind"), "cancelled"))
		narrate(RLMD_LOG_INFO, event, "%s was cancelled", json_get_string(event, "kind"));
	else if (!error)
		tell_call(event, json_get_string(event, "kind"),
			  json_get_integer(event, "inputTokens", 0),
			  json_get_integer(event, "outputTokens", 0),
			  json_object_get(event, "cost"));
}

static void tell_block(const json_t *event)
{
	struct rlmd_text error = text_error_line(json_get_text(event, "error"));
	char took[16];

	clock_format(json_get_integer(event, "duration", 0), took);
	if (error.size)
		narrate(RLMD_LOG_DEBUG, event, "block: %s, %.*s", took, (int)error.size,
			error.bytes);
	else
		narrate(RLMD_LOG_DEBUG, event, "block: %s, %zu bytes printed", took,
			json_get_text(event, "stdout").size);
}

static void tell_run(const json_t *event)
{
	struct rlmd_text task = text_clip(json_get_text(event, "task"), TASK_SHOWN);

	narrate(RLMD_LOG_INFO, event, "run at depth %" PRId64 ": %.*s",
		json_get_integer(event, "depth", 0), (int)task.size, task.bytes);
}

static void tell_end(const json_t *event)
{
	narrate(RLMD_LOG_INFO, event, "run ended: %s", json_get_string(event, "stopReason"));
}

/* Of many calls that wait, and of one that waits for long, a line now and then is enough; with -v
 * the log has one for each. */
static void tell_wait(struct job_view *view, const json_t *event)
{
	int64_t waited = json_get_integer(event, "waited", 0), now = clock_ms();
	char so_far[16], next[16];

	snprintf(view->busy, sizeof view->busy, "%s", json_get_string(event, "reason"));
	view->busy_since = now - waited;
	if (view->verbose || view->live ||
	    (view->told_busy && now - view->told_busy < BUSY_EVERY_MS))
		return;
	view->told_busy = now;
	figure_elapsed(waited, so_far);
	clock_format(json_get_integer(event, "next", 0), next);
	tell("waiting for %s: %s, %s so far, asked again in %s", json_get_string(event, "model"),
	     json_get_string(event, "reason"), so_far, next);
}

/* The call was answered, or cancelled. */
static void note_wait(struct job_view *view, const json_t *event)
{
	struct rlmd_text name = json_get_text(event, "event");

	if (text_equal(name, "waiting"))
		tell_wait(view, event);
	else if (text_equal(name, "response") || text_equal(name, "llm_call"))
		*view->busy = '\0';
}

static void tell_operation(const json_t *event)
{
	const json_t *error = json_object_get(event, "error");
	char tokens[24], took[16];

	figure_count(json_get_integer(event, "tokens", 0), tokens);
	clock_format(json_get_integer(event, "duration", 0), took);
	narrate(RLMD_LOG_INFO, event, "%s %s: %s tokens, %s%s%s", json_get_string(event, "id"),
		json_get_string(event, "status"), tokens, took, json_is_object(error) ? "; " : "",
		json_get_string(error, "message"));
}

/* The name stands first in each: what nobody wants to see is not read. */
static bool is_wanted(const struct job_view *view, struct rlmd_text event)
{
	static const char waiting[] = "{\"event\":\"waiting\"";

	return view->verbose > 0 || *view->busy || text_starts(event, waiting);
}

static void show_event(struct job_view *view, const json_t *event)
{
	static const struct {
		const char *event;
		int verbose;
		void (*say)(const json_t *event);
	} lines[] = {
		{"run", 1, tell_run},        {"response", 1, tell_response},
		{"response", 2, tell_words}, {"llm_call", 1, tell_query},
		{"code", 2, tell_block},     {"code", 2, tell_prints},
		{"end", 1, tell_end},        {"operation_end", 1, tell_operation},
	};
	struct rlmd_text name = json_get_text(event, "event");

	note_wait(view, event);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (view->verbose >= lines[i].verbose && text_equal(name, lines[i].event))
			lines[i].say(event);
}

const char *const *job_view_events(const struct job_view *view)
{
	static const char *const waits[] = {"waiting", NULL};
	static const char *const live[] = {"waiting", "response", "llm_call", NULL};

	return view->verbose ? NULL : view->live ? live : waits;
}

void job_view_event(struct job_view *view, struct rlmd_text line)
{
	json_auto_t *event = NULL;

	if (!is_wanted(view, line))
		return;
	event = json_loadb(line.bytes, line.size, JSON_ALLOW_NUL, NULL);
	show_event(view, event);
}

/* --- progress ------------------------------------------------------------------ */

/* Cost and time are the last to go, for people look for them. */
void job_view_describe(const struct job_view *view, const struct rlmd_job_status *now,
		       const char *progress, struct progress_line *line)
{
	const char *plural = now->calls_in_flight == 1 ? "" : "s";
	char tokens[24], spent[80], elapsed[16];

	figure_count(now->tokens, tokens);
	figure_spent(now->cost, now->max_cost, spent);
	if (now->interrupted) {
		progress_add(line, 4, "finishing (Ctrl-C stops now)");
		progress_brief(line, 1, "finishing");
	}
	figure_elapsed(clock_ms() - view->busy_since, elapsed);
	if (*view->busy)
		progress_add(line, 4, "waiting %s: %s", elapsed, view->busy);
	else
		progress_add(line, 4, "%s", progress);
	if (!*view->busy && strchr(progress, '|'))
		progress_brief(line, 3, "%.*s", (int)strcspn(progress, "|") - 1, progress);
	progress_add(line, 2, "%d call%s in flight", (int)now->calls_in_flight, plural);
	progress_brief(line, 1, "%d call%s", (int)now->calls_in_flight, plural);
	progress_add(line, 1, "%s tokens", tokens);
	progress_add(line, 7, "%s", spent);
	progress_brief(line, 6, "%.*s", (int)strcspn(spent, " "), spent);
	figure_elapsed(now->elapsed_ms, elapsed);
	progress_add(line, 5, "%s", elapsed);
}

/* --- the end ------------------------------------------------------------------ */

/* All that confined the workers, or in a word where nobody asked for more. */
static void tell_isolation(const json_t *sandbox, bool names)
{
	auto_evbuffer struct evbuffer *layers = buffer_new();
	auto_free char *list = NULL;
	const json_t *layer;
	size_t i;

	if (!json_is_object(sandbox))
		return;
	json_array_foreach (json_object_get(sandbox, "layers"), i, layer)
		buffer_add_printf(layers, "%s%s", i ? ", " : " (",
				  json_string_value(layer) ? json_string_value(layer) : "");
	list = text_drain(layers, NULL);
	tell("isolation %s%s%s", json_get_string(sandbox, "level"), names ? list : "",
	     names && *list ? ")" : "");
}

static bool holds(const json_t *strings, const json_t *wanted)
{
	const json_t *string;
	size_t i;

	json_array_foreach (strings, i, string)
		if (json_equal(string, wanted))
			return true;
	return false;
}

void job_view_summary(const struct job_view *view, const json_t *result, const json_t *shown,
		      const char *verb, const char *work, int64_t max_cost)
{
	const json_t *usage = json_object_get(result, "usage");
	int64_t calls = json_get_integer(usage, "llmCalls", 0);
	int64_t cached = json_get_integer(usage, "cachedCalls", 0);
	char took[16], input[24], output[24], spent[80], before[48] = "";
	const json_t *warning;
	size_t i;

	if (usage) {
		clock_format(json_get_integer(usage, "duration", 0), took);
		figure_count(json_get_integer(usage, "inputTokens", 0), input);
		figure_count(json_get_integer(usage, "outputTokens", 0), output);
		figure_spent(money_from_dollars(json_number_value(json_object_get(usage, "cost"))),
			     max_cost, spent);
		if (cached)
			snprintf(before, sizeof before, " (%" PRId64 " from the cache)", cached);
		tell("%s %s: %s, %" PRId64 " call%s%s, %s tokens in, %s out, %s%s%s", verb, took,
		     work, calls, calls == 1 ? "" : "s", before, input, output, spent,
		     json_get_bool(usage, "costComplete", true) ? "" : " and calls without a price",
		     json_get_bool(usage, "estimated", false) ? ", partly estimated" : "");
	}
	tell_isolation(json_object_get(result, "sandbox"), view->verbose > 0);
	json_array_foreach (json_object_get(result, "warnings"), i, warning)
		if (!holds(shown, warning))
			tell_warning("%s",
				     json_string_value(warning) ? json_string_value(warning) : "");
}
