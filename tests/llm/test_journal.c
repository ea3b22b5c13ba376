/* llm/journal: what its host has is believed only where it was put; and after the first thing that
 * went wrong nothing is kept, and nothing waits any more to be sent. */
#include "llm/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/loop.h"

static char bytes[1000]; /* what the host has */
static size_t size, kept, broken, gone;
static char why[512];
static bool refuses;

static bool look(void *owner, const char *key, int64_t number, struct rlmd_text *ret)
{
	(void)owner;
	(void)key;
	(void)number;
	*ret = (struct rlmd_text){bytes, size};
	return size;
}

static void keep(void *owner, const char *key, int64_t number, struct rlmd_text entry,
		 struct rlmd_journal_entry *handle)
{
	(void)owner;
	(void)key;
	(void)number;
	assert_in_range(entry.size, 1, sizeof bytes);
	memcpy(bytes, entry.bytes, entry.size);
	size = entry.size;
	kept++;
	if (refuses)
		rlmd_journal_failed(handle, NULL);
	else
		rlmd_journal_kept(handle);
}

static void on_broken(void *owner, const struct rlmd_error *err)
{
	(void)owner;
	strcpy(why, err->text);
	broken++;
}

static void on_go(void *owner)
{
	(void)owner;
	gone++;
}

static struct journal *open_journal(struct event_base *base)
{
	const struct rlmd_journal host = {.size = sizeof host, .look = look, .keep = keep};

	size = kept = broken = gone = 0;
	refuses = false;
	return journal_new(base, &host, on_broken, NULL, NULL);
}

static json_t *entry_of(const char *word)
{
	return json_pack("{s:s}", "word", word);
}

/* Under another key or number it is something else that was paid for. */
static void test_where_it_stands(void **state)
{
	static const struct {
		const char *key;
		int64_t number;
	} others[] = {{"ab", 0}, {"b", 1}, {"a", 2}, {"a", 11}};
	struct event_base *base = loop_new();
	struct journal *journal = open_journal(base);
	json_t *found;

	(void)state;
	assert_null(journal_find(journal, "a", 1));
	assert_int_equal(broken, 0);
	journal_keep(journal, "a", 1, entry_of("x"), (struct rlmd_amount){0}, NULL, NULL);
	found = journal_find(journal, "a", 1);
	assert_string_equal(json_string_value(json_object_get(found, "word")), "x");
	json_decref(found);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_null(journal_find(journal, others[i].key, others[i].number));
		assert_int_equal(broken, i + 1);
		assert_non_null(strstr(why, "it is not what was kept there"));
	}
	journal_free(journal);
	event_base_free(base);
}

/* A request waits for what has to be kept first. */
static void test_waiting(void **state)
{
	struct event_base *base = loop_new();
	struct journal *journal = open_journal(base);
	struct journal_waiter waiter = {.go = on_go};

	(void)state;
	assert_false(journal_wait(journal, &waiter));
	journal_keep_first(journal, "a", 0, entry_of("x"));
	assert_true(journal_wait(journal, &waiter));
	assert_int_equal(gone, 0);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(gone, 1);
	assert_false(journal_wait(journal, &waiter));
	journal_free(journal);
	event_base_free(base);
}

/* The job is over: who waits does so until that ends it. */
static void test_broken(void **state)
{
	struct event_base *base = loop_new();
	struct journal *journal = open_journal(base);
	struct journal_waiter waiter = {.go = on_go};

	(void)state;
	refuses = true;
	journal_keep_first(journal, "a", 0, entry_of("x"));
	assert_int_equal(broken, 1);
	assert_int_equal(kept, 1);
	journal_keep(journal, "a", 1, entry_of("x"), (struct rlmd_amount){0}, NULL, NULL);
	assert_int_equal(kept, 1);
	assert_true(journal_wait(journal, &waiter));
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(gone, 0);
	journal_wait_no_more(&waiter);
	journal_free(journal);
	event_base_free(base);
}

/* Freed by its host: whatever is had from now on is not handed over. */
static void test_closed(void **state)
{
	struct event_base *base = loop_new();
	struct journal *journal = open_journal(base);
	struct journal_waiter waiter = {.go = on_go};

	(void)state;
	journal_close(journal);
	journal_keep(journal, "a", 0, entry_of("x"), (struct rlmd_amount){0}, NULL, NULL);
	assert_int_equal(kept, 0);
	assert_true(journal_wait(journal, &waiter));
	journal_wait_no_more(&waiter);
	journal_free(journal);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_it_stands),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_closed),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
