/* An operation that was told as done is there after a power cut at any moment. */
#include "store/database.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "asking.h"
#include "base/loop.h"
#include "base/text.h"
#include "losing_disk.h"
#include "where.h"

enum { CUTS = 120, JOBS = 12, LONG_MS = 60 * 60 * 1000, SAID_OF_A_JOB = 2, BULK = 9000 };

static struct event_base *loop;
static struct told told;
static atomic_int said; /* what was told so far: loaded, then of each job kept and finished */

#define DO(operation, ...) ASK(loop, &told, store_##operation, store, __VA_ARGS__)
#define FINE()             assert_string_equal(told.error, "")

static struct store *open_store(const char *place)
{
	struct store_options options = {.look_ms = -1, .owner = &told};
	struct store *store;

	told = (struct told){0};
	store = store_open(loop, place, &options, on_told, NULL);
	assert_non_null(store);
	await(loop, &told);
	FINE();
	return store;
}

static void load(struct store *store)
{
	char name[8];
	struct store_line line = {.tenant = text_of("t"), .digest = text_of("d")};
	struct store_load token;

	DO(load_begin, text_of("batch"), false);
	FINE();
	token = told.load;
	for (int i = 1; i <= JOBS; i++) {
		snprintf(name, sizeof name, "%d", i);
		line.number = i;
		line.custom_id = line.line = text_of(name);
		DO(load_add, &token, &line, 1);
		FINE();
	}
	DO(load_end, &token, text_of("file"));
	FINE();
	said++;
}

/* The results are long, so that the log is written back to the database now and then. */
static void work(struct store *store)
{
	static char bulk[BULK];
	struct store_exchange exchange = {.key = text_of("k"), .bytes = text_of("b")};
	struct store_outcome outcome = {.succeeded = true, .result = {bulk, sizeof bulk}};
	struct store_claim claim;

	memset(bulk, 'x', sizeof bulk);
	DO(claim, 1, NULL, text_of("node"), 1, LONG_MS);
	FINE();
	claim = (struct store_claim){told.jobs[0].id, told.jobs[0].token};
	DO(journal_add, &claim, &exchange, NULL, 0);
	FINE();
	said++;
	DO(finish, &claim, &outcome);
	FINE();
	said++;
}

/* Opened as after a start of the machine: what was said by then is there, and nothing of which
 * nobody has heard but what was under way. */
static void check(const char *path, int said_then)
{
	int ended = (said_then - 1) / SAID_OF_A_JOB;
	struct store *store = open_store(path);

	DO(find, text_of("batch"));
	FINE();
	assert_true(told.ready || !said_then);
	assert_true(!told.ready || told.jobs_ready == JOBS);
	DO(results, 1, 0, ASKING_MOST, false);
	FINE();
	assert_in_range(told.count, said_then ? ended : 0, said_then ? ended + 1 : 0);
	for (size_t i = 0; i < told.count; i++)
		assert_int_equal(told.jobs[i].number, i + 1);
	if (said_then > 1 && said_then % SAID_OF_A_JOB == 0 && (int)told.count == ended) {
		DO(journal_read, ended + 1, 0, 10);
		FINE();
		assert_int_equal(told.count, 1);
	}
	store_free(store);
}

static void test_cut(void **state)
{
	char path[160];
	int cuts = 0, said_then;

	(void)state;
	for (unsigned seed = 1; seed <= CUTS; seed++) {
		struct store *store;

		snprintf(path, sizeof path, "%s", where_path("left"));
		remove(where_path("left-shm"));
		loop = loop_new();
		said = 0;
		losing_disk_begin();
		losing_disk_cut((int)(seed * 71 % 997) + 1, seed, path, &said);
		store = open_store(where_fresh());
		load(store);
		for (int i = 0; i < JOBS; i++)
			work(store);
		store_free(store);
		losing_disk_end();
		if (losing_disk_was_cut(&said_then)) {
			check(path, said_then);
			cuts++;
		}
		event_base_free(loop);
	}
	assert_true(cuts > CUTS / 2);
}

static int set_up(void **state)
{
	(void)state;
	where_begin(false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	where_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
