/*
 * A store in a file of SQLite, in a thread of its own.
 *
 * All operations that are in line when the thread looks become one transaction, and so one flush of
 * the disk. Where one of them fails, each gets a transaction of its own.
 * The thread knows nothing but its database and the two lines of queries; signals are not its.
 */
#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/loop.h"
#include "base/timer.h"
#include "store/database.h"
#include "store/sqlite_file.h"

/*
 * The loop puts queries into `waiting`; the thread takes all of them, runs them, and puts them into
 * `done`; the eventfd wakes the loop, which ends them. `mutex` guards all from `waiting` to
 * `changed`.
 */
struct sqlite {
	char *path; /* owned */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t work; /* there is something in `waiting`, or `look`, or `stop` */
	struct query_line waiting, done;
	atomic_bool stop;
	bool look;    /* for others' writes */
	bool held;    /* another process has held a lock for some time */
	bool changed; /* there were some */
	int eventfd;  /* owned */

	/* the thread's */
	struct sqlite_file *file; /* owned; NULL: it could not be opened */
	struct query opening;     /* its fault is why */
	int64_t version;

	/* the loop's */
	struct event_base *base; /* lent */
	struct event *wake;      /* owned */
	struct timer *timer;     /* owned, or NULL: the next look */
	bool held_reported;      /* what was told last of `held` */
	struct store_options options;
};

/* A transaction for all of them, or, where that fails, one for each. */
static void run_together(struct sqlite *sqlite, struct query_line *line, struct query_line *done)
{
	struct query_line alone;
	struct query *query;

	if (TAILQ_EMPTY(line))
		return;
	if (sqlite_file_run(sqlite->file, line)) {
		TAILQ_CONCAT(done, line, entry);
		return;
	}
	while ((query = TAILQ_FIRST(line))) {
		TAILQ_REMOVE(line, query, entry);
		TAILQ_INIT(&alone);
		TAILQ_INSERT_TAIL(&alone, query, entry);
		if (!query->fault)
			sqlite_file_run(sqlite->file, &alone);
		TAILQ_INSERT_TAIL(done, query, entry);
	}
}

/* In the thread, within a query. */
static void on_held(void *owner, bool held)
{
	struct sqlite *sqlite = owner;

	pthread_mutex_lock(&sqlite->mutex);
	sqlite->held = held;
	eventfd_write(sqlite->eventfd, 1);
	pthread_mutex_unlock(&sqlite->mutex);
}

/* The query for it is the first of all. */
static void open_file(struct sqlite *sqlite)
{
	const struct sqlite_file_options options = {
		.path = sqlite->path,
		.patience_ms = sqlite->options.patience_ms,
		.existing = sqlite->options.existing,
		.stop = &sqlite->stop,
		.held = on_held,
		.owner = sqlite,
	};

	sqlite->file = sqlite_file_open(&options, &sqlite->opening);
	if (sqlite->file)
		sqlite->version = sqlite_file_version(sqlite->file);
}

/* Queries that have a fault are not run, and none is where there is no file; their order stays. */
static void run_line(struct sqlite *sqlite, struct query_line *line, struct query_line *done)
{
	struct query_line together = TAILQ_HEAD_INITIALIZER(together);
	struct query *query;

	while ((query = TAILQ_FIRST(line))) {
		TAILQ_REMOVE(line, query, entry);
		if (query->script == SCRIPT_OPEN)
			open_file(sqlite);
		if (!sqlite->file && !query->fault) {
			query->fault = sqlite->opening.fault;
			query->error = sqlite->opening.error;
		}
		if (query->fault) {
			run_together(sqlite, &together, done);
			TAILQ_INSERT_TAIL(done, query, entry);
		} else {
			TAILQ_INSERT_TAIL(&together, query, entry);
		}
	}
	run_together(sqlite, &together, done);
}

/* Whether others wrote since the last look. */
static bool others_wrote(struct sqlite *sqlite)
{
	int64_t before = sqlite->version;

	if (!sqlite->file)
		return false;
	sqlite->version = sqlite_file_version(sqlite->file);
	return sqlite->version != before;
}

