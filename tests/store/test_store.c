/* The operations of a store, on either database. */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "asking.h"
#include "base/loop.h"
#include "base/text.h"
#include "killed.h"
#include "server.h"
#include "test_postgres.h"
#include "where.h"

#define LONG_MS (60 * 60 * 1000)

/* Two that work with the same store, as two processes would. */
static struct event_base *loop;
static struct store *store, *other;
static struct told told;

static struct store *open_at(const char *place, store_news_fn *news)
{
	struct store_options options = {.look_ms = 20, .news = news, .owner = &told};
	struct store *opened;

	told = (struct told){0};
	opened = store_open(loop, place, &options, on_told, NULL);
	assert_non_null(opened);
	assert_int_equal(told.times, 0);
	await(loop, &told);
	return opened;
}

static int set_up(void **state)
{
	const char *place = where_fresh();

	(void)state;
	loop = loop_new();
	store = open_at(place, NULL);
	assert_string_equal(told.error, "");
	other = open_at(place, NULL);
	assert_string_equal(told.error, "");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	store_free(store);
	store_free(other);
	event_base_free(loop);
	return 0;
}

static struct rlmd_text text(const char *string)
{
	return text_of(string);
}

#define DO(operation, ...)    ASK(loop, &told, store_##operation, store, __VA_ARGS__)
#define OTHER(operation, ...) ASK(loop, &told, store_##operation, other, __VA_ARGS__)
#define FINE()                assert_string_equal(told.error, "")
#define REFUSED()             assert_int_equal(told.fault, STORE_REFUSED)

/* Lines "a", "b", ... of a tenant, from a number on. */
static void lines_of(struct store_line *lines, int64_t first, size_t count, const char *tenant)
{
	static char names[ASKING_MOST][8];

	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "%s%d", tenant, (int)(first + (int64_t)i));
		lines[i] = (struct store_line){first + (int64_t)i, text(names[i]), text(tenant),
					       text("digest"), text("{\"line\"\0:1}")};
	}
}

/* A batch of so many jobs of tenant t that are ready; its id. */
static int64_t loaded(const char *name, size_t count)
{
	struct store_line lines[ASKING_MOST];
	struct store_load load;

	lines_of(lines, 1, count, "t");
	DO(load_begin, text(name), false);
	FINE();
	load = told.load;
	if (count)
		DO(load_add, &load, lines, count);
	FINE();
	DO(load_end, &load, text("file"));
	FINE();
	return load.batch;
}

static struct store_claim claim_one(int64_t batch, int64_t lease_ms)
{
	DO(claim, batch, NULL, text("node"), 1, lease_ms);
	FINE();
	assert_int_equal(told.count, 1);
	return (struct store_claim){told.jobs[0].id, told.jobs[0].token};
}

static void finish(struct store *by, const struct store_claim *claim, const char *result)
{
	struct store_outcome outcome = {true, text(result), text(""), 5, 7};

	ASK(loop, &told, store_finish, by, claim, &outcome);
}

static void test_load(void **state)
{
	struct store_line lines[3];
	struct store_load load;

	(void)state;
	DO(find, text("batch"));
	FINE();
	assert_int_equal(told.count, 0);
	DO(load_begin, text("batch"), false);
	FINE();
	load = told.load;
	assert_true(load.batch > 0 && load.token > 0);
	assert_int_equal(load.after, 0);
	lines_of(lines, 1, 3, "t");
	DO(load_add, &load, lines, 3);
	FINE();
	assert_int_equal(told.count, 3);
	assert_int_equal(told.states[0], STORE_LINE_NEW);
	assert_int_equal(told.states[2], STORE_LINE_NEW);

	/* Nothing of it runs, and nobody takes it for ready. */
	OTHER(claim, load.batch, NULL, text("node"), 10, LONG_MS);
	FINE();
	assert_int_equal(told.count, 0);
	OTHER(find, text("batch"));
	assert_int_equal(told.count, 1);
	assert_false(told.ready);
	ASK(loop, &told, store_batches, other);
	assert_int_equal(told.count, 0);

	DO(load_end, &load, text("digest of the file"));
	FINE();
	OTHER(find, text("batch"));
	assert_true(told.ready);
	assert_int_equal(told.jobs_ready, 3);
	assert_string_equal(told.digest, "digest of the file");
	OTHER(load_begin, text("batch"), false);
	FINE();
	assert_int_equal(told.load.token, 0);
	assert_string_equal(told.digest, "digest of the file");
	ASK(loop, &told, store_batches, other);
	assert_int_equal(told.count, 1);
}

static void test_lines_that_are_there(void **state)
{
	struct store_line lines[4];
	struct store_load load;

	(void)state;
	lines_of(lines, 1, 4, "t");
	lines[1].custom_id = lines[2].custom_id = lines[0].custom_id;
	lines[2].digest = text("another");
	DO(load_begin, text("batch"), false);
	load = told.load;
	DO(load_add, &load, lines, 4);
	FINE();
	assert_int_equal(told.states[0], STORE_LINE_NEW);
	assert_int_equal(told.states[1], STORE_LINE_SAME);
	assert_int_equal(told.states[2], STORE_LINE_DIFFERS);
	assert_int_equal(told.states[3], STORE_LINE_NEW);
	/* Asked for again, as after an answer that was lost. */
	DO(load_add, &load, lines, 1);
	FINE();
	assert_int_equal(told.states[0], STORE_LINE_NEW);
	DO(load_end, &load, text("file"));
	DO(find, text("batch"));
	assert_int_equal(told.jobs_ready, 2);

	lines_of(lines, 1, 3, "t");
	lines[0].digest = text("changed");
	DO(compare, load.batch, lines, 3);
	FINE();
	assert_int_equal(told.states[0], STORE_LINE_DIFFERS);
	assert_int_equal(told.states[1], STORE_LINE_NEW);
	lines_of(lines, 4, 1, "t");
	DO(compare, load.batch, lines, 1);
	assert_int_equal(told.states[0], STORE_LINE_SAME);

	/* Once they are ready none comes among them, though a number be free there. */
	lines_of(lines, 2, 1, "late");
	DO(load_add, &load, lines, 1);
	DO(claim, load.batch, NULL, text("node"), 10, LONG_MS);
	assert_int_equal(told.count, 2);
}

