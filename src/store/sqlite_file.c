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
#include "base/file.h"

#define FOR_UPDATE  ""
#define SKIP_LOCKED ""
#define IDENTITY    "INTEGER PRIMARY KEY AUTOINCREMENT"
#define BYTES       "blob"

/* Whether a job has something else where an integer belongs, which SQLite allows. */
#define NO_INTEGERS                                                                                \
	"typeof(state) <> 'integer' OR typeof(number) <> 'integer' OR typeof(place) <> 'integer'"  \
	" OR typeof(not_before) <> 'integer' OR typeof(lease_until) <> 'integer'"                  \
	" OR typeof(cost) <> 'integer' OR typeof(tokens) <> 'integer'"

/* clang-format off */
static const struct statement statements[] = {
#define ONCE   false
#define EACH   true
#define SILENT false
#define TELLS  true
#define SCRIPT(script, access, types)
#define STATEMENT(script, turns, rows, sql) {SCRIPT_##script, turns, rows, sql},
#define NOTIFY(script, rows)
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
	MIGRATIONS = sizeof migrations / sizeof *migrations,
	STATEMENTS = sizeof statements / sizeof *statements,
	APPLICATION = 0x726c6d64, /* "rlmd": whose file it is */
	TELL_MS = 2000,           /* of a lock that is waited for as long as it takes */
	STOP_MS = 1000,           /* within which what goes on is stopped */
	STEPS = 10000,            /* of SQLite's machine between two looks at that */
};

/* Between two looks whether a lock is free. */
static const struct timespec nap = {.tv_nsec = 5 * 1000 * 1000};

struct sqlite_file {
	sqlite3 *db;                        /* owned */
	sqlite3_stmt *prepared[STATEMENTS]; /* owned; NULL until first used */
	struct sqlite_file_options options; /* their pointers are lent */
	char *path;                         /* owned: without a link on the way to the directory */
	int64_t waiting_since;              /* for others' locks; 0: it does not */
	bool reported;                      /* that one holds it */
	enum store_fault fault;             /* the last one */
	int64_t began;                      /* what goes on; of clock_ms() */
	int64_t now;                        /* of the transaction */
};

/* --- the schema ----------------------------------------------------------------------------- */

/* The version that this program makes. */
static int newest_version(void)
{
	return migrations[MIGRATIONS - 1].version;
}

/* Runs what leads from this version (0: an empty database) up to another one. A code of SQLite's.
 */
static int migrate_schema(sqlite3 *db, int64_t from, int64_t to)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < MIGRATIONS && !code; i++)
		if (migrations[i].version > from && migrations[i].version <= to)
			code = sqlite3_exec(db, migrations[i].sql, NULL, NULL, NULL);
	return code;
}

/* Its objects in one order, each as a key, its kind and its name. The tables of ANALYZE are no part
 * of the schema. */
static int list_schema(sqlite3 *db, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(db,
				  "SELECT name || ' ' || type || ' ' || tbl_name || ' ' ||"
				  " coalesce(sql, '') AS entry, type, name FROM sqlite_master"
				  " WHERE name NOT LIKE 'sqlite~_stat%' ESCAPE '~' ORDER BY entry",
				  -1, ret, NULL);
}

/* The next entry; NULL: there are no more. */
static int next_entry(sqlite3_stmt *list, const char **ret)
{
	int code = sqlite3_step(list);

	*ret = code == SQLITE_ROW ? (const char *)sqlite3_column_text(list, 0) : NULL;
	if (code == SQLITE_ROW && !*ret) /* a row of a damaged file */
		return SQLITE_CORRUPT;
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static char *describe(const char *verb, sqlite3_stmt *list)
{
	return xasprintf("%s the %s '%s'", verb, (const char *)sqlite3_column_text(list, 1),
			 (const char *)sqlite3_column_text(list, 2));
}

/* Both in step, up to the first entry that one of them has not. */
static int compare(sqlite3_stmt *theirs, sqlite3_stmt *ours, char **ret_odd)
{
	const char *one, *other;
	int code, order;

	do {
		if ((code = next_entry(theirs, &one)) || (code = next_entry(ours, &other)) ||
		    (!one && !other))
			return code;
		order = !one ? 1 : !other ? -1 : strcmp(one, other);
	} while (!order);
	*ret_odd = order < 0 ? describe("has", theirs) : describe("lacks", ours);
	return SQLITE_OK;
}

/*
 * Whether the database has exactly what the migrations up to this version make: no other table, and
 * no view, trigger or index, which would run what somebody else wrote. `ret_odd` is new, and says
 * the first difference ("has the view 'x'"), or NULL. A code of SQLite's.
 */
static int compare_schema(sqlite3 *db, int64_t version, char **ret_odd)
{
	sqlite3_stmt *theirs = NULL, *ours = NULL;
	sqlite3 *model = NULL;
	int code = sqlite3_open_v2(":memory:", &model, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
				   NULL);

	*ret_odd = NULL;
	if (!code && !(code = migrate_schema(model, 0, version)) &&
	    !(code = list_schema(model, &ours)) && !(code = list_schema(db, &theirs)))
		code = compare(theirs, ours, ret_odd);
	sqlite3_finalize(theirs);
	sqlite3_finalize(ours);
	sqlite3_close(model);
	return code;
}

/* --- asking --------------------------------------------------------------------------------- */

/* The fault of a code of SQLite's. SQLite tells the disk's error of a statement; that of a COMMIT
 * is in errno only. */
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
	case STORE_MISSING:
	case STORE_FOREIGN:
		break;
	}
	return "";
}

