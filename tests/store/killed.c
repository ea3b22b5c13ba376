#include "killed.h"

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "asking.h"
#include "base/loop.h"
#include "base/text.h"
#include "where.h"

enum { JOBS = 30, WORKERS = 2, PRICE = 7, LIMIT = 150 };

static struct event_base *loop;
static struct told told;
static char place[256];
static int leaves[2]; /* a pipe: a byte for each line that workers may say */

/* Reports of the workers before they were killed. */
static struct {
	bool loaded;
	long long kept[JOBS + 1]; /* which job has a journal, by its number */
	int finished[JOBS + 1];   /* how often */
	int paid;                 /* said before it is spent */
} said;

#define DO(operation, ...) ASK(loop, &told, store_##operation, store, __VA_ARGS__)
#define FINE()             assert_string_equal(told.error, "")

static struct store *open_store(void)
{
	struct store_options options = {.look_ms = -1, .owner = &told};
	struct store *store;

	told = (struct told){0};
	store = store_open(loop, place, &options, on_told, NULL);
	await(loop, &told);
	return store;
}

/* In a worker, where no assertion may be: it would go on with the tests. */
static void need(bool true_one)
{
	if (!true_one)
		_exit(3);
}

/* With leave for each line, so that nobody gets further than whoever kills it wants. */
static void say(int out, const char *word, int64_t number, int64_t id)
{
	char leave;

	need(read(leaves[0], &leave, 1) == 1);
	dprintf(out, "%s %lld %lld\n", word, (long long)number, (long long)id);
}

static void load(struct store *store)
{
	static struct store_line lines[JOBS];
	static char names[JOBS][24];
	struct store_load token;

	for (size_t i = 0; i < JOBS; i++) {
		snprintf(names[i], sizeof names[i], "j%zu", i);
		lines[i] = (struct store_line){(int64_t)i + 1, text_of(names[i]), text_of("t"),
					       text_of("digest"), text_of("line")};
	}
	DO(load_begin, text_of("batch"), false);
	need(!told.fault);
	token = told.load;
	for (size_t i = 0; i < JOBS && token.token; i += 10) {
		DO(load_add, &token, lines + i, 10);
		need(!told.fault || told.fault == STORE_REFUSED); /* the other one loads */
	}
	DO(load_end, &token, text_of("file"));
}

/* One job, paid, kept and finished; false: there is none. */
static bool work(struct store *store, int64_t account, int out)
{
	struct store_exchange exchange = {
		.key = text_of("k"), .bytes = text_of("b"), .cost = PRICE};
	struct store_outcome outcome = {true, text_of("done"), text_of(""), PRICE, 1};
	struct store_claim claim;
	struct store_lease lease;
	int64_t number;

	/* The leases of who was killed are over at once; so are ours, for the other one. */
	DO(claim, 1, NULL, text_of("node"), 1, 0);
	need(!told.fault);
	if (!told.count)
		return false;
	claim = (struct store_claim){told.jobs[0].id, told.jobs[0].token};
	number = told.jobs[0].number;
	DO(lease_take, account, text_of("node"), PRICE, 1, 60 * 1000);
	need(!told.fault);
	lease = told.lease;
	if (lease.cost == PRICE)
		say(out, "paid", number, 0);
	exchange.cost = lease.cost == PRICE ? PRICE : 0; /* nothing is had for less */
	DO(journal_add, &claim, &exchange, &lease.id, 1);
	if (!told.fault)
		say(out, "kept", number, claim.job);
	if (lease.id)
		DO(lease_settle, lease.id, exchange.cost, 0);
	DO(finish, &claim, &outcome);
	need(!told.fault || told.fault == STORE_REFUSED);
	if (!told.fault)
		say(out, "finished", number, 0);
	return true;
}

static void run_worker(int out)
{
	struct store *store;
	int64_t account;

	event_base_free(loop);
	loop = loop_new();
	store = open_store();
	need(!told.fault);
	load(store);
	DO(account, 1, text_of("t"), LIMIT, INT64_MAX);
	need(!told.fault);
	account = told.account.id;
	say(out, "loaded", 0, 0);
	while (work(store, account, out))
		;
	_exit(0);
}

