/* The words of a run to its model: with values in their places, and no more than is wanted. */
#include "prompt/brief.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "llm/llm.h"

/* A model below the floor: one whose price and window are known, or not. */
static bool priced;

bool llm_price(const struct llm *llm, const char *model, int64_t input, int64_t output,
	       int64_t *ret_cost)
{
	(void)llm;
	(void)model;
	*ret_cost = 1000000 * (input + output); /* a micro-dollar a token */
	return priced;
}

int64_t llm_window(const struct llm *llm, const char *model)
{
	(void)llm;
	(void)model;
	return 100000;
}

static int64_t told_window;

struct room llm_room(const struct llm *llm, const char *model)
{
	(void)llm;
	(void)model;
	return (struct room){.window = told_window};
}

struct fixture {
	struct budget *budget;
	struct context context;
	struct brief brief;
	struct draft draft;
};

static const char *const modules[] = {"numpy", NULL};

static void begin(struct fixture *fixture, const char *input)
{
	static const struct budget_limits limits = {
		.cost = 2000000000000,
		.tokens = 50000,
		.time_ms = 3600000,
		.max_depth = 2,
		.max_iterations = 7,
		.calls = BUDGET_UNLIMITED,
		.subruns = BUDGET_UNLIMITED,
	};
	struct rlmd_error err;

	*fixture = (struct fixture){.budget = budget_new(&limits, NULL, NULL),
				    .draft = draft_new()};
	if (input)
		assert_true(context_from_text(text_of(input), &fixture->context, &err));
	fixture->brief = (struct brief){
		.facts = {.model = "big",
			  .subcall_model = "little",
			  .preload = modules,
			  .max_output = 1234,
			  .max_parallel = 4,
			  .downgrade = 10},
		.prompts = prompt_set_for("big", 100000),
		.budget = fixture->budget,
		.context = &fixture->context,
		.task = text_of("count the treasure"),
		.turn = 3,
	};
	priced = true;
}

static void end(struct fixture *fixture)
{
	draft_free(&fixture->draft);
	context_done(&fixture->context);
	budget_free(fixture->budget);
}

/* All of it, new; nothing in it waits for a value still. */
static char *told(struct evbuffer *out)
{
	char *text = text_drain(out, NULL);

	if (strstr(text, "{{") || strstr(text, "}}"))
		fail_msg("without a value: %s", text);
	return text;
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in: %s", part, text);
}

static void test_system(void **state)
{
	struct fixture fixture;
	auto_free char *root = NULL, *dear = NULL, *sub = NULL;
	struct budget *pool, *child;

	(void)state;
	begin(&fixture, "some input");
	brief_system(&fixture.brief, NULL, &fixture.draft);
	root = told(fixture.draft.text);
	expect(root, "little");
	expect(root, "numpy");
	expect(root, "$0.0025"); /* 2,500 tokens of one call */
	priced = false;
	brief_system(&fixture.brief, NULL, &fixture.draft);
	dear = told(fixture.draft.text);
	expect(dear, "an unknown price");
	pool = budget_new_pool(fixture.budget);
	child = budget_new_child(pool, 1, 1, NULL, NULL);
	fixture.brief.budget = child;
	fixture.brief.depth = 1;
	brief_system(&fixture.brief, fixture.budget, &fixture.draft);
	sub = told(fixture.draft.text);
	expect(sub, "SUB-RLM at depth 1");
	assert_null(strstr(root, "SUB-RLM"));
	budget_free(child);
	budget_free(pool);
	end(&fixture);
}

/* A fifth of the window: that which the provider told comes first. */
static void test_piece(void **state)
{
	(void)state;
	assert_int_equal(brief_piece(NULL, "m"), 20000);
	told_window = 8192;
	assert_int_equal(brief_piece(NULL, "m"), 1638);
	told_window = 0;
}

/* Durations and estimates identify no request: the timeless text has none of them. */
static void test_timeless(void **state)
{
	struct fixture fixture;
	auto_free char *text = NULL, *timeless = NULL;

	(void)state;
	begin(&fixture, NULL);
	fixture.brief.facts.call_count = 2;
	fixture.brief.facts.call_ms = 2 * 54321;
	brief_system(&fixture.brief, NULL, &fixture.draft);
	text = told(fixture.draft.text);
	timeless = told(fixture.draft.timeless);
	expect(text, "54s");
	assert_null(strstr(timeless, "54s"));
	end(&fixture);
}

/* Nor does what is left of a budget: with more spent, and as a sub-run of another grant, the
 * request is the same one. */
