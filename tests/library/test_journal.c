/*
 * A job that is ended after each thing that it has had, and begun again with its journal: it asks
 * for nothing twice, and comes to what it would have come to. With real workers; the provider and
 * the journal are the host's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <rlmd/budget.h>
#include <rlmd/function.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "library/left.h"

enum {
	LONG = 20000,
	ENTRIES_MAX = 64,
	AT_ONCE = 3, /* calls that the code of these jobs has under way */
	HOURS_MS = 3 * 3600 * 1000,
	COST = 1000000,
	INPUT = 100,
	OUTPUT = 7
};

struct entry {
	char key[81];
	int64_t number;
	char *bytes; /* owned */
	size_t size;
};

/* The entries that the host has kept for good. */
struct store {
	struct entry entries[ENTRIES_MAX];
	size_t count;
	size_t looks;
};

static struct rlmd_engine *engine;
static struct rlmd_provider *provider;
static struct rlmd_job *job;
static struct store store;

static size_t asked, calls;  /* of the model, and of the function */
static size_t cut, never;    /* of what was asked: answered in part, and not at all */
static int64_t tokens_limit; /* tokens; 0: as usual */
static size_t kept_most;     /* entries that are kept before the job is ended; 0: any */
static bool full;            /* they are */
static bool holds;           /* what is to be kept waits for release_held() */
static struct rlmd_journal_entry *held[ENTRIES_MAX];
static size_t held_count;
static bool refuses;           /* what is to be kept is not */
static const char *fails_root; /* the root's turns fail, with these words */
static const char *script;     /* what the root's first turn says */
static struct rlmd_account *account;
static struct rlmd_amount billed; /* what entries say */

/* --- the host ----------------------------------------------------------------------- */

static struct entry *find(const char *key, int64_t number)
{
	for (size_t i = 0; i < store.count; i++)
		if (!strcmp(store.entries[i].key, key) && store.entries[i].number == number)
			return &store.entries[i];
	return NULL;
}

static bool look(void *owner, const char *key, int64_t number, struct rlmd_text *ret)
{
	const struct entry *entry = find(key, number);

	(void)owner;
	store.looks++;
	assert_true(strlen(key) <= 80 && strspn(key, "0123456789abcdef-") == strlen(key));
	if (entry)
		*ret = (struct rlmd_text){entry->bytes, entry->size};
	return entry;
}

static void release_held(void)
{
	for (size_t i = held_count; i-- > 0;)
		rlmd_journal_kept(held[i]);
	held_count = 0;
}

static void keep(void *owner, const char *key, int64_t number, struct rlmd_text bytes,
		 struct rlmd_journal_entry *handle)
{
	struct entry *entry = &store.entries[store.count];

	(void)owner;
	assert_null(find(key, number)); /* nothing is kept twice */
	billed.cost += rlmd_journal_entry_bill(handle).cost;
	billed.tokens += rlmd_journal_entry_bill(handle).tokens;
	assert_in_range(store.count, 0, ENTRIES_MAX - 1);
	if (refuses || full) {
		const struct rlmd_error err = {.kind = RLMD_ERROR_INPUT,
					       .text = "the disk is full"};

		if (refuses)
			rlmd_journal_failed(handle, &err);
		else
			held[held_count++] = handle; /* it is lost with the job */
		return;
	}
	snprintf(entry->key, sizeof entry->key, "%s", key);
	entry->number = number;
	entry->bytes = xstrndup(bytes.bytes, bytes.size);
	entry->size = bytes.size;
	store.count++;
	full = kept_most && store.count == kept_most;
	if (holds || full)
		held[held_count++] = handle;
	else
		rlmd_journal_kept(handle);
}

static void forget_all(void)
{
	while (store.count)
		free(store.entries[--store.count].bytes);
	asked = calls = cut = never = 0;
	tokens_limit = 0;
}

static void on_call(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments)
{
	char json[32];

	(void)owner;
	(void)arguments;
	snprintf(json, sizeof json, "%zu", ++calls);
	rlmd_function_reply(call, rlmd_text_of(json));
}

/* --- the model ---------------------------------------------------------------------- */

static bool holds_text(struct rlmd_text text, const char *word)
{
	return text.size && memmem(text.bytes, text.size, word, strlen(word));
}

