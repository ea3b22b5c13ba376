#include "cli/batch_watch.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <rlmd/log.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/money.h"
#include "batch/metrics.h"
#include "batch/runner.h"
#include "batch/scoreboard.h"
#include "cli/exporter.h"
#include "cli/figure.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/sink.h"
#include "cli/tell.h"

enum {
	WRITE_MS = 5000,
	EVERY_MS = 60000, /* CI services end what says nothing for long */
	STEPS = 10,
	TENANTS_SHOWN = 5,
	NAME_SHOWN = 16,
	PATIENCE_MS = 1000, /* with a terminal that takes no metrics: the jobs wait meanwhile */
};

struct batch_watch {
	const struct session *session; /* lent */
	const struct runner *runner;   /* lent */
	struct event *asked;           /* owned */
	int64_t told_ms;               /* when there was a line */
	int64_t told_step;             /* tenths of the jobs that were over then */
	struct exporter *exporter;     /* owned; NULL: none */
	struct event *write;           /* owned: when the file is due; NULL: there is none */
	int64_t began_wall_ms;
	bool unwritten; /* the file cannot be written, which was told */
};

static int notice = -1;

/* --- the line ---------------------------------------------------------------------------- */

static int64_t all_of(const int64_t jobs[STORE_JOB_STATES])
{
	int64_t all = 0;

	for (int state = 0; state < STORE_JOB_STATES; state++)
		all += jobs[state];
	return all;
}

static int64_t over_of(const int64_t jobs[STORE_JOB_STATES])
{
	return jobs[STORE_JOB_SUCCEEDED] + jobs[STORE_JOB_FAILED];
}

/* A name is data: what is no letter of ASCII has a width that nobody knows. */
static void format_tenant(const struct scoreboard_tenant *tenant, char out[static 80])
{
	char name[NAME_SHOWN + 1], over[24], all[24];

	snprintf(name, sizeof name, "%s", *tenant->name ? tenant->name : "-");
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	figure_count(over_of(tenant->jobs), over);
	figure_count(all_of(tenant->jobs), all);
	snprintf(out, 80, "%s %s/%s%s%s", name, over, all,
		 tenant->stop == TENANT_STOP_BUSY ? " "
		 : tenant->stop                   ? " stopped: "
						  : "",
		 scoreboard_stop_name(tenant->stop));
}

/* Those that are shown end with how many there are beside them. */
static void format_tenants(const struct scoreboard *board, char out[static PROGRESS_PART_MAX])
{
	char one[80], more[32];
	size_t size = 0, shown = 0;

	*out = '\0';
	if (board->count < 2)
		return;
	for (; shown < board->count && shown < TENANTS_SHOWN; shown++) {
		format_tenant(board->tenants[shown], one);
		if (size + strlen(one) + sizeof more >= PROGRESS_PART_MAX)
			break;
		size += (size_t)snprintf(out + size, PROGRESS_PART_MAX - size, "%s%s",
					 shown ? ", " : "", one);
	}
	if (shown < board->count)
		snprintf(out + size, PROGRESS_PART_MAX - size, ", %zu more", board->count - shown);
}

void batch_watch_describe(const struct scoreboard *board, const struct scoreboard_sum *sum,
			  bool stopping, struct progress_line *line)
{
	char money[32], left[24], tenants[PROGRESS_PART_MAX];

	money_format(sum->cost, money);
	figure_left(sum->left_ms, left);
	format_tenants(board, tenants);
	if (stopping) {
		progress_add(line, 5, "finishing (Ctrl-C stops now)");
		progress_brief(line, 1, "finishing");
	}
	progress_add(line, 9, "%" PRId64 " of %" PRId64, over_of(sum->jobs), all_of(sum->jobs));
	if (sum->jobs[STORE_JOB_FAILED])
		progress_add(line, 8, "%" PRId64 " failed", sum->jobs[STORE_JOB_FAILED]);
	progress_add(line, 4, "%" PRId64 " at work", sum->at_work);
	progress_add(line, 3, "%" PRId64 " call%s", sum->calls_in_flight,
		     sum->calls_in_flight == 1 ? "" : "s");
	progress_add(line, 7, "%s", money);
	if (sum->left_ms >= 0)
		progress_add(line, 6, "%s left", left);
	progress_add(line, 2, "%s", tenants);
}

/* --- SIGUSR1 --------------------------------------------------------------------------- */

