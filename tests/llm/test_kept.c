/* llm/kept: which answers are had again, and what they cost then. */
#include "llm/kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "base/loop.h"
#include "llm/exchange.h"
#include "llm/provider.h"

enum { ENTRIES_MAX = 8, COST = 1000 };

/* The host of a journal. */
static struct {
	char *bytes; /* owned */
	size_t size;
	int64_t number;
} entries[ENTRIES_MAX];
static size_t entry_count;

static struct event_base *base;
static struct rlmd_provider *provider;
static char dir[64];
static struct llm_message message = {.role = LLM_USER};
static struct llm_request request;

static bool look(void *owner, const char *key, int64_t number, struct rlmd_text *ret)
{
	(void)owner;
	(void)key;
	for (size_t i = 0; i < entry_count; i++) {
		if (entries[i].number != number)
			continue;
		*ret = text_from(entries[i].bytes, entries[i].size);
		return true;
	}
	return false;
}

static void keep(void *owner, const char *key, int64_t number, struct rlmd_text bytes,
		 struct rlmd_journal_entry *handle)
{
	(void)owner;
	(void)key;
	assert_in_range(entry_count, 0, ENTRIES_MAX - 1);
	entries[entry_count].bytes = text_copy(bytes);
	entries[entry_count].size = bytes.size;
	entries[entry_count++].number = number;
	rlmd_journal_kept(handle);
}

static void on_broken(void *owner, const struct rlmd_error *err)
{
	(void)owner;
	fail_msg("%s", err->text);
}

static struct kept open_kept(bool with_journal)
{
	const struct rlmd_journal host = {.size = sizeof host, .look = look, .keep = keep};
	struct kept opened = {.base = base, .age_ms = 86400000, .seen = json_object()};

	if (with_journal)
		opened.journal = journal_new(base, &host, on_broken, NULL, NULL);
	else
		opened.cache = cache_new(base, dir, 64 << 20, NULL);
	assert_true(opened.journal || opened.cache);
	return opened;
}

static void close_kept(struct kept *kept)
{
	cache_free(kept->cache);
	kept_done(kept);
}

static int set_up(void **state)
{
	static const struct rlmd_provider_options config = {.kind = "ollama"};

	(void)state;
	strcpy(dir, "/tmp/rlmd-kept-XXXXXX");
	base = loop_new();
	provider = provider_new(&config, NULL);
	message.text = text_of("a question");
	request = (struct llm_request){.model = "m",
				       .messages = &message,
				       .message_count = 1,
				       .max_tokens = 100,
				       .kind = LLM_QUERY};
	return !mkdtemp(dir);
}

static int tear_down(void **state)
{
	DIR *files = opendir(dir);
	const struct dirent *file;

	(void)state;
	while ((file = readdir(files)))
		unlinkat(dirfd(files), file->d_name, 0);
	closedir(files);
	while (entry_count)
		free(entries[--entry_count].bytes);
	provider_unref(provider);
	event_base_free(base);
	return rmdir(dir);
}

static struct llm_response answer_of(const char *text)
{
	return (struct llm_response){.text = text_of(text),
				     .usage = {.input = 7, .output = 3},
				     .cost_known = true,
				     .cost = COST,
				     .model = "m"};
}

/* The next asking of that question, in a job of its own or of `kept`. */
static struct kept_lookup *ask(struct kept *kept)
{
	return kept_look(kept, provider, &request, "somebody");
}

/* The outcome of a request: whether the journal is yet to have it. */
static bool keep_outcome(struct kept_lookup *lookup, const struct llm_response *response,
			 const struct rlmd_error *err)
{
	struct llm_request asked = request;
	struct llm_warnings warnings = {0};
	struct kept_writing *writing;
	json_t *told;

	asked.lookup = lookup;
	writing = kept_keep(NULL, NULL, &asked, response, err, &warnings, NULL, NULL);
	kept_writing_free(writing);
	told = request_take_warnings(&warnings);
	assert_int_equal(json_array_size(told), 0);
	json_decref(told);
	json_decref(warnings.all);
	return writing;
}

