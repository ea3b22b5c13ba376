#include "store/sqlite_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define FOR_UPDATE  ""
#define SKIP_LOCKED ""
#define IDENTITY    "INTEGER PRIMARY KEY AUTOINCREMENT"
#define BYTES       "blob"

/* clang-format off */
static const struct statement statements[] = {
#define ONCE   false
#define EACH   true
#define SILENT false
#define TELLS  true
#define SCRIPT(script, access, types)
#define STATEMENT(script, turns, rows, sql) {SCRIPT_##script, turns, rows, sql},
#define NOTIFY(script)
#include "store/scripts.def"
#undef SCRIPT
#undef STATEMENT
#undef NOTIFY
};

static const struct {
	int version;
	const char *sql;
} migrations[] = {
#define MIGRATION(version, sql) {version, sql},
#include "store/schema.def"
#undef MIGRATION
};
/* clang-format on */

enum {
	STATEMENTS = sizeof statements / sizeof *statements,
	MIGRATIONS = sizeof migrations / sizeof *migrations,
	APPLICATION = 0x726c6d64, /* "rlmd": whose file it is */
};

/* Between two looks whether a lock is free. */
static const struct timespec nap = {.tv_nsec = 5 * 1000 * 1000};

struct sqlite_file {
	sqlite3 *db;                        /* owned */
	sqlite3_stmt *prepared[STATEMENTS]; /* owned; NULL until first used */
	const char *path;                   /* lent */
	const atomic_bool *stop;            /* lent */
	int64_t patience_ms, waiting_since; /* for others' locks */
	int64_t now;                        /* of the transaction */
};

/* What kind of failure a code of SQLite's is. It tells the disk's reason for a statement, but for a
 * COMMIT it is only in errno. */
static enum store_fault fault_of(struct sqlite_file *file, int code)
{
	int reason = errno ? errno : sqlite3_system_errno(file->db);

	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return STORE_LOCKED;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return STORE_CORRUPT;
	case SQLITE_FULL:
		return STORE_FULL;
	case SQLITE_IOERR:
		return reason == ENOSPC || reason == EDQUOT || reason == EFBIG ? STORE_FULL
									       : STORE_FAILED;
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_AUTH:
	case SQLITE_TOOBIG:
		return STORE_USAGE;
	default:
		return STORE_FAILED;
	}
}

static const char *remedy_of(enum store_fault fault)
{
	switch (fault) {
	case STORE_LOCKED:
		return "; end the process that holds it, or try again later";
	case STORE_CORRUPT:
		return "; put a copy in its place, or begin with another file";
	case STORE_FULL:
		return "; make room, and start again";
	case STORE_FINE:
	case STORE_REFUSED:
	case STORE_AWAY:
	case STORE_NEWER:
	case STORE_USAGE:
	case STORE_FAILED:
		break;
	}
	return "";
}

static bool fail(struct sqlite_file *file, struct query *query, int code)
{
	enum store_fault fault = fault_of(file, code);

	return query_fail(query, fault, "the store %s: %s (%s)%s", file->path,
			  store_fault_meaning(fault), sqlite3_errstr(code), remedy_of(fault));
}

static int on_busy(void *arg, int times)
{
	struct sqlite_file *file = arg;

	if (!times)
		file->waiting_since = clock_ms();
	if (*file->stop || clock_ms() - file->waiting_since >= file->patience_ms)
		return 0;
	nanosleep(&nap, NULL);
	return 1;
}

static void store_now(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct sqlite_file *file = sqlite3_user_data(context);

	(void)count;
	(void)values;
	sqlite3_result_int64(context, file->now);
}

/* A statement that is used now and then; its one number, if it has a row. */
static int ask(struct sqlite_file *file, const char *sql, int64_t *ret)
{
	sqlite3_stmt *statement;
	int code;

	errno = 0;
	code = sqlite3_prepare_v2(file->db, sql, -1, &statement, NULL);

	if (!code && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (ret)
			*ret = sqlite3_column_int64(statement, 0);
		while ((code = sqlite3_step(statement)) == SQLITE_ROW)
			;
	}
	sqlite3_finalize(statement);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The file, empty, for its owner only, unless there is one: SQLite's own would be for all. */
static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
}