static void test_a_load_that_was_left(void **state)
{
	struct store_line lines[3];
	struct store_load first, second;

	(void)state;
	lines_of(lines, 1, 3, "t");
	DO(load_begin, text("batch"), false);
	first = told.load;
	DO(load_add, &first, lines, 3);
	OTHER(load_begin, text("batch"), false);
	second = told.load;
	assert_true(second.token > first.token);
	DO(load_add, &first, lines, 3);
	REFUSED();
	DO(load_end, &first, text("file"));
	REFUSED();
	lines_of(lines, 1, 1, "u");
	OTHER(load_add, &second, lines, 1);
	FINE();
	assert_int_equal(told.states[0], STORE_LINE_NEW);
	OTHER(load_end, &second, text("file"));
	FINE();
	DO(find, text("batch"));
	assert_int_equal(told.jobs_ready, 1);
}

static void test_jobs_are_added(void **state)
{
	struct store_line lines[3];
	struct store_load load;
	int64_t batch;

	(void)state;
	batch = loaded("batch", 2);
	DO(load_begin, text("batch"), true);
	load = told.load;
	assert_int_equal(load.batch, batch);
	assert_true(load.token > 0);
	assert_int_equal(load.after, 2);
	lines_of(lines, 1, 3, "t");
	DO(load_add, &load, lines, 3);
	assert_int_equal(told.states[1], STORE_LINE_SAME);
	assert_int_equal(told.states[2], STORE_LINE_NEW);
	DO(claim, batch, NULL, text("node"), 10, LONG_MS);
	assert_int_equal(told.count, 2);
	DO(find, text("batch"));
	assert_int_equal(told.jobs_ready, 2);
	DO(load_end, &load, text("longer file"));
	FINE();
	DO(find, text("batch"));
	assert_int_equal(told.jobs_ready, 3);
	DO(claim, batch, NULL, text("node"), 10, LONG_MS);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.jobs[0].custom_id, "t3");
	assert_int_equal(told.jobs[0].number, 5);
}

static void test_a_job_is_claimed_once(void **state)
{
	int64_t batch, first;

	(void)state;
	batch = loaded("batch", 3);
	DO(claim, batch, NULL, text("node"), 2, LONG_MS);
	FINE();
	assert_int_equal(told.count, 2);
	assert_string_equal(told.jobs[0].custom_id, "t1");
	assert_string_equal(told.jobs[0].tenant, "t");
	assert_string_equal(told.jobs[0].line, "{\"line\"");
	assert_string_equal(told.jobs[1].custom_id, "t2");
	assert_int_equal(told.jobs[0].attempts, 1);
	first = told.jobs[0].id;
	OTHER(claim, batch, NULL, text("other"), 2, LONG_MS);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.jobs[0].custom_id, "t3");
	assert_int_not_equal(told.jobs[0].id, first);
	OTHER(claim, batch, NULL, text("other"), 2, LONG_MS);
	assert_int_equal(told.count, 0);
}

/* Both at once, and neither waits for the other: each job has one of them. */
static void test_claims_at_once(void **state)
{
	struct told tolds[6] = {0};
	int64_t batch;
	size_t claimed = 0;

	(void)state;
	batch = loaded("batch", 40);
	for (size_t i = 0; i < 6; i++)
		store_claim(i % 2 ? store : other, batch, NULL, text("node"), 7, LONG_MS, on_told,
			    &tolds[i]);
	for (size_t i = 0; i < 6; i++) {
		await(loop, &tolds[i]);
		assert_string_equal(tolds[i].error, "");
		claimed += tolds[i].count;
		for (size_t j = 0; j < tolds[i].count; j++)
			for (size_t k = 0; k < i; k++)
				for (size_t l = 0; l < tolds[k].count; l++)
					assert_int_not_equal(tolds[i].jobs[j].id,
							     tolds[k].jobs[l].id);
	}
	DO(counts, batch);
	assert_int_equal(told.counts[0].jobs[STORE_JOB_RUNNING], claimed);
	DO(claim, batch, NULL, text("node"), 40, LONG_MS);
	assert_int_equal(claimed + told.count, 40);
}

static void test_claims_of_a_tenant(void **state)
{
	struct rlmd_text tenant = text("u");
	struct store_line lines[2];
	struct store_load load;

	(void)state;
	DO(load_begin, text("batch"), false);
	load = told.load;
	lines_of(lines, 1, 2, "t");
	DO(load_add, &load, lines, 2);
	lines_of(lines, 3, 2, "u");
	DO(load_add, &load, lines, 2);
	DO(load_end, &load, text("file"));
	DO(claim, load.batch, &tenant, text("node"), 1, LONG_MS);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.jobs[0].custom_id, "u3");
	DO(counts, load.batch);
	FINE();
	assert_int_equal(told.count, 2);
	assert_string_equal(told.tenants[0], "t");
	assert_int_equal(told.counts[0].jobs[STORE_JOB_PENDING], 2);
	assert_int_equal(told.counts[0].jobs[STORE_JOB_RUNNING], 0);
	assert_true(told.counts[0].due_ms <= 0);
	assert_string_equal(told.tenants[1], "u");
	assert_int_equal(told.counts[1].jobs[STORE_JOB_PENDING], 1);
	assert_int_equal(told.counts[1].jobs[STORE_JOB_RUNNING], 1);
}