static void *work(void *arg)
{
	struct sqlite *sqlite = arg;

	pthread_mutex_lock(&sqlite->mutex);
	while (!sqlite->stop) {
		struct query_line line = TAILQ_HEAD_INITIALIZER(line);
		struct query_line done = TAILQ_HEAD_INITIALIZER(done);
		bool look = sqlite->look, changed;

		if (!look && TAILQ_EMPTY(&sqlite->waiting)) {
			pthread_cond_wait(&sqlite->work, &sqlite->mutex);
			continue;
		}
		sqlite->look = false;
		TAILQ_CONCAT(&line, &sqlite->waiting, entry);
		pthread_mutex_unlock(&sqlite->mutex);

		run_line(sqlite, &line, &done);
		changed = look && others_wrote(sqlite);

		pthread_mutex_lock(&sqlite->mutex);
		TAILQ_CONCAT(&sqlite->done, &done, entry);
		sqlite->changed = sqlite->changed || changed;
		eventfd_write(sqlite->eventfd, 1);
	}
	pthread_mutex_unlock(&sqlite->mutex);
	sqlite_file_close(sqlite->file);
	return NULL;
}

static void on_time(void *owner)
{
	struct sqlite *sqlite = owner;

	timer_free(sqlite->timer);
	sqlite->timer = NULL;
	pthread_mutex_lock(&sqlite->mutex);
	sqlite->look = true;
	pthread_cond_signal(&sqlite->work);
	pthread_mutex_unlock(&sqlite->mutex);
}

static void look_later(struct sqlite *sqlite)
{
	if (sqlite->options.news && sqlite->options.look_ms > 0 && !sqlite->timer)
		sqlite->timer = timer_after(sqlite->base, sqlite->options.look_ms, on_time, sqlite);
}

/* A callback may free the store with all that is left: one is called at each turn. That the lock is
 * free comes before the query that waited for it, which may be the last. */
static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct sqlite *sqlite = arg;
	bool changed = false, held, news;
	struct query *query = NULL;
	eventfd_t count;

	(void)what;
	pthread_mutex_lock(&sqlite->mutex);
	eventfd_read(fd, &count);
	held = sqlite->held;
	news = held != sqlite->held_reported;
	if (!news)
		query = TAILQ_FIRST(&sqlite->done);
	if (query)
		TAILQ_REMOVE(&sqlite->done, query, entry);
	if (news || query) {
		eventfd_write(fd, 1);
	} else {
		changed = sqlite->changed;
		sqlite->changed = false;
	}
	pthread_mutex_unlock(&sqlite->mutex);

	look_later(sqlite);
	sqlite->held_reported = held;
	if (query)
		query_end(query);
	else if (news && sqlite->options.news)
		sqlite->options.news(sqlite->options.owner, held ? STORE_HELD : STORE_FREED);
	else if (changed)
		sqlite->options.news(sqlite->options.owner, STORE_CHANGED);
}

/* The thread has ended, or never began. */
static void release(struct sqlite *sqlite)
{
	query_drop_all(&sqlite->waiting);
	query_drop_all(&sqlite->done);
	timer_free(sqlite->timer);
	event_free(sqlite->wake);
	close(sqlite->eventfd);
	pthread_cond_destroy(&sqlite->work);
	pthread_mutex_destroy(&sqlite->mutex);
	free(sqlite->path);
	free(sqlite);
}

static void *sqlite_open(struct event_base *base, const char *path,
			 const struct store_options *options, struct rlmd_error *err)
{
	struct sqlite *sqlite = xcalloc(1, sizeof *sqlite);

	/* Not ":memory:", nor a URI: what we are given is a path. */
	sqlite->path = xasprintf("%s%s", *path == '/' ? "" : "./", path);
	sqlite->options = *options;
	sqlite->base = base;
	TAILQ_INIT(&sqlite->waiting);
	TAILQ_INIT(&sqlite->done);
	pthread_mutex_init(&sqlite->mutex, NULL);
	pthread_cond_init(&sqlite->work, NULL);
	sqlite->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sqlite->wake = loop_event(base, sqlite->eventfd, EV_READ | EV_PERSIST, on_wake, sqlite);
	loop_add(sqlite->wake, NULL);
	if (loop_start_thread(&sqlite->thread, work, sqlite, err))
		return sqlite;
	release(sqlite);
	return NULL;
}

static void sqlite_run(void *database, struct query *query)
{
	struct sqlite *sqlite = database;

	pthread_mutex_lock(&sqlite->mutex);
	TAILQ_INSERT_TAIL(&sqlite->waiting, query, entry);
	pthread_cond_signal(&sqlite->work);
	pthread_mutex_unlock(&sqlite->mutex);
}

static void sqlite_free(void *database)
{
	struct sqlite *sqlite = database;

	pthread_mutex_lock(&sqlite->mutex);
	sqlite->stop = true;
	pthread_cond_signal(&sqlite->work);
	pthread_mutex_unlock(&sqlite->mutex);
	pthread_join(sqlite->thread, NULL);
	release(sqlite);
}

const struct database_kind sqlite_kind = {sqlite_open, sqlite_run, sqlite_free};
