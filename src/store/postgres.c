/*
 * A store in a database of PostgreSQL, asked from the event loop.
 *
 * One connection, in pipeline mode: an operation does not wait for the answer of the one before it.
 * Where the connection breaks, what was not answered is asked for again on the next one, in order:
 * whether it was done, nobody knows, and every script may run twice.
 *
 * The tables stand in a schema of their own, "rlmd", which is made or brought up to date on each
 * connection, under an advisory lock.
 */
#include <assert.h>
#include <endian.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/timer.h"
#include "store/database.h"
#include "store/libpq.h"

/* --- what is said to a server, and what it answers ------------------------------------------ */

#define FOR_UPDATE  " FOR NO KEY UPDATE"
#define SKIP_LOCKED " FOR NO KEY UPDATE SKIP LOCKED"
#define NO_INTEGERS "FALSE"
#define IDENTITY    "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
#define BYTES       "bytea"

/* clang-format off */
static const struct statement statements[] = {
#define ONCE   false
#define EACH   true
#define SILENT false
#define TELLS  true
#define SCRIPT(script, access, types)
#define STATEMENT(script, turns, rows, sql) {SCRIPT_##script, turns, rows, sql},
#define ALWAYS ""
#define LAST \
	" FROM batch WHERE id = (SELECT batch FROM job WHERE id = $1) AND finished >= jobs"
#define NOTIFY(script, rows) {SCRIPT_##script, ONCE, SILENT, "SELECT pg_notify('rlmd', '')" rows},
#include "store/scripts.def"
#undef SCRIPT
#undef STATEMENT
#undef NOTIFY
};

static const struct {
	int version;
	const char *sql;
} migrations[] = {
	/* The time in which a transaction began: the same for all of its statements. */
	{1, "CREATE FUNCTION store_now() RETURNS bigint LANGUAGE sql STABLE AS"
	    " 'SELECT CAST(extract(epoch FROM now()) * 1000 AS bigint)'"},
#define MIGRATION(version, sql) {version, sql},
#include "store/schema.def"
#undef MIGRATION
};
/* clang-format on */

enum {
	STATEMENTS = sizeof statements / sizeof *statements,
	MIGRATIONS = sizeof migrations / sizeof *migrations,
	INT8 = 20, /* types as PostgreSQL numbers them */
	BYTEA = 17,
	TEXT = 25,
	PARAMS = 10,
};

#define LOCK "7812460211650027364" /* any number; the same for all who migrate */
/* SQLSTATEs of our own */
#define NEWER   "RLMD1"
#define FOREIGN "RLMD2"
#define MISSING "RLMD3"

/*
 * Of a DO block: ends it where the schema, or anything in it, is of a role that is neither ours nor
 * one that we were made a member of; by whom counts, as a role can make others members of itself. A
 * superuser is treated as a member of every role, and so has to have been made one, too. There are
 * no triggers, and nothing but tables where a script reads one, as a view can do anything.
 */
