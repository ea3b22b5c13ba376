#include "cli/batch_watch.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <inttypes.h>
#include <rlmd/log.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/money.h"
#include "batch/metrics.h"
#include "batch/runner.h"
#include "batch/scoreboard.h"
#include "cli/batch_line.h"
#include "cli/exporter.h"
#include "cli/live_line.h"
#include "cli/session.h"
#include "cli/tell.h"

enum {
	REFRESH_MS = 100, /* of a line on a terminal */
	LOOK_MS = 1000,   /* elsewhere: whether a line is due */
	WRITE_MS = 5000,
	EVERY_MS = 60000, /* CI services end what says nothing for long */
	STEPS = 10,
};

struct batch_watch {
	const struct session *session; /* lent */
	const struct runner *runner;   /* lent */
	struct event *look;            /* owned; NULL: nobody is told */
	struct event *asked;           /* owned */
	int64_t told_ms;               /* when there was a line */
	int64_t told_step;             /* tenths of the jobs that were over then */
	struct exporter *exporter;     /* owned; NULL: none */
	struct event *write;           /* owned: when the file is due; NULL: there is none */
	int64_t began_wall_ms;
	bool unwritten; /* the file cannot be written, which was told */
};

static int notice = -1;

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
	char line[LIVE_LINE_MAX], cost[32];
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
	batch_line_format(board, sum, watch->session->signal, LIVE_LINE_MAX, line);
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

static void on_refresh(evutil_socket_t fd, short what, void *owner)
{
	struct batch_watch *watch = owner;
	const struct scoreboard *board = runner_scoreboard(watch->runner);
	struct scoreboard_sum sum = scoreboard_sum(board, clock_ms());
	char line[LIVE_LINE_MAX];

	(void)fd;
	(void)what;
	if (board->count)
		batch_line_format(board, &sum, watch->session->signal, live_line_width(), line);
	else
		snprintf(line, sizeof line, "reading the jobs");
	live_line_show(line);
}

/* What another tenth of the jobs is, or a minute without a word. */
static void on_look(evutil_socket_t fd, short what, void *owner)
{
	struct batch_watch *watch = owner;
	const struct scoreboard *board = runner_scoreboard(watch->runner);
	int64_t now_ms = clock_ms(), over, all, step;
	struct scoreboard_sum sum = scoreboard_sum(board, now_ms);

	(void)fd;
	(void)what;
	over = sum.jobs[STORE_JOB_SUCCEEDED] + sum.jobs[STORE_JOB_FAILED];
	all = over + sum.jobs[STORE_JOB_PENDING] + sum.jobs[STORE_JOB_RUNNING];
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

/* Whoever reads it finds it whole; what the machine's end would take is written anew anyway. */
static bool write_file(struct batch_watch *watch, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	const char *path = watch->session->config.batch_metrics;
	struct atomic_file file;
	bool ok;

	write_metrics(watch, out);
	if (!atomic_file_open(&file, path, 0666))
		return error_errno(err, RLMD_ERROR_USAGE, "the metrics: cannot write %s", path);
	ok = file_write_fd(file.fd, text_in(out), err);
	if (ok && !atomic_file_commit(&file, false))
		ok = error_errno(err, RLMD_ERROR_USAGE, "cannot write %s", path);
	atomic_file_done(&file);
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
	const char *place = watch->session->config.batch_metrics;

	if (!place)
		return true;
	if (exporter_is_place(place)) {
		watch->exporter = exporter_new(watch->session->base, place, write_metrics, watch,
					       err);
		if (watch->exporter)
			tell("metrics are at %s", exporter_url(watch->exporter));
		return watch->exporter;
	}
	if (!write_file(watch, err))
		return false;
	watch->write = event_new(watch->session->base, -1, EV_PERSIST, on_write, watch);
	event_add(watch->write, &often);
	return true;
}

/* --- its life ------------------------------------------------------------------------------ */

static void watch_line(struct batch_watch *watch)
{
	bool live = session_is_live(watch->session);
	const struct timeval often = clock_timeval(live ? REFRESH_MS : LOOK_MS);

	watch->look = event_new(watch->session->base, -1, EV_PERSIST, live ? on_refresh : on_look,
				watch);
	event_add(watch->look, &often);
}

struct batch_watch *batch_watch_new(const struct session *session, const struct runner *runner,
				    struct rlmd_error *err)
{
	struct batch_watch *watch = xcalloc(1, sizeof *watch);

	watch->session = session;
	watch->runner = runner;
	watch->told_ms = clock_ms();
	watch->began_wall_ms = clock_wall_ms();
	watch->asked = event_new(session->base, notice, EV_READ | EV_PERSIST, on_asked, watch);
	event_add(watch->asked, NULL);
	if (!session->config.quiet)
		watch_line(watch);
	if (open_metrics(watch, err))
		return watch;
	batch_watch_free(watch);
	return NULL;
}

void batch_watch_free(struct batch_watch *watch)
{
	if (!watch)
		return;
	live_line_clear();
	exporter_free(watch->exporter);
	if (watch->write) {
		on_write(-1, 0, watch);
		event_free(watch->write);
	}
	if (watch->look)
		event_free(watch->look);
	event_free(watch->asked);
	free(watch);
}
