#include "store/postgres_setup.h"

#include <assert.h>
#include <endian.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/cleanup.h"

#define FOR_UPDATE  " FOR NO KEY UPDATE"
#define SKIP_LOCKED " FOR NO KEY UPDATE SKIP LOCKED"
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
#define NOTIFY(script) {SCRIPT_##script, ONCE, SILENT, "SELECT pg_notify('rlmd', '')"},
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
	PARAMS = 9,
};

#define LOCK  "7812460211650027364" /* any number; the same for all who migrate */
#define NEWER "RLMD1"               /* an SQLSTATE of our own */

static void on_notice(void *owner, const char *message)
{
	(void)owner;
	(void)message;
}

PGconn *postgres_connect(const char *place)
{
	/* What the URI says of these comes after, and so counts. */
	static const char *const keys[] = {"application_name",
					   "keepalives_idle",
					   "keepalives_interval",
					   "keepalives_count",
					   "tcp_user_timeout",
					   "dbname",
					   NULL};
	const char *values[] = {"rlmd", "10", "5", "3", "30000", place, NULL};
	PGconn *conn;

	conn = PQconnectStartParams(keys, values, 1);
	if (conn)
		PQsetNoticeProcessor(conn, on_notice, NULL);
	return conn;
}

const char *postgres_complaint(const PGconn *conn, const char *place)
{
	PQconninfoOption *parts = address_has_password(place) ? PQconninfoParse(place, NULL) : NULL;
	bool is_read = parts || !address_has_password(place);

	PQconninfoFree(parts);
	return is_read ? PQerrorMessage(conn)
		       : "invalid address; what is special in a password is written as %XX";
}

/* libpq has no SQLSTATE of a connection that was refused, but only words. */
enum store_fault postgres_why_not(const PGconn *conn)
{
	static const char *const passing[] = {"starting up", "shutting down", "recovery",
					      "too many"};
	const char *message = PQerrorMessage(conn);

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

	evbuffer_add_printf(out,
			    "IF found > %d THEN RAISE EXCEPTION '%%', found USING ERRCODE = '%s';"
			    " END IF;",
			    newest, NEWER);
	for (size_t i = 0; i < MIGRATIONS; i++)
		evbuffer_add_printf(out, "IF found < %d THEN EXECUTE $sql$%s$sql$; END IF;",
				    migrations[i].version, migrations[i].sql);
	evbuffer_add_printf(out, "IF found < %d THEN INSERT INTO rlmd.version VALUES (%d); END IF;",
			    newest, newest);
}

/* One simple query is one transaction, and the lock is its. */
bool postgres_send_setup(PGconn *conn, int64_t patience_ms)
{
	auto_evbuffer struct evbuffer *sql = evbuffer_new();
	auto_free char *text = NULL;

	evbuffer_add_printf(sql,
			    "SET client_min_messages = warning; SET client_encoding = 'UTF8';"
			    " SET lock_timeout = %lld; SELECT pg_advisory_xact_lock(" LOCK ");"
			    " DO $do$ DECLARE found bigint; BEGIN"
			    " IF to_regnamespace('rlmd') IS NULL THEN CREATE SCHEMA rlmd; END IF;"
			    " SET search_path = rlmd;"
			    " IF current_setting('synchronous_commit') = 'off' THEN"
			    " SET synchronous_commit = on; END IF;"
			    " CREATE TABLE IF NOT EXISTS rlmd.version (version bigint NOT NULL);"
			    " SELECT coalesce(max(version), 0) INTO found FROM rlmd.version;",
			    (long long)patience_ms);
	add_migrations(sql);
	evbuffer_add_printf(sql, " END $do$; LISTEN rlmd");
	text = text_drain(sql, NULL);
	return PQsendQuery(conn, text);
}

static unsigned oid_of(char type)
{
	return type == 'i' ? INT8 : type == 't' ? TEXT : BYTEA;
}

bool postgres_send_statements(PGconn *conn)
{
	char name[16];
	Oid oids[PARAMS];

	for (size_t i = 0; i < STATEMENTS; i++) {
		const char *types = script_types(statements[i].script);
		size_t width = statement_width(statements[i].sql);

		assert(width <= PARAMS);
		for (size_t j = 0; j < width; j++)
			oids[j] = oid_of(types[j]);
		snprintf(name, sizeof name, "s%zu", i);
		if (!PQsendPrepare(conn, name, statements[i].sql, (int)width, oids))
			return false;
	}
	return PQpipelineSync(conn);
}

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

bool postgres_first(const struct query *query, struct postgres_turn *ret)
{
	return find(query, 0, ret);
}

bool postgres_next(const struct query *query, struct postgres_turn *turn)
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
	const char *types = script_types(query->script);
	const struct value *set = query->params + turn->set * strlen(types);
	size_t width = statement_width(statements[turn->statement].sql);
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
	return PQsendQueryPrepared(conn, name, (int)width, values, lengths, formats, 1);
}

bool postgres_send_query(PGconn *conn, const struct query *query)
{
	struct postgres_turn turn;

	for (bool more = postgres_first(query, &turn); more; more = postgres_next(query, &turn))
		if (!send_turn(conn, query, &turn))
			return false;
	return PQpipelineSync(conn);
}

void postgres_keep_rows(struct query *query, size_t set, const PGresult *answer)
{
	int columns = PQnfields(answer);

	for (int row = 0; row < PQntuples(answer); row++) {
		struct value *cells = query_add_row(query, set, (size_t)columns);

		for (int i = 0; i < columns; i++) {
			const char *bytes = PQgetvalue(answer, row, i);
			size_t size = (size_t)PQgetlength(answer, row, i);
			uint64_t integer;

			cells[i].is_integer = PQftype(answer, i) == INT8;
			if (cells[i].is_integer && size == sizeof integer) {
				memcpy(&integer, bytes, sizeof integer);
				cells[i].integer = (int64_t)be64toh(integer);
			} else {
				value_set(&cells[i], text_from(bytes, size));
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

enum store_fault postgres_fault(const PGresult *answer)
{
	const char *state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);

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
	case STORE_FAILED:
		break;
	}
	return "";
}

void postgres_fail(struct query *query, enum store_fault fault, const char *message)
{
	auto_free char *line = text_copy(text_trim(text_of(message)));

	query_fail(query, fault, "PostgreSQL: %s (%s)%s", store_fault_meaning(fault),
		   *line ? line : "no answer", remedy_of(fault));
}
