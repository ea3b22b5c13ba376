/* The rest of conversations that outgrow their window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "effort.h"
#include "prompt/history.h"
#include "prompt/prompt_set.h"

struct fixture {
	struct history history;
	struct conversation conversation;
};

static char *filled(size_t size, int mark)
{
	char *text = malloc(size + 32);

	memset(text, ' ', size);
	for (size_t i = 0; i < size; i += 3)
		text[i] = 'w';
	snprintf(text + size, 32, " mark-%d", mark);
	return text;
}

static void say(struct fixture *fixture, enum llm_role role, size_t size, int mark)
{
	auto_free char *text = filled(size, mark);

	conversation_add(&fixture->conversation, role, text_of(text), text_of(""));
}

static void begin(struct fixture *fixture, int64_t window)
{
	*fixture = (struct fixture){0};
	history_init(&fixture->history, prompt_set_for("m", 128000), "m", window);
	say(fixture, LLM_SYSTEM, 3000, 0);
	say(fixture, LLM_USER, 500, 0);
}

static void end(struct fixture *fixture)
{
	history_done(&fixture->history);
	conversation_done(&fixture->conversation);
}

/* The response to a turn, and the turn after it; true: something was cut. */
static bool step(struct fixture *fixture, size_t response, size_t output, int mark)
{
	auto_free char *text = filled(output, mark);
	struct worker_block block = {.stdout_text = text_of(text)};

	say(fixture, LLM_ASSISTANT, response, mark);
	history_add_turn(&fixture->history);
	history_add_block(&fixture->history, mark, text_of("print(x)"), &block);
	say(fixture, LLM_USER, output, mark);
	return history_compact(&fixture->history, &fixture->conversation);
}

static bool same(const struct llm_message *a, const char *b)
{
	return text_equal(a->text, b);
}

/* ENG-10: whatever sizes come, roles alternate, the head and the last pair stay, and it fits. */
static void test_any_sizes(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= effort(200, 20); seed++) {
		struct fixture fixture;
		auto_free char *system = filled(3000, 0), *first = filled(500, 0);
		const struct llm_message *messages;

		begin(&fixture, 20000);
		srandom(seed);
		for (int turn = 1; turn <= 60; turn++) {
			size_t response = (size_t)random() % 3000;
			size_t output = (size_t)random() % 12000;
			auto_free char *said = filled(response, turn);
			auto_free char *told = filled(output, turn);
			size_t count;

			step(&fixture, response, output, turn);
			messages = fixture.conversation.messages;
			count = fixture.conversation.count;
			assert_true(same(&messages[0], system));
			assert_true(same(&messages[1], first));
			assert_true(same(&messages[count - 2], said));
			assert_true(same(&messages[count - 1], told));
			for (size_t i = 1; i < count; i++)
				assert_int_equal(messages[i].role,
						 i % 2 ? LLM_USER : LLM_ASSISTANT);
			assert_true(history_measure(&fixture.history, &fixture.conversation) <=
				    10000);
		}
		end(&fixture);
	}
}

/* Caches hit for many turns after each cut; and each cut begins at the same place. */
static void test_rare(void **state)
{
	struct fixture fixture;
	int cuts = 0;

	(void)state;
	begin(&fixture, 100000);
	for (int turn = 1; turn <= 100; turn++)
		cuts += step(&fixture, 500, 8000, turn);
	assert_in_range(cuts, 3, 12);
	end(&fixture);
}

/* The summary is bounded: the oldest turns are only counted, the latest listed. */
static void test_summary(void **state)
{
	struct fixture fixture;
	struct rlmd_text summary;

	(void)state;
	begin(&fixture, 20000);
	for (int turn = 1; turn <= 200; turn++)
		step(&fixture, 200, 6000, turn);
	summary = fixture.conversation.messages[3].text;
	assert_true(text_tokens(summary) < 2500);
	assert_non_null(text_find(summary, "not listed any more"));
	assert_null(text_find(summary, "\nTurn 1\n"));
	assert_non_null(text_find(summary, "\nTurn 190\n"));
	assert_non_null(text_find(summary, "lines of code: 1: print(x)\n"));
	assert_non_null(text_find(summary, "output, 6009 bytes: w w w"));
	end(&fixture);
}