static void answer(struct kept_lookup *lookup, const struct llm_response *response,
		   const struct rlmd_error *err)
{
	assert_false(kept_is_found(lookup));
	keep_outcome(lookup, response, err);
	kept_lookup_free(lookup);
}

/* An answer that another call might not get so is not kept for one. */
static void test_what_a_cache_keeps(void **state)
{
	struct llm_response good = answer_of("good"), rows[5] = {good, good, good, good, good};
	struct kept kept;
	struct kept_lookup *lookup;

	(void)state;
	rows[0].finish = LLM_FINISH_LENGTH;
	rows[1].repeating = true;
	rows[2].overlong = true;
	rows[3].cached = true;
	rows[4].text = text_of("");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		kept = open_kept(false);
		answer(ask(&kept), &rows[i], NULL);
		close_kept(&kept);
	}
	kept = open_kept(false);
	answer(ask(&kept), &good, NULL);
	answer(ask(&kept), &good, NULL); /* the second asking is another one */
	close_kept(&kept);
	kept = open_kept(false);
	for (int i = 0; i < 3; i++) {
		lookup = ask(&kept);
		assert_int_equal(kept_is_found(lookup), i < 2);
		kept_lookup_free(lookup);
	}
	close_kept(&kept);
}

static void test_what_is_cached_costs_nothing(void **state)
{
	struct llm_response good = answer_of("good");
	struct kept kept = open_kept(false);
	const struct exchange *exchange;
	struct kept_lookup *lookup;

	(void)state;
	answer(ask(&kept), &good, NULL);
	close_kept(&kept);
	kept = open_kept(false);
	lookup = ask(&kept);
	assert_true(kept_is_found(lookup) && !kept_is_paid(lookup));
	exchange = kept_exchange(lookup);
	assert_string_equal(exchange->text, "good");
	assert_true(exchange->cached);
	assert_int_equal(exchange->cost, 0);
	assert_int_equal(exchange->usage.input + exchange->usage.output, 0);
	assert_int_equal(kept_bill(lookup).calls, 0);
	kept_lookup_free(lookup);
	close_kept(&kept);
}

/* A run that failed is not led by the same answers into the same again; what its code asked is had
 * all the same. */
static void test_what_a_failed_run_forgets(void **state)
{
	static const enum llm_kind kinds[] = {LLM_TURN, LLM_FORCED, LLM_QUERY, LLM_DIRECT};
	struct llm_response good = answer_of("good");
	struct kept_lookup *lookup;
	struct kept kept;

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		message.text = text_of((const char *const[]){"a", "b", "c", "d"}[i]);
		request.kind = kinds[i];
		kept = open_kept(false);
		answer(ask(&kept), &good, NULL);
		kept_forget(&kept, "another");
		close_kept(&kept);
		kept = open_kept(false);
		lookup = ask(&kept);
		assert_true(kept_is_found(lookup));
		kept_lookup_free(lookup);
		kept_forget(&kept, "somebody");
		close_kept(&kept);
		kept = open_kept(false);
		lookup = ask(&kept);
		assert_int_equal(kept_is_found(lookup),
				 kinds[i] == LLM_QUERY || kinds[i] == LLM_DIRECT);
		kept_lookup_free(lookup);
		close_kept(&kept);
	}
}

/* The next attempt at the same work, with the same journal. */
static struct kept_lookup *ask_anew(struct kept *kept)
{
	close_kept(kept);
	*kept = open_kept(true);
	return ask(kept);
}

static void assert_bill(struct kept_lookup *lookup, int64_t calls)
{
	struct kept_bill bill = kept_bill(lookup);

	assert_int_equal(bill.calls, calls);
	assert_int_equal(bill.cost, calls * COST);
	assert_int_equal(bill.usage.input, calls * 7);
	assert_int_equal(kept_bill(lookup).calls, 0); /* once */
}

/* A call that ended an attempt is asked for again, and its bill counts; but not what was too long
 * for its model, which was said in fewer words then. */
