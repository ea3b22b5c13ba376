#include "store/postgres.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/loop.h"
#include "base/timer.h"
#include "store/postgres_setup.h"

enum {
	IN_FLIGHT = 64,        /* operations that the server has and has not answered */
	ANSWER_MS = 30 * 1000, /* for a connection and its schema */
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
	char *place;             /* owned */
	struct store_options options;
	enum postgres_state state;
	bool was_open;
	bool told_away; /* and not yet that it came back */
	int64_t retry_ms;

	PGconn *conn;                 /* owned, or NULL */
	struct event *input, *output; /* owned, or NULL: of the connection's socket */
	struct timer *timer;          /* owned, or NULL: the next try, or the end of this one */
	struct event *post;           /* owned: there is something to send or to tell */

	struct query_line waiting, sent, ended; /* to send; to be answered; to tell */
	size_t in_flight;                       /* in `sent` */
	struct postgres_turn turn;              /* of the first of `sent`: whose answer is next */
	struct query failure;           /* what is wrong with a connection, or why it is DEAD */
	bool news[STORE_CAME_BACK + 1]; /* to tell */
};

static void start(struct postgres *);
static void on_input(evutil_socket_t, short, void *);

static void tell(struct postgres *pg, enum store_news news)
{
	pg->news[news] = pg->options.news;
	loop_post(pg->post);
}

static void finish(struct postgres *pg)
{
	if (pg->input)
		event_free(pg->input);
	if (pg->output)
		event_free(pg->output);
	pg->input = pg->output = NULL;
	PQfinish(pg->conn);
	pg->conn = NULL;
	timer_free(pg->timer);
	pg->timer = NULL;
}

static void end(struct postgres *pg, struct query *query)
{
	TAILQ_INSERT_TAIL(&pg->ended, query, entry);
	loop_post(pg->post);
}