/* A lease that is over is another's: whoever had it writes nothing more. */
static void test_a_stale_claim(void **state)
{
	struct store_exchange exchange = {.key = text("k"), .bytes = text("bytes")};
	struct store_claim stale, fresh;
	int64_t batch;

	(void)state;
	batch = loaded("batch", 1);
	stale = claim_one(batch, 0);
	OTHER(claim, batch, NULL, text("other"), 1, LONG_MS);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.jobs[0].id, stale.job);
	assert_int_equal(told.jobs[0].attempts, 1);
	assert_true(told.jobs[0].token > stale.token);
	fresh = (struct store_claim){told.jobs[0].id, told.jobs[0].token};

	DO(renew, &stale, 1, LONG_MS);
	FINE();
	assert_true(told.lost[0]);
	DO(journal_add, &stale, &exchange, NULL, 0);
	REFUSED();
	DO(postpone, &stale, 0, text("network"), true);
	REFUSED();
	finish(store, &stale, "stale");
	REFUSED();

	OTHER(renew, &fresh, 1, LONG_MS);
	assert_false(told.lost[0]);
	OTHER(journal_read, fresh.job, 0, 10);
	assert_int_equal(told.count, 0);
	finish(other, &fresh, "fresh");
	FINE();
	DO(results, batch, 0, 10, false);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.jobs[0].result, "fresh");
	DO(renew, &fresh, 1, LONG_MS);
	assert_true(told.lost[0]);
}

/* The next claim, of a job whose last one ended in one of several ways. */
static struct store_claim claim_again(int64_t batch, bool suspect, int64_t attempts)
{
	struct store_claim claim = claim_one(batch, 0);

	assert_int_equal(told.jobs[0].suspect, suspect);
	assert_int_equal(told.jobs[0].attempts, attempts);
	return claim;
}

/* A claim that ended without a word counts as an attempt if the job was alone. */
static void test_a_suspect(void **state)
{
	struct store_outcome failed = {false, text("failed"), text("worker")};
	struct store_claim claim, stale;
	int64_t batch;

	(void)state;
	batch = loaded("batch", 1);
	stale = claim_again(batch, false, 1);
	claim = claim_again(batch, true, 1);
	DO(alone, &stale);
	REFUSED();
	DO(release, text("node"));
	claim = claim_again(batch, true, 1);
	DO(alone, &claim);
	FINE();
	claim = claim_again(batch, true, 2);
	DO(alone, &claim);
	DO(renew, &claim, 1, LONG_MS);
	DO(release, text("node"));
	claim = claim_again(batch, true, 3);
	DO(postpone, &claim, 0, text("network"), true);
	FINE();
	claim = claim_again(batch, false, 4);
	DO(postpone, &claim, 0, text(""), false);
	claim = claim_again(batch, false, 4);
	claim = claim_again(batch, true, 4);
	DO(finish, &claim, &failed);
	DO(rerun, batch, NULL, true);
	claim = claim_again(batch, false, 1);
	claim_again(batch, true, 1);
}

/* As long as nobody took the job, who comes late still has it. */
static void test_a_late_claim(void **state)
{
	struct store_claim claim;
	int64_t batch;

	(void)state;
	batch = loaded("batch", 1);
	claim = claim_one(batch, 0);
	DO(renew, &claim, 1, LONG_MS);
	assert_false(told.lost[0]);
	OTHER(claim, batch, NULL, text("other"), 1, LONG_MS);
	assert_int_equal(told.count, 0);
	DO(renew, &claim, 1, 0);
	finish(store, &claim, "late");
	FINE();
	OTHER(claim, batch, NULL, text("other"), 1, LONG_MS);
	assert_int_equal(told.count, 0);
}