static const char check_owners[] =
	" WITH RECURSIVE mine (id) AS (SELECT oid FROM pg_roles WHERE rolname = current_user"
	" UNION SELECT roleid FROM mine JOIN pg_auth_members ON member = mine.id"
	" JOIN pg_roles AS giver ON giver.oid = grantor WHERE giver.rolsuper OR giver.rolcreaterole"
	" OR giver.rolname = current_user) SELECT array_agg(id) INTO ours FROM mine;"
	" SELECT format('%s belongs to the role %I', what, pg_get_userbyid(owner)) INTO odd FROM ("
	"SELECT 'the schema rlmd' AS what, nspowner AS owner FROM pg_namespace WHERE oid = room"
	" UNION ALL SELECT 'rlmd.' || relname, relowner FROM pg_class WHERE relnamespace = room"
	" UNION ALL SELECT 'the function rlmd.' || proname, proowner FROM pg_proc"
	" WHERE pronamespace = room"
	" UNION ALL SELECT 'the operator rlmd.' || oprname, oprowner FROM pg_operator"
	" WHERE oprnamespace = room"
	" UNION ALL SELECT 'the type rlmd.' || typname, typowner FROM pg_type"
	" WHERE typnamespace = room) AS things WHERE owner <> ALL (ours) LIMIT 1;"
	" IF odd IS NOT NULL THEN RAISE EXCEPTION '%, of which % was not made a member: give it"
	" another owner, or drop it', odd, current_user USING ERRCODE = '" FOREIGN "'; END IF;"
	" SELECT 'the trigger ' || tgname INTO odd FROM pg_trigger JOIN pg_class ON tgrelid ="
	" pg_class.oid WHERE relnamespace = room LIMIT 1;"
	" IF odd IS NULL THEN SELECT 'rlmd.' || relname || ', which is no table,' INTO odd"
	" FROM pg_class WHERE relnamespace = room AND relkind NOT IN ('r', 'i', 'S', 't', 'c')"
	" LIMIT 1; END IF;"
	" IF odd IS NOT NULL THEN RAISE EXCEPTION '% is nothing that rlmd makes: drop it', odd"
	" USING ERRCODE = '" FOREIGN "'; END IF;";

static const struct libpq *libpq; /* set once a store was opened */

static void on_notice(void *owner, const char *message)
{
	(void)owner;
	(void)message;
}

/* Begins to connect; NULL only for want of memory. The caller's: PQfinish(). */
static PGconn *open_connection(const char *address)
{
	/* The URI comes after these: where it names one of them, it counts. */
	static const char *const keys[] = {"application_name",
					   "keepalives_idle",
					   "keepalives_interval",
					   "keepalives_count",
					   "tcp_user_timeout",
					   "dbname",
					   NULL};
	const char *values[] = {"rlmd", "10", "5", "3", "30000", address, NULL};
	PGconn *conn;

	conn = libpq->PQconnectStartParams(keys, values, 1);
	if (conn)
		libpq->PQsetNoticeProcessor(conn, on_notice, NULL);
	return conn;
}

/* The error of libpq about a connection, without a password that libpq took for something else. */
static const char *complaint_of(const PGconn *conn, const char *address)
{
	PQconninfoOption *parts = address_has_password(address)
					  ? libpq->PQconninfoParse(address, NULL)
					  : NULL;
	bool is_read = parts || !address_has_password(address);

	libpq->PQconninfoFree(parts);
	return is_read ? libpq->PQerrorMessage(conn)
		       : "invalid address; what is special in a password is written as %XX";
}

/* Why a connection could not be made: AWAY, or USAGE where the server refuses us. libpq has no
 * SQLSTATE of it, but only words. */
static enum store_fault why_not(const PGconn *conn)
{
	static const char *const passing[] = {"starting up", "shutting down", "recovery",
					      "too many"};
	const char *message = libpq->PQerrorMessage(conn);

	if (!strstr(message, "FATAL:"))
		return strstr(message, "invalid") ? STORE_USAGE : STORE_AWAY;
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		if (strstr(message, passing[i]))
			return STORE_AWAY;
	return STORE_USAGE;
}

/* Of a DO block: what is missing of the schema. */
static void add_migrations(struct evbuffer *out)
{
	int newest = migrations[MIGRATIONS - 1].version;

	buffer_add_printf(out,
			  "IF found > %d THEN RAISE EXCEPTION '%%', found USING ERRCODE = '%s';"
			  " END IF;",
			  newest, NEWER);
	for (size_t i = 0; i < MIGRATIONS; i++)
		buffer_add_printf(out, "IF found < %d THEN EXECUTE $sql$%s$sql$; END IF;",
				  migrations[i].version, migrations[i].sql);
	buffer_add_printf(out, "IF found < %d THEN INSERT INTO rlmd.version VALUES (%d); END IF;",
			  newest, newest);
}

