#include "batch/metrics.h"

#include <inttypes.h>
#include <rlmd/rlmd.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/money.h"
#include "base/prometheus.h"
#include "batch/scoreboard.h"

enum metric {
#define METRIC(id, ...) METRIC_##id,
#include "batch/metrics.def"
#undef METRIC
	METRIC_COUNT
};

#define GAUGE     "gauge"
#define COUNTER   "counter"
#define HISTOGRAM "histogram"

static const struct {
	const char *name, *type, *help;
} rows[METRIC_COUNT] = {
#define METRIC(id, name, type, labels, help) {name, type, help},
#include "batch/metrics.def"
#undef METRIC
};

/* The source of the samples, and where they are written to. */
struct metrics {
	struct evbuffer *out;
	const char *batch;
	const struct scoreboard *board;
	const struct scoreboard_sum sum;
	int64_t began_wall_ms;
	struct scoreboard_tenant others; /* the sum of those that are too many; name NULL: none */
};

/* --- samples ------------------------------------------------------------------------- */

/* A label that is NULL is none. */
static void begin_sample(const struct metrics *metrics, enum metric metric, const char *suffix,
			 const char *tenant, const char *label, const char *value)
{
	const struct prometheus_label labels[] = {
		{"batch", metrics->batch}, {"tenant", tenant}, {label, label ? value : NULL}};
	auto_free char *name = xasprintf("%s%s", rows[metric].name, suffix);

	prometheus_sample(metrics->out, name, labels, 3);
}

static void add_sample(const struct metrics *metrics, enum metric metric, const char *tenant,
		       const char *label, const char *value, int64_t number)
{
	begin_sample(metrics, metric, "", tenant, label, value);
	buffer_add_printf(metrics->out, "%" PRId64 "\n", number);
}

static void add_dollars(const struct metrics *metrics, enum metric metric, const char *tenant,
			int64_t money)
{
	begin_sample(metrics, metric, "", tenant, NULL, NULL);
	buffer_add_printf(metrics->out, "%" PRId64 ".%012" PRId64 "\n", money / MONEY_DOLLAR,
			  money % MONEY_DOLLAR);
}

static void add_seconds(const struct metrics *metrics, int64_t ms)
{
	buffer_add_printf(metrics->out, "%" PRId64 ".%03d\n", ms / 1000, (int)(ms % 1000));
}

/* --- of tenants ------------------------------------------------------------------------ */

static const char *const states[STORE_JOB_STATES] = {"pending", "running", "succeeded", "failed"};

static void write_tenant(const struct metrics *metrics, enum metric metric,
			 const struct scoreboard_tenant *tenant)
{
	const char *name = tenant->name;

	switch (metric) {
	case METRIC_JOBS:
		for (int i = 0; i < STORE_JOB_STATES; i++)
			add_sample(metrics, metric, name, "state", states[i], tenant->jobs[i]);
		break;
	case METRIC_DEGRADED:
		add_sample(metrics, metric, name, NULL, NULL, tenant->degraded);
		break;
	case METRIC_COST:
		add_dollars(metrics, metric, name, tenant->cost);
		break;
	case METRIC_TOKENS:
		add_sample(metrics, metric, name, NULL, NULL, tenant->tokens);
		break;
	case METRIC_STOPPED:
		if (tenant->stop != TENANT_STOP_NONE)
			add_sample(metrics, metric, name, "reason",
				   scoreboard_stop_name(tenant->stop), 1);
		break;
	case METRIC_AT_WORK:
		add_sample(metrics, metric, name, NULL, NULL, tenant->at_work);
		break;
	case METRIC_ATTEMPTS:
		for (int i = 0; i < SCOREBOARD_OUTCOMES; i++)
			add_sample(metrics, metric, name, "outcome",
				   scoreboard_outcome_name((enum scoreboard_outcome)i),
				   tenant->attempts[i]);
		break;
	case METRIC_ERRORS:
		for (int i = 0; i < SUMMARY_KINDS; i++)
			if (tenant->errors[i])
				add_sample(metrics, metric, name, "kind",
					   rlmd_error_name((enum rlmd_error_kind)i),
					   tenant->errors[i]);
		break;
	case METRIC_PAID:
		add_dollars(metrics, metric, name, tenant->paid_cost);
		break;
	case METRIC_PAID_TOKENS:
		add_sample(metrics, metric, name, NULL, NULL, tenant->paid_tokens);
		break;
	case METRIC_BUILD:
	case METRIC_BEGAN:
	case METRIC_DRAINING:
	case METRIC_CALLS:
	case METRIC_SECONDS:
	case METRIC_COUNT:
		break;
	}
}