static void test_finish(void **state)
{
	struct store_outcome failure = {false, text("{}"), text("network"), 1, 2, text("{}\n"), -1};
	struct store_claim claims[3];
	int64_t batch;

	(void)state;
	batch = loaded("batch", 3);
	for (int i = 0; i < 3; i++)
		claims[i] = claim_one(batch, LONG_MS);
	finish(store, &claims[2], "third");
	FINE();
	DO(finish, &claims[0], &failure);
	FINE();
	/* The same again is what is there already; another end is refused. */
	finish(store, &claims[2], "third");
	FINE();
	finish(store, &claims[0], "after all");
	REFUSED();

	DO(results, batch, 0, 10, false);
	FINE();
	assert_int_equal(told.count, 2);
	assert_string_equal(told.jobs[0].custom_id, "t3");
	assert_string_equal(told.jobs[0].result, "third");
	assert_int_equal(told.jobs[0].state, STORE_JOB_SUCCEEDED);
	assert_int_equal(told.jobs[0].cost, 5);
	assert_int_equal(told.jobs[0].tokens, 7);
	assert_int_equal(told.jobs[0].attempts, 1);
	assert_string_equal(told.jobs[1].error, "network");
	assert_int_equal(told.jobs[1].state, STORE_JOB_FAILED);
	assert_string_equal(told.jobs[1].trace, "{}\n");
	assert_int_equal(told.jobs[1].attempts, 0);

	/* From the last place on there is only what is new. */
	int64_t place = told.jobs[1].rank;

	finish(store, &claims[1], "second");
	DO(results, batch, place, 10, false);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.jobs[0].custom_id, "t2");
	DO(results, batch, 0, 2, true);
	assert_int_equal(told.count, 2);
	assert_string_equal(told.jobs[0].custom_id, "t1");
	DO(results, batch, 2, 2, true);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.jobs[0].custom_id, "t3");

	DO(counts, batch);
	assert_int_equal(told.counts[0].jobs[STORE_JOB_SUCCEEDED], 2);
	assert_int_equal(told.counts[0].jobs[STORE_JOB_FAILED], 1);
	assert_int_equal(told.counts[0].cost, 11);
	assert_true(told.counts[0].due_ms == INT64_MAX);

	DO(rerun, batch, NULL, false);
	FINE();
	assert_int_equal(told.count, 1);
	DO(claim, batch, NULL, text("node"), 10, LONG_MS);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.jobs[0].custom_id, "t1");
	assert_int_equal(told.jobs[0].attempts, 1);
	finish(store, &claims[0], "of the run before");
	REFUSED();
}

/* A result from elsewhere is that of a job which waits, unless somebody claims it first. */
static void test_jobs_by_their_ids(void **state)
{
	const struct rlmd_text ids[] = {text("t2"), text("u1"), text("t1")};
	struct store_outcome outcome = {true, text("{}"), text(""), 5, 7, text(""), 3};
	struct store_claim found, claim;
	int64_t batch;

	(void)state;
	batch = loaded("batch", 2);
	DO(jobs, batch, ids, 3);
	FINE();
	assert_int_equal(told.count, 3);
	assert_string_equal(told.jobs[0].custom_id, "t2");
	assert_int_equal(told.jobs[0].state, STORE_JOB_PENDING);
	assert_int_equal(told.jobs[1].id, 0);
	found = (struct store_claim){told.jobs[2].id, told.jobs[2].token};
	DO(finish, &found, &outcome);
	FINE();
	DO(jobs, batch, ids, 3);
	assert_int_equal(told.jobs[2].state, STORE_JOB_SUCCEEDED);
	assert_int_equal(told.jobs[2].attempts, 3);
	assert_string_equal(told.jobs[2].result, "{}");
	found = (struct store_claim){told.jobs[0].id, told.jobs[0].token};
	claim = claim_one(batch, LONG_MS);
	assert_int_equal(claim.job, found.job);
	DO(finish, &found, &outcome);
	REFUSED();
}

/* With what was had before, or without, as the error wants. */
static void test_rerun(void **state)
{
	struct store_exchange exchange = {.key = text("k"), .bytes = text("b")};
	struct store_outcome network = {false, text(""), text("network"), 0, 0};
	struct store_outcome schema = {false, text(""), text("schema"), 0, 0};
	struct rlmd_text errors[] = {text("network"), text("schema")};
	struct store_claim claims[2];
	int64_t batch;

	(void)state;
	batch = loaded("batch", 2);
	for (int i = 0; i < 2; i++) {
		claims[i] = claim_one(batch, LONG_MS);
		DO(journal_add, &claims[i], &exchange, NULL, 0);
		DO(finish, &claims[i], i ? &schema : &network);
		FINE();
	}
	for (int i = 0; i < 2; i++) {
		DO(rerun, batch, &errors[i], i == 1);
		FINE();
		assert_int_equal(told.count, 1);
		DO(journal_read, claims[i].job, 0, 10);
		assert_int_equal(told.count, !i);
		assert_int_equal(claim_one(batch, LONG_MS).job, claims[i].job);
	}
	DO(results, batch, 0, 10, false);
	assert_int_equal(told.count, 0);
}

static void test_postpone(void **state)
{
	struct store_claim claim;
	int64_t batch;

	(void)state;
	batch = loaded("batch", 1);
	claim = claim_one(batch, LONG_MS);
	DO(postpone, &claim, LONG_MS, text("throttled"), true);
	FINE();
	DO(postpone, &claim, LONG_MS, text("throttled"), true);
	FINE();
	DO(claim, batch, NULL, text("node"), 1, LONG_MS);
	assert_int_equal(told.count, 0);
	DO(counts, batch);
	assert_int_equal(told.counts[0].jobs[STORE_JOB_PENDING], 1);
	assert_true(told.counts[0].due_ms > LONG_MS / 2 && told.counts[0].due_ms <= LONG_MS);
	finish(store, &claim, "given back");
	REFUSED();
	DO(renew, &claim, 1, LONG_MS);
	assert_true(told.lost[0]);

	batch = loaded("other", 1);
	claim = claim_one(batch, LONG_MS);
	DO(postpone, &claim, 0, text("billing"), false);
	FINE();
	DO(claim, batch, NULL, text("node"), 1, LONG_MS);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.jobs[0].attempts, 1);
}