static const char *words_for(const struct rlmd_model_request *request)
{
	static char words[128];
	struct rlmd_text last = request->messages[request->message_count - 1].text;
	struct rlmd_text first = request->messages[1].text;
	bool begins = request->message_count == 2;

	if (!strcmp(request->model, "root"))
		return begins ? script : "FINAL_VAR(result)";
	for (const char *task = "ab"; *task; task++) {
		char name[] = "task-?";

		name[5] = *task;
		if (!holds_text(first, name))
			continue;
		if (begins && *task == 'a')
			return "```python\nx = llm_query('deep')\n```";
		snprintf(words, sizeof words, *task == 'a' ? "FINAL_VAR(x)" : "FINAL(%s is done)",
			 name);
		return words;
	}
	snprintf(words, sizeof words, "answer to %.*s", (int)last.size, last.bytes);
	return words;
}

/* Of more words than it may have it gives what it may. */
static void answer_long(const struct rlmd_model_request *request)
{
	static char words[LONG + 1];
	struct rlmd_model_answer answer = {.size = sizeof answer, .input_tokens = INPUT};

	memset(words, 'x', LONG);
	answer.cut = request->max_tokens < LONG / 4;
	answer.output_tokens = answer.cut ? request->max_tokens : LONG / 4;
	answer.text = (struct rlmd_text){words, (size_t)answer.output_tokens * 4};
	cut += answer.cut;
	rlmd_provider_answer(provider, request->id, &answer);
}

static void on_cancel(void *owner, uint64_t request)
{
	(void)owner;
	(void)request;
}

static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	struct rlmd_model_answer answer = {.size = sizeof answer,
					   .text = rlmd_text_of(words_for(request)),
					   .input_tokens = INPUT,
					   .output_tokens = OUTPUT,
					   .with_cost = true,
					   .cost = COST};
	struct rlmd_model_failure failure = {
		.size = sizeof failure, .kind = RLMD_ERROR_BAD_REQUEST, .message = fails_root};

	(void)owner;
	asked++;
	if (holds_text(request->messages[request->message_count - 1].text, "never")) {
		never++;
		return;
	}
	if (holds_text(request->messages[request->message_count - 1].text, "at length")) {
		answer_long(request);
		return;
	}
	if (fails_root && !strcmp(request->model, "root"))
		rlmd_provider_fail(provider, request->id, &failure);
	else
		rlmd_provider_answer(provider, request->id, &answer);
}

/* --- the job ------------------------------------------------------------------------ */

static const char everything[] = "```python\n"
				 "from concurrent.futures import ThreadPoolExecutor\n"
				 "samples = llm_query_batched(['same', 'same', 'other'])\n"
				 "with ThreadPoolExecutor(2) as pool:\n"
				 "    runs = list(pool.map(rlm_query, ['task-a', 'task-b']))\n"
				 "    few = list(pool.map(llm_query, ['one', 'two']))\n"
				 "result = repr([samples, runs, few, count()])\n"
				 "print(result, budget())\n"
				 "```";

static void open_engine(void)
{
	const struct rlmd_provider_options options = {.size = sizeof options,
						      .name = "host",
						      .model = "root",
						      .ask = on_ask,
						      .cancel = on_cancel};

	engine = rlmd_engine_new(NULL, NULL);
	provider = rlmd_provider_new(&options, NULL);
	assert_true(rlmd_engine_add_provider(engine, NULL, provider, NULL));
}

static void close_engine(void)
{
	rlmd_engine_free(engine);
	rlmd_provider_unref(provider);
}

/* For each test, with the same engine. */
static int clear(void **state)
{
	(void)state;
	rlmd_job_free(job);
	job = NULL;
	release_held();
	forget_all();
	billed = (struct rlmd_amount){0};
	kept_most = 0;
	full = holds = refuses = false;
	fails_root = NULL;
	script = everything;
	return 0;
}

static void start(void)
{
	const struct rlmd_journal journal = {.size = sizeof journal, .look = look, .keep = keep};
	const struct rlmd_function function = {
		.size = sizeof function, .name = "count", .doc = "Counts.", .call = on_call};
	const struct rlmd_limits limits = {
		.size = sizeof limits, .time_ms = HOURS_MS, .tokens = tokens_limit};
	const struct rlmd_job_options options = {.size = sizeof options,
						 .task = rlmd_text_of("do all of it"),
						 .functions = &function,
						 .function_count = 1,
						 .subcall_model = "sub",
						 .account = account,
						 .limits = &limits,
						 .journal = &journal};
	struct rlmd_error err = {0};

	full = false;
	job = rlmd_job_start(engine, &options, &err);
	if (!job)
		fail_msg("%s", err.text);
}

static void turn(void)
{
	assert_int_equal(event_base_loop(rlmd_engine_base(engine), EVLOOP_ONCE), 0);
}

/* False: the job was ended before its end. */
static bool run(void)
{
	start();
	while (!full && !rlmd_job_result(job))
		turn();
	return rlmd_job_result(job);
}

static struct rlmd_usage usage(void)
{
	struct rlmd_usage used = {.size = sizeof used};

