#include "cli/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/money.h"
#include "base/text.h"
#include "cli/figure.h"
#include "cli/live_line.h"
#include "cli/tell.h"

enum {
	REFRESH_MS = 100,
	TASK_SHOWN = 100, /* bytes of a sub-run's task */
	BUSY_MAX = 24,
	BUSY_EVERY_MS = 20000, /* between two lines about calls that wait, at least */
};

struct status {
	status_source_fn *source;
	const void *owner;   /* lent: the source's */
	struct event *timer; /* owned; NULL: not live */
	struct status_options options;
	char busy[BUSY_MAX]; /* why a call waits for its model, until another one ends; or "" */
	int64_t busy_since;  /* on clock_ms() */
	int64_t told_busy;   /* when there was a line about it; 0: never */
};

bool status_can_live(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb");
}

bool status_can_color(const char *when)
{
	const char *no_color = getenv("NO_COLOR");

	if (strcmp(when, "auto"))
		return !strcmp(when, "always");
	return status_can_live() && !(no_color && *no_color);
}

/* Whole seconds: a line that is rewritten should not flicker. */
static void format_elapsed(int64_t ms, char out[static 16])
{
	if (ms >= 60000)
		clock_format(ms, out);
	else
		snprintf(out, 16, "%ds", ms > 0 ? (int)(ms / 1000) : 0);
}

static void format_spent(int64_t cost, int64_t max_cost, char out[static 80])
{
	char spent[32], most[32];

	money_format(cost, spent);
	money_format(max_cost, most);
	if (max_cost == RLMD_UNLIMITED)
		snprintf(out, 80, "%s", spent);
	else
		snprintf(out, 80, "%s of %s", spent, most);
}

/* Nothing is cut in the middle: of two that do not fit beside each other the cost stays. */
static void format_least(const char *spent, const char *elapsed, size_t width,
			 char line[static LIVE_LINE_MAX])
{
	if ((size_t)snprintf(line, LIVE_LINE_MAX, "%s | %s", spent, elapsed) > width &&
	    (size_t)snprintf(line, LIVE_LINE_MAX, "%s", spent) > width &&
	    (size_t)snprintf(line, LIVE_LINE_MAX, "%.*s", (int)strcspn(spent, " "), spent) > width)
		*line = '\0';
}

/*
 * The widest form that fits: cost and time are the last to go, for they are why somebody looks.
 * Columns are bytes here, for the line is ASCII.
 */
static void format_line(const struct rlmd_job_status *now, const char *place, size_t width,
			char line[static LIVE_LINE_MAX])
{
	const char *finishing = now->interrupted ? "finishing (Ctrl-C stops now) | " : "";
	const char *ending = now->interrupted ? "finishing | " : "";
	const char *plural = now->calls_in_flight == 1 ? "" : "s";
	const char *bar = strstr(place, " | ");
	int first = (int)(bar ? (size_t)(bar - place) : strlen(place));
	int calls = (int)now->calls_in_flight;
	char tokens[24], spent[80], elapsed[16];

	figure_count(now->tokens, tokens);
	format_spent(now->cost, now->max_cost, spent);
	format_elapsed(now->elapsed_ms, elapsed);
	if ((size_t)snprintf(line, LIVE_LINE_MAX,
			     "%s%s | %d call%s in flight | %s tokens | %s | %s", finishing, place,
			     calls, plural, tokens, spent, elapsed) > width &&
	    (size_t)snprintf(line, LIVE_LINE_MAX, "%s%s | %d call%s | %s | %s", ending, place,
			     calls, plural, spent, elapsed) > width &&
	    (size_t)snprintf(line, LIVE_LINE_MAX, "%s%s | %s | %s", ending, place, spent, elapsed) >
		    width &&
	    (size_t)snprintf(line, LIVE_LINE_MAX, "%s%.*s | %s | %s", ending, first, place, spent,
			     elapsed) > width)
		format_least(spent, elapsed, width, line);
}

/* Where the work is; or that it waits for a model, and why. */
static void format_place(const struct status *status, char place[static STATUS_PLACE_MAX])
{
	char elapsed[16];

	if (!*status->busy)
		return;
	format_elapsed(clock_ms() - status->busy_since, elapsed);
	snprintf(place, STATUS_PLACE_MAX, "waiting %.14s: %s", elapsed, status->busy);
}

static void on_refresh(evutil_socket_t fd, short what, void *owner)
{
	struct status *status = owner;
	char place[STATUS_PLACE_MAX], line[LIVE_LINE_MAX];
	struct rlmd_job_status now = status->source(status->owner, place);

	(void)fd;
	(void)what;
	format_place(status, place);
	format_line(&now, place, live_line_width(), line);
	live_line_show(line);
}

struct status *status_new(struct event_base *base, const struct status_options *options,
			  status_source_fn *source, const void *owner)
{
	struct timeval every = clock_timeval(REFRESH_MS);
	struct status *status = xcalloc(1, sizeof *status);

	status->source = source;
	status->owner = owner;
	status->options = *options;
	if (options->live) {
		status->timer = event_new(base, -1, EV_PERSIST, on_refresh, status);
		event_add(status->timer, &every);
	}
	return status;
}