static void on_signal(int number)
{
	const uint64_t one = 1;
	int before = errno;

	(void)number;
	(void)!write(notice, &one, sizeof one);
	errno = before;
}

/* Nothing of ours comes back from the kernel for it. */
void batch_watch_install(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	if (notice < 0)
		notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
}

static void tell_job(const struct scoreboard_job *job, int64_t now_ms)
{
	const struct rlmd_job_status *status = &job->status;
	char took[16], cost[32];
	const struct rlmd_log_field fields[] = {
		{.name = "custom_id", .text = job->custom_id},
		{.name = "tenant", .text = job->tenant->name},
		{.name = "attempt", .number = job->attempt},
		{.name = "turn", .number = status->turn},
		{.name = "calls", .number = status->calls_in_flight},
		{.name = "took_ms", .number = now_ms - job->began_ms},
		{.name = "cost", .text = cost},
		{.name = "tokens", .number = status->tokens},
	};
	auto_free char *text = NULL;

	clock_format(now_ms - job->began_ms, took);
	money_format(status->cost, cost);
	text = xasprintf("  %s%s%s%s: attempt %" PRId64 ", turn %" PRId64 ", %" PRId64
			 " call%s in flight, %s, %s",
			 job->custom_id, *job->tenant->name ? " (" : "", job->tenant->name,
			 *job->tenant->name ? ")" : "", job->attempt, status->turn,
			 status->calls_in_flight, status->calls_in_flight == 1 ? "" : "s", took,
			 cost);
	tell_record(RLMD_LOG_DEFAULT, "in_flight", fields, sizeof fields / sizeof *fields, text);
}

static void tell_stopped(const struct scoreboard_tenant *tenant)
{
	const struct rlmd_log_field fields[] = {
		{.name = "tenant", .text = tenant->name},
		{.name = "reason", .text = scoreboard_stop_name(tenant->stop)},
		{.name = "pending", .number = tenant->jobs[STORE_JOB_PENDING]},
	};
	auto_free char *text = xasprintf("  tenant '%s' is stopped (%s): %" PRId64 " pending",
					 tenant->name, scoreboard_stop_name(tenant->stop),
					 tenant->jobs[STORE_JOB_PENDING]);

	tell_record(RLMD_LOG_DEFAULT, "tenant_stopped", fields, sizeof fields / sizeof *fields,
		    text);
}

/* --- lines ------------------------------------------------------------------------------- */

static void tell_line(const struct batch_watch *watch, enum rlmd_log_level level,
		      const struct scoreboard *board, const struct scoreboard_sum *sum)
{
	struct progress_line parts = {.count = 0};
	char line[PROGRESS_LINE_MAX], cost[32];
	const struct rlmd_log_field fields[] = {
		{.name = "pending", .number = sum->jobs[STORE_JOB_PENDING]},
		{.name = "running", .number = sum->jobs[STORE_JOB_RUNNING]},
		{.name = "succeeded", .number = sum->jobs[STORE_JOB_SUCCEEDED]},
		{.name = "failed", .number = sum->jobs[STORE_JOB_FAILED]},
		{.name = "at_work", .number = sum->at_work},
		{.name = "calls", .number = sum->calls_in_flight},
		{.name = "cost", .text = cost},
		{.name = "tokens", .number = sum->tokens},
		{.name = "left_ms", .number = sum->left_ms},
	};

	money_format(sum->cost, cost);
	batch_watch_describe(board, sum, watch->session->signal, &parts);
	progress_format(&parts, PROGRESS_LINE_MAX, line);
	tell_record(level, "progress", fields, sizeof fields / sizeof *fields, line);
}

static void on_asked(evutil_socket_t fd, short what, void *owner)
{
	struct batch_watch *watch = owner;
	const struct scoreboard *board = runner_scoreboard(watch->runner);
	int64_t now_ms = clock_ms();
	struct scoreboard_sum sum = scoreboard_sum(board, now_ms);
	const struct scoreboard_job *job;
	uint64_t count;

	(void)what;
	(void)!read(fd, &count, sizeof count);
	tell_line(watch, RLMD_LOG_DEFAULT, board, &sum);
	TAILQ_FOREACH (job, &board->jobs, next)
		tell_job(job, now_ms);
	for (size_t i = 0; i < board->count; i++)
		if (board->tenants[i]->stop)
			tell_stopped(board->tenants[i]);
}