static void test_journal(void **state)
{
	struct store_exchange exchange = {
		.key = text("k"), .bytes = text_from("a\0b\xff", 4), .cost = 3};
	struct store_claim claim;
	int64_t batch, first;

	(void)state;
	batch = loaded("batch", 1);
	claim = claim_one(batch, 0);
	DO(journal_add, &claim, &exchange, NULL, 0);
	FINE();
	exchange.number = 1;
	exchange.bytes = text("second");
	DO(journal_add, &claim, &exchange, NULL, 0);
	FINE();
	exchange.bytes = text("never");
	DO(journal_add, &claim, &exchange, NULL, 0);
	FINE();
	/* It is there for who takes the job over. */
	OTHER(claim, batch, NULL, text("other"), 1, LONG_MS);
	claim.token = told.jobs[0].token;
	OTHER(journal_read, claim.job, 0, 1);
	FINE();
	assert_int_equal(told.count, 1);
	assert_int_equal(told.exchanges[0].size, 4);
	assert_memory_equal(told.exchanges[0].bytes, "a\0b\xff", 4);
	assert_int_equal(told.exchanges[0].cost, 3);
	first = told.exchanges[0].id;
	OTHER(journal_read, claim.job, first, 10);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.exchanges[0].bytes, "second");
	assert_int_equal(told.exchanges[0].number, 1);
	finish(other, &claim, "done");
	FINE();
	OTHER(journal_read, claim.job, 0, 10);
	assert_int_equal(told.count, 0);
}

static struct store_account account_of(int64_t batch, const char *tenant, int64_t cost,
				       int64_t tokens)
{
	DO(account, batch, text(tenant), cost, tokens);
	FINE();
	assert_true(told.account.id > 0);
	return told.account;
}

static void test_accounts(void **state)
{
	struct store_account account, again;

	(void)state;
	account = account_of(1, "t", 100, INT64_MAX);
	again = account_of(0, "t", 100, 100);
	assert_true(again.ends_ms > 0 && again.ends_ms <= 24 * LONG_MS);
	assert_int_not_equal(again.id, account.id);
	assert_int_not_equal(account_of(1, "u", 100, 100).id, account.id);

	DO(lease_take, account.id, text("node"), 60, 1000, LONG_MS);
	FINE();
	assert_true(told.lease.id > 0);
	assert_int_equal(told.lease.cost, 60);
	assert_int_equal(told.lease.tokens, 1000);
	OTHER(lease_take, account.id, text("other"), 60, 1000, LONG_MS);
	assert_int_equal(told.lease.cost, 40);
	OTHER(lease_take, account.id, text("other"), 1, 1, LONG_MS);
	FINE();
	assert_int_equal(told.lease.id, 0);
	OTHER(lease_take, account.id, text("other"), 0, 1, LONG_MS);
	assert_true(told.lease.id > 0);

	/* The limit is whatever was said last. */
	again = account_of(1, "t", 150, -1);
	assert_true(again.limit_cost == 150 && again.limit_tokens == INT64_MAX);
	again = account_of(1, "t", -1, INT64_MAX);
	assert_true(again.limit_cost == 150);
	assert_int_equal(again.id, account.id);
	assert_int_equal(again.held_cost, 100);
	assert_int_equal(again.held_tokens, 2001);
	DO(lease_take, account.id, text("node"), 60, 0, LONG_MS);
	assert_int_equal(told.lease.cost, 50);
}

/* Of a lease that is over, the cost in journals is spent; a late settlement adds the rest. */
static void test_money_of_a_dead_node(void **state)
{
	struct store_exchange exchange = {
		.key = text("k"), .bytes = text("b"), .cost = 30, .tokens = 3};
	struct store_account account;
	struct store_claim claim;
	int64_t batch, leases[3] = {0};

	(void)state;
	batch = loaded("batch", 1);
	claim = claim_one(batch, LONG_MS);
	account = account_of(batch, "t", 100, 100);
	DO(lease_take, account.id, text("dead"), 80, 80, 0);
	leases[1] = told.lease.id;
	DO(journal_add, &claim, &exchange, leases, 2);
	FINE();
	DO(journal_add, &claim, &exchange, leases, 2); /* counts once */
	FINE();
	DO(lease_hold, leases[1], 80, 80, 0, 0, LONG_MS);
	FINE();
	assert_int_equal(told.lease.id, leases[1]);
	DO(release, text("dead"));
	OTHER(lease_take, account.id, text("node"), 100, 50, LONG_MS);
	assert_int_equal(told.lease.cost, 70);
	assert_int_equal(told.lease.tokens, 50);
	leases[2] = told.lease.id;
	OTHER(lease_hold, leases[1], 80, 80, 0, 0, LONG_MS);
	assert_int_equal(told.lease.id, 0);
	OTHER(lease_hold, leases[2], 70, 50, 0, 0, LONG_MS);
	assert_int_equal(told.lease.id, leases[2]);
	account = account_of(batch, "t", 100, 100);
	assert_int_equal(account.spent_cost, 30);
	assert_int_equal(account.spent_tokens, 3);
	assert_int_equal(account.held_cost, 70);

	exchange.number = 1;
	DO(journal_add, &claim, &exchange, leases, 2);
	assert_int_equal(account_of(batch, "t", 100, 100).spent_cost, 60);
	DO(lease_settle, leases[1], 65, 7);
	FINE();
	DO(lease_settle, leases[1], 65, 7);
	FINE();
	account = account_of(batch, "t", 100, 100);
	assert_int_equal(account.spent_cost, 65);
	assert_int_equal(account.spent_tokens, 7);
	OTHER(lease_settle, leases[2], 10, 0);
	account = account_of(batch, "t", 100, 100);
	assert_int_equal(account.spent_cost, 75);
	assert_int_equal(account.held_cost, 0);
}

static struct store_lease hold(int64_t lease, int64_t size, int64_t open, int64_t lease_ms)
{
	DO(lease_hold, lease, size, size, open, open, lease_ms);
	FINE();
	return told.lease;
}