/*
 * Ends the back end of the connection before this one, by the `key` that both have: what was sent
 * to it is done by now, or never will be. Then sends what brings the schema up to date, and waits
 * no longer than this for others' locks, now and later; one answer comes for all of it. `existing`:
 * it has to be there.
 *
 * One simple query is one transaction, and the lock is its. Names are looked up in pg_catalog alone
 * until the schema is known to be ours, and last among temporary objects: nothing of it is read or
 * run before.
 */
static bool send_setup(PGconn *conn, int64_t key, int64_t patience_ms, bool existing)
{
	auto_evbuffer struct evbuffer *sql = buffer_new();
	auto_free char *text = NULL;

	buffer_add_printf(
		sql,
		"SET search_path = pg_catalog, pg_temp; SET client_min_messages = warning;"
		" SET client_encoding = 'UTF8'; SET lock_timeout = %lld;"
		" SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
		" WHERE locktype = 'advisory' AND objsubid = 1 AND granted"
		" AND (classid::bigint << 32 | objid::bigint) = %" PRId64
		" AND datname = current_database() AND usename = current_user;"
		" SELECT pg_advisory_lock(%" PRId64 "), pg_advisory_xact_lock(" LOCK ");"
		" DO $do$ DECLARE found bigint; room oid; ours oid[]; odd text; BEGIN"
		" room := to_regnamespace('rlmd');"
		" IF %s AND NOT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = room"
		" AND relname = 'version') THEN RAISE EXCEPTION"
		" 'there is no store in this database; ''rlmd batch --store'' makes one'"
		" USING ERRCODE = '" MISSING "'; END IF;"
		" IF room IS NULL THEN CREATE SCHEMA rlmd; ELSE ",
		(long long)patience_ms, key, key, existing ? "TRUE" : "FALSE");
	buffer_add(sql, check_owners, strlen(check_owners));
	buffer_add_printf(
		sql, " EXECUTE format('SET LOCAL ROLE %%I', (SELECT rolname FROM pg_roles"
		     " JOIN pg_namespace ON nspowner = pg_roles.oid"
		     " WHERE pg_namespace.oid = room)); END IF;"
		     " IF current_setting('synchronous_commit') = 'off' THEN"
		     " SET synchronous_commit = on; END IF; SET LOCAL search_path = rlmd, pg_temp;"
		     " CREATE TABLE IF NOT EXISTS rlmd.version (version bigint NOT NULL);"
		     " SELECT coalesce(max(version), 0) INTO found FROM rlmd.version;");
	add_migrations(sql);
	buffer_add_printf(sql, " END $do$; SET search_path = rlmd, pg_temp; LISTEN rlmd");
	text = text_drain(sql, NULL);
	return libpq->PQsendQuery(conn, text);
}

static unsigned oid_of(char type)
{
	return type == 'i' ? INT8 : type == 't' ? TEXT : BYTEA;
}

/* In pipeline mode: prepares all statements, each under the name of its place in the table. */
static bool send_statements(PGconn *conn)
{
	char name[16];
	Oid oids[PARAMS];

	for (size_t i = 0; i < STATEMENTS; i++) {
		const char *types = query_script_types(statements[i].script);
		size_t width = query_width(statements[i].sql);

		assert(width <= PARAMS);
		for (size_t j = 0; j < width; j++)
			oids[j] = oid_of(types[j]);
		snprintf(name, sizeof name, "s%zu", i);
		if (!libpq->PQsendPrepare(conn, name, statements[i].sql, (int)width, oids))
			return false;
	}
	return libpq->PQpipelineSync(conn);
}

/* How many answers come for a query, one for each statement and set, and which the next is. */
struct postgres_turn {
	size_t statement, set;
	bool tells;
};

/* The first statement of the script from `statement` on. */
static bool find(const struct query *query, size_t statement, struct postgres_turn *ret)
{
	while (statement < STATEMENTS && statements[statement].script != query->script)
		statement++;
	if (statement == STATEMENTS)
		return false;
	*ret = (struct postgres_turn){statement, 0, statements[statement].tells};
	return true;
}

static bool first_turn(const struct query *query, struct postgres_turn *ret)
{
	return find(query, 0, ret);
}