/* Whether it is a store that we know, or to become one; its version. */
static bool check(struct sqlite_file *file, struct query *query, int64_t *ret_version)
{
	int newest = migrations[MIGRATIONS - 1].version, code;
	int64_t owner = 0, version = 0, tables = 0;

	if ((code = ask(file, "PRAGMA application_id", &owner)) ||
	    (code = ask(file, "PRAGMA user_version", &version)) ||
	    (code = ask(file, "SELECT count(*) FROM sqlite_master", &tables)))
		return fail(file, query, code);
	if (owner != APPLICATION && (tables || version))
		return query_fail(query, STORE_USAGE,
				  "%s is a database of another program; name another file",
				  file->path);
	if (version > newest)
		return query_fail(
			query, STORE_NEWER,
			"the store %s has version %lld of its schema, and this rlmd knows "
			"version %d; use the rlmd that made it, or a later one",
			file->path, (long long)version, newest);
	*ret_version = version;
	return true;
}

/* In a transaction that writes: nobody else does the same. */
static bool migrate(struct sqlite_file *file, struct query *query)
{
	int newest = migrations[MIGRATIONS - 1].version, code;
	auto_free char *mark = NULL;
	int64_t version;

	if (!check(file, query, &version))
		return false;
	if (version == newest)
		return true;
	for (size_t i = 0; i < MIGRATIONS; i++)
		if (migrations[i].version > version && (code = ask(file, migrations[i].sql, NULL)))
			return fail(file, query, code);
	mark = xasprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION,
			 newest);
	code = sqlite3_exec(file->db, mark, NULL, NULL, NULL);
	return !code || fail(file, query, code);
}

static bool set(struct sqlite_file *file, const char *const *settings, struct query *query)
{
	int code;

	for (; *settings; settings++)
		if ((code = ask(file, *settings, NULL)))
			return fail(file, query, code);
	return true;
}

/* What is set for each connection anew; WAL stays with the file, which is therefore looked at
 * before. */
static bool set_up(struct sqlite_file *file, struct query *query)
{
	static const char *const guards[] = {
		"PRAGMA trusted_schema = OFF", /* the file may be anybody's */
		"PRAGMA cell_size_check = ON", NULL};
	static const char *const settings[] = {"PRAGMA journal_mode = WAL",
					       "PRAGMA synchronous = FULL",
					       "PRAGMA journal_size_limit = 67108864", NULL};
	int64_t version;
	int code;

	if (!set(file, guards, query) || !check(file, query, &version) ||
	    !set(file, settings, query))
		return false;
	if ((code = ask(file, "BEGIN IMMEDIATE", NULL)))
		return fail(file, query, code);
	if (!migrate(file, query)) {
		ask(file, "ROLLBACK", NULL);
		return false;
	}
	code = ask(file, "COMMIT", NULL);
	return !code || fail(file, query, code);
}

/* SQLite does not wait for others where the journal of a new file is changed to WAL. */
static bool set_up_in_turn(struct sqlite_file *file, struct query *query)
{
	int64_t since = clock_ms();

	while (!set_up(file, query)) {
		if (query->fault != STORE_LOCKED || *file->stop ||
		    clock_ms() - since >= file->patience_ms)
			return false;
		nanosleep(&nap, NULL);
	}
	query->fault = STORE_FINE;
	return true;
}

struct sqlite_file *sqlite_file_open(const char *path, int64_t patience_ms, const atomic_bool *stop,
				     struct query *query)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	struct sqlite_file *file = xcalloc(1, sizeof *file);
	int code;

	file->path = path;
	file->stop = stop;
	file->patience_ms = patience_ms;
	make_file(path);
	code = sqlite3_open_v2(path, &file->db, flags, NULL);
	if (!code) {
		sqlite3_busy_handler(file->db, on_busy, file);
		code = sqlite3_create_function(file->db, "store_now", 0, SQLITE_UTF8, file,
					       store_now, NULL, NULL);
	}
	if (code)
		fail(file, query, code);
	if (code || !set_up_in_turn(file, query)) {
		sqlite_file_close(file);
		return NULL;
	}
	return file;
}