static void add_tenant(struct scoreboard_tenant *sum, const struct scoreboard_tenant *tenant)
{
	for (int i = 0; i < STORE_JOB_STATES; i++)
		sum->jobs[i] += tenant->jobs[i];
	for (int i = 0; i < SCOREBOARD_OUTCOMES; i++)
		sum->attempts[i] += tenant->attempts[i];
	for (int i = 0; i < SUMMARY_KINDS; i++)
		sum->errors[i] += tenant->errors[i];
	sum->degraded += tenant->degraded;
	sum->cost = money_add(sum->cost, tenant->cost);
	sum->tokens += tenant->tokens;
	sum->at_work += tenant->at_work;
	sum->paid_cost = money_add(sum->paid_cost, tenant->paid_cost);
	sum->paid_tokens += tenant->paid_tokens;
}

/* --- of the process ------------------------------------------------------------------------ */

static void write_histogram(const struct metrics *metrics)
{
	const struct scoreboard *board = metrics->board;
	char bound[32];
	int64_t all = 0;

	for (int i = 0; i <= SCOREBOARD_BUCKETS; i++) {
		all += board->took[i];
		if (i < SCOREBOARD_BUCKETS)
			snprintf(bound, sizeof bound, "%g", (double)scoreboard_bounds[i] / 1000);
		else
			snprintf(bound, sizeof bound, "+Inf");
		begin_sample(metrics, METRIC_SECONDS, "_bucket", NULL, "le", bound);
		buffer_add_printf(metrics->out, "%" PRId64 "\n", all);
	}
	begin_sample(metrics, METRIC_SECONDS, "_sum", NULL, NULL, NULL);
	add_seconds(metrics, board->took_ms);
	begin_sample(metrics, METRIC_SECONDS, "_count", NULL, NULL, NULL);
	buffer_add_printf(metrics->out, "%" PRId64 "\n", all);
}

static void write_process(const struct metrics *metrics, enum metric metric)
{
	static const struct prometheus_label version = {"version", RLMD_VERSION};

	switch (metric) {
	case METRIC_BUILD:
		prometheus_sample(metrics->out, rows[metric].name, &version, 1);
		buffer_add_printf(metrics->out, "1\n");
		break;
	case METRIC_BEGAN:
		begin_sample(metrics, metric, "", NULL, NULL, NULL);
		add_seconds(metrics, metrics->began_wall_ms);
		break;
	case METRIC_DRAINING:
		add_sample(metrics, metric, NULL, NULL, NULL, metrics->board->draining);
		break;
	case METRIC_CALLS:
		add_sample(metrics, metric, NULL, NULL, NULL, metrics->sum.calls_in_flight);
		break;
	case METRIC_SECONDS:
		write_histogram(metrics);
		break;
	case METRIC_JOBS:
	case METRIC_DEGRADED:
	case METRIC_COST:
	case METRIC_TOKENS:
	case METRIC_STOPPED:
	case METRIC_AT_WORK:
	case METRIC_ATTEMPTS:
	case METRIC_ERRORS:
	case METRIC_PAID:
	case METRIC_PAID_TOKENS:
	case METRIC_COUNT:
		break;
	}
}

static void write_family(const struct metrics *metrics, enum metric metric)
{
	const struct scoreboard *board = metrics->board;

	prometheus_head(metrics->out, rows[metric].name, rows[metric].type, rows[metric].help);
	write_process(metrics, metric);
	for (size_t i = 0; i < board->count && i < METRICS_TENANTS_MAX; i++)
		write_tenant(metrics, metric, board->tenants[i]);
	if (metrics->others.name)
		write_tenant(metrics, metric, &metrics->others);
}

void metrics_write(const struct scoreboard *board, const char *batch, int64_t began_wall_ms,
		   struct evbuffer *out)
{
	static char others[] = METRICS_OTHERS;
	struct metrics metrics = {
		.out = out,
		.batch = batch ? batch : "",
		.board = board,
		.sum = scoreboard_sum(board, clock_ms()),
		.began_wall_ms = began_wall_ms,
	};

	for (size_t i = METRICS_TENANTS_MAX; i < board->count; i++) {
		metrics.others.name = others;
		add_tenant(&metrics.others, board->tenants[i]);
	}
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		write_family(&metrics, (enum metric)metric);
}