	assert_true(rlmd_result_usage(rlmd_job_result(job), &used));
	return used;
}

static char *output(void)
{
	struct rlmd_text text = rlmd_result_output(rlmd_job_result(job));

	if (!rlmd_result_success(rlmd_job_result(job)))
		fail_msg("%s", rlmd_result_error(rlmd_job_result(job))->text);
	return xstrndup(text.bytes, text.size);
}

/* --- tests -------------------------------------------------------------------------- */

/* In one go; then killed after every entry, and begun again. What was under way then is asked
 * again, and the account above the job pays for what each attempt has asked, and nothing twice. */
static void test_killed_after_each(void **state)
{
	size_t exchanges, entries, others = 0, under_way = 0;
	struct store whole;
	struct rlmd_spending spent = {.size = sizeof spent};
	char *expected, *now;
	struct rlmd_usage used, again;

	(void)state;
	assert_true(run());
	expected = output();
	used = usage();
	exchanges = asked;
	entries = store.count;
	assert_int_equal(used.llm_calls, exchanges);
	assert_true(billed.cost > 0 && billed.cost == used.cost);
	assert_int_equal(billed.tokens, used.tokens);
	assert_int_equal(used.journaled_calls, 0);
	assert_int_equal(entries, exchanges + 2); /* what budget() and the function said */
	rlmd_job_free(job);
	whole = store;
	store = (struct store){0};
	asked = calls = 0;

	account = rlmd_account_new("tenant", NULL, NULL, NULL);
	for (kept_most = 1; !run(); kept_most++) {
		rlmd_job_free(job);
		under_way += AT_ONCE; /* at most: asked, and not kept */
		release_held();
		if (kept_most % 8 == 0) {
			close_engine();
			open_engine();
		}
	}
	now = output();
	again = usage();
	assert_in_range(asked, exchanges, exchanges + under_way);
	assert_int_equal(calls, 1);
	assert_string_equal(now, expected);
	assert_int_equal(store.count, entries);
	store.count = entries;
	for (size_t i = 0; i < entries; i++)
		others += !find(whole.entries[i].key, whole.entries[i].number);
	assert_in_range(others, 0, 1); /* the last turn, which was told another rest of the time */
	assert_int_equal(again.cost, used.cost);
	assert_int_equal(again.tokens, used.tokens);
	assert_int_equal(again.llm_calls, used.llm_calls);
	assert_true(again.journaled_cost > 0 && again.journaled_cost <= again.cost);
	assert_true(rlmd_account_save(account, &spent, NULL));
	assert_int_equal(spent.cost, (int64_t)asked * COST);
	for (size_t i = 0; i < entries; i++)
		free(whole.entries[i].bytes);
	free(expected);
	free(now);
	rlmd_account_unref(account);
	account = NULL;
}

static void turn_without_waiting(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(rlmd_engine_base(engine), EVLOOP_NONBLOCK);
}

static const char simple[] = "```python\nresult = llm_query('one')\nprint(budget())\n```";

/* Nothing is used, and so nothing more is asked, before it is kept, in whatever order that is; what
 * code was told need be kept before it is sent. */
static void test_late(void **state)
{
	size_t expected[] = {1, 2, 2, 3}, step = 0; /* a turn, a call, what was told, a turn */

	(void)state;
	script = simple;
	holds = true;
	for (start(); !rlmd_job_result(job);) {
		turn();
		if (!held_count)
			continue;
		turn_without_waiting();
		assert_int_equal(held_count, 1);
		assert_true(step < sizeof expected / sizeof *expected);
		assert_int_equal(asked, expected[step++]);
		release_held();
	}
	free(output());
	assert_int_equal(step, 4);
}

/* Also of something that nobody waits for any more. */
static void test_said_too_late(void **state)
{
	(void)state;
	holds = true;
	start();
	while (!held_count)
		turn();
	rlmd_job_free(job);
	release_held();
	turn_without_waiting();
	start();
	while (store.looks < 2)
		turn();
	rlmd_job_cancel(job);
	while (!rlmd_job_result(job))
		turn();
	assert_int_equal(rlmd_result_error(rlmd_job_result(job))->kind, RLMD_ERROR_CANCELLED);
}

static void assert_fails(enum rlmd_error_kind kind, const char *words)
{
	const struct rlmd_error *err;

	assert_true(run());
	err = rlmd_result_error(rlmd_job_result(job));
	assert_non_null(err);
	assert_int_equal(err->kind, kind);
	if (!strstr(err->text, words))
		fail_msg("%s", err->text);
	rlmd_job_free(job);
	job = NULL;
}