static void test_what_a_journal_leads_to(void **state)
{
	struct llm_response none = answer_of("");
	struct rlmd_error err = {.kind = RLMD_ERROR_OVERLOADED, .text = "too busy"};
	struct kept kept = open_kept(true);
	struct kept_lookup *lookup = ask(&kept);

	(void)state;
	request.decides = true;
	answer(lookup, &none, &err);
	lookup = ask_anew(&kept);
	assert_false(kept_is_found(lookup));
	assert_bill(lookup, 1);
	err.kind = RLMD_ERROR_CONTEXT_OVERFLOW;
	answer(lookup, &none, &err);
	lookup = ask_anew(&kept);
	assert_true(kept_is_found(lookup) && kept_is_paid(lookup));
	assert_int_equal(kept_exchange(lookup)->error.kind, RLMD_ERROR_CONTEXT_OVERFLOW);
	assert_int_equal(kept_exchange(lookup)->cost, COST);
	assert_bill(lookup, 1);
	assert_false(keep_outcome(lookup, &none, NULL)); /* it is there */
	kept_lookup_free(lookup);
	close_kept(&kept);
}

/* A failure that did not decide was an answer like others: it was told to code. */
static void test_a_failure_that_code_was_told(void **state)
{
	struct llm_response none = answer_of("");
	struct rlmd_error err = {.kind = RLMD_ERROR_OVERLOADED, .text = "too busy"};
	struct kept kept = open_kept(true);
	struct kept_lookup *lookup = ask(&kept);

	(void)state;
	answer(lookup, &none, &err);
	lookup = ask_anew(&kept);
	assert_true(kept_is_found(lookup));
	assert_int_equal(kept_exchange(lookup)->error.kind, RLMD_ERROR_OVERLOADED);
	assert_bill(lookup, 0);
	kept_lookup_free(lookup);
	close_kept(&kept);
}

/* A call that was not wanted any more gave no answer, and what it had used is spent. */
static void test_a_call_that_was_cancelled(void **state)
{
	const struct llm_usage used = {.input = 7};
	struct kept kept = open_kept(true);
	struct kept_lookup *lookup = ask(&kept);

	(void)state;
	request.lookup = lookup;
	kept_keep_cancelled(&kept, NULL, &request, &used, COST, true);
	kept_lookup_free(lookup);
	lookup = ask_anew(&kept);
	assert_false(kept_is_found(lookup));
	assert_true(kept_was_cancelled(lookup));
	assert_bill(lookup, 1);
	kept_lookup_free(lookup);
	close_kept(&kept);
}

/* --- answers of megabytes ------------------------------------------------------------- */

enum { LARGE = 3 << 20 };

static char large[LARGE];

/* Those with a name of their own, or all that there are. */
static int count_files(bool whole)
{
	DIR *files = opendir(dir);
	const struct dirent *file;
	int count = whole ? 0 : -2; /* "." and ".." */

	while ((file = readdir(files)))
		count += !whole || *file->d_name != '.';
	closedir(files);
	return count;
}

static void assert_whole(void)
{
	DIR *files = opendir(dir);
	const struct dirent *file;

	while ((file = readdir(files))) {
		struct stat st;

		assert_int_equal(fstatat(dirfd(files), file->d_name, &st, 0), 0);
		if (*file->d_name != '.')
			assert_in_range(st.st_size, LARGE, 2 * LARGE);
	}
	closedir(files);
}

static void count_end(void *owner)
{
	++*(int *)owner;
}

static struct kept_writing *keep_large(struct kept *kept, const char *name,
				       const struct llm_response *response,
				       struct llm_warnings *warnings, int *ends)
{
	struct kept_writing *writing = kept_keep(kept, name, &request, response, NULL, warnings,
						 count_end, ends);

	assert_non_null(writing);
	assert_false(kept_is_journaled(writing));
	return writing;
}

/* With a cache and a recording, and the request looked up; returns the name of its recording. */
static char *open_both(struct kept *kept)
{
	*kept = open_kept(false);
	kept->recording = recording_new(base, dir, NULL, &kept->keys, NULL);
	request.lookup = ask(kept);
	return kept_name(kept, &request);
}