/* The open part of a lease that ran out counts as spent until it is settled; a live lease is as
 * large as its node wants, and the limits allow. */
static void test_money_in_flight(void **state)
{
	struct store_exchange exchange = {
		.key = text("k"), .bytes = text("b"), .cost = 30, .tokens = 3};
	int64_t batch = loaded("batch", 1), account, dead, alive;
	struct store_claim claim = claim_one(batch, LONG_MS);
	struct store_lease lease;

	(void)state;
	account = account_of(batch, "t", 100, 100).id;
	DO(lease_take, account, text("dead"), 0, 0, LONG_MS);
	dead = told.lease.id;
	assert_true(dead > 0);
	lease = hold(dead, 80, 90, LONG_MS);
	assert_int_equal(lease.cost, 80);
	assert_int_equal(lease.open_cost, 80);
	assert_int_equal(lease.free_tokens, 20);
	assert_true(lease.others_ms == INT64_MAX);
	DO(journal_add, &claim, &exchange, &dead, 1);
	assert_int_equal(told.count, 1);
	assert_false(told.lost[0]);
	lease = hold(dead, 80, 60, LONG_MS);
	assert_int_equal(lease.open_cost, 50);
	assert_int_equal(lease.open_tokens, 60);
	lease = hold(dead, 80, 25, LONG_MS);
	assert_int_equal(lease.open_cost, 25);
	DO(release, text("dead"));

	OTHER(lease_take, account, text("alive"), 100, 10, LONG_MS);
	alive = told.lease.id;
	assert_int_equal(told.lease.cost, 45);
	assert_int_equal(account_of(batch, "t", 100, 100).spent_tokens, 28);
	assert_int_equal(hold(dead, 80, 25, LONG_MS).id, 0);
	for (exchange.number = 1; exchange.number < 3; exchange.number++) {
		exchange.cost = 20;
		DO(journal_add, &claim, &exchange, &dead, 1);
		FINE();
		assert_true(told.lost[0]);
		assert_int_equal(account_of(batch, "t", 100, 100).spent_cost,
				 exchange.number == 1 ? 55 : 70);
	}
	DO(lease_settle, dead, 65, 10);
	assert_int_equal(account_of(batch, "t", 100, 100).spent_cost, 65);
	assert_int_equal(account_of(batch, "t", 100, 100).spent_tokens, 10);

	assert_int_equal(hold(alive, 100, 0, LONG_MS).cost, 45); /* too much is held already */
	lease = hold(alive, 10, 5, LONG_MS);
	assert_int_equal(lease.cost, 10);
	assert_int_equal(lease.free_cost, 25);
	DO(lease_take, account, text("third"), 1, 0, LONG_MS);
	lease = hold(alive, 20, 5, LONG_MS);
	assert_int_equal(lease.cost, 20);
	assert_int_equal(lease.free_cost, 14);
	assert_true(lease.others_ms > 0 && lease.others_ms <= LONG_MS);
}

/* Costs in journals were part of the open ones: a dead node's lease counts no more than all of it.
 */
static void test_money_of_a_lease_counts_once(void **state)
{
	struct store_exchange exchange = {
		.key = text("k"), .bytes = text("b"), .cost = 60, .tokens = 10};
	int64_t batch = loaded("batch", 1), account, dead;
	struct store_claim claim = claim_one(batch, LONG_MS);

	(void)state;
	account = account_of(batch, "t", 100, 100).id;
	DO(lease_take, account, text("dead"), 0, 0, LONG_MS);
	dead = told.lease.id;
	assert_int_equal(hold(dead, 80, 80, LONG_MS).open_cost, 80);
	DO(journal_add, &claim, &exchange, &dead, 1);
	DO(release, text("dead"));
	OTHER(lease_take, account, text("alive"), 100, 100, LONG_MS);
	assert_int_equal(told.lease.cost, 20);
	assert_int_equal(told.lease.tokens, 20);
	assert_int_equal(account_of(batch, "t", 100, 100).spent_cost, 80);
}

/* Nothing was left when it was taken, and journals show a bill of it: others cannot have that. */
static void test_money_of_a_lease_without_any(void **state)
{
	struct store_exchange exchange = {
		.key = text("k"), .bytes = text("b"), .cost = 30, .tokens = 3};
	int64_t batch = loaded("batch", 1), account, empty, full;
	struct store_claim claim = claim_one(batch, LONG_MS);

	(void)state;
	account = account_of(batch, "t", 100, 100).id;
	DO(lease_take, account, text("other"), 100, 100, LONG_MS);
	full = told.lease.id;
	DO(lease_take, account, text("empty"), 0, 0, LONG_MS);
	empty = told.lease.id;
	DO(journal_add, &claim, &exchange, &empty, 1);
	assert_false(told.lost[0]);
	assert_int_equal(hold(full, 50, 0, LONG_MS).free_cost, 20);
	assert_int_equal(hold(full, 100, 0, LONG_MS).cost, 70);
	assert_int_equal(hold(full, 10, 0, LONG_MS).free_tokens, 87);
	assert_int_equal(hold(empty, 60, 5, LONG_MS).cost, 60);
	assert_int_equal(hold(full, 100, 0, LONG_MS).cost, 40);
}

enum { LEASES = 200, LIMIT = 1000 };

/* The model of an account. */
static struct {
	int64_t spent, paid; /* as the store counts, and as nodes have paid */
	size_t count;
	struct held {
		int64_t id, cost, known, flying;
		bool open, abandoned;
	} leases[LEASES];
} model;