static void test_timeless_in_any_budget(void **state)
{
	auto_free char *before = NULL, *after = NULL, *told_before = NULL, *told_after = NULL;
	struct reservation reservation = {0};
	struct fixture fixture;

	(void)state;
	begin(&fixture, "some input");
	brief_system(&fixture.brief, fixture.budget, &fixture.draft);
	brief_turn(&fixture.brief, text_of("1"), &fixture.draft);
	told_before = told(fixture.draft.text);
	before = told(fixture.draft.timeless);
	assert_true(budget_reserve(fixture.budget, &reservation, (struct rlmd_amount){1000, 1000},
				   NULL));
	account_settle(&reservation, (struct rlmd_amount){1000, 1000});
	budget_count_iteration(fixture.budget);
	brief_system(&fixture.brief, fixture.budget, &fixture.draft);
	brief_turn(&fixture.brief, text_of("1"), &fixture.draft);
	told_after = told(fixture.draft.text);
	after = told(fixture.draft.timeless);
	assert_string_not_equal(told_before, told_after);
	assert_string_equal(before, after);
	end(&fixture);
}

/* A short input is shown whole, a long one its beginning, an empty one not at all. */
static void test_look(void **state)
{
	static const struct {
		const char *input, *code;
	} cases[] = {{"a short one", "[:11]"}, {"", NULL}};
	auto_free char *longer = malloc(5001);
	struct fixture fixture;
	auto_free char *code = NULL;
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(&fixture, cases[i].input);
		assert_int_equal(brief_demonstration(&fixture.brief, out, &fixture.draft),
				 cases[i].code != NULL);
		code = told(out);
		if (cases[i].code)
			expect(code, cases[i].code);
		free(take_pointer(&code));
		end(&fixture);
	}
	memset(longer, 'x', 5000);
	longer[5000] = '\0';
	begin(&fixture, longer);
	assert_true(brief_demonstration(&fixture.brief, out, &fixture.draft));
	code = told(out);
	expect(code, "context[:700]");
	end(&fixture);
	begin(&fixture, NULL);
	assert_false(brief_demonstration(&fixture.brief, out, &fixture.draft));
	end(&fixture);
}

static void test_first_messages(void **state)
{
	struct conversation conversation = {0};
	struct fixture fixture;
	auto_free char *bare = NULL, *first = NULL, *none = NULL;

	(void)state;
	begin(&fixture, "some input");
	brief_opening(&fixture.brief, &fixture.draft);
	draft_say(&fixture.draft, LLM_USER, &conversation);
	assert_int_equal(conversation.count, 1);
	assert_non_null(strstr(conversation.messages[0].text.bytes, "`context`: 10 characters"));
	assert_int_equal(evbuffer_get_length(fixture.draft.text), 0);
	brief_first_turn(&fixture.brief, text_of("[block 1]\nwhat it showed"), &fixture.draft);
	first = told(fixture.draft.text);
	expect(first, "what it showed");
	brief_first_turn_bare(&fixture.brief, &fixture.draft);
	bare = told(fixture.draft.text);
	expect(bare, "count the treasure");
	expect(bare, "`context`: 10 characters");
	conversation_done(&conversation);
	end(&fixture);
	begin(&fixture, NULL);
	brief_first_turn_bare(&fixture.brief, &fixture.draft);
	none = told(fixture.draft.text);
	expect(none, "- none: `context` is the empty string");
	end(&fixture);
}

/* The host's code follows the look; only the root's, and only its second part is shown. */
static void test_first_code(void **state)
{
	auto_evbuffer struct evbuffer *code = evbuffer_new();
	struct fixture fixture;
	auto_free char *shown = NULL, *run = NULL;

	(void)state;
	begin(&fixture, "some input");
	fixture.brief.facts.setup = text_of("secret = 1");
	fixture.brief.facts.first_code = text_of("print(secret)");
	assert_true(brief_demonstration(&fixture.brief, code, &fixture.draft));
	shown = told(fixture.draft.text);
	run = told(code);
	expect(shown, "print(context[:10])\nprint(secret)\n```");
	assert_null(strstr(shown, "secret = 1"));
	assert_true(strncmp(run, "secret = 1\n", 11) == 0);
	expect(run, "print(context[:10])\nprint(secret)\n");
	fixture.brief.depth = 1;
	assert_true(brief_demonstration(&fixture.brief, code, &fixture.draft));
	free(take_pointer(&shown));
	shown = told(fixture.draft.text);
	assert_null(strstr(shown, "secret"));
	end(&fixture);
}

/* Each turn has what happened and, of a long task, its ends. */
static void test_turn(void **state)
{
	struct fixture fixture;
	auto_free char *text = NULL, *task = calloc(1, 9001);

	(void)state;
	begin(&fixture, NULL);
	memset(task, 't', 9000);
	memcpy(task, "begin", 5);
	fixture.brief.task = text_of(task);
	brief_turn(&fixture.brief, text_of("seen: 3 coins"), &fixture.draft);
	text = told(fixture.draft.text);
	expect(text, "seen: 3 coins");
	expect(text, "begin");
	expect(text, "characters omitted");
	assert_true(strlen(text) < 4000);
	end(&fixture);
}

