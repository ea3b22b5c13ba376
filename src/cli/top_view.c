#include "cli/top_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/figure.h"

enum {
	ID_SHOWN = 8, /* characters of a run's id */
	STEP = 2,     /* columns a level */
	DEPTH_SHOWN = 10,
	STATE_MAX = 80,
	RUNS_PART = 3, /* a third of the screen at most is for runs */
	ROWS_MIN = 2,
	LINE_SHOWN = 2000, /* bytes of a line: more than any screen is wide */
};

struct shown_run {
	char *id, *model; /* owned */
	struct shown_run *parent;
	int depth;
	int64_t turn;  /* that it is at, from 1 */
	int64_t since; /* ms of the trace, of its state */
	char does[STATE_MAX];
	bool ended;
	TAILQ_ENTRY(shown_run) entry; /* behind the one above it, and that one's others */
};

TAILQ_HEAD(shown_runs, shown_run);

struct top_view {
	const char *name;       /* lent */
	struct shown_runs runs; /* owned */
	int64_t run_count, turns, calls, warnings, in, out;
	double cost;
	bool unpriced; /* some of it has no price */
	bool ended, failed;
	int64_t ms, taken;       /* of the newest event; and when it came, clock_ms() */
	struct evbuffer *newest; /* owned: lines about the newest event */
	char *warning;           /* owned: the newest one; or NULL */
};

/* --- runs -------------------------------------------------------------------------------- */

static struct shown_run *find(const struct top_view *view, const char *id)
{
	struct shown_run *run;

	TAILQ_FOREACH (run, &view->runs, entry)
		if (!strcmp(run->id, id))
			return run;
	return NULL;
}

static bool is_below(const struct shown_run *run, const struct shown_run *above)
{
	while (run && run != above)
		run = run->parent;
	return run;
}

static void forget_runs(struct top_view *view)
{
	struct shown_run *run;

	while ((run = TAILQ_FIRST(&view->runs))) {
		TAILQ_REMOVE(&view->runs, run, entry);
		free(run->id);
		free(run->model);
		free(run);
	}
}

static void set_state(struct top_view *view, struct shown_run *run, const char *state)
{
	snprintf(run->does, sizeof run->does, "%s", state);
	run->since = view->ms;
}

static void add_run(struct top_view *view, const json_t *event)
{
	struct shown_run *run = xcalloc(1, sizeof *run), *before;

	run->id = xstrdup(json_get_string(event, "run"));
	run->model = xstrdup(json_get_string(event, "model"));
	run->depth = (int)json_get_integer(event, "depth", 0);
	run->parent = find(view, json_get_string(event, "parent"));
	before = run->parent;
	while (before && TAILQ_NEXT(before, entry) &&
	       is_below(TAILQ_NEXT(before, entry), run->parent))
		before = TAILQ_NEXT(before, entry);
	if (before)
		TAILQ_INSERT_AFTER(&view->runs, before, run, entry);
	else
		TAILQ_INSERT_TAIL(&view->runs, run, entry);
	run->turn = 1;
	set_state(view, run, "asks its model");
	view->run_count++;
}

/* --- events ------------------------------------------------------------------------------ */

static void add_lines(struct top_view *view, const char *prefix, struct rlmd_text text)
{
	for (size_t at = 0, next; at < text.size; at = next) {
		struct rlmd_text line;

		next = text_line_end(text, at);
		line = text_from(text.bytes + at, next - at - (text.bytes[next - 1] == '\n'));
		line = text_clip(line, LINE_SHOWN);
		buffer_add_printf(view->newest, "%s ", prefix);
		buffer_add(view->newest, line.bytes, line.size);
		buffer_add(view->newest, "\n", 1);
	}
}

static void begin_newest(struct top_view *view, const json_t *event, const char *what)
{
	evbuffer_drain(view->newest, evbuffer_get_length(view->newest));
	buffer_add_printf(view->newest, "%.*s %s\n", ID_SHOWN, json_get_string(event, "run"), what);
}

static void add_cost(struct top_view *view, const json_t *cost)
{
	if (json_is_number(cost))
		view->cost += json_number_value(cost);
	else
		view->unpriced = true;
}

static void take_response(struct top_view *view, struct shown_run *run, const json_t *event)
{
	const json_t *response = json_object_get(event, "response");

	run->turn = json_get_integer(event, "index", 0) + 1;
	view->turns++;
	view->calls++;
	view->in += json_get_integer(json_object_get(event, "prompt"), "tokens", 0);
	view->out += json_get_integer(response, "tokens", 0);
	add_cost(view, json_object_get(response, "cost"));
	set_state(view, run, "runs code");
	begin_newest(view, event, "answered:");
	add_lines(view, "<", json_get_text(response, "content"));
}

