#include "far_store.h"

#include <event2/event.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"
#include "store/database.h"
#include "store/server.h"
#include "store/sqlite_file.h"
#include "store/where.h"

/* The linker's names for those that are wrapped. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
extern const struct database_kind __real_sqlite_kind, __real_postgres_kind;
void __real_query_end(struct query *);
void __wrap_query_end(struct query *);
int64_t __wrap_clock_ms(void);
int64_t __wrap_clock_wall_ms(void);
struct timeval __wrap_clock_timeval(int64_t);
extern const struct database_kind __wrap_sqlite_kind, __wrap_postgres_kind;
/* NOLINTEND(bugprone-reserved-identifier) */

struct far {
	LIST_ENTRY(far) entry;
	struct sqlite_file
		*file;  /* owned: SQLite without its thread, which takes its time; or NULL */
	void *postgres; /* owned, or NULL */
	struct event_base *loop; /* owned: its alone */
	struct query_line waiting, answered;
	struct query *running; /* owned by the database; NULL: it has none of ours */
};

static LIST_HEAD(, far) fars = LIST_HEAD_INITIALIZER(fars);
static char clock_file[160];
int64_t far_clock_ms = INT64_C(1700000000000);

/* --- time ------------------------------------------------------------------------------ */

int64_t __wrap_clock_ms(void)
{
	return far_clock_ms;
}

int64_t __wrap_clock_wall_ms(void)
{
	return far_clock_ms;
}

/* No timer ends by itself: the test makes them end. */
struct timeval __wrap_clock_timeval(int64_t ms)
{
	return (struct timeval){.tv_sec = ms ? 3600 : 0};
}

static void write_clock(void)
{
	FILE *file = fopen(clock_file, "w");

	assert_non_null(file);
	fprintf(file, "%" PRId64, far_clock_ms);
	assert_int_equal(fclose(file), 0);
}

void far_take_clock(void)
{
	char sql[512];

	snprintf(clock_file, sizeof clock_file, "%s", where_path("clock"));
	write_clock();
	assert_int_equal(chmod(clock_file, 0644), 0);
	snprintf(sql, sizeof sql,
		 "CREATE OR REPLACE FUNCTION rlmd.store_now() RETURNS bigint LANGUAGE sql STABLE "
		 "AS 'SELECT CAST(pg_read_file(''%s'') AS bigint)'",
		 clock_file);
	server_ask(sql);
}

/* The power is not cut here, and a flush takes milliseconds: SQLite is given these. */
__attribute__((visibility("default"))) int fsync(int fd)
{
	(void)fd;
	return 0;
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

/* --- a database behind a connection ------------------------------------------------------- */

static struct far *far_new(void)
{
	struct far *far = xcalloc(1, sizeof *far);

	TAILQ_INIT(&far->waiting);
	TAILQ_INIT(&far->answered);
	LIST_INSERT_HEAD(&fars, far, entry);
	return far;
}

static void *open_sqlite(struct event_base *base, const char *path,
			 const struct store_options *options, struct rlmd_error *err)
{
	static const atomic_bool stop;
	const struct sqlite_file_options file = {
		.path = path, .patience_ms = options->patience_ms, .stop = &stop};
	struct far *far = far_new();
	struct query opening = {0};

	(void)base;
	(void)err;
	assert_non_null(__real_sqlite_kind.open); /* ld crashes where nobody names it */
	far->file = sqlite_file_open(&file, &opening);
	assert_string_equal(opening.error.text, "");
	return far;
}

static void *open_postgres(struct event_base *base, const char *place,
			   const struct store_options *options, struct rlmd_error *err)
{
	struct far *far = far_new();

	(void)base;
	far->loop = loop_new();
	far->postgres = __real_postgres_kind.open(far->loop, place, options, err);
	return far;
}

static void far_run(void *database, struct query *query)
{
	struct far *far = database;

	TAILQ_INSERT_TAIL(&far->waiting, query, entry);
}

static void far_free(void *database)
{
	struct far *far = database;

	LIST_REMOVE(far, entry);
	query_drop_all(&far->waiting);
	query_drop_all(&far->answered);
	sqlite_file_close(far->file);
	if (far->postgres) {
		__real_postgres_kind.free(far->postgres);
		event_base_free(far->loop);
	}
	free(far);
}

const struct database_kind __wrap_sqlite_kind = {open_sqlite, far_run, far_free};
const struct database_kind __wrap_postgres_kind = {open_postgres, far_run, far_free};

/* The database has answered. */
void __wrap_query_end(struct query *query)
{
	struct far *far;

	LIST_FOREACH (far, &fars, entry)
		if (far->running == query)
			break;
	assert_non_null(far);
	far->running = NULL;
	TAILQ_INSERT_TAIL(&far->answered, query, entry);
}

/* --- what the test does -------------------------------------------------------------------- */

struct far *far_last(void)
{
	return LIST_FIRST(&fars);
}

static void run_sqlite(struct far *far, struct query *query)
{
	struct query_line alone = TAILQ_HEAD_INITIALIZER(alone);

	TAILQ_INSERT_TAIL(&alone, query, entry);
	if (query->script != SCRIPT_OPEN && !query->fault)
		sqlite_file_run(far->file, &alone);
	TAILQ_CONCAT(&far->answered, &alone, entry);
}

static void run_postgres(struct far *far, struct query *query)
{
	if (*clock_file)
		write_clock();
	far->running = query;
	__real_postgres_kind.run(far->postgres, query);
	while (far->running)
		event_base_loop(far->loop, EVLOOP_ONCE);
}

bool far_carry(struct far *far)
{
	struct query *query = TAILQ_FIRST(&far->waiting);

	if (!query)
		return false;
	TAILQ_REMOVE(&far->waiting, query, entry);
	if (far->file)
		run_sqlite(far, query);
	else
		run_postgres(far, query);
	return true;
}

bool far_deliver(struct far *far)
{
	struct query *query = TAILQ_FIRST(&far->answered);

	if (!query)
		return false;
	TAILQ_REMOVE(&far->answered, query, entry);
	__real_query_end(query);
	return true;
}

void far_lose(struct far *far)
{
	struct query *query;

	while ((query = TAILQ_LAST(&far->answered, query_line))) {
		TAILQ_REMOVE(&far->answered, query, entry);
		query_reset(query);
		query->fault = STORE_FINE;
		TAILQ_INSERT_HEAD(&far->waiting, query, entry);
	}
}