static bool fail(struct sqlite_file *file, struct query *query, int code)
{
	enum store_fault fault = fault_of(file, code);

	file->fault = fault;
	return query_fail(query, fault, "the store %s: %s (%s)%s", file->options.path,
			  query_fault_meaning(fault), sqlite3_errstr(code), remedy_of(fault));
}

/* Somebody holds a lock: waits for a moment. False: for no longer. */
static bool wait_for_others(struct sqlite_file *file)
{
	const struct sqlite_file_options *options = &file->options;
	int64_t now = clock_ms();

	if (!file->waiting_since)
		file->waiting_since = now;
	if (*options->stop ||
	    (options->patience_ms && now - file->waiting_since >= options->patience_ms))
		return false;
	if (!options->patience_ms && !file->reported && now - file->waiting_since >= TELL_MS) {
		file->reported = true;
		options->held(options->owner, true);
	}
	nanosleep(&nap, NULL);
	return true;
}

/* The lock is free, or is not waited for any more. */
static void end_waiting(struct sqlite_file *file)
{
	if (file->reported)
		file->options.held(file->options.owner, false);
	file->reported = false;
	file->waiting_since = 0;
}

static int on_busy(void *arg, int times)
{
	(void)times;
	return wait_for_others(arg);
}

/* SQLite asks whether to give up; a view can have rows without an end. */
static int on_steps(void *arg)
{
	const struct sqlite_file *file = arg;

	return *file->options.stop && clock_ms() - file->began >= STOP_MS;
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

static bool missing(struct sqlite_file *file, struct query *query)
{
	return query_fail(query, STORE_MISSING,
			  "there is no store at %s; 'rlmd batch -o RESULTS' makes RESULTS.store",
			  file->options.path);
}

/* Whether it is a store that we know, or to become one; its version. Its owner is read last:
 * another process may make the store meanwhile, which says whose the tables are as it makes them.
 */
static bool check(struct sqlite_file *file, struct query *query, int64_t *ret_version)
{
	int newest = newest_version(), code;
	int64_t owner = 0, version = 0, tables = 0;

	if ((code = ask(file, "PRAGMA user_version", &version)) ||
	    (code = ask(file, "SELECT count(*) FROM sqlite_master", &tables)) ||
	    (code = ask(file, "PRAGMA application_id", &owner)))
		return fail(file, query, code);
	if (owner != APPLICATION && (tables || version))
		return query_fail(query, STORE_USAGE,
				  "%s is a database of another program; name another file",
				  file->options.path);
	if (owner != APPLICATION && file->options.existing)
		return missing(file, query);
	if (version > newest)
		return query_fail(
			query, STORE_NEWER,
			"the store %s has version %lld of its schema, and this rlmd knows "
			"version %d; use the rlmd that made it, or a later one",
			file->options.path, (long long)version, newest);
	*ret_version = version;
	return true;
}

/* Whether it has our tables, and nothing else that would be run or read in their place. */
static bool check_schema(struct sqlite_file *file, struct query *query, int64_t version)
{
	auto_free char *odd = NULL;
	int code = compare_schema(file->db, version, &odd);

	if (code)
		return fail(file, query, code);
	return !odd || query_fail(query, STORE_FOREIGN,
				  "the store %s %s, unlike any that rlmd makes: put a copy in its "
				  "place, or begin with another file",
				  file->options.path, odd);
}

/* In a transaction that writes: nobody else does the same. */
static bool migrate(struct sqlite_file *file, struct query *query)
{
	int newest = newest_version(), code;
	auto_free char *pragmas = NULL;
	int64_t version;

	if (!check(file, query, &version) || !check_schema(file, query, version))
		return false;
	if (version == newest)
		return true;
	if ((code = migrate_schema(file->db, version, newest)))
		return fail(file, query, code);
	pragmas = xasprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION,
			    newest);
	code = sqlite3_exec(file->db, pragmas, NULL, NULL, NULL);
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

/* For each connection anew; but WAL stays with the file, which is therefore looked at before. */
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
	bool done;

	while (!(done = set_up(file, query)) && query->fault == STORE_LOCKED)
		if (!wait_for_others(file))
			break;
	end_waiting(file);
	if (done)
		query->fault = STORE_FINE;
	return done;
}