/* The turn after this one; false: there are no more. */
static bool next_turn(const struct query *query, struct postgres_turn *turn)
{
	if (statements[turn->statement].each && turn->set + 1 < query->sets) {
		turn->set++;
		return true;
	}
	return find(query, turn->statement + 1, turn);
}

/* Integers go as texts and come as eight bytes; all else goes and comes as it is. */
static bool send_turn(PGconn *conn, const struct query *query, const struct postgres_turn *turn)
{
	const char *types = query_script_types(query->script);
	const struct value *set = query->params + turn->set * strlen(types);
	size_t width = query_width(statements[turn->statement].sql);
	const char *values[PARAMS];
	char name[16];
	uint64_t integers[PARAMS];
	int lengths[PARAMS], formats[PARAMS];

	for (size_t i = 0; i < width; i++) {
		formats[i] = 1;
		if (types[i] == 'i') {
			integers[i] = htobe64((uint64_t)set[i].integer);
			values[i] = (const char *)&integers[i];
			lengths[i] = sizeof integers[i];
		} else {
			values[i] = set[i].text.bytes;
			lengths[i] = (int)set[i].text.size;
		}
	}
	snprintf(name, sizeof name, "s%zu", turn->statement);
	return libpq->PQsendQueryPrepared(conn, name, (int)width, values, lengths, formats, 1);
}

/* In pipeline mode: a query's statements. */
static bool send_query(PGconn *conn, const struct query *query)
{
	struct postgres_turn turn;

	for (bool more = first_turn(query, &turn); more; more = next_turn(query, &turn))
		if (!send_turn(conn, query, &turn))
			return false;
	return libpq->PQpipelineSync(conn);
}

static void keep_rows(struct query *query, size_t set, const PGresult *answer)
{
	int columns = libpq->PQnfields(answer);

	for (int row = 0; row < libpq->PQntuples(answer); row++) {
		struct value *cells = query_add_row(query, set, (size_t)columns);

		for (int i = 0; i < columns; i++) {
			const char *bytes = libpq->PQgetvalue(answer, row, i);
			size_t size = (size_t)libpq->PQgetlength(answer, row, i);
			uint64_t integer;

			cells[i].is_integer = libpq->PQftype(answer, i) == INT8;
			if (cells[i].is_integer && size == sizeof integer) {
				memcpy(&integer, bytes, sizeof integer);
				cells[i].integer = (int64_t)be64toh(integer);
			} else {
				query_set_value(&cells[i], text_from(bytes, size));
			}
		}
	}
}

/* By SQLSTATE; a class is a prefix. */
static const struct {
	const char *state;
	enum store_fault fault;
} faults[] = {
	{NEWER, STORE_NEWER},
	{FOREIGN, STORE_FOREIGN},
	{MISSING, STORE_MISSING},
	{"40001", STORE_FINE}, /* could not be serialized */
	{"40P01", STORE_FINE}, /* deadlock */
	{"55P03", STORE_LOCKED},
	{"53100", STORE_FULL},
	{"53", STORE_AWAY},  /* too many connections, no memory */
	{"57P", STORE_AWAY}, /* it shuts down, or starts */
	{"08", STORE_AWAY},
	{"25006", STORE_AWAY}, /* read only: a standby, until it is promoted */
	{"XX001", STORE_CORRUPT},
	{"XX002", STORE_CORRUPT},
	{"28", STORE_USAGE},    /* who we are */
	{"3D", STORE_USAGE},    /* no such database */
	{"42501", STORE_USAGE}, /* not allowed */
};

/* The fault of an answer that is an error; STORE_FINE: the query can be sent again at once. */
static enum store_fault fault_of(const PGresult *answer)
{
	const char *state = libpq->PQresultErrorField(answer, PG_DIAG_SQLSTATE);

	for (size_t i = 0; state && i < sizeof faults / sizeof *faults; i++)
		if (!strncmp(state, faults[i].state, strlen(faults[i].state)))
			return faults[i].fault;
	return STORE_FAILED;
}

