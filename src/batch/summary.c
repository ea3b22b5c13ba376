#include "batch/summary.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/money.h"
#include "store/store.h"

enum {
	STATUS_SOME_FAILED = 3,
	STATUS_REFUSED = 4,
	STATUS_UNAVAILABLE = 5,
	STATUS_PENDING = 6,
	STATUS_UNABLE = 7
};

static void add_count(struct summary *summary, const struct store_count *count, bool written)
{
	summary->pending += count->jobs[STORE_JOB_PENDING] + count->jobs[STORE_JOB_RUNNING];
	if (written)
		return;
	summary->succeeded += count->jobs[STORE_JOB_SUCCEEDED];
	summary->degraded += count->degraded;
	summary->failed += count->jobs[STORE_JOB_FAILED];
	summary->cost = money_add(summary->cost, count->cost);
	summary->tokens += count->tokens;
}

void summary_count(struct summary *summary, const struct store_count *counts, size_t count,
		   bool written)
{
	for (size_t i = 0; i < count; i++)
		add_count(summary, &counts[i], written);
}

void summary_add_job(struct summary *summary, const struct store_job *job)
{
	if (job->state == STORE_JOB_SUCCEEDED) {
		summary->succeeded++;
		summary->degraded += job->error.size > 0;
	} else {
		summary->failed++;
		summary->kinds[error_named(job->error)]++;
	}
	summary->cost = money_add(summary->cost, job->cost);
	summary->tokens += job->tokens;
}

void summary_add(struct summary *summary, const struct summary *other)
{
	summary->succeeded += other->succeeded;
	summary->degraded += other->degraded;
	summary->failed += other->failed;
	for (int kind = 0; kind < SUMMARY_KINDS; kind++)
		summary->kinds[kind] += other->kinds[kind];
	summary->cost = money_add(summary->cost, other->cost);
	summary->tokens += other->tokens;
}

static bool none_was_available(const struct summary *summary)
{
	int64_t others = summary->failed;

	for (int kind = 0; kind < SUMMARY_KINDS; kind++)
		if (rlmd_error_exit_status((enum rlmd_error_kind)kind) == STATUS_UNAVAILABLE)
			others -= summary->kinds[kind];
	return summary->failed && !others;
}

int summary_exit_status(const struct summary *summary)
{
	bool alone = !summary->succeeded && !summary->bad;

	if (summary->halted)
		return STATUS_SOME_FAILED;
	if (alone && !summary->failed && summary->refused)
		return STATUS_REFUSED;
	if (alone && !summary->failed && summary->unable)
		return STATUS_UNABLE;
	if (alone && !summary->refused && none_was_available(summary))
		return STATUS_UNAVAILABLE;
	if (summary->failed || summary->refused || summary->unable || summary->bad)
		return STATUS_SOME_FAILED;
	return summary->pending ? STATUS_PENDING : 0;
}

static void write_kinds(const struct summary *summary, struct evbuffer *out)
{
	const char *before = " (";

	for (int kind = 0; kind < SUMMARY_KINDS; kind++) {
		if (!summary->kinds[kind])
			continue;
		buffer_add_printf(out, "%s%" PRId64 " %s", before, summary->kinds[kind],
				  rlmd_error_name((enum rlmd_error_kind)kind));
		before = ", ";
	}
	if (*before == ',')
		buffer_add_printf(out, ")");
}

void summary_write(const struct summary *summary, struct evbuffer *out)
{
	int64_t jobs = summary->succeeded + summary->failed + summary->pending;
	char cost[32];

	money_format(summary->cost, cost);
	buffer_add_printf(out, "%" PRId64 " job%s: %" PRId64 " succeeded", jobs,
			  jobs == 1 ? "" : "s", summary->succeeded);
	if (summary->degraded)
		buffer_add_printf(out, " (%" PRId64 " degraded)", summary->degraded);
	buffer_add_printf(out, ", %" PRId64 " failed", summary->failed);
	write_kinds(summary, out);
	if (summary->pending)
		buffer_add_printf(out, ", %" PRId64 " still pending", summary->pending);
	if (summary->bad)
		buffer_add_printf(out, ", %" PRIu64 " bad line%s passed over", summary->bad,
				  summary->bad == 1 ? "" : "s");
	buffer_add_printf(out, "; %s, %" PRId64 " tokens", cost, summary->tokens);
	if (summary->level)
		buffer_add_printf(out, "; tenants were apart by %s only", summary->level);
}