static void hear(const char *word, long long job, long long id)
{
	assert_in_range(job, 0, JOBS);
	said.loaded = said.loaded || !strcmp(word, "loaded");
	if (!strcmp(word, "kept"))
		said.kept[job] = id;
	said.finished[job] += !strcmp(word, "finished");
	said.paid += strcmp(word, "paid") ? 0 : PRICE;
}

/* Lets workers run until they have said so many lines, and kills them, wherever they are then. */
static bool run_until_killed(int lines)
{
	bool killed = false;
	pid_t workers[WORKERS];
	int ends[2], status;
	long long job, id;
	char word[64];
	FILE *in;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(leaves), 0);
	for (int i = 0; i < lines; i++)
		assert_int_equal(write(leaves[1], "", 1), 1);
	for (int i = 0; i < WORKERS; i++)
		if (!(workers[i] = fork()))
			run_worker(ends[1]);
	close(ends[1]);
	in = fdopen(ends[0], "r");
	for (int i = 0; i < lines && fscanf(in, "%63s %lld %lld", word, &job, &id) == 3; i++)
		hear(word, job, id);
	usleep((useconds_t)(rand() % 2000));
	for (int i = 0; i < WORKERS; i++)
		kill(workers[i], SIGKILL);
	while (fscanf(in, "%63s %lld %lld", word, &job, &id) ==
	       3) /* what was said before counts, too */
		hear(word, job, id);
	fclose(in);
	close(leaves[0]);
	close(leaves[1]);
	for (int i = 0; i < WORKERS; i++) {
		assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
		assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
		killed = killed || WIFSIGNALED(status);
	}
	return killed;
}

/* All that was said, and nothing in part; the number of jobs that are finished. */
static size_t check(void)
{
	struct store *store = open_store();
	bool found[JOBS + 1] = {0};
	size_t finished;

	FINE();
	DO(find, text_of("batch"));
	assert_true(!told.ready || told.jobs_ready == JOBS);
	assert_true(told.ready || !said.loaded);
	DO(results, 1, 0, ASKING_MOST, false);
	FINE();
	finished = told.count;
	for (size_t i = 0; i < finished; i++) {
		assert_string_equal(told.jobs[i].result, "done");
		assert_true(!i || told.jobs[i].rank > told.jobs[i - 1].rank);
		assert_in_range(told.jobs[i].number, 1, JOBS);
		assert_false(found[told.jobs[i].number]);
		found[told.jobs[i].number] = true;
	}
	for (int job = 1; job <= JOBS; job++) {
		assert_true(found[job] || !said.finished[job]);
		if (said.kept[job]) {
			DO(journal_read, said.kept[job], 0, 10);
			assert_int_equal(told.count, !found[job]);
		}
	}
	DO(account, 1, text_of("t"), LIMIT, INT64_MAX);
	FINE();
	assert_true(told.account.spent_cost + told.account.held_cost <= LIMIT);
	assert_true(told.account.spent_cost + told.account.held_cost >= said.paid);
	store_free(store);
	return finished;
}

static void check_jobs(void)
{
	static struct told_job jobs[JOBS];
	struct store *store = open_store();

	for (int job = 1; job <= JOBS; job++)
		assert_in_range(said.finished[job], 0, 1);
	DO(results, 1, 0, ASKING_MOST, false);
	memcpy(jobs, told.jobs, sizeof jobs);
	for (int job = 0; job < JOBS; job++) {
		DO(journal_read, jobs[job].id, 0, 10);
		assert_int_equal(told.count, 0);
	}
	DO(claim, 1, NULL, text_of("node"), 1, 0);
	assert_int_equal(told.count, 0);
	store_free(store);
}

/*
 * Two at once, killed together again and again: each job has one result, nothing is there in part,
 * and no more was granted than the limit.
 */
void test_killed(void **state)
{
	int kills = 0;

	(void)state;
	snprintf(place, sizeof place, "%s", where_fresh());
	memset(&said, 0, sizeof said);
	srand(7);
	loop = loop_new();
	for (bool killed = true; killed; kills += killed) {
		killed = run_until_killed(rand() % (kills < 3 ? 3 : 30));
		assert_true(check() <= JOBS);
	}
	assert_int_equal(check(), JOBS);
	check_jobs();
	assert_true(kills > 3);
	event_base_free(loop);
}
