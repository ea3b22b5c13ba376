#include "cli/batch_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "batch/scoreboard.h"
#include "batch/summary.h"
#include "cli/tell.h"

/* --- as data ---------------------------------------------------------------------- */

static json_t *kinds_of(const struct summary *summary)
{
	json_t *kinds = json_object();

	for (int kind = 0; kind < SUMMARY_KINDS; kind++)
		if (summary->kinds[kind])
			json_object_set_new(kinds, rlmd_error_name((enum rlmd_error_kind)kind),
					    json_integer(summary->kinds[kind]));
	return kinds;
}

static json_t *tenant_of(const struct scoreboard_tenant *tenant)
{
	bool stopped = tenant->stop != TENANT_STOP_NONE && tenant->stop != TENANT_STOP_BUSY;
	int64_t pending = tenant->jobs[STORE_JOB_PENDING] + tenant->jobs[STORE_JOB_RUNNING];

	return json_pack(
		"{s:o, s:I, s:I, s:I, s:f, s:I, s:s?, s:o}", "tenant",
		*tenant->name ? json_from_text(text_of(tenant->name)) : json_null(), "succeeded",
		(json_int_t)tenant->jobs[STORE_JOB_SUCCEEDED], "failed",
		(json_int_t)tenant->jobs[STORE_JOB_FAILED], "pending", (json_int_t)pending, "cost",
		money_to_dollars(tenant->cost), "tokens", (json_int_t)tenant->tokens, "stopped",
		stopped ? scoreboard_stop_name(tenant->stop) : NULL, "why",
		stopped && tenant->why ? json_from_text(text_of(tenant->why)) : json_null());
}

json_t *batch_report_new(const struct summary *summary, const struct scoreboard *board,
			 const char *name)
{
	int64_t jobs = summary->succeeded + summary->failed + summary->pending;
	json_t *tenants = json_array();

	for (size_t i = 0; i < board->count; i++)
		json_array_append_new(tenants, tenant_of(board->tenants[i]));
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:f, s:I, s:o}", "batch",
			 name ? json_from_text(text_of(name)) : json_null(), "jobs",
			 (json_int_t)jobs, "succeeded", (json_int_t)summary->succeeded, "degraded",
			 (json_int_t)summary->degraded, "failed", (json_int_t)summary->failed,
			 "pending", (json_int_t)summary->pending, "badLines",
			 (json_int_t)summary->bad, "kinds", kinds_of(summary), "halted",
			 summary->halted, "cost", money_to_dollars(summary->cost), "tokens",
			 (json_int_t)summary->tokens, "tenants", tenants);
}

/* --- for people ------------------------------------------------------------------------ */

static const char *plural(int64_t count)
{
	return count == 1 ? " is" : "s are";
}

static const char *reason_of(const char *stopped)
{
	return !strcmp(stopped, "key")      ? "the key was refused, or its account has no money"
	       : !strcmp(stopped, "money")  ? "the cap is reached"
	       : !strcmp(stopped, "halted") ? "too many of the jobs failed"
					    : "what they need cannot be had on this machine";
}

/* Returns how many jobs this explains. */
static int64_t tell_tenant(const json_t *tenant)
{
	int64_t pending = json_get_integer(tenant, "pending", 0);
	const char *stopped = json_string_value(json_object_get(tenant, "stopped"));
	const char *name = json_string_value(json_object_get(tenant, "tenant"));
	const char *why = json_string_value(json_object_get(tenant, "why"));

	if (!stopped || !pending)
		return 0;
	tell_error("%s%s%s%" PRId64 " job%s pending, as %s%s%s; mend that, and the same command "
		   "goes on",
		   name ? "tenant '" : "", name ? name : "", name ? "': " : "", pending,
		   plural(pending), reason_of(stopped), why ? ": " : "", why ? why : "");
	return pending;
}

static void tell_failed(const json_t *report, const char *results)
{
	int64_t failed = json_get_integer(report, "failed", 0);
	json_t *kinds = json_object_get(report, "kinds"), *count;
	auto_evbuffer struct evbuffer *list = buffer_new();
	auto_free char *text = NULL;
	const char *kind;

	if (!failed)
		return;
	json_object_foreach (kinds, kind, count)
		buffer_add_printf(list, "%s%" JSON_INTEGER_FORMAT " %s",
				  evbuffer_get_length(list) ? ", " : " (",
				  json_integer_value(count), kind);
	text = text_drain(list, NULL);
	tell_error("%" PRId64 " job%s failed%s%s: %s says why; 'rlmd batch --rerun-failed' tries "
		   "again",
		   failed, failed == 1 ? "" : "s", text, *text ? ")" : "",
		   results ? results : "'rlmd results' gives them and");
}

void batch_report_tell(const json_t *report, const char *results)
{
	int64_t pending = json_get_integer(report, "pending", 0);
	int64_t bad = json_get_integer(report, "badLines", 0);
	int64_t degraded = json_get_integer(report, "degraded", 0);
	const json_t *tenant;
	size_t i;

	tell_failed(report, results);
	if (degraded)
		tell_error("%" PRId64
			   " job%s succeeded with a forced or degraded answer: 'rlmd batch "
			   "--rerun-degraded' asks anew, with more to spend",
			   degraded, degraded == 1 ? "" : "s");
	json_array_foreach (json_object_get(report, "tenants"), i, tenant)
		pending -= tell_tenant(tenant);
	if (pending > 0)
		tell_error("%" PRId64 " job%s pending%s: the same command goes on with %s", pending,
			   plural(pending),
			   json_get_bool(report, "halted", false) ? ", as enough had failed" : "",
			   pending == 1 ? "it" : "them");
	if (bad)
		tell_error("%" PRId64 " line%s no job, and %s passed over", bad, plural(bad),
			   bad == 1 ? "was" : "were");
}