static void describe(const void *owner, struct progress_line *line)
{
	const struct batch_watch *watch = owner;
	const struct scoreboard *board = runner_scoreboard(watch->runner);
	struct scoreboard_sum sum = scoreboard_sum(board, clock_ms());

	if (board->count)
		batch_watch_describe(board, &sum, watch->session->signal, line);
	else
		progress_add(line, 1, "reading the jobs");
}

/* Tells a line for each tenth of the jobs, and each minute. */
static void tell_now_and_then(void *owner)
{
	struct batch_watch *watch = owner;
	const struct scoreboard *board = runner_scoreboard(watch->runner);
	int64_t now_ms = clock_ms(), over, all, step;
	struct scoreboard_sum sum = scoreboard_sum(board, now_ms);

	over = over_of(sum.jobs);
	all = all_of(sum.jobs);
	if (!all)
		return;
	step = STEPS * over / all;
	if (step == watch->told_step && now_ms - watch->told_ms < EVERY_MS)
		return;
	watch->told_step = step;
	watch->told_ms = now_ms;
	if (over < all)
		tell_line(watch, RLMD_LOG_NOTICE, board, &sum);
}

/* --- metrics ------------------------------------------------------------------------------- */

static void write_metrics(void *owner, struct evbuffer *out)
{
	struct batch_watch *watch = owner;

	metrics_write(runner_scoreboard(watch->runner), runner_name(watch->runner),
		      watch->began_wall_ms, out);
}

/* A FIFO would have to be opened again each time, and every job would wait for its reader. */
static struct sink *open_file(const char *path, struct rlmd_error *err)
{
	struct stat st;

	if (!stat(path, &st) && S_ISFIFO(st.st_mode)) {
		error_set(err, RLMD_ERROR_USAGE,
			  "cannot write %s every few seconds: %s; name a file, or [ADDRESS]:PORT",
			  path, file_kind(&st));
		return NULL;
	}
	return sink_new(path, false, err);
}

/* Its reader finds it whole. A machine that fails may lose it: it is written anew anyway. */
static bool write_file(struct batch_watch *watch, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct sink *file = open_file(watch->session->config.batch_metrics, err);
	bool ok;

	write_metrics(watch, out);
	ok = file && sink_feed(file, text_in(out), PATIENCE_MS, err) &&
	     sink_commit(file, false, err);
	sink_free(file);
	return ok || error_context(err, "the metrics");
}

static void on_write(evutil_socket_t fd, short what, void *owner)
{
	struct batch_watch *watch = owner;
	struct rlmd_error err;
	bool ok = write_file(watch, &err);

	(void)fd;
	(void)what;
	if (!ok && !watch->unwritten)
		tell_warning("%s", err.text);
	watch->unwritten = !ok;
}

static bool open_metrics(struct batch_watch *watch, struct rlmd_error *err)
{
	const struct timeval often = clock_timeval(WRITE_MS);
	const char *endpoint = watch->session->config.batch_metrics;

	if (!endpoint)
		return true;
	if (exporter_is_endpoint(endpoint)) {
		watch->exporter = exporter_new(watch->session->base, endpoint, write_metrics, watch,
					       err);
		if (watch->exporter)
			tell("metrics are at %s", exporter_url(watch->exporter));
		return watch->exporter;
	}
	if (!write_file(watch, err))
		return false;
	watch->write = loop_event(watch->session->base, -1, EV_PERSIST, on_write, watch);
	loop_add(watch->write, &often);
	return true;
}

/* --- its life ------------------------------------------------------------------------------ */

struct batch_watch *batch_watch_new(const struct session *session, const struct runner *runner,
				    struct rlmd_error *err)
{
	struct batch_watch *watch = xcalloc(1, sizeof *watch);
	const struct progress_source source = {describe, tell_now_and_then, watch};

	watch->session = session;
	watch->runner = runner;
	watch->told_ms = clock_ms();
	watch->began_wall_ms = clock_wall_ms();
	watch->asked = loop_event(session->base, notice, EV_READ | EV_PERSIST, on_asked, watch);
	loop_add(watch->asked, NULL);
	if (!session->config.quiet)
		progress_start(session->base, &source);
	if (open_metrics(watch, err))
		return watch;
	batch_watch_free(watch);
	return NULL;
}

void batch_watch_free(struct batch_watch *watch)
{
	if (!watch)
		return;
	progress_end();
	exporter_free(watch->exporter);
	if (watch->write) {
		on_write(-1, 0, watch);
		event_free(watch->write);
	}
	event_free(watch->asked);
	free(watch);
}