void status_free(struct status *status)
{
	if (!status)
		return;
	live_line_clear();
	if (status->timer)
		event_free(status->timer);
	free(status);
}

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
static void tell_lines(const json_t *event, const char *mark, struct rlmd_text text)
{
	for (size_t at = 0, next; at < text.size; at = next) {
		next = text_line_end(text, at);
		narrate(RLMD_LOG_DEBUG, event, "%s %.*s", mark,
			(int)(next - at - (text.bytes[next - 1] == '\n')), text.bytes + at);
	}
}

/* What the model wrote: its code is about to run. */
static void tell_words(const json_t *event)
{
	tell_lines(event, "<", json_get_text(json_object_get(event, "response"), "content"));
}

/* What a block printed, and how it failed. */
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

/* What failed is in the log, with more about it, unless it was us who ended it. */
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
	struct rlmd_text error = text_last_line(json_get_text(event, "error"));
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
static void tell_wait(struct status *status, const json_t *event)
{
	int64_t waited = json_get_integer(event, "waited", 0), now = clock_ms();
	char so_far[16], next[16];

	snprintf(status->busy, sizeof status->busy, "%s", json_get_string(event, "reason"));
	status->busy_since = now - waited;
	if (status->options.verbose || status->options.live ||
	    (status->told_busy && now - status->told_busy < BUSY_EVERY_MS))
		return;
	status->told_busy = now;
	format_elapsed(waited, so_far);
	clock_format(json_get_integer(event, "next", 0), next);
	tell("waiting for %s: %s, %s so far, asked again in %s", json_get_string(event, "model"),
	     json_get_string(event, "reason"), so_far, next);
}

/* What its model answered, or that nobody waits for it any more. */
static void note_wait(struct status *status, const json_t *event)
{
	struct rlmd_text name = json_get_text(event, "event");

	if (text_equal(name, "waiting"))
		tell_wait(status, event);
	else if (text_equal(name, "response") || text_equal(name, "llm_call"))
		*status->busy = '\0';
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
static bool is_wanted(const struct status *status, struct rlmd_text event)
{
	static const char waiting[] = "{\"event\":\"waiting\"";

	return status->options.verbose > 0 || *status->busy || text_starts(event, waiting);
}

static void show_event(struct status *status, const json_t *event)
{
	static const struct {
		const char *event;
		int verbose;
		void (*tell)(const json_t *event);
	} lines[] = {
		{"run", 1, tell_run},        {"response", 1, tell_response},
		{"response", 2, tell_words}, {"llm_call", 1, tell_query},
		{"code", 2, tell_block},     {"code", 2, tell_prints},
		{"end", 1, tell_end},        {"operation_end", 1, tell_operation},
	};
	struct rlmd_text name = json_get_text(event, "event");

	note_wait(status, event);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (status->options.verbose >= lines[i].verbose && text_equal(name, lines[i].event))
			lines[i].tell(event);
}

const char *const *status_events(const struct status_options *options)
{
	static const char *const none[] = {NULL}, *const waits[] = {"waiting", NULL};
	static const char *const live[] = {"waiting", "response", "llm_call", NULL};

	if (!options)
		return none;
	if (options->verbose)
		return NULL;
	return options->live ? live : waits;
}

void status_event(struct status *status, struct rlmd_text line)
{
	json_auto_t *event = NULL;

	if (!status || !is_wanted(status, line))
		return;
	event = json_loadb(line.bytes, line.size, JSON_ALLOW_NUL, NULL);
	show_event(status, event);
}

/* --- the end ------------------------------------------------------------------ */

/* All that confined the workers, or in a word where nobody asked for more. */
static void tell_isolation(const json_t *sandbox, bool names)
{
	auto_evbuffer struct evbuffer *layers = evbuffer_new();
	auto_free char *list = NULL;
	const json_t *layer;
	size_t i;

	if (!json_is_object(sandbox))
		return;
	json_array_foreach (json_object_get(sandbox, "layers"), i, layer)
		evbuffer_add_printf(layers, "%s%s", i ? ", " : " (",
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

void status_summary(const json_t *result, const json_t *told, const char *verb, const char *work,
		    int64_t max_cost, const struct status_options *options)
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
		format_spent(money_from_dollars(json_number_value(json_object_get(usage, "cost"))),
			     max_cost, spent);
		if (cached)
			snprintf(before, sizeof before, " (%" PRId64 " from the cache)", cached);
		tell("%s %s: %s, %" PRId64 " call%s%s, %s tokens in, %s out, %s%s%s", verb, took,
		     work, calls, calls == 1 ? "" : "s", before, input, output, spent,
		     json_get_bool(usage, "costComplete", true) ? "" : " and calls without a price",
		     json_get_bool(usage, "estimated", false) ? ", partly estimated" : "");
	}
	tell_isolation(json_object_get(result, "sandbox"), options->verbose > 0);
	json_array_foreach (json_object_get(result, "warnings"), i, warning)
		if (!holds(told, warning))
			tell_warning("%s",
				     json_string_value(warning) ? json_string_value(warning) : "");
}