static const char *remedy_of(enum store_fault fault)
{
	switch (fault) {
	case STORE_AWAY:
		return "; see whether it runs, and whether the address is right";
	case STORE_LOCKED:
		return "; end the session that holds it, or try again later";
	case STORE_NEWER:
		return "; use the rlmd that changed it, or a later one";
	case STORE_FULL:
		return "; make room on the server";
	case STORE_USAGE:
		return "; see the user, the password and the database in the address";
	case STORE_FINE:
	case STORE_REFUSED:
	case STORE_CORRUPT:
	case STORE_MISSING:
	case STORE_FOREIGN:
	case STORE_FAILED:
		break;
	}
	return "";
}

static void fail(struct query *query, enum store_fault fault, const char *message)
{
	auto_free char *line = text_copy(text_trim(text_of(message)));

	query_fail(query, fault, "PostgreSQL: %s (%s)%s", query_fault_meaning(fault),
		   *line ? line : "no answer", remedy_of(fault));
}

/* --- the connection ------------------------------------------------------------------------- */

enum {
	IN_FLIGHT = 64,        /* operations that the server has and has not answered */
	ANSWER_MS = 30 * 1000, /* for a connection and its schema */
	LOCK_MS = 10 * 1000,   /* after which a lock that others hold is told, and asked for anew */
	RETRY_MS = 100,        /* until the next connection is tried, twice as long each time */
	RETRY_MAX_MS = 5000,
};

/*
 *   CONNECT --> MIGRATE --> PREPARE --> READY
 *      ^           |           |          |
 *      +-- AWAY <--+-----------+----------+   the connection broke
 *            |
 *            +--> DEAD   it was never open, or what stands there is nothing for us
 */
enum postgres_state { CONNECT, MIGRATE, PREPARE, READY, AWAY, DEAD };

struct postgres {
	struct event_base *base; /* lent */
	char *address;           /* owned */
	struct store_options options;
	int64_t key; /* random; the lock of this number is held by its connection */
	enum postgres_state state;
	bool was_open;
	bool away_reported; /* and not yet that it came back */
	bool held_reported; /* and not yet that it is free */
	int64_t retry_ms;

	PGconn *conn;                 /* owned, or NULL */
	struct event *input, *output; /* owned, or NULL: of the connection's socket */
	struct timer *timer;          /* owned, or NULL: the next try, or the end of this one */
	struct timer *post;           /* owned: there is something to send or to tell */

	struct query_line waiting, sent, ended; /* to send; to be answered; to tell */
	size_t in_flight;                       /* in `sent` */
	struct postgres_turn turn;              /* of the first of `sent`: whose answer is next */
	bool again; /* ... which has failed, and is to be sent anew; its end may come later */
	struct query failure;  /* what is wrong with a connection, or why it is DEAD */
	bool news[STORE_NEWS]; /* to tell */
};

static void start(struct postgres *);
static void on_input(evutil_socket_t, short, void *);

static void tell(struct postgres *pg, enum store_news news)
{
	pg->news[news] = pg->options.news;
	timer_post(pg->post);
}

static int64_t patience_of(const struct postgres *pg)
{
	return pg->options.patience_ms ? pg->options.patience_ms : LOCK_MS;
}

/* Others hold a lock, which is waited for as long as it takes. */
static bool is_held(struct postgres *pg, enum store_fault fault)
{
	if (fault != STORE_LOCKED || pg->options.patience_ms)
		return false;
	if (!pg->held_reported)
		tell(pg, STORE_HELD);
	pg->held_reported = true;
	return true;
}

static void note_free(struct postgres *pg)
{
	if (pg->held_reported)
		tell(pg, STORE_FREED);
	pg->held_reported = false;
}

static void finish(struct postgres *pg)
{
	if (pg->input)
		event_free(pg->input);
	if (pg->output)
		event_free(pg->output);
	pg->input = pg->output = NULL;
	libpq->PQfinish(pg->conn);
	pg->conn = NULL;
	timer_free(pg->timer);
	pg->timer = NULL;
}

