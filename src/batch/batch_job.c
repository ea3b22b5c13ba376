#include "batch/batch_job.h"

#include <rlmd/context.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/timer.h"
#include "batch/contexts.h"
#include "batch/job_line.h"
#include "batch/tenancies.h"
#include "batch/trace_buffer.h"

struct batch_job {
	const struct batch_job_setting *setting;
	const struct tenancy *tenancy;      /* lent: whose it is */
	const struct rlmd_journal *journal; /* lent */
	struct rlmd_account *account;       /* lent: who pays */
	batch_job_fn *done;
	void *owner;
	struct rlmd_text bytes;     /* owned: the line, which lends `line` its texts */
	struct job_line line;       /* owned */
	struct contexts_hold *hold; /* owned */
	struct rlmd_context *text;  /* owned: a context that the line has itself */
	struct rlmd_job *running;   /* owned; lent to the engine until its end */
	struct trace_buffer *trace; /* owned */
	bool degraded;              /* an answer that it got was */
	struct timer *failed;       /* owned: posted where there is no job that could tell */
	struct rlmd_error error;    /* why there is none */
};

/* --- the end --------------------------------------------------------------------- */

char *batch_job_no_result(const struct rlmd_error *err)
{
	json_auto_t *object = json_pack("{s:b, s:s, s:s?, s:n, s:n, s:[], s:{s:s, s:o}}", "success",
					0, "output", "", "stopReason",
					rlmd_stop_name(error_stop(err)), "trace", "sandbox",
					"warnings", "error", "kind", rlmd_error_name(err->kind),
					"message", json_from_text(text_of(err->text)));

	return json_to_string(object);
}

static void on_failed(void *owner)
{
	struct batch_job *job = owner;
	auto_free char *text = batch_job_no_result(&job->error);
	const struct batch_job_end end = {.error = job->error, .result = text_of(text)};

	job->done(job->owner, &end);
}

/* Told from the loop, as the end of a job would be. */
static void fail(struct batch_job *job, const struct rlmd_error *err)
{
	if (job->error.kind)
		return;
	job->error = *err;
	contexts_release(take_pointer(&job->hold));
	timer_post(job->failed);
}

static void on_event(void *owner, struct rlmd_job *running, struct rlmd_text json)
{
	static const char degraded[] = "{\"event\":\"degraded\"";
	struct batch_job *job = owner;

	(void)running;
	job->degraded |= text_starts(json, degraded);
	trace_buffer_add(job->trace, json);
}

static void send_spans(const struct batch_job *job)
{
	const char *const attributes[] = {"rlmd.custom_id", job->line.custom_id,
					  job->line.tenant ? "rlmd.tenant" : NULL, job->line.tenant,
					  NULL};

	if (job->setting->spans)
		trace_buffer_export(job->trace, job->setting->spans, attributes);
}

static void on_end(void *owner, struct rlmd_job *running, const struct rlmd_result *result)
{
	auto_evbuffer struct evbuffer *trace = NULL;
	const struct rlmd_error *error = rlmd_result_error(result);
	struct rlmd_usage usage = {.size = sizeof usage};
	struct batch_job *job = owner;
	struct batch_job_end end = {.result = rlmd_result_json(result)};

	(void)running;
	rlmd_result_usage(result, &usage);
	end.cost = usage.cost > 0 ? usage.cost : 0;
	end.tokens = usage.tokens;
	end.paid_cost = end.cost - usage.journaled_cost;
	end.paid_tokens = usage.tokens - usage.journaled_tokens;
	end.degraded = !error && (job->degraded || rlmd_result_forced(result));
	end.limited_by = rlmd_result_limited_by(result);
	end.stop = error ? error->stop : rlmd_result_stop(result);
	if (error) {
		trace = buffer_new();
		trace_buffer_write(job->trace, trace);
		end.trace = text_in(trace);
		end.error = *error;
	}
	send_spans(job);
	job->done(job->owner, &end);
}

