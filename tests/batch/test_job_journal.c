/* batch/job_journal: what a job had from models, over a real store; the engine's part is the
 * test's. */
#include "batch/job_journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "batch/lease.h"
#include "loaded_store.h"

enum { LONG_MS = 60000, COST = 7, ENTRIES = 300 }; /* more than are read at once */

/* An entry of the engine's, which waits to hear that it is durable. */
struct rlmd_journal_entry {
	int kept, failed;
	struct rlmd_error error;
};

static struct {
	struct loaded_store loaded;
	struct lease *lease;
	struct job_journal *journal;
	struct store_claim claim;
	int64_t batch;
	int read; /* how often it was told */
	bool read_failed;
} test;

void rlmd_journal_kept(struct rlmd_journal_entry *entry)
{
	entry->kept++;
}

void rlmd_journal_failed(struct rlmd_journal_entry *entry, const struct rlmd_error *err)
{
	entry->failed++;
	entry->error = *err;
}

struct rlmd_amount rlmd_journal_entry_bill(const struct rlmd_journal_entry *entry)
{
	(void)entry;
	return (struct rlmd_amount){COST, 1};
}

static void on_read(void *owner, const struct rlmd_error *err)
{
	(void)owner;
	test.read++;
	test.read_failed = err;
}

/* The next attempt of the only job, and its journal. */
static void begin(void)
{
	DO(&test.loaded, claim, test.batch, NULL, text_of("here"), 1, LONG_MS);
	assert_int_equal(test.loaded.told.count, 1);
	test.claim = (struct store_claim){test.loaded.told.jobs[0].id,
					  test.loaded.told.jobs[0].token};
	test.journal = job_journal_new(test.loaded.store, &test.claim, test.lease);
	test.read = 0;
	job_journal_read(test.journal, on_read, NULL);
}

static void wait_for(const int *times)
{
	while (!*times)
		event_base_loop(test.loaded.base, EVLOOP_ONCE);
}

/* The process is gone; the job waits again. */
static void end(void)
{
	job_journal_free(test.journal);
	test.journal = NULL;
	DO(&test.loaded, release, text_of("here"));
}

static int set_up(void **state)
{
	(void)state;
	memset(&test, 0, sizeof test);
	loaded_store_open(&test.loaded);
	test.batch = loaded_store_add(&test.loaded, "b", "", 1);
	test.lease = lease_new(&(struct lease_options){.base = test.loaded.base,
						       .store = test.loaded.store,
						       .batch = test.batch,
						       .tenant = "",
						       .name = "this batch",
						       .node = "here",
						       .lease_ms = LONG_MS,
						       .limit = {RLMD_UNLIMITED, RLMD_UNLIMITED},
						       .bound = {RLMD_UNLIMITED, RLMD_UNLIMITED}});
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	job_journal_free(test.journal);
	lease_free(test.lease);
	loaded_store_close(&test.loaded);
	return 0;
}

/* The store is not asked, so it is told at once, and there is nothing. */
static void test_a_first_attempt(void **state)
{
	struct rlmd_text had;
	const struct rlmd_journal *hooks;

	(void)state;
	begin();
	assert_int_equal(test.read, 1);
	assert_false(test.read_failed);
	hooks = job_journal_hooks(test.journal);
	assert_false(hooks->look(hooks->owner, "k", 1, &had));
}

static void keep(struct rlmd_journal_entry *entry, const char *key, int64_t number,
		 struct rlmd_text bytes)
{
	const struct rlmd_journal *hooks = job_journal_hooks(test.journal);

	hooks->keep(hooks->owner, key, number, bytes, entry);
	assert_int_equal(entry->kept + entry->failed, 0);
}

static struct rlmd_text bytes_of(int entry)
{
	static const char bytes[] = {'a', '\0', 'b', '\xff'};

	return text_from(&bytes[entry % 4], sizeof bytes - (size_t)entry % 4);
}

/* Each by its key and number, with the bytes that it had. */
static void test_a_second_attempt(void **state)
{
	static struct rlmd_journal_entry entries[ENTRIES];
	const struct rlmd_journal *hooks;
	struct rlmd_text had;

	(void)state;
	begin();
	for (int i = 0; i < ENTRIES; i++)
		keep(&entries[i], "k", i, bytes_of(i));
	for (int i = 0; i < ENTRIES; i++) {
		wait_for(&entries[i].kept);
		assert_int_equal(entries[i].kept + entries[i].failed, 1);
	}
	end();
	begin();
	assert_int_equal(test.read, 0);
	wait_for(&test.read);
	assert_false(test.read_failed);
	hooks = job_journal_hooks(test.journal);
	for (int i = 0; i < ENTRIES; i++) {
		assert_true(hooks->look(hooks->owner, "k", i, &had));
		assert_int_equal(had.size, bytes_of(i).size);
		assert_memory_equal(had.bytes, bytes_of(i).bytes, had.size);
	}
	assert_false(hooks->look(hooks->owner, "k", ENTRIES, &had));
	assert_false(hooks->look(hooks->owner, "other", 0, &had));
	assert_int_equal(test.read, 1);
}

/* Somebody else has the job by now: the entry is not kept, and nothing is wrong with the job. */
static void test_a_job_that_was_lost(void **state)
{
	struct rlmd_journal_entry entry = {0};

	(void)state;
	begin();
	DO(&test.loaded, release, text_of("here"));
	keep(&entry, "k", 1, text_of("bytes"));
	wait_for(&entry.failed);
	assert_int_equal(entry.kept, 0);
	assert_int_equal(entry.error.kind, RLMD_ERROR_CANCELLED);
}

/* Each entry is told of, once. */
static void test_freed_meanwhile(void **state)
{
	struct rlmd_journal_entry entries[2] = {0};

	(void)state;
	begin();
	keep(&entries[0], "k", 1, text_of("one"));
	keep(&entries[1], "k", 2, text_of("two"));
	end();
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(entries[i].kept, 0);
		assert_int_equal(entries[i].failed, 1);
		assert_int_equal(entries[i].error.kind, RLMD_ERROR_CANCELLED);
	}
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_first_attempt),
		TEST(test_a_second_attempt),
		TEST(test_a_job_that_was_lost),
		TEST(test_freed_meanwhile),
	};

	return cmocka_run_group_tests_name("job_journal", tests, NULL, NULL);
}