void sqlite_file_close(struct sqlite_file *file)
{
	if (!file)
		return;
	for (size_t i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(file->prepared[i]);
	sqlite3_close(file->db);
	free(file);
}

static int bind_values(sqlite3_stmt *statement, const char *types, const struct value *values)
{
	static const char *const names[] = {"$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9"};
	int code = SQLITE_OK, place;

	assert(strlen(types) <= sizeof names / sizeof *names);
	for (size_t i = 0; types[i] && !code; i++) {
		const struct rlmd_text *text = &values[i].text;

		if (!(place = sqlite3_bind_parameter_index(statement, names[i])))
			continue;
		if (types[i] == 'i')
			code = sqlite3_bind_int64(statement, place, values[i].integer);
		else if (types[i] == 't')
			code = sqlite3_bind_text64(statement, place, text->bytes, text->size,
						   SQLITE_STATIC, SQLITE_UTF8);
		else
			code = sqlite3_bind_blob64(statement, place, text->bytes, text->size,
						   SQLITE_STATIC);
	}
	return code;
}

static void keep_row(sqlite3_stmt *statement, struct query *query, size_t set)
{
	int columns = sqlite3_column_count(statement);
	struct value *cells = query_add_row(query, set, (size_t)columns);

	for (int i = 0; i < columns; i++) {
		cells[i].is_integer = sqlite3_column_type(statement, i) == SQLITE_INTEGER;
		if (cells[i].is_integer) {
			cells[i].integer = sqlite3_column_int64(statement, i);
		} else {
			const void *bytes = sqlite3_column_blob(statement, i);

			value_set(&cells[i],
				  text_from(bytes, (size_t)sqlite3_column_bytes(statement, i)));
		}
	}
}

static int run_statement(struct sqlite_file *file, size_t index, struct query *query, size_t set)
{
	const char *types = script_types(query->script);
	sqlite3_stmt **statement = &file->prepared[index];
	int code = SQLITE_OK;

	if (!*statement)
		code = sqlite3_prepare_v3(file->db, statements[index].sql, -1,
					  SQLITE_PREPARE_PERSISTENT, statement, NULL);
	if (!code)
		code = bind_values(*statement, types, query->params + set * strlen(types));
	while (!code && (code = sqlite3_step(*statement)) == SQLITE_ROW) {
		if (statements[index].tells)
			keep_row(*statement, query, set);
		code = SQLITE_OK;
	}
	sqlite3_reset(*statement);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static bool run_query(struct sqlite_file *file, struct query *query)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < STATEMENTS && !code; i++)
		if (statements[i].script == query->script)
			for (size_t set = 0; !code && set < (statements[i].each ? query->sets : 1);
			     set++)
				code = run_statement(file, i, query, set);
	return !code || fail(file, query, code);
}

/* Always false. One of several may not be blamed for what it did among others. */
static bool undo(struct sqlite_file *file, struct query_line *line)
{
	struct query *query;

	if (!sqlite3_get_autocommit(file->db))
		ask(file, "ROLLBACK", NULL);
	TAILQ_FOREACH (query, line, entry) {
		query_reset(query);
		if (TAILQ_NEXT(TAILQ_FIRST(line), entry))
			query->fault = STORE_FINE;
	}
	return false;
}

bool sqlite_file_run(struct sqlite_file *file, struct query_line *line)
{
	bool writes = false;
	struct query *query;
	int code;

	TAILQ_FOREACH (query, line, entry)
		writes = writes || script_writes(query->script);
	if ((code = ask(file, writes ? "BEGIN IMMEDIATE" : "BEGIN", NULL))) {
		fail(file, TAILQ_FIRST(line), code);
		return undo(file, line);
	}
	file->now = clock_wall_ms();
	TAILQ_FOREACH (query, line, entry)
		if (!run_query(file, query))
			return undo(file, line);
	if ((code = ask(file, "COMMIT", NULL))) {
		fail(file, TAILQ_FIRST(line), code);
		return undo(file, line);
	}
	return true;
}

int64_t sqlite_file_version(struct sqlite_file *file)
{
	int64_t version = 0;

	ask(file, "PRAGMA data_version", &version);
	return version;
}