/* As little goes as makes the rest fit, and the summary ends where the rest begins. */
static void test_no_more_than_needed(void **state)
{
	enum { WINDOW = 20000, TURN = 2400 };
	struct fixture fixture;
	struct conversation *conversation = &fixture.conversation;
	int64_t pair, head, kept;
	char mark[32];
	int turn = 0;

	(void)state;
	begin(&fixture, WINDOW);
	do
		turn++;
	while (!step(&fixture, 600, TURN, turn));
	assert_int_equal(fixture.history.count, turn);
	pair = text_tokens(conversation->messages[conversation->count - 1].text) +
	       text_tokens(conversation->messages[conversation->count - 2].text) + 2 * 4;
	head = 3 * 4;
	for (int i = 0; i < 3; i++)
		head += text_tokens(conversation->messages[i].text);
	/* A quarter of the window, less what the summary may have. */
	kept = (WINDOW * 25 / 100 - WINDOW * 8 / 100 - head) / pair;
	assert_int_equal(conversation->count, 4 + 2 * kept);
	assert_int_equal(fixture.history.taken, turn - kept);

	snprintf(mark, sizeof mark, " mark-%d", turn - (int)kept + 1);
	assert_non_null(text_find(conversation->messages[4].text, mark));
	snprintf(mark, sizeof mark, "\nTurn %d\n", turn - (int)kept);
	assert_non_null(text_find(conversation->messages[3].text, mark));
	snprintf(mark, sizeof mark, "\nTurn %d\n", turn - (int)kept + 1);
	assert_null(text_find(conversation->messages[3].text, mark));
	snprintf(mark, sizeof mark, "turns 1 to %d", turn - (int)kept);
	assert_non_null(text_find(conversation->messages[3].text, mark));
	end(&fixture);
}

/* Where one turn alone was too long, it alone goes. */
static void test_one_turn(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture, 20000);
	assert_false(step(&fixture, 600, 25500, 1));
	assert_false(step(&fixture, 600, 600, 2));
	assert_true(step(&fixture, 600, 3000, 3));
	assert_int_equal(fixture.history.taken, 1);
	assert_non_null(text_find(fixture.conversation.messages[4].text, " mark-2"));
	end(&fixture);
}

/* Turns go from the oldest on, some at a time, until but the last one is left. */
static void test_forget(void **state)
{
	struct fixture fixture;
	struct conversation *conversation = &fixture.conversation;
	size_t before;
	int times = 0;

	(void)state;
	begin(&fixture, 1000000);
	for (int turn = 1; turn <= 20; turn++)
		assert_false(step(&fixture, 600, 2400, turn));
	do {
		before = conversation->count;
		times++;
	} while (history_forget(&fixture.history, conversation) && conversation->count < before);
	assert_int_equal(fixture.history.taken, 19);
	assert_int_equal(conversation->count, 4 + 2);
	assert_non_null(text_find(conversation->messages[4].text, " mark-20"));
	assert_non_null(text_find(conversation->messages[3].text, "turns 1 to 19"));
	assert_in_range(times, 8, 18);
	end(&fixture);
}

/* A long response is cut too, the first for good, the last where nothing else is left to cut. */
static void test_long_responses(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture, 20000);
	step(&fixture, 20000, 100, 1);
	assert_true(step(&fixture, 40000, 6000, 2));
	assert_true(fixture.conversation.messages[2].text.size < 5000);
	assert_true(fixture.conversation.messages[4].text.size < 5000);
	assert_non_null(text_find(fixture.conversation.messages[4].text, "characters omitted"));
	assert_non_null(text_find(fixture.conversation.messages[5].text, "mark-2"));
	end(&fixture);
}

/* One turn has nothing before it that could be left out. */
static void test_nothing_to_cut(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture, 5000);
	assert_false(step(&fixture, 100, 90000, 1));
	assert_int_equal(fixture.conversation.count, 4);
	end(&fixture);
}