static void take_code(struct top_view *view, const json_t *event)
{
	begin_newest(view, event, "ran:");
	add_lines(view, "<", json_get_text(event, "code"));
	add_lines(view, "|", json_get_text(event, "stdout"));
	add_lines(view, "|", json_get_text(event, "stderr"));
	add_lines(view, "!", json_get_text(event, "error"));
}

static void take_call(struct top_view *view, const json_t *event)
{
	view->calls++;
	view->in += json_get_integer(event, "inputTokens", 0);
	view->out += json_get_integer(event, "outputTokens", 0);
	add_cost(view, json_object_get(event, "cost"));
	begin_newest(view, event, "called a model:");
	add_lines(view, "<", json_get_text(event, "prompt"));
	add_lines(view, "|", json_get_text(event, "response"));
	add_lines(view, "!", json_get_text(json_object_get(event, "error"), "message"));
}

static void take_end(struct top_view *view, struct shown_run *run, const json_t *event)
{
	const char *reason = json_get_string(event, "stopReason");

	set_state(view, run, json_get_string(event, "answerSource"));
	if (*reason)
		snprintf(run->does, sizeof run->does, "%.40s (%.30s)",
			 json_get_string(event, "answerSource"), reason);
	run->ended = true;
	begin_newest(view, event, "ended:");
	add_lines(view, "=", json_get_text(event, "finalAnswer"));
	add_lines(view, "!", json_get_text(json_object_get(event, "error"), "message"));
}

static void take_of_run(struct top_view *view, struct shown_run *run, const char *name,
			const json_t *event)
{
	char state[STATE_MAX];

	if (!strcmp(name, "response")) {
		take_response(view, run, event);
	} else if (!strcmp(name, "code")) {
		take_code(view, event);
	} else if (!strcmp(name, "iteration")) {
		run->turn = json_get_integer(event, "index", 0) + 2;
		set_state(view, run, "asks its model");
	} else if (!strcmp(name, "llm_call")) {
		take_call(view, event);
	} else if (!strcmp(name, "waiting")) {
		snprintf(state, sizeof state, "waits: %.60s", json_get_string(event, "reason"));
		set_state(view, run, state);
	} else if (!strcmp(name, "end")) {
		take_end(view, run, event);
	}
}

static void begin_trace(struct top_view *view)
{
	const char *name = view->name;
	struct evbuffer *newest = view->newest;

	forget_runs(view);
	free(view->warning);
	evbuffer_drain(newest, evbuffer_get_length(newest));
	*view = (struct top_view){.name = name, .newest = newest};
	TAILQ_INIT(&view->runs);
}

void top_view_take(struct top_view *view, const json_t *event, int64_t now)
{
	const char *name = json_get_string(event, "event");
	struct shown_run *run = find(view, json_get_string(event, "run"));

	if (!json_get_integer(event, "seq", -1))
		begin_trace(view);
	view->ms = json_get_integer(event, "ms", view->ms);
	view->taken = now;
	if (!strcmp(name, "run")) {
		add_run(view, event);
	} else if (!strcmp(name, "warning")) {
		view->warnings++;
		free(view->warning);
		view->warning = xstrdup(json_get_string(event, "text"));
	} else if (!strcmp(name, "result")) {
		view->ended = true;
		view->failed = !json_get_bool(event, "success", true);
	} else if (run) {
		take_of_run(view, run, name, event);
	}
}

/* --- lines ------------------------------------------------------------------------------- */

static int64_t time_of(const struct top_view *view, int64_t now)
{
	return view->ended ? view->ms : view->ms + now - view->taken;
}

void top_view_summary(const struct top_view *view, int64_t now, struct evbuffer *out)
{
	char took[16], in[24], sent[24];

	figure_elapsed(time_of(view, now), took);
	figure_count(view->in, in);
	figure_count(view->out, sent);
	buffer_add_printf(out,
			  "%s %s | %" PRId64 " run%s, %" PRId64 " turn%s, %" PRId64
			  " call%s | %s tokens in, %s out | $%.4f%s",
			  !view->ended   ? "under way for"
			  : view->failed ? "failed after"
					 : "ended after",
			  took, view->run_count, view->run_count == 1 ? "" : "s", view->turns,
			  view->turns == 1 ? "" : "s", view->calls, view->calls == 1 ? "" : "s", in,
			  sent, view->cost, view->unpriced ? " and calls without a price" : "");
	if (view->warnings)
		buffer_add_printf(out, " | %" PRId64 " warning%s", view->warnings,
				  view->warnings == 1 ? "" : "s");
	buffer_add_printf(out, " | %s", view->name);
}

