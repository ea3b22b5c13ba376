#include "batch/work.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <rlmd/context.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/loop.h"
#include "batch/contexts.h"
#include "batch/job_line.h"
#include "batch/tenancies.h"
#include "batch/trace_buffer.h"

struct work {
	const struct work_setting *setting;
	const struct tenancy *tenancy;      /* lent: whose it is */
	const struct rlmd_journal *journal; /* lent */
	struct rlmd_account *account;       /* lent: who pays */
	work_fn *done;
	void *owner;
	struct rlmd_text bytes;     /* owned: the line, which lends `line` its texts */
	struct job_line line;       /* owned */
	struct contexts_hold *hold; /* owned */
	struct rlmd_context *text;  /* owned: a context that the line has itself */
	struct rlmd_job *job;       /* owned; lent to the engine until its end */
	struct trace_buffer *trace; /* owned */
	struct event *failed;       /* owned: posted where there is no job that could tell */
	struct rlmd_error error;    /* why there is none */
};

/* --- the end --------------------------------------------------------------------- */

char *work_no_result(const struct rlmd_error *err)
{
	json_auto_t *object = json_pack("{s:b, s:s, s:s?, s:n, s:n, s:[], s:{s:s, s:o}}", "success",
					0, "output", "", "stopReason",
					rlmd_stop_name(error_stop(err)), "trace", "sandbox",
					"warnings", "error", "kind", rlmd_error_name(err->kind),
					"message", json_from_text(text_of(err->text)));

	return json_to_string(object);
}

static void on_failed(evutil_socket_t fd, short what, void *owner)
{
	struct work *work = owner;
	auto_free char *text = work_no_result(&work->error);
	const struct work_end end = {.error = work->error, .result = text_of(text)};

	(void)fd;
	(void)what;
	work->done(work->owner, &end);
}

/* Told from the loop, as the end of a job would be. */
static void fail(struct work *work, const struct rlmd_error *err)
{
	if (work->error.kind)
		return;
	work->error = *err;
	contexts_release(take_pointer(&work->hold));
	loop_post(work->failed);
}

static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text json)
{
	struct work *work = owner;

	(void)job;
	trace_buffer_add(work->trace, json);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	auto_evbuffer struct evbuffer *trace = NULL;
	const struct rlmd_error *error = rlmd_result_error(result);
	struct rlmd_usage usage = {.size = sizeof usage};
	struct work *work = owner;
	struct work_end end = {.result = rlmd_result_json(result)};

	(void)job;
	rlmd_result_usage(result, &usage);
	end.cost = usage.cost > 0 ? usage.cost : 0;
	end.tokens = usage.tokens;
	end.paid_cost = end.cost - usage.journaled_cost;
	end.paid_tokens = usage.tokens - usage.journaled_tokens;
	if (error) {
		trace = evbuffer_new();
		trace_buffer_write(work->trace, trace);
		end.trace = text_in(trace);
		end.error = *error;
		end.limited_by = rlmd_result_limited_by(result);
	}
	work->done(work->owner, &end);
}

/* --- the job ---------------------------------------------------------------------- */

static int64_t said(int64_t value, int64_t otherwise)
{
	if (value == JOB_LINE_UNSAID)
		return otherwise;
	return value ? value : RLMD_NOTHING;
}

static struct rlmd_limits limits_of(const struct work *work)
{
	const struct job_line *line = &work->line;
	struct rlmd_limits limits = work->setting->limits;

	limits.cost = said(line->max_cost, limits.cost);
	limits.tokens = said(line->max_tokens, limits.tokens);
	limits.time_ms = said(line->max_time_ms, limits.time_ms);
	limits.max_iterations = said(line->max_iterations, limits.max_iterations);
	limits.max_depth = said(line->max_depth, limits.max_depth);
	return limits;
}

static void start(struct work *work, const struct rlmd_context *context)
{
	/* All but the last one, which is the result. */
	static const char *const events[] = {"run",      "demonstration", "response", "code",
					     "llm_call", "waiting",       "degraded", "compaction",
					     "warning",  "end",           NULL};
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks,
		.events = events,
		.event = on_event,
		.end = on_end,
		.owner = work,
	};
	const struct rlmd_limits limits = limits_of(work);
	struct rlmd_job_options options = work->setting->job;
	struct rlmd_error err;

	options.task = work->line.task;
	options.context = context;
	options.schema = work->line.schema;
	options.limits = &limits;
	options.hooks = &hooks;
	options.journal = work->journal;
	options.account = work->account;
	options.tenant = work->line.tenant;
	options.without_tree = true;
	if (tenancy_give(work->tenancy, work->line.model, &options, &err))
		work->job = rlmd_job_start(work->setting->engine, &options, &err);
	if (!work->job)
		fail(work, &err);
}

static void on_context(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct work *work = owner;

	if (!context)
		fail(work, err);
	else if (!work->error.kind)
		start(work, context);
}

/* Its bytes are copied once, into what every worker maps. */
static void start_with_text(struct work *work)
{
	struct rlmd_error err;

	if (work->line.source == JOB_LINE_TEXT) {
		work->text = rlmd_context_from_text(NULL, work->line.context, &err);
		if (!work->text) {
			fail(work, &err);
			return;
		}
	}
	start(work, work->text);
}

struct work *work_new(const struct work_setting *setting, const struct tenancy *tenancy,
		      struct rlmd_text line, const struct rlmd_journal *journal,
		      struct rlmd_account *account, work_fn *done, void *owner)
{
	struct work *work = xcalloc(1, sizeof *work);
	auto_free char *path = NULL;
	struct rlmd_error err;

	work->setting = setting;
	work->tenancy = tenancy;
	work->journal = journal;
	work->account = account;
	work->done = done;
	work->owner = owner;
	work->failed = event_new(setting->base, -1, 0, on_failed, work);
	work->trace = trace_buffer_new();
	work->bytes = text_from(xstrndup(line.bytes, line.size), line.size);
	if (!job_line_read(work->bytes, &work->line, &err)) {
		fail(work, &err);
		return work;
	}
	path = tenancy_path(tenancy, &work->line, setting->directory, &err);
	if (err.kind)
		fail(work, &err);
	else if (path)
		work->hold = contexts_hold(setting->contexts, path, on_context, work);
	else
		start_with_text(work);
	return work;
}

void work_cancel(struct work *work)
{
	struct rlmd_error err;

	if (work->job) {
		rlmd_job_cancel(work->job);
		return;
	}
	error_set(&err, RLMD_ERROR_CANCELLED, "stopped before it was begun");
	fail(work, &err);
}

bool work_status(const struct work *work, struct rlmd_job_status *ret)
{
	return work->job && rlmd_job_get_status(work->job, ret);
}

void work_free(struct work *work)
{
	if (!work)
		return;
	rlmd_job_free(work->job);
	trace_buffer_free(work->trace);
	contexts_release(work->hold);
	rlmd_context_unref(work->text);
	event_free(work->failed);
	job_line_done(&work->line);
	free((char *)work->bytes.bytes);
	free(work);
}