/* --- its files ------------------------------------------------------------------------ */

/*
 * None of them is opened here: closing one would take away the locks that SQLite has on it in this
 * process; but for the one that is made, which SQLite has not seen.
 */

/* Whether nobody but us and root can write the file and its journals, as far as there are any, and
 * none is a link. RLMD_ERROR_USAGE says what to do. */
static bool is_ours(const char *path, bool *ret_there, struct rlmd_error *err)
{
	static const char *const ends[] = {"-wal", "-shm", "-journal"};

	if (!file_name_is_ours(path, ret_there, RLMD_ERROR_USAGE, err))
		return false;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		auto_free char *name = xasprintf("%s%s", path, ends[i]);
		bool there;

		if (!file_name_is_ours(name, &there, RLMD_ERROR_USAGE, err))
			return false;
	}
	return true;
}

/* Makes the file, empty, for its owner only, unless there is one: SQLite's own would be for all. */
static void make(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
}

/* --- opening ---------------------------------------------------------------------------- */

static bool open_database(struct sqlite_file *file, struct query *query)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	int code = sqlite3_open_v2(file->path, &file->db, flags, NULL);

	if (code)
		return fail(file, query, code);
	sqlite3_busy_handler(file->db, on_busy, file);
	sqlite3_progress_handler(file->db, STEPS, on_steps, file);
	code = sqlite3_create_function(file->db, "store_now", 0, SQLITE_UTF8, file, store_now, NULL,
				       NULL);
	return !code || fail(file, query, code);
}

static bool check_files(struct sqlite_file *file, struct query *query, bool *ret_there)
{
	struct rlmd_error err;

	return is_ours(file->path, ret_there, &err) ||
	       query_fail(query, STORE_FOREIGN, "the store: %s", err.text);
}

/* Its files are looked at twice: what SQLite found beside it was laid there before it looked. */
static bool open_file(struct sqlite_file *file, struct query *query)
{
	bool there;

	if (!check_files(file, query, &there))
		return false;
	if (!there && file->options.existing)
		return missing(file, query);
	if (!there)
		make(file->path);
	return open_database(file, query) && set_up_in_turn(file, query) &&
	       check_files(file, query, &there);
}

struct sqlite_file *sqlite_file_open(const struct sqlite_file_options *options, struct query *query)
{
	struct sqlite_file *file = xcalloc(1, sizeof *file);

	file->options = *options;
	file->path = file_real_path(options->path); /* SQLite is told to follow no link */
	if (open_file(file, query))
		return file;
	sqlite_file_close(file);
	return NULL;
}

void sqlite_file_close(struct sqlite_file *file)
{
	if (!file)
		return;
	for (size_t i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(file->prepared[i]);
	sqlite3_close(file->db);
	free(file->path);
	free(file);
}

static int bind_values(sqlite3_stmt *statement, const char *types, const struct value *values)
{
	static const char *const names[] = {"$1", "$2", "$3", "$4", "$5",
					    "$6", "$7", "$8", "$9", "$10"};
	int code = SQLITE_OK, index;

	assert(strlen(types) <= sizeof names / sizeof *names);
	for (size_t i = 0; types[i] && !code; i++) {
		const struct rlmd_text *text = &values[i].text;

		if (!(index = sqlite3_bind_parameter_index(statement, names[i])))
			continue;
		if (types[i] == 'i')
			code = sqlite3_bind_int64(statement, index, values[i].integer);
		else if (types[i] == 't')
			code = sqlite3_bind_text64(statement, index, text->bytes, text->size,
						   SQLITE_STATIC, SQLITE_UTF8);
		else
			code = sqlite3_bind_blob64(statement, index, text->bytes, text->size,
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

			query_set_value(&cells[i], text_from(bytes, (size_t)sqlite3_column_bytes(
									    statement, i)));
		}
	}
}

static int run_statement(struct sqlite_file *file, size_t index, struct query *query, size_t set)
{
	const char *types = query_script_types(query->script);
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

static bool run_once(struct sqlite_file *file, struct query_line *line)
{
	bool writes = false;
	struct query *query;
	int code;

	file->began = clock_ms();
	file->fault = STORE_FINE;
	TAILQ_FOREACH (query, line, entry) {
		query->fault = STORE_FINE;
		writes = writes || query_script_writes(query->script);
	}
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

bool sqlite_file_run(struct sqlite_file *file, struct query_line *line)
{
	bool done;

	do
		done = run_once(file, line);
	while (!done && file->fault == STORE_LOCKED && wait_for_others(file));
	end_waiting(file);
	return done;
}

int64_t sqlite_file_version(struct sqlite_file *file)
{
	int64_t version = 0;

	ask(file, "PRAGMA data_version", &version);
	end_waiting(file);
	return version;
}