static void end(struct postgres *pg, struct query *query)
{
	TAILQ_INSERT_TAIL(&pg->ended, query, entry);
	timer_post(pg->post);
}

/* All that waits, and all that comes later, ends with `failure`. */
static void die(struct postgres *pg)
{
	finish(pg);
	pg->state = DEAD;
	timer_post(pg->post);
}

static void on_retry(void *owner)
{
	struct postgres *pg = owner;

	timer_free(pg->timer);
	pg->timer = NULL;
	start(pg);
}

/* Whether a store that was open may be so again. */
static bool passes(enum store_fault fault)
{
	return fault != STORE_NEWER && fault != STORE_CORRUPT && fault != STORE_USAGE;
}

/* The connection is of no use any more. Queries that were sent are asked again, in their order. */
static void lose(struct postgres *pg)
{
	struct query *query;
	bool held;

	while ((query = TAILQ_LAST(&pg->sent, query_line))) {
		TAILQ_REMOVE(&pg->sent, query, entry);
		TAILQ_INSERT_HEAD(&pg->waiting, query, entry);
		query_reset(query);
		query->fault = STORE_FINE;
	}
	pg->in_flight = 0;
	pg->again = false;
	if (!pg->failure.fault)
		fail(&pg->failure, pg->was_open ? STORE_AWAY : why_not(pg->conn),
		     complaint_of(pg->conn, pg->address));
	held = is_held(pg, pg->failure.fault);
	if (!held && (!pg->was_open || !passes(pg->failure.fault))) {
		die(pg);
		return;
	}
	finish(pg);
	pg->failure.fault = STORE_FINE;
	pg->state = AWAY;
	if (!held && !pg->away_reported)
		tell(pg, STORE_WENT_AWAY);
	pg->away_reported = pg->away_reported || !held;
	pg->timer = timer_after(pg->base, pg->retry_ms, on_retry, pg);
	pg->retry_ms = 2 * pg->retry_ms < RETRY_MAX_MS ? 2 * pg->retry_ms : RETRY_MAX_MS;
}

static void on_late(void *owner)
{
	lose(owner);
}

/* Waits for the socket, which may be another one after each step of connecting. */
static void watch(struct postgres *pg, bool input, bool output)
{
	int fd = libpq->PQsocket(pg->conn);

	if (pg->input)
		event_free(pg->input);
	if (pg->output)
		event_free(pg->output);
	pg->input = loop_event(pg->base, fd, EV_READ | EV_PERSIST, on_input, pg);
	pg->output = loop_event(pg->base, fd, EV_WRITE, on_input, pg);
	if (input)
		loop_add(pg->input, NULL);
	if (output)
		loop_add(pg->output, NULL);
}

/* False: the connection is lost. */
static bool flush(struct postgres *pg)
{
	int left = libpq->PQflush(pg->conn);

	if (left > 0)
		loop_add(pg->output, NULL);
	if (left < 0)
		lose(pg);
	return left >= 0;
}

static void connect_on(struct postgres *pg)
{
	switch (libpq->PQconnectPoll(pg->conn)) {
	case PGRES_POLLING_READING:
		watch(pg, true, false);
		break;
	case PGRES_POLLING_WRITING:
		watch(pg, false, true);
		break;
	case PGRES_POLLING_OK:
		watch(pg, true, false);
		pg->state = MIGRATE;
		if (libpq->PQsetnonblocking(pg->conn, 1) ||
		    !send_setup(pg->conn, pg->key, patience_of(pg),
				pg->options.existing && !pg->was_open))
			lose(pg);
		else
			flush(pg);
		break;
	case PGRES_POLLING_FAILED:
	case PGRES_POLLING_ACTIVE:
		lose(pg);
		break;
	}
}

static void start(struct postgres *pg)
{
	pg->state = CONNECT;
	pg->conn = open_connection(pg->address);
	pg->timer = timer_after(pg->base, ANSWER_MS, on_late, pg);
	if (!pg->conn || libpq->PQstatus(pg->conn) == CONNECTION_BAD)
		lose(pg);
	else
		watch(pg, false, true);
}