static void close_both(struct kept *kept)
{
	kept_lookup_free((struct kept_lookup *)request.lookup);
	close_kept(kept);
}

/* They are written by the loop, in parts: others come meanwhile, and no file is seen before it is
 * whole. */
static void test_large_answers_are_written_in_steps(void **state)
{
	struct llm_warnings warnings = {0};
	struct llm_response response = answer_of("");
	struct kept kept;
	int ends = 0, steps = 0;
	char *name;

	(void)state;
	memset(large, 'x', sizeof large);
	response.text = text_from(large, sizeof large);
	name = open_both(&kept);
	keep_large(&kept, name, &response, &warnings, &ends);
	while (!ends) {
		assert_whole();
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
		assert_in_range(++steps, 1, 100);
	}
	assert_in_range(steps, 6, 9);
	assert_int_equal(ends, 1);
	assert_int_equal(count_files(true), 2);
	free(name);
	close_both(&kept);
	assert_null(warnings.all);
}

static int64_t order_of(const char *name)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	json_t *entry = json_load_file(path, 0, NULL);
	int64_t order = json_integer_value(json_object_get(entry, "order"));

	assert_true(json_is_integer(json_object_get(entry, "order")));
	json_decref(entry);
	return order;
}

/* A recording has the order in which answers are used, for a replay keeps to it: one that came
 * later and was small was used before. Keys that another provider brings meanwhile, longer than all
 * before, are known of all that is yet to be written. */
static void test_others_while_a_large_answer_is_recorded(void **state)
{
	static char key[100000], text[LARGE];
	struct llm_warnings warnings = {0};
	struct llm_response response = answer_of(""), small = answer_of("small");
	struct kept kept;
	auto_free char *name = NULL, *other = NULL, *path = NULL, *bytes = NULL;
	int ends = 0;

	(void)state;
	memset(key, 'k', sizeof key - 1);
	memset(text, 'x', sizeof text);
	memcpy(text + sizeof text - sizeof key, key, sizeof key - 1);
	response.text = text_from(text, sizeof text);
	name = open_both(&kept);
	other = kept_name(&kept, &request);
	keep_large(&kept, name, &response, &warnings, &ends);
	key_list_add(&kept.keys, key);
	assert_null(kept_keep(&kept, other, &request, &small, NULL, &warnings, NULL, NULL));
	assert_int_equal(event_base_dispatch(base), 1);
	assert_int_equal(ends, 1);
	assert_int_equal(order_of(other), 0);
	assert_int_equal(order_of(name), 1);
	path = xasprintf("%s/%s", dir, name);
	bytes = file_read(path, LARGE, NULL, NULL);
	assert_non_null(strstr(bytes, "xxx***x"));
	assert_null(strstr(bytes, "kkk"));
	close_both(&kept);
	assert_null(warnings.all);
}

/* Nothing is left of them, and nobody hears of their end. */
static void test_large_answers_that_are_given_up(void **state)
{
	struct llm_warnings warnings = {0};
	struct llm_response response = answer_of("");
	struct kept kept;
	int ends = 0;
	char *name;

	(void)state;
	response.text = text_from(large, sizeof large);
	name = open_both(&kept);
	for (int steps = 0; steps < 3; steps++) {
		struct kept_writing *writing = keep_large(&kept, name, &response, &warnings, &ends);

		for (int i = 0; i < steps; i++)
			assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
		kept_writing_free(writing);
		assert_int_equal(event_base_loop(base, EVLOOP_NONBLOCK), 1); /* it has no event */
		assert_int_equal(count_files(false), 0);
	}
	assert_int_equal(ends, 0);
	free(name);
	close_both(&kept);
}

/* Finds a large answer that was kept; returns how many turns of the loop that took. */
static int find_large(struct kept_lookup *lookup)
{
	int ends = 0, steps = 0;

	assert_true(kept_wait(lookup, count_end, &ends));
	while (!ends) {
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
		assert_in_range(++steps, 1, 100);
	}
	assert_false(kept_wait(lookup, count_end, &ends));
	return steps;
}