static int64_t model_held(void)
{
	int64_t held = 0;

	for (size_t i = 0; i < model.count; i++)
		if (model.leases[i].open)
			held += model.leases[i].cost;
	return held;
}

/* Those that are over are ended with whatever is taken. */
static void end_abandoned(const struct held *but)
{
	for (size_t i = 0; i < model.count; i++) {
		struct held *lease = &model.leases[i];

		if (!lease->open || !lease->abandoned || lease == but)
			continue;
		lease->open = false;
		model.spent += lease->known + lease->flying;
	}
}

static void take(int64_t account, bool abandoned)
{
	int64_t wanted = rand() % 120, left;

	end_abandoned(NULL);
	left = LIMIT - model.spent - model_held();
	DO(lease_take, account, text(abandoned ? "dead" : "node"), wanted, 0,
	   abandoned ? 0 : LONG_MS);
	FINE();
	assert_int_equal(told.lease.id != 0, wanted ? left > 0 : left >= 0);
	assert_int_equal(told.lease.cost, wanted < left ? wanted : left);
	if (told.lease.id)
		model.leases[model.count++] = (struct held){told.lease.id, told.lease.cost, 0, 0,
							    true,          abandoned};
}

/* Calls are sent, of which nobody hears any more where the node dies. */
static void send_calls(struct held *lease)
{
	int64_t size = rand() % 150 + lease->known, open = rand() % 100, left;

	end_abandoned(lease);
	left = LIMIT - model.spent - model_held();
	OTHER(lease_hold, lease->id, size, 0, open, 0, LONG_MS);
	FINE();
	assert_int_equal(told.lease.id, lease->id);
	if (size > lease->cost + left)
		size = lease->cost + left;
	lease->cost = size;
	lease->flying = open < size - lease->known ? open : size - lease->known;
	assert_int_equal(told.lease.cost, lease->cost);
	assert_int_equal(told.lease.open_cost, lease->flying);
	assert_int_equal(told.lease.free_cost, LIMIT - model.spent - model_held());
	model.paid += lease->flying;
	if (lease->abandoned)
		OTHER(release, text("dead"));
}

/* A call is paid from a lease, and kept in the journal; or the node dies in between. */
static void pay(const struct store_claim *claim, struct held *lease, int number)
{
	struct store_exchange exchange = {.key = text("k"), .number = number, .bytes = text("b")};

	if (lease->cost == lease->known || lease->flying)
		return;
	exchange.cost = rand() % (lease->cost - lease->known);
	lease->known += exchange.cost;
	model.paid += exchange.cost;
	OTHER(journal_add, claim, &exchange, &lease->id, 1);
	FINE();
}

static void settle(struct held *lease)
{
	int64_t more = lease->cost > lease->known ? rand() % (lease->cost - lease->known) : 0;

	if (lease->flying)
		more = lease->flying;
	else
		model.paid += more;
	model.spent += lease->known + more;
	lease->open = false;
	OTHER(lease_settle, lease->id, lease->known + more, 0);
	FINE();
}

/* However nodes take, pay, give back and die: no more is granted than the limit leaves. */
/* Somebody knows that it is dead, and nobody waits for its leases. */
static void test_a_node_that_is_released(void **state)
{
	struct store_account account;
	struct store_claim claim;
	int64_t batch, lease;

	(void)state;
	batch = loaded("batch", 3);
	account = account_of(batch, "t", 100, 100);
	claim = claim_one(batch, LONG_MS);
	DO(claim, batch, NULL, text("other"), 1, LONG_MS);
	DO(lease_take, account.id, text("node"), 80, 80, 2 * (int64_t)LONG_MS);
	lease = told.lease.id;
	OTHER(nodes, batch);
	FINE();
	assert_int_equal(told.count, 2);
	assert_string_equal(told.node_names[0], "node");
	assert_int_equal(told.nodes[0].jobs, 1);
	assert_in_range(told.nodes[0].left_ms, LONG_MS + 1, 2 * (int64_t)LONG_MS);
	assert_string_equal(told.node_names[1], "other");
	assert_in_range(told.nodes[1].left_ms, 1, LONG_MS);
	OTHER(nodes, batch + 1);
	assert_int_equal(told.count, 0);

	OTHER(release, text("node"));
	FINE();
	OTHER(release, text("node"));
	FINE();
	finish(store, &claim, "late");
	REFUSED();
	DO(renew, &claim, 1, LONG_MS);
	assert_true(told.lost[0]);
	OTHER(lease_take, account.id, text("other"), 100, 100, LONG_MS);
	assert_int_equal(told.lease.cost, 100);
	DO(lease_hold, lease, 100, 100, 0, 0, LONG_MS);
	assert_int_equal(told.lease.id, 0);
	OTHER(claim, batch, NULL, text("other"), 5, LONG_MS);
	assert_int_equal(told.count, 2);
	assert_int_equal(told.jobs[0].id, claim.job);
	assert_int_equal(told.jobs[0].attempts, 1);
	OTHER(nodes, 0);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.nodes[0].jobs, 3);
}