/* The next answer that is there; its end and others' ends count as none. */
static PGresult *answer(struct postgres *pg)
{
	PGresult *answer = NULL;

	for (int ends = 0; !answer && ends < 2 && !libpq->PQisBusy(pg->conn); ends++)
		answer = libpq->PQgetResult(pg->conn);
	return answer;
}

static void note_failure(struct postgres *pg, struct query *query, const PGresult *answer)
{
	if (libpq->PQresultStatus(answer) == PGRES_FATAL_ERROR && !query->fault) {
		fail(query, fault_of(answer), libpq->PQresultErrorMessage(answer));
		if (query != &pg->failure && is_held(pg, query->fault))
			query->fault = STORE_FINE;
		if (!query->fault) /* at once is later enough, but not on this connection */
			query->fault = query == &pg->failure ? STORE_AWAY : STORE_FINE;
	}
}

/* Answers to what sets the schema up: to all of them, then none. */
static void migrate_on(struct postgres *pg)
{
	while (!libpq->PQisBusy(pg->conn)) {
		PGresult *one = libpq->PQgetResult(pg->conn);

		if (!one) {
			if (pg->failure.fault || !libpq->PQenterPipelineMode(pg->conn) ||
			    !send_statements(pg->conn)) {
				lose(pg);
				return;
			}
			pg->state = PREPARE;
			flush(pg);
			return;
		}
		note_failure(pg, &pg->failure, one);
		libpq->PQclear(one);
	}
}

static void send_waiting(struct postgres *pg)
{
	struct query *query;

	while (pg->in_flight < IN_FLIGHT && (query = TAILQ_FIRST(&pg->waiting))) {
		TAILQ_REMOVE(&pg->waiting, query, entry);
		if (query->fault || query->script == SCRIPT_OPEN) {
			end(pg, query);
			continue;
		}
		TAILQ_INSERT_TAIL(&pg->sent, query, entry);
		if (!pg->in_flight++)
			first_turn(query, &pg->turn);
		if (!send_query(pg->conn, query)) {
			lose(pg);
			return;
		}
	}
	flush(pg);
}

static void prepare_on(struct postgres *pg)
{
	PGresult *one;

	while (pg->state == PREPARE && (one = answer(pg))) {
		note_failure(pg, &pg->failure, one);
		if (libpq->PQresultStatus(one) == PGRES_PIPELINE_SYNC)
			pg->state = READY;
		libpq->PQclear(one);
	}
	if (pg->failure.fault) {
		lose(pg);
	} else if (pg->state == READY) {
		timer_free(pg->timer);
		pg->timer = NULL;
		pg->was_open = true;
		pg->retry_ms = RETRY_MS;
		if (pg->away_reported) {
			tell(pg, STORE_CAME_BACK);
			tell(pg, STORE_CHANGED);
		}
		pg->away_reported = false;
		note_free(pg);
		send_waiting(pg);
	}
}

/* All of a query is answered; `again`: it is to be sent once more. */
static void take_answered(struct postgres *pg, bool again)
{
	struct query *query = TAILQ_FIRST(&pg->sent);

	TAILQ_REMOVE(&pg->sent, query, entry);
	pg->in_flight--;
	if (again) {
		query_reset(query);
		TAILQ_INSERT_HEAD(&pg->waiting, query, entry);
	} else {
		end(pg, query);
	}
	if (TAILQ_FIRST(&pg->sent))
		first_turn(TAILQ_FIRST(&pg->sent), &pg->turn);
}

/* Notifications of other nodes: those behind an answer are there when that has been taken. */
static void hear(struct postgres *pg)
{
	PGnotify *notice;

	while ((notice = libpq->PQnotifies(pg->conn))) {
		if (notice->be_pid != libpq->PQbackendPID(pg->conn))
			tell(pg, STORE_CHANGED);
		libpq->PQfreemem(notice);
	}
}