/* All that waits, and all that comes later, ends with `failure`. */
static void die(struct postgres *pg)
{
	finish(pg);
	pg->state = DEAD;
	loop_post(pg->post);
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

/* The connection is of no use any more. What was sent is asked for again, in its order. */
static void lose(struct postgres *pg)
{
	struct query *query;

	while ((query = TAILQ_LAST(&pg->sent, query_line))) {
		TAILQ_REMOVE(&pg->sent, query, entry);
		TAILQ_INSERT_HEAD(&pg->waiting, query, entry);
		query_reset(query);
		query->fault = STORE_FINE;
	}
	pg->in_flight = 0;
	if (!pg->failure.fault)
		postgres_fail(&pg->failure, pg->was_open ? STORE_AWAY : postgres_why_not(pg->conn),
			      postgres_complaint(pg->conn, pg->place));
	if (!pg->was_open || !passes(pg->failure.fault)) {
		die(pg);
		return;
	}
	finish(pg);
	pg->failure.fault = STORE_FINE;
	pg->state = AWAY;
	if (!pg->told_away)
		tell(pg, STORE_WENT_AWAY);
	pg->told_away = true;
	pg->timer = timer_new(pg->base, pg->retry_ms, on_retry, pg);
	pg->retry_ms = 2 * pg->retry_ms < RETRY_MAX_MS ? 2 * pg->retry_ms : RETRY_MAX_MS;
}

static void on_late(void *owner)
{
	lose(owner);
}

/* Waits for the socket, which may be another one after each step of connecting. */
static void watch(struct postgres *pg, bool input, bool output)
{
	int fd = PQsocket(pg->conn);

	if (pg->input)
		event_free(pg->input);
	if (pg->output)
		event_free(pg->output);
	pg->input = event_new(pg->base, fd, EV_READ | EV_PERSIST, on_input, pg);
	pg->output = event_new(pg->base, fd, EV_WRITE, on_input, pg);
	if (input)
		event_add(pg->input, NULL);
	if (output)
		event_add(pg->output, NULL);
}

/* False: the connection is lost. */
static bool flush(struct postgres *pg)
{
	int left = PQflush(pg->conn);

	if (left > 0)
		event_add(pg->output, NULL);
	if (left < 0)
		lose(pg);
	return left >= 0;
}

static void connect_on(struct postgres *pg)
{
	switch (PQconnectPoll(pg->conn)) {
	case PGRES_POLLING_READING:
		watch(pg, true, false);
		break;
	case PGRES_POLLING_WRITING:
		watch(pg, false, true);
		break;
	case PGRES_POLLING_OK:
		watch(pg, true, false);
		pg->state = MIGRATE;
		if (PQsetnonblocking(pg->conn, 1) ||
		    !postgres_send_setup(pg->conn, pg->options.patience_ms))
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
	pg->conn = postgres_connect(pg->place);
	pg->timer = timer_new(pg->base, ANSWER_MS, on_late, pg);
	if (!pg->conn || PQstatus(pg->conn) == CONNECTION_BAD)
		lose(pg);
	else
		watch(pg, false, true);
}

/* The next answer that is there; its end and others' ends count as none. */
static PGresult *answer(struct postgres *pg)
{
	PGresult *answer = NULL;

	for (int ends = 0; !answer && ends < 2 && !PQisBusy(pg->conn); ends++)
		answer = PQgetResult(pg->conn);
	return answer;
}

static void note_failure(struct postgres *pg, struct query *query, const PGresult *answer)
{
	if (PQresultStatus(answer) == PGRES_FATAL_ERROR && !query->fault) {
		postgres_fail(query, postgres_fault(answer), PQresultErrorMessage(answer));
		if (!query->fault) /* at once is later enough, but not on this connection */
			query->fault = query == &pg->failure ? STORE_AWAY : STORE_FINE;
	}
}

/* Answers to what sets the schema up: to all of them, then none. */
static void migrate_on(struct postgres *pg)
{
	while (!PQisBusy(pg->conn)) {
		PGresult *one = PQgetResult(pg->conn);

		if (!one) {
			if (pg->failure.fault || !PQenterPipelineMode(pg->conn) ||
			    !postgres_send_statements(pg->conn)) {
				lose(pg);
				return;
			}
			pg->state = PREPARE;
			flush(pg);
			return;
		}
		note_failure(pg, &pg->failure, one);
		PQclear(one);
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
			postgres_first(query, &pg->turn);
		if (!postgres_send_query(pg->conn, query)) {
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
		if (PQresultStatus(one) == PGRES_PIPELINE_SYNC)
			pg->state = READY;
		PQclear(one);
	}
	if (pg->failure.fault) {
		lose(pg);
	} else if (pg->state == READY) {
		timer_free(pg->timer);
		pg->timer = NULL;
		pg->was_open = true;
		pg->retry_ms = RETRY_MS;
		if (pg->told_away) {
			tell(pg, STORE_CAME_BACK);
			tell(pg, STORE_CHANGED);
		}
		pg->told_away = false;
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
		postgres_first(TAILQ_FIRST(&pg->sent), &pg->turn);
}

/* Each statement has one answer, and behind a query's last one comes the mark of its end. */
static void take_answers(struct postgres *pg)
{
	bool again = false, away = false;
	PGresult *one;

	while (!away && TAILQ_FIRST(&pg->sent) && (one = answer(pg))) {
		struct query *query = TAILQ_FIRST(&pg->sent);
		ExecStatusType status = PQresultStatus(one);

		if (status == PGRES_PIPELINE_SYNC) {
			away = query->fault == STORE_AWAY;
			if (!away)
				take_answered(pg, again);
			again = false;
		} else {
			if (status == PGRES_TUPLES_OK && pg->turn.tells)
				postgres_keep_rows(query, pg->turn.set, one);
			if (status == PGRES_FATAL_ERROR)
				again = again || !postgres_fault(one);
			note_failure(pg, query, one);
			postgres_next(query, &pg->turn);
		}
		PQclear(one);
	}
	if (away || PQstatus(pg->conn) == CONNECTION_BAD)
		lose(pg);
	else
		send_waiting(pg);
}

/* What others have told. */
static void hear(struct postgres *pg)
{
	PGnotify *notice;

	while ((notice = PQnotifies(pg->conn))) {
		if (notice->be_pid != PQbackendPID(pg->conn))
			tell(pg, STORE_CHANGED);
		PQfreemem(notice);
	}
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
	struct postgres *pg = arg;

	(void)fd;
	if (pg->state == CONNECT) {
		connect_on(pg);
		return;
	}
	if ((what & EV_READ) && !PQconsumeInput(pg->conn)) {
		lose(pg);
		return;
	}
	if (!flush(pg))
		return;
	hear(pg);
	if (pg->state == MIGRATE)
		migrate_on(pg);
	else if (pg->state == PREPARE)
		prepare_on(pg);
	else
		take_answers(pg);
}

/* A callback may free the store: one is made at each turn, as the last thing. */
static void on_post(evutil_socket_t fd, short what, void *arg)
{
	struct postgres *pg = arg;
	struct query *query;

	(void)fd;
	(void)what;
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
		loop_post(pg->post);
		query_end(query);
		return;
	}
	for (int news = STORE_CHANGED; news <= STORE_CAME_BACK; news++)
		if (pg->news[news]) {
			pg->news[news] = false;
			loop_post(pg->post);
			pg->options.news(pg->options.owner, (enum store_news)news);
			return;
		}
}

static void *postgres_open(struct event_base *base, const char *place,
			   const struct store_options *options, struct rlmd_error *err)
{
	struct postgres *pg = xcalloc(1, sizeof *pg);

	(void)err;
	pg->base = base;
	pg->place = xstrdup(place);
	pg->options = *options;
	pg->retry_ms = RETRY_MS;
	TAILQ_INIT(&pg->waiting);
	TAILQ_INIT(&pg->sent);
	TAILQ_INIT(&pg->ended);
	pg->post = event_new(base, -1, 0, on_post, pg);
	start(pg);
	return pg;
}

static void postgres_run(void *database, struct query *query)
{
	struct postgres *pg = database;

	TAILQ_INSERT_TAIL(&pg->waiting, query, entry);
	loop_post(pg->post);
}

static void postgres_free(void *database)
{
	struct postgres *pg = database;

	finish(pg);
	query_drop_all(&pg->waiting);
	query_drop_all(&pg->sent);
	query_drop_all(&pg->ended);
	event_free(pg->post);
	free(pg->place);
	free(pg);
}

const struct database_kind postgres_kind = {postgres_open, postgres_run, postgres_free};