static void damage(void)
{
	DIR *files = opendir(dir);
	const struct dirent *file;

	while ((file = readdir(files))) {
		int fd = openat(dirfd(files), file->d_name, O_WRONLY);

		if (fd < 0)
			continue; /* a directory */
		assert_int_equal(pwrite(fd, "y", 1, LARGE), 1);
		close(fd);
	}
	closedir(files);
}

/* They are read by the loop, in parts; one that is damaged was never there. */
static void test_large_answers_are_read_in_steps(void **state)
{
	struct llm_warnings warnings = {0};
	struct llm_response response = answer_of("");
	struct kept kept = open_kept(false);
	struct kept_lookup *lookup;
	int ends = 0;

	(void)state;
	memset(large, 'x', sizeof large);
	memset(large, '"', sizeof large / 2); /* twice as long, quoted */
	response.text = text_from(large, sizeof large);
	request.lookup = lookup = ask(&kept);
	assert_false(kept_wait(lookup, count_end, &ends));
	keep_large(&kept, NULL, &response, &warnings, &ends);
	assert_int_equal(event_base_dispatch(base), 1);
	assert_int_equal(ends, 1);
	kept_lookup_free(lookup);
	close_kept(&kept);

	kept = open_kept(false);
	lookup = ask(&kept);
	kept_lookup_free(lookup); /* nobody waits for it any more */
	lookup = ask(&kept);
	assert_false(kept_wait(lookup, count_end, &ends)); /* the second time is another */
	kept_lookup_free(lookup);
	close_kept(&kept);
	for (int damaged = 0; damaged < 2; damaged++) {
		kept = open_kept(false);
		lookup = ask(&kept);
		assert_in_range(find_large(lookup), 2, 6);
		assert_int_equal(kept_is_found(lookup), !damaged);
		if (!damaged) {
			assert_int_equal(kept_exchange(lookup)->text_size, sizeof large);
			assert_memory_equal(kept_exchange(lookup)->text, large, sizeof large);
			assert_true(kept_exchange(lookup)->cached);
		}
		kept_lookup_free(lookup);
		close_kept(&kept);
		damage();
	}
	assert_int_equal(ends, 1);
}

/* A disk that is full in the middle of them is warned of, once for each. */
static void test_large_answers_without_room(void **state)
{
	const struct rlimit little = {2 << 20, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
	struct llm_warnings warnings = {0};
	struct llm_response response = answer_of("");
	struct kept kept;
	int ends = 0;
	char *name, *words;
	json_t *told;

	(void)state;
	response.text = text_from(large, sizeof large);
	name = open_both(&kept);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &little);
	keep_large(&kept, name, &response, &warnings, &ends);
	assert_int_equal(event_base_dispatch(base), 1);
	setrlimit(RLIMIT_FSIZE, &all);
	assert_int_equal(ends, 1);
	assert_int_equal(count_files(false), 0);
	told = request_take_warnings(&warnings);
	words = json_dumps(told, 0);
	assert_int_equal(json_array_size(told), 2);
	assert_non_null(strstr(words, "this call is not recorded: /tmp/rlmd-kept-"));
	assert_non_null(strstr(words, "an answer is not kept: /tmp/rlmd-kept-"));
	assert_non_null(strstr(words, "cannot write: File too large"));
	free(words);
	json_decref(told);
	json_decref(warnings.all);
	free(name);
	close_both(&kept);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_a_cache_keeps),
		TEST(test_what_is_cached_costs_nothing),
		TEST(test_what_a_failed_run_forgets),
		TEST(test_what_a_journal_leads_to),
		TEST(test_a_failure_that_code_was_told),
		TEST(test_a_call_that_was_cancelled),
		TEST(test_large_answers_are_written_in_steps),
		TEST(test_others_while_a_large_answer_is_recorded),
		TEST(test_large_answers_that_are_given_up),
		TEST(test_large_answers_are_read_in_steps),
		TEST(test_large_answers_without_room),
	};

	return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