/* Each statement has one answer, and behind a query's last one comes the mark of its end. */
static void take_answers(struct postgres *pg)
{
	bool away = false;
	PGresult *one;

	while (!away && TAILQ_FIRST(&pg->sent) && (one = answer(pg))) {
		struct query *query = TAILQ_FIRST(&pg->sent);
		ExecStatusType status = libpq->PQresultStatus(one);

		if (status == PGRES_PIPELINE_SYNC) {
			away = query->fault == STORE_AWAY;
			if (!away)
				take_answered(pg, pg->again);
			if (!away && !pg->again)
				note_free(pg);
			pg->again = false;
		} else {
			if (status == PGRES_TUPLES_OK && pg->turn.tells)
				keep_rows(query, pg->turn.set, one);
			if (status == PGRES_FATAL_ERROR)
				pg->again = pg->again || !fault_of(one) ||
					    is_held(pg, fault_of(one));
			note_failure(pg, query, one);
			next_turn(query, &pg->turn);
		}
		libpq->PQclear(one);
	}
	hear(pg);
	if (away || libpq->PQstatus(pg->conn) == CONNECTION_BAD)
		lose(pg);
	else
		send_waiting(pg);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
	struct postgres *pg = arg;

	(void)fd;
	if (pg->state == CONNECT) {
		connect_on(pg);
		return;
	}
	if ((what & EV_READ) && !libpq->PQconsumeInput(pg->conn)) {
		lose(pg);
		return;
	}
	if (!flush(pg))
		return;
	if (pg->state == MIGRATE)
		migrate_on(pg);
	else if (pg->state == PREPARE)
		prepare_on(pg);
	else
		take_answers(pg);
}

/* A callback may free the store: one is made at each turn, as the last thing. */
static void on_post(void *arg)
{
	struct postgres *pg = arg;
	struct query *query;

	if (pg->state == READY)
		send_waiting(pg);
	while (pg->state == DEAD && (query = TAILQ_FIRST(&pg->waiting))) {
		TAILQ_REMOVE(&pg->waiting, query, entry);
		if (!query->fault) {
			query->fault = pg->failure.fault;
			query->error = pg->failure.error;
		}
		TAILQ_INSERT_TAIL(&pg->ended, query, entry);
	}
	if ((query = TAILQ_FIRST(&pg->ended))) {
		TAILQ_REMOVE(&pg->ended, query, entry);
		timer_post(pg->post);
		query_end(query);
		return;
	}
	for (int news = STORE_CHANGED; news < STORE_NEWS; news++)
		if (pg->news[news]) {
			pg->news[news] = false;
			timer_post(pg->post);
			pg->options.news(pg->options.owner, (enum store_news)news);
			return;
		}
}

static void *postgres_open(struct event_base *base, const char *address,
			   const struct store_options *options, struct rlmd_error *err)
{
	struct postgres *pg;

	libpq = libpq_open(err);
	if (!libpq)
		return NULL;
	pg = xcalloc(1, sizeof *pg);
	pg->base = base;
	pg->address = xstrdup(address);
	pg->options = *options;
	pg->retry_ms = RETRY_MS;
	while (getrandom(&pg->key, sizeof pg->key, 0) != sizeof pg->key)
		continue;
	pg->key &= INT64_MAX;
	TAILQ_INIT(&pg->waiting);
	TAILQ_INIT(&pg->sent);
	TAILQ_INIT(&pg->ended);
	pg->post = timer_new(base, on_post, pg);
	start(pg);
	return pg;
}

static void postgres_run(void *database, struct query *query)
{
	struct postgres *pg = database;

	TAILQ_INSERT_TAIL(&pg->waiting, query, entry);
	timer_post(pg->post);
}

static void postgres_free(void *database)
{
	struct postgres *pg = database;

	finish(pg);
	query_drop_all(&pg->waiting);
	query_drop_all(&pg->sent);
	query_drop_all(&pg->ended);
	timer_free(pg->post);
	free(pg->address);
	free(pg);
}

const struct database_kind postgres_kind = {postgres_open, postgres_run, postgres_free};