static void test_forced(void **state)
{
	const struct estimator estimator = {0};
	struct fixture fixture;
	auto_free char *text = NULL;

	(void)state;
	begin(&fixture, NULL);
	brief_forced(&fixture.brief, "Max calls reached", text_of("treasure = 3"), &fixture.draft);
	text = told(fixture.draft.text);
	expect(text, "Max calls reached");
	expect(text, "treasure = 3");
	expect(text, "count the treasure");
	assert_in_range(brief_forced_size(&fixture.brief, &estimator), 300, 2000);
	end(&fixture);
}

static void test_notes(void **state)
{
	const struct prompt_set *set = prompt_set_for("big", 100000);
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	struct draft draft = draft_new();
	auto_free char *lost = NULL, *unknown = NULL, *summary = NULL, *cut = NULL;

	(void)state;
	brief_note(set, "lost", text_of("its worker died"), out);
	lost = told(out);
	expect(lost, "its worker died");
	brief_unknown_variable(set, text_of("resutl"), text_of("result: int"), out);
	unknown = told(out);
	expect(unknown, "FINAL_VAR(resutl)");
	expect(unknown, "result: int");
	brief_summary(set, 12, text_of("what was done"), out);
	summary = told(out);
	expect(summary, "12");
	expect(summary, "what was done");
	draft_note(&draft, set, "cut");
	cut = told(draft.text);
	expect(cut, "[note]");
	draft_free(&draft);
	assert_true(brief_text(set, "query").size && brief_text(set, "direct").size);
}

/* A plan's operation: of its context as much as fits. */
static void test_operation(void **state)
{
	const struct prompt_set *set = prompt_set_for("big", 100000);
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *whole = NULL, *part = NULL, *context = calloc(1, 5001);

	(void)state;
	memset(context, 'c', 5000);
	assert_false(brief_operation(set, text_of("sum up"), text_of("a text"), 1000, out));
	whole = told(out);
	expect(whole, "sum up");
	expect(whole, "a text");
	assert_true(brief_operation(set, text_of("sum up"), text_of(context), 1000, out));
	part = told(out);
	expect(part, "[4000 characters omitted]");
}

static void test_block(void **state)
{
	static const struct {
		struct worker_block block;
		const char *told;
	} cases[] = {
		{{.duration_ms = 1}, "[block 1]\n[no output]\n"},
		{{.interrupted = true},
		 "[block 1]\n[the block was interrupted: its time was over]\n[no output]\n"},
	};
	struct worker_block block = {.stdout_text = text_of("3"),
				     .stderr_text = text_of("careful\n"),
				     .failed = true,
				     .error = text_of("ValueError: no\n")};
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_free char *text = NULL;

		brief_block(1, &cases[i].block, 100, out);
		text = told(out);
		assert_string_equal(text, cases[i].told);
	}
	brief_block(2, &block, 100, out);
	assert_true(text_equal(text_in(out), "[block 2]\n[stdout]\n3\n[stderr]\ncareful\n"
					     "[error]\nValueError: no\n"));
}

/* Head and tail, by characters and not by bytes; what is nearly short enough stays whole. */
static void test_clip(void **state)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *umlauts = calloc(1, 2 * 500 + 1), *text = NULL, *near = NULL;

	(void)state;
	for (size_t i = 0; i < 500; i++)
		memcpy(umlauts + 2 * i, "ä", 2);
	brief_clip(text_of(umlauts), 10, out);
	text = told(out);
	assert_string_equal(text, "äääää\n... [490 characters omitted] ...\näääää");
	brief_clip(text_of(umlauts), 400, out);
	near = told(out);
	assert_string_equal(near, umlauts);
}

/* Each byte of a text that is no UTF-8 counts as the character that takes its place. */
static void test_clip_broken(void **state)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *broken = calloc(1, 1001), *text = NULL;

	(void)state;
	memset(broken, '\x80', 1000);
	brief_clip(text_of(broken), 4, out);
	text = told(out);
	assert_string_equal(text, "\uFFFD\uFFFD\n... [996 characters omitted] ...\n\uFFFD\uFFFD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_system),     cmocka_unit_test(test_piece),
		cmocka_unit_test(test_timeless),   cmocka_unit_test(test_timeless_in_any_budget),
		cmocka_unit_test(test_look),       cmocka_unit_test(test_first_messages),
		cmocka_unit_test(test_first_code), cmocka_unit_test(test_turn),
		cmocka_unit_test(test_forced),     cmocka_unit_test(test_notes),
		cmocka_unit_test(test_operation),  cmocka_unit_test(test_block),
		cmocka_unit_test(test_clip),       cmocka_unit_test(test_clip_broken),
	};

	return cmocka_run_group_tests_name("brief", tests, NULL, NULL);
}