static void test_money_is_never_overspent(void **state)
{
	struct store_account account;
	struct store_claim claim;

	(void)state;
	srand(20);
	memset(&model, 0, sizeof model);
	claim = claim_one(loaded("batch", 1), LONG_MS);
	account = account_of(1, "t", LIMIT, INT64_MAX);
	for (int i = 0; i < 120; i++) {
		struct held *lease = model.count ? &model.leases[(size_t)rand() % model.count]
						 : NULL;
		int what = rand() % 10;

		if (!lease || !lease->open || what < 3)
			take(account.id, what == 0);
		else if (what > 7 && !lease->flying)
			send_calls(lease);
		else if (what < 6)
			pay(&claim, lease, i);
		else if (!lease->abandoned)
			settle(lease);
		account = account_of(1, "t", LIMIT, INT64_MAX);
		assert_int_equal(account.spent_cost, model.spent);
		assert_int_equal(account.held_cost, model_held());
		assert_true(account.spent_cost + account.held_cost <= LIMIT);
		assert_true(model.paid <= LIMIT);
	}
	fprintf(stderr, "paid %ld spent %ld held %ld count %zu\n", model.paid, model.spent,
		model_held(), model.count);
	assert_true(model.paid > LIMIT / 2);
}

static void test_breakers(void **state)
{
	(void)state;
	DO(breaker_open, 1, text("t"), text("openai"), text("billing"));
	FINE();
	DO(breaker_open, 1, text("t"), text("openai"), text("auth"));
	FINE();
	DO(breaker_open, 1, text("u"), text("ollama"), text("auth"));
	OTHER(breakers, 1);
	FINE();
	assert_int_equal(told.count, 2);
	assert_string_equal(told.tenants[0], "t");
	assert_string_equal(told.providers[0], "openai");
	assert_string_equal(told.whys[0], "auth");
	OTHER(breaker_close, 1, text("t"), text("openai"));
	FINE();
	DO(breakers, 1);
	assert_int_equal(told.count, 1);
	DO(breakers, 2);
	assert_int_equal(told.count, 0);
}

static void test_arguments(void **state)
{
	struct store_load load = {1, 1, 0};

	(void)state;
	DO(find, text("\xff"));
	assert_int_equal(told.fault, STORE_USAGE);
	DO(find, text_from("a\0b", 3));
	assert_int_equal(told.fault, STORE_USAGE);
	DO(load_end, &load, text(""));
	assert_int_equal(told.fault, STORE_USAGE);
	DO(renew, NULL, 0, 1);
	assert_int_equal(told.fault, STORE_USAGE);
	DO(lease_take, 1, text("node"), -1, 0, 1);
	assert_int_equal(told.fault, STORE_USAGE);
}

/* Forgotten operations are done all the same; those of a freed store call nobody back. */
static void test_nobody_is_called_back(void **state)
{
	struct told never = {0};

	(void)state;
	store_forget(
		store_breaker_open(store, 1, text("t"), text("p"), text("why"), on_told, &never));
	store_forget(NULL);
	DO(breakers, 1);
	assert_int_equal(told.count, 1);
	for (int i = 0; i < 20; i++)
		store_counts(store, 1, on_told, &never);
	store_free(store);
	store = NULL;
	OTHER(breakers, 1);
	assert_int_equal(told.count, 1);
	assert_int_equal(never.times, 0);
}

static enum store_news heard;
static int times_heard;

static void on_news(void *owner, enum store_news news)
{
	(void)owner;
	heard = news;
	times_heard++;
}

static void test_news(void **state)
{
	const char *place = where_fresh();

	(void)state;
	tear_down(state);
	loop = loop_new();
	times_heard = 0;
	other = open_at(place, on_news);
	store = open_at(place, NULL);
	DO(breaker_open, 1, text("t"), text("p"), text("why"));
	while (!times_heard)
		event_base_loop(loop, EVLOOP_ONCE);
	assert_int_equal(heard, STORE_CHANGED);
}

enum { OF_A_SERVER = 7 }; /* tests at the end of the list */

int main(int argc, char **argv)
{
	bool postgres = argc > 1 && !strcmp(argv[1], "postgres");
	const char *missing = postgres ? server_missing() : NULL;

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_load),
		TEST(test_lines_that_are_there),
		TEST(test_a_load_that_was_left),
		TEST(test_jobs_are_added),
		TEST(test_a_job_is_claimed_once),
		TEST(test_claims_at_once),
		TEST(test_claims_of_a_tenant),
		TEST(test_a_stale_claim),
		TEST(test_a_suspect),
		TEST(test_a_late_claim),
		TEST(test_finish),
		TEST(test_jobs_by_their_ids),
		TEST(test_rerun),
		TEST(test_postpone),
		TEST(test_journal),
		TEST(test_accounts),
		TEST(test_money_of_a_dead_node),
		TEST(test_money_in_flight),
		TEST(test_money_of_a_lease_counts_once),
		TEST(test_money_of_a_lease_without_any),
		TEST(test_a_node_that_is_released),
		TEST(test_money_is_never_overspent),
		TEST(test_breakers),
		TEST(test_arguments),
		TEST(test_nobody_is_called_back),
		TEST(test_news),
		cmocka_unit_test(test_killed),
		/* of a server only */
		TEST(test_many_open_at_once),
		TEST(test_strange_servers),
		TEST(test_no_server),
		TEST(test_locked_out),
		TEST(test_others_write_during_a_query),
		TEST(test_the_server_is_killed),
		TEST(test_a_late_back_end),
	};
	size_t count = sizeof tests / sizeof *tests - (postgres ? 0 : OF_A_SERVER);
	int failed;

	if (missing) {
		printf("1..0 # SKIP %s\n", missing);
		return 0;
	}
	where_begin(postgres);
	failed = _cmocka_run_group_tests(postgres ? "postgres" : "sqlite", tests, count, NULL,
					 NULL);
	where_end();
	return failed;
}