static void test_not_kept(void **state)
{
	(void)state;
	refuses = true;
	assert_fails(RLMD_ERROR_INPUT, "the disk is full");
	assert_int_equal(asked, 1);
}

/* An entry that is not as it was kept ends the job: to ask again would be to pay again. */
static void test_damaged(void **state)
{
	static const char newer[] = "{\"version\":2,\"digest\":\"\",\"entry\":{}}";
	struct entry whole, damaged;

	(void)state;
	script = simple;
	assert_true(run());
	free(output());
	rlmd_job_free(job);
	whole = store.entries[0];
	damaged.bytes = xstrndup(whole.bytes, whole.size);
	store.entries[0].bytes = damaged.bytes;
	store.entries[0].size = whole.size / 2;
	assert_fails(RLMD_ERROR_INPUT, "is damaged");
	store.entries[0].size = whole.size;
	strstr(damaged.bytes, "llm_query")[0] = 'L';
	assert_fails(RLMD_ERROR_INPUT, "it is not what was kept there");
	store.entries[0].bytes = store.entries[1].bytes;
	store.entries[0].size = store.entries[1].size;
	assert_fails(RLMD_ERROR_INPUT, "it is not what was kept there");
	store.entries[0].bytes = (char *)newer;
	store.entries[0].size = strlen(newer);
	assert_fails(RLMD_ERROR_INPUT, "a later version");
	free(damaged.bytes);
	store.entries[0] = whole;
	assert_int_equal(asked, 3);
	assert_true(run());
	free(output());
	assert_int_equal(asked, 3);
	assert_int_equal(usage().journaled_cost, usage().cost);
}

/* A call that ended an attempt is asked for again by the next one; what only failed, and was told
 * to code, is not. */
static void test_after_a_failure(void **state)
{
	(void)state;
	script = simple;
	fails_root = "no such luck";
	assert_fails(RLMD_ERROR_BAD_REQUEST, "no such luck");
	assert_fails(RLMD_ERROR_BAD_REQUEST, "no such luck");
	assert_int_equal(asked, 2);
	fails_root = NULL;
	assert_true(run());
	free(output());
	assert_int_equal(asked, 5);
	assert_int_equal(usage().llm_calls, 5);
	assert_int_equal(usage().journaled_calls, 2);
}

static const char in_parts[] = "```python\n"
			       "[llm_query(f'brief {i}') for i in range(3)]\n"
			       "result = str(len(llm_query('at length')))\n"
			       "```";

/* An answer that a small budget has cut is asked for once more, and so it is where the attempt that
 * has had the first part was ended then. */
static void test_a_reply_that_was_cut(void **state)
{
	char *words;

	(void)state;
	script = in_parts;
	tokens_limit = 30000;
	kept_most = 5; /* a turn, three short ones, the part */
	assert_false(run());
	assert_int_equal(cut, 1);
	rlmd_job_free(job);
	release_held();
	kept_most = 0;
	assert_true(run());
	words = output();
	assert_string_equal(words, "20000");
	free(words);
	assert_int_equal(cut, 1);
	assert_int_equal(asked, 7);
	assert_int_equal(usage().llm_calls, 6);
}

static const char racing[] = "```python\nresult = race_query(['quick', 'never'])\n```";

/* A call that was not wanted any more is not asked again while it is not, and its bill counts once.
 */
static void test_a_race(void **state)
{
	struct rlmd_usage first, second;
	struct rlmd_text json;

	(void)state;
	script = racing;
	assert_true(run());
	free(output());
	first = usage();
	rlmd_job_free(job);
	assert_int_equal(never, 1);
	assert_true(run());
	second = usage();
	free(output());
	assert_int_equal(never, 1);
	assert_int_equal(asked, 4);
	assert_int_equal(second.tokens, first.tokens);
	assert_int_equal(second.journaled_tokens, first.tokens);
	json = rlmd_result_json(rlmd_job_result(job));
	assert_true(holds_text(json, "\"journaledCalls\":4"));
	assert_true(holds_text(json, "\"journaled\":true"));
}

static size_t descriptors;

static int setup(void **state)
{
	(void)state;
	descriptors = descriptors_open();
	script = everything;
	open_engine();
	return 0;
}

static int teardown(void **state)
{
	clear(state);
	close_engine();
	return waitpid(-1, NULL, WNOHANG) != -1 || descriptors_open() != descriptors;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, clear)
	const struct CMUnitTest tests[] = {
		TEST(test_killed_after_each),
		TEST(test_late),
		TEST(test_said_too_late),
		TEST(test_not_kept),
		TEST(test_damaged),
		TEST(test_after_a_failure),
		TEST(test_a_reply_that_was_cut),
		TEST(test_a_race),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