/* A turn tells a fifth of the window at most, head and tail. */
static void test_clip(void **state)
{
	struct history history;
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *text = filled(90000, 7);

	(void)state;
	history_init(&history, prompt_set_for("m", 128000), "m", 20000);
	history_clip(&history, text_of("short"), out);
	assert_true(text_equal(text_in(out), "short"));
	history_clip(&history, text_of(text), out);
	assert_true(text_tokens(text_in(out)) < 4200);
	assert_non_null(text_find(text_in(out), "characters omitted"));
	assert_non_null(text_find(text_in(out), "mark-7"));
	history_done(&history);
}

/* The model's count corrects the estimate; an impossible one does not. */
static void test_learn(void **state)
{
	static const struct {
		int64_t billed, least, most; /* per cent of the first estimate */
	} cases[] = {{150, 140, 155},       {70, 68, 78},  {1, 25, 35},
		     {100000000, 370, 400}, {0, 100, 100}, {-5, 100, 100}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture fixture;
		int64_t plain, learned;

		begin(&fixture, 20000);
		plain = history_measure(&fixture.history, &fixture.conversation);
		history_learn(&fixture.history, plain * cases[i].billed / 100);
		learned = history_measure(&fixture.history, &fixture.conversation);
		assert_in_range(learned * 100 / plain, cases[i].least, cases[i].most);
		end(&fixture);
	}
}

/* LIB-9 bytes of any kind in code and output make a line of the summary, and valid UTF-8. */
static void test_odd_bytes(void **state)
{
	static const char bytes[] = "\xff\xfe \0 a\r\n\tb \xe2\x82";
	struct worker_block block = {
		.stdout_text = {bytes, sizeof bytes - 1},
		.stderr_text = {bytes, 3},
		.failed = true,
		.error = {"Traceback\n  line\nValueError: x\n", 31},
	};
	struct history history;
	struct rlmd_text told;

	(void)state;
	history_init(&history, prompt_set_for("m", 128000), "m", 1000);
	history_add_turn(&history);
	history_add_block(&history, 1, text_from(bytes, sizeof bytes - 1), &block);
	told = text_in(history.turns[0]);
	assert_true(text_is_utf8(told));
	assert_non_null(text_find(told, "failed, 13 bytes: ValueError: x\n"));
	history_done(&history);
}

/* The parts of a message are counted when it is said, and is what its text is made of, also where
 * turns were taken out and responses cut; of one that tells a time, the text without it. */
static void test_counted_once(void **state)
{
	struct fixture fixture;
	struct llm_message fresh;
	struct text_scan scan;
	bool cut = false;

	(void)state;
	begin(&fixture, 20000);
	for (int i = 1; i <= 12; i++)
		cut |= step(&fixture, 9000, 9000, i);
	assert_true(cut);
	conversation_add(&fixture.conversation, LLM_USER, text_of("12.5 s \xff left"),
			 text_of("s \xff left"));
	for (size_t i = 0; i < fixture.conversation.count; i++) {
		fresh = fixture.conversation.messages[i];
		assert_non_null(fresh.scan);
		fresh.scan = NULL;
		scan = conversation_scan(&fresh);
		assert_memory_equal(&scan.tokens.counts,
				    &fixture.conversation.messages[i].scan->tokens.counts,
				    sizeof scan.tokens.counts);
		assert_int_equal(scan.bytes, fixture.conversation.messages[i].scan->bytes);
	}
	assert_int_equal(scan.bytes, strlen("s \xff left"));
	assert_int_equal(scan.invalid, 1);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counted_once),   cmocka_unit_test(test_any_sizes),
		cmocka_unit_test(test_rare),           cmocka_unit_test(test_summary),
		cmocka_unit_test(test_long_responses), cmocka_unit_test(test_nothing_to_cut),
		cmocka_unit_test(test_clip),           cmocka_unit_test(test_forget),
		cmocka_unit_test(test_one_turn),       cmocka_unit_test(test_no_more_than_needed),
		cmocka_unit_test(test_learn),          cmocka_unit_test(test_odd_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