/* --- the job ---------------------------------------------------------------------- */

static int64_t said(int64_t value, int64_t otherwise)
{
	if (value == JOB_LINE_UNSAID)
		return otherwise;
	return value ? value : RLMD_NOTHING;
}

static struct rlmd_limits limits_of(const struct batch_job *job)
{
	const struct job_line *line = &job->line;
	struct rlmd_limits limits = job->setting->limits;

	limits.cost = said(line->max_cost, limits.cost);
	limits.tokens = said(line->max_tokens, limits.tokens);
	limits.time_ms = said(line->max_time_ms, limits.time_ms);
	limits.max_iterations = said(line->max_iterations, limits.max_iterations);
	limits.max_depth = said(line->max_depth, limits.max_depth);
	return limits;
}

static void start(struct batch_job *job, const struct rlmd_context *context)
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
		.owner = job,
	};
	const struct rlmd_limits limits = limits_of(job);
	struct rlmd_job_options options = job->setting->job;
	struct rlmd_error err;

	options.task = job->line.task;
	options.context = context;
	options.schema = job->line.schema;
	options.limits = &limits;
	options.hooks = &hooks;
	options.journal = job->journal;
	options.account = job->account;
	options.ends_with_account = true;
	options.without_tree = true;
	if (tenancies_give(job->tenancy, job->line.model, &options, &err))
		job->running = rlmd_job_start(job->setting->engine, &options, &err);
	if (!job->running)
		fail(job, &err);
}

static void on_context(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct batch_job *job = owner;

	if (!context)
		fail(job, err);
	else if (!job->error.kind)
		start(job, context);
}

/* Its bytes are copied once, into what every worker maps. */
static void start_with_text(struct batch_job *job)
{
	struct rlmd_error err;

	if (job->line.source == JOB_LINE_TEXT) {
		job->text = rlmd_context_from_text(NULL, job->line.context, &err);
		if (!job->text) {
			fail(job, &err);
			return;
		}
	}
	start(job, job->text);
}

struct batch_job *batch_job_new(const struct batch_job_setting *setting,
				const struct tenancy *tenancy, struct rlmd_text line,
				const struct rlmd_journal *journal, struct rlmd_account *account,
				batch_job_fn *done, void *owner)
{
	struct batch_job *job = xcalloc(1, sizeof *job);
	auto_free char *path = NULL;
	struct rlmd_error err;

	job->setting = setting;
	job->tenancy = tenancy;
	job->journal = journal;
	job->account = account;
	job->done = done;
	job->owner = owner;
	job->failed = timer_new(setting->base, on_failed, job);
	job->trace = trace_buffer_new();
	job->bytes = text_from(xstrndup(line.bytes, line.size), line.size);
	if (!job_line_read(job->bytes, &job->line, &err)) {
		fail(job, &err);
		return job;
	}
	path = tenancies_path(tenancy, &job->line, setting->directory, &err);
	if (err.kind)
		fail(job, &err);
	else if (path)
		job->hold = contexts_hold(setting->contexts, path, on_context, job);
	else
		start_with_text(job);
	return job;
}

void batch_job_cancel(struct batch_job *job)
{
	struct rlmd_error err;

	if (job->running) {
		rlmd_job_cancel(job->running);
		return;
	}
	error_set(&err, RLMD_ERROR_CANCELLED, "stopped before it was begun");
	fail(job, &err);
}

bool batch_job_status(const struct batch_job *job, struct rlmd_job_status *ret)
{
	return job->running && rlmd_job_get_status(job->running, ret);
}

void batch_job_free(struct batch_job *job)
{
	if (!job)
		return;
	rlmd_job_free(job->running);
	trace_buffer_free(job->trace);
	contexts_release(job->hold);
	rlmd_context_unref(job->text);
	timer_free(job->failed);
	job_line_done(&job->line);
	free((char *)job->bytes.bytes);
	free(job);
}