/* The bytes of the line that fit: of each character the columns that a terminal gives it. */
static size_t fit(struct rlmd_text line, int columns)
{
	mbstate_t state = {0};
	size_t at = 0;

	while (at < line.size) {
		wchar_t character;
		size_t size = mbrtowc(&character, line.bytes + at, line.size - at, &state);
		int width = size - 1 < line.size ? wcwidth(character) : -1;

		if (width < 0) { /* after it was escaped, of a character that is too new */
			state = (mbstate_t){0};
			size = size - 1 < line.size ? size : 1;
			width = 1;
		}
		if (width > columns)
			break;
		columns -= width;
		at += size;
	}
	return at;
}

/* A screen that is filled line by line. */
struct screen {
	struct evbuffer *out; /* lent */
	int rows, columns;    /* that are left; and of each */
};

static void add_row(struct screen *screen, struct rlmd_text line, bool first)
{
	auto_evbuffer struct evbuffer *safe = buffer_new();

	if (screen->rows <= 0)
		return;
	screen->rows--;
	text_escape_lines(line, safe);
	if (!first)
		buffer_add(screen->out, "\n", 1);
	line = text_in(safe);
	for (size_t i = 0; i < line.size; i++)
		if (line.bytes[i] == '\t')
			((char *)line.bytes)[i] = ' ';
	buffer_add(screen->out, line.bytes, fit(line, screen->columns));
}

static void add_run_row(struct screen *screen, const struct top_view *view,
			const struct shown_run *run, int64_t now)
{
	auto_free char *line = NULL;
	char since[16];
	int level = run->depth < DEPTH_SHOWN ? run->depth : DEPTH_SHOWN;

	figure_elapsed(time_of(view, now) - run->since, since);
	line = xasprintf("%*s%.*s %s, turn %" PRId64 ": %s%s%s", level * STEP, "", ID_SHOWN,
			 run->id, run->model, run->turn, run->does, run->ended ? "" : " for ",
			 run->ended ? "" : since);
	add_row(screen, text_of(line), false);
}

/* Those that are under way first: others only where they have room. */
static void add_runs(struct screen *screen, const struct top_view *view, int64_t now)
{
	int room = screen->rows / RUNS_PART > 1 ? screen->rows / RUNS_PART : 1;
	int64_t alive = 0, shown = 0, spare;
	const struct shown_run *run;
	auto_free char *more = NULL;

	TAILQ_FOREACH (run, &view->runs, entry)
		alive += !run->ended;
	spare = room - alive;
	TAILQ_FOREACH (run, &view->runs, entry) {
		if (shown == room)
			break;
		if (run->ended && spare-- <= 0)
			continue;
		shown++;
		add_run_row(screen, view, run, now);
	}
	if (shown == view->run_count)
		return;
	more = xasprintf("(%" PRId64 " more runs)", view->run_count - shown);
	add_row(screen, text_of(more), false);
}

/* The last of them: what is new stands at the end. */
static void add_newest(struct screen *screen, const struct top_view *view)
{
	struct rlmd_text lines = text_in(view->newest);
	size_t count = 0, next;
	bool head = true;

	for (size_t at = 0; at < lines.size; at = text_line_end(lines, at))
		count++;
	for (size_t at = 0; at < lines.size; at = next) {
		next = text_line_end(lines, at);
		if (head || (int64_t)count <= screen->rows)
			add_row(screen, text_from(lines.bytes + at, next - at - 1), false);
		head = false;
		count--;
	}
}

void top_view_draw(const struct top_view *view, int64_t now, int rows, int columns,
		   struct evbuffer *out)
{
	struct screen screen = {.out = out, .rows = rows, .columns = columns};
	auto_evbuffer struct evbuffer *summary = buffer_new();
	auto_free char *warning = NULL;

	top_view_summary(view, now, summary);
	add_row(&screen, text_in(summary), true);
	if (rows > ROWS_MIN)
		add_runs(&screen, view, now);
	warning = view->warning ? xasprintf("warning: %s", view->warning) : NULL;
	if (warning)
		add_row(&screen, text_of(warning), false);
	add_newest(&screen, view);
}

struct top_view *top_view_new(const char *name)
{
	struct top_view *view = xcalloc(1, sizeof *view);

	view->name = name;
	view->newest = buffer_new();
	TAILQ_INIT(&view->runs);
	return view;
}

void top_view_free(struct top_view *view)
{
	if (!view)
		return;
	forget_runs(view);
	evbuffer_free(view->newest);
	free(view->warning);
	free(view);
}
