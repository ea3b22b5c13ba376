/* Plans whose operations are model calls and runs: `rlmd plan`, and those that a block orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/loop.h"
#include "engine/job.h"
#include "engine/stage.h"
#include "fake/outside.h"

struct performance {
	struct event_base *base;
	struct rlmd_plan_file *file;
	struct rlmd_engine *engine;
	struct rlmd_job *job;
	int ends;
	enum rlmd_error_kind failure;
	char message[512];
	json_t *object, *events;
};

static void on_event(void *owner, struct rlmd_job *job, struct rlmd_text event)
{
	struct performance *performance = owner;

	(void)job;
	json_array_append_new(performance->events, json_loadb(event.bytes, event.size, 0, NULL));
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct performance *performance = owner;

	(void)job;
	performance->ends++;
	performance->failure = result->error.kind;
	snprintf(performance->message, sizeof performance->message, "%s", result->error.text);
	performance->object = json_incref(result->object);
}

static const char *const *models; /* the one pattern of what code may name; NULL: any */

static void raise_curtain(struct performance *performance, const struct stage_config *config,
			  const char *plan)
{
	struct rlmd_error err;
	struct rlmd_engine_options options = {.size = sizeof options, .max_workers = STAGE_WORKERS};
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks, .event = on_event, .end = on_end, .owner = performance};
	struct rlmd_limits limits;
	struct rlmd_job_options job = stage_options(config, &limits);

	*performance = (struct performance){.base = event_base_new(), .events = json_array()};
	fake_events = fake_death = fake_calls_most = 0;
	fake_workers_most = fake_computing_most = 0;
	performance->file = rlmd_plan_file_new((struct rlmd_text){plan, strlen(plan)}, &err);
	assert_non_null(performance->file);
	options.base = performance->base;
	job.plan = performance->file;
	job.models = models;
	job.model_count = models ? 1 : 0;
	job.hooks = &hooks;
	performance->engine = rlmd_engine_new(&options, NULL);
	fake_provider(performance->engine);
	performance->job = rlmd_job_start(performance->engine, &job, NULL);
}

static void play(struct performance *performance)
{
	for (int i = 0; i < 100000 && !performance->ends; i++)
		event_base_loop(performance->base, EVLOOP_NONBLOCK);
	assert_int_equal(performance->ends, 1);
}

/* As with stage.h's end(): whoever holds something is found by the assertions of what holds it. */
static void drop_curtain(struct performance *performance)
{
	rlmd_engine_free(performance->engine);
	rlmd_plan_file_free(performance->file);
	event_base_free(performance->base);
	json_decref(performance->object);
	json_decref(performance->events);
	assert_int_equal(fake_calls, 0);
	assert_int_equal(fake_workers, 0);
}

static const char *response(const struct performance *performance, const char *id)
{
	const json_t *results = json_object_get(performance->object, "results");

	return json_string_value(json_object_get(json_object_get(results, id), "response"));
}

static const char *kind(const struct performance *performance, const char *id)
{
	const json_t *results = json_object_get(performance->object, "results");
	const json_t *error = json_object_get(json_object_get(results, id), "error");

	return json_string_value(json_object_get(error, "kind"));
}

static void assert_sums(const struct performance *performance)
{
	const json_t *results = json_object_get(performance->object, "results");
	const json_t *usage = json_object_get(performance->object, "usage");
	int64_t sum = 0;
	const char *id;
	json_t *result;

	json_object_foreach ((json_t *)results, id, result)
		sum += json_get_integer(result, "tokens", -1);
	assert_int_equal(sum, json_get_integer(usage, "tokens", -1));
	assert_int_equal(sum, json_get_integer(performance->object, "totalTokens", -1));
}

/* Says what it was asked; a run's block ends it; "bad" fails. */
static const char *echo(const struct llm_request *request)
{
	static char text[400];
	struct rlmd_text asked = request->messages[request->message_count - 1].text;

	if (request->kind == LLM_TURN)
		return "```repl\nfinal\n```";
	if (text_starts(asked, "bad"))
		return NULL;
	snprintf(text, sizeof text, "%s<%.*s>", request->model, (int)asked.size, asked.bytes);
	return text;
}

static const char mixed[] =
	"{\"operations\":["
	"{\"id\":\"run\",\"input\":\"the task\",\"mode\":\"rlm\",\"context\":{\"a\":1}},"
	"{\"id\":\"call\",\"input\":\"one\",\"context\":\"two\",\"model\":\"m\"},"
	"{\"id\":\"both\",\"input\":\"{{run}}, {{call}}\",\"dependsOn\":[\"run\",\"call\"]}]}";

/* ASY-13, ASY-30: operations are calls and runs, responses go into inputs, the context into the
 * prompt; and the usage is what the operations used. */
static void test_mixed(void **state)
{
	struct performance performance;

	(void)state;
	fake_model = echo;
	raise_curtain(&performance, &usual, mixed);
	play(&performance);
	assert_int_equal(performance.failure, RLMD_ERROR_NONE);
	assert_string_equal(response(&performance, "run"), "from code");
	assert_string_equal(response(&performance, "call"), "m<one\n\nThe context:\n\ntwo\n>");
	assert_string_equal(response(&performance, "both"),
			    "fake<from code, m<one\n\nThe context:\n\ntwo\n>>");
	assert_sums(&performance);
	drop_curtain(&performance);
}

/* A model that the host has not named is not asked, and costs nothing. */
static void test_models(void **state)
{
	static const char *const good[] = {"good*"};
	static const char plan[] = "{\"operations\":[{\"id\":\"own\",\"input\":\"x\"},"
				   "{\"id\":\"good\",\"input\":\"x\",\"model\":\"good-1\"},"
				   "{\"id\":\"other\",\"input\":\"x\",\"model\":\"dear\"}]}";
	struct performance performance;

	(void)state;
	fake_model = echo;
	models = good;
	raise_curtain(&performance, &usual, plan);
	models = NULL;
	play(&performance);
	assert_string_equal(response(&performance, "own"), "fake<x>");
	assert_string_equal(response(&performance, "good"), "good-1<x>");
	assert_string_equal(kind(&performance, "other"), "usage");
	assert_int_equal(json_get_integer(performance.object, "totalTokens", -1), 2 * 15);
	drop_curtain(&performance);
}

/* docs/budget.md: a run is begun with what a first turn takes, and not with less. */
static void test_least_share(void **state)
{
	enum { LEAST = 5717 };
	static const char plan[] =
		"{\"operations\":[{\"id\":\"run\",\"input\":\"x\",\"mode\":\"rlm\"}]}";
	struct stage_config config = usual;
	struct performance performance;

	(void)state;
	fake_model = echo;
	for (int lacks = 0; lacks < 2; lacks++) {
		config.limits.tokens = LEAST - lacks;
		raise_curtain(&performance, &config, plan);
		play(&performance);
		assert_string_equal(response(&performance, "run"), lacks ? "fake<x>" : "from code");
		drop_curtain(&performance);
	}
}

static const char *cut(const struct llm_request *request)
{
	(void)request;
	fake_holds = true; /* the second attempt, which begins next */
	return "cut";
}

/* A call that is cancelled in its second attempt was billed for its first one, too. */
static void test_cancelled_after_a_cut(void **state)
{
	struct performance performance;

	(void)state;
	fake_model = cut;
	fake_lowered = 100;
	raise_curtain(&performance, &usual, "{\"operations\":[{\"id\":\"a\",\"input\":\"x\"}]}");
	while (!fake_holds || !fake_calls)
		event_base_loop(performance.base, EVLOOP_NONBLOCK);
	rlmd_job_cancel(performance.job);
	fake_lowered = 0;
	fake_holds = false;
	play(&performance);
	assert_int_equal(json_get_integer(performance.object, "totalTokens", -1), 15 + 10);
	assert_sums(&performance);
	drop_curtain(&performance);
}

/* A long text was counted before it is asked, of which nobody else had done it. */
static const char *counted(const struct llm_request *request)
{
	for (size_t i = 0; i < request->message_count; i++) {
		assert_non_null(request->messages[i].scan);
		assert_int_equal(request->messages[i].scan->bytes, request->messages[i].text.size);
	}
	return "counted";
}

struct turns {
	struct event *event;
	int count;
};

static void on_turn(evutil_socket_t fd, short what, void *owner)
{
	struct turns *turns = owner;

	(void)fd, (void)what;
	turns->count++;
	loop_post(turns->event);
}

static void test_large_prompt(void **state)
{
	enum { SIZE = 2 << 20 };
	char *words = xcalloc(SIZE + 1, 1), *plan;
	struct performance performance;
	struct stage_config config = usual;
	struct turns turns = {0};

	(void)state;
	memset(words, 'w', SIZE);
	plan = xasprintf("{\"operations\":[{\"id\":\"large\",\"input\":\"%s\"}]}", words);
	config.limits.tokens = 10000000;
	fake_model = counted;
	raise_curtain(&performance, &config, plan);
	turns.event = evtimer_new(performance.base, on_turn, &turns);
	loop_post(turns.event);
	while (!performance.ends)
		event_base_loop(performance.base, EVLOOP_ONCE);
	assert_true(turns.count > SIZE / (256 << 10));
	event_free(turns.event);
	assert_int_equal(performance.failure, RLMD_ERROR_NONE);
	assert_string_equal(response(&performance, "large"), "counted");
	drop_curtain(&performance);

	raise_curtain(&performance, &config, plan); /* and one that is dropped meanwhile */
	for (int i = 0; i < 4; i++)
		event_base_loop(performance.base, EVLOOP_ONCE);
	assert_int_equal(performance.ends, 0);
	rlmd_job_cancel(performance.job);
	play(&performance);
	drop_curtain(&performance);
	free(plan);
	free(words);
}

static size_t events(const struct performance *performance, const char *name)
{
	const json_t *event;
	size_t i, count = 0;

	json_array_foreach (performance->events, i, event)
		count += text_equal(json_get_text(event, "event"), name);
	return count;
}

/* ASY-8 to ASY-11: the losers' calls are closed and paid for, as an estimate, and their workers
 * dead, before the winner is told. */
static void test_race(void **state)
{
	static const char plan[] =
		"{\"strategy\":\"Speculative\",\"operations\":["
		"{\"id\":\"run\",\"input\":\"a\",\"mode\":\"rlm\"},"
		"{\"id\":\"bad\",\"input\":\"bad\"},{\"id\":\"late\",\"input\":\"hang\"},"
		"{\"id\":\"good\",\"input\":\"good\"}]}";
	struct stage_config config = usual;
	struct performance performance;
	json_t *late;

	(void)state;
	fake_model = echo;
	config.max_parallel = 8;
	raise_curtain(&performance, &config, plan);
	while (!events(&performance, "winner"))
		event_base_loop(performance.base, EVLOOP_NONBLOCK);
	assert_int_equal(fake_calls, 0);
	assert_int_equal(fake_workers, 0);
	play(&performance);
	assert_int_equal(performance.failure, RLMD_ERROR_NONE);
	assert_string_equal(response(&performance, "good"), "fake<good>");
	assert_true(text_equal(json_get_text(performance.object, "winner"), "good"));
	late = json_object_get(json_object_get(performance.object, "results"), "late");
	assert_true(json_get_integer(late, "tokens", 0) > 0);
	assert_true(json_get_bool(late, "estimated", false));
	assert_int_equal(json_array_size(json_object_get(performance.object, "cancelled")), 2);
	assert_sums(&performance);
	drop_curtain(&performance);
}

/* Failures are told by the names of base/errors.def, and the first of it is the plan's failure,
 * unless the plan takes errors for results. */
static void test_failures(void **state)
{
	static const struct {
		const char *mode;
		enum rlmd_error_kind failure;
		const char *dependent; /* its error */
	} cases[] = {{"FailDependents", RLMD_ERROR_OVERLOADED, "dependency"},
		     {"FailFast", RLMD_ERROR_OVERLOADED, "cancelled"},
		     {"ContinueOnError", RLMD_ERROR_NONE, NULL}};
	struct performance performance;
	char plan[400];

	(void)state;
	fake_model = echo;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(plan, sizeof plan,
			 "{\"partialFailure\":\"%s\",\"operations\":["
			 "{\"id\":\"a\",\"input\":\"bad\"},"
			 "{\"id\":\"b\",\"input\":\"then {{a}}\",\"dependsOn\":[\"a\"]},"
			 "{\"id\":\"c\",\"input\":\"x\",\"mode\":\"rlm\",\"dependsOn\":[\"b\"]}]}",
			 cases[i].mode);
		raise_curtain(&performance, &usual, plan);
		play(&performance);
		assert_int_equal(performance.failure, cases[i].failure);
		assert_string_equal(kind(&performance, "a"), "overloaded");
		if (cases[i].dependent) {
			assert_string_equal(performance.message,
					    "operation \"a\" failed: the fake is overloaded");
			assert_string_equal(kind(&performance, "c"), cases[i].dependent);
		} else {
			assert_string_equal(response(&performance, "b"),
					    "fake<then Error: the fake is overloaded>");
			assert_string_equal(response(&performance, "c"), "from code");
		}
		assert_sums(&performance);
		drop_curtain(&performance);
	}
}

/* ASY-16: where errors are no reason to stop, a plan has failed if nothing at all succeeded; else
 * any error is its own. */
static void test_continue_on_error(void **state)
{
	static const struct {
		const char *mode, *first, *failed; /* the operation that the plan fails for */
	} cases[] = {{"ContinueOnError", "fine", NULL},
		     {"ContinueOnError", "bad", "a"},
		     {"FailDependents", "fine", "b"}};
	struct performance performance;
	char plan[400];

	(void)state;
	fake_model = echo;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(plan, sizeof plan,
			 "{\"partialFailure\":\"%s\",\"operations\":["
			 "{\"id\":\"a\",\"input\":\"%s\"},"
			 "{\"id\":\"b\",\"input\":\"bad {{a}}\",\"dependsOn\":[\"a\"]}]}",
			 cases[i].mode, cases[i].first);
		raise_curtain(&performance, &usual, plan);
		play(&performance);
		assert_string_equal(kind(&performance, "b"), "overloaded");
		if (cases[i].failed) {
			snprintf(plan, sizeof plan,
				 "operation \"%s\" failed: the fake is overloaded",
				 cases[i].failed);
			assert_int_equal(performance.failure, RLMD_ERROR_OVERLOADED);
			assert_string_equal(performance.message, plan);
		} else {
			assert_int_equal(performance.failure, RLMD_ERROR_NONE);
		}
		drop_curtain(&performance);
	}
}

/* ASY-24: without budget each is refused by itself, with a kind of its own. */
static void test_no_budget(void **state)
{
	struct stage_config config = usual;
	struct performance performance;

	(void)state;
	fake_model = echo;
	config.limits.tokens = 100;
	raise_curtain(&performance, &config, mixed);
	play(&performance);
	assert_int_equal(performance.failure, RLMD_ERROR_BUDGET);
	assert_string_equal(kind(&performance, "run"), "budget");
	assert_string_equal(kind(&performance, "call"), "budget");
	assert_sums(&performance);
	drop_curtain(&performance);
}

static int64_t late_ms; /* the model answers after that */

static const char *late(const struct llm_request *request)
{
	int64_t asked = clock_ms();

	while (clock_ms() <= asked + late_ms)
		continue;
	return echo(request);
}

/* A call that ran out of time has the kind of whose time it was: its own, or the budget's. */
static void test_no_time(void **state)
{
	static const char plan[] = "{\"operations\":[{\"id\":\"a\",\"input\":\"bad\"}]}";
	struct stage_config config = usual;
	struct performance performance;

	(void)state;
	fake_failure = RLMD_ERROR_TIMEOUT;
	for (int over = 0; over < 2; over++) {
		fake_model = late;
		config.limits.time_ms = over ? 100 : 60000;
		raise_curtain(&performance, &config, plan);
		late_ms = over ? 100 : 0;
		play(&performance);
		assert_string_equal(kind(&performance, "a"), over ? "budget" : "timeout");
		drop_curtain(&performance);
	}
	fake_failure = RLMD_ERROR_OVERLOADED;
}

/* ASY-23: as many at once as are affordable by what one is taken to cost, or did. */
static void test_parallelism(void **state)
{
	static const char plan[] =
		"{\"maxParallel\":5,\"operations\":[{\"id\":\"a\",\"input\":\"\"},"
		"{\"id\":\"b\",\"input\":\"\"},{\"id\":\"c\",\"input\":\"\"},"
		"{\"id\":\"d\",\"input\":\"\"},{\"id\":\"e\",\"input\":\"\"}]}";
	struct stage_config config = usual;
	struct performance performance;
	const json_t *event;

	(void)state;
	fake_model = echo;
	config.limits.tokens = 9000;
	config.max_parallel = 5;
	raise_curtain(&performance, &config, plan);
	play(&performance);
	event = json_array_get(performance.events, 1);
	assert_true(text_equal(json_get_text(event, "event"), "parallelism"));
	assert_int_equal(json_get_integer(event, "wanted", 0), 5);
	assert_int_equal(json_get_integer(event, "parallel", 0), 9000 / 2500);
	assert_int_equal(json_get_integer(event, "remaining", 0), 9000);
	assert_int_equal(events(&performance, "parallelism"), 1);
	assert_int_equal(performance.failure, RLMD_ERROR_NONE);
	drop_curtain(&performance);
}

static int called;

/* The first takes 3,000 tokens, the second 1,000. */
static struct llm_usage uneven(const struct llm_request *request)
{
	(void)request;
	return (struct llm_usage){.input = called++ ? 1000 : 3000};
}

/* Of calls a plan wants no more at once than may be in flight: more would not be affordable here,
 * and that would be told. */
static void test_no_more_than_in_flight(void **state)
{
	static const char plan[] =
		"{\"maxParallel\":5,\"operations\":[{\"id\":\"a\",\"input\":\"\"},"
		"{\"id\":\"b\",\"input\":\"\"},{\"id\":\"c\",\"input\":\"\"},"
		"{\"id\":\"d\",\"input\":\"\"},{\"id\":\"e\",\"input\":\"\"}]}";
	struct stage_config config = usual;
	struct performance performance;

	(void)state;
	fake_model = echo;
	config.limits.tokens = 9000;
	raise_curtain(&performance, &config, plan);
	play(&performance);
	assert_int_equal(events(&performance, "parallelism"), 0);
	assert_int_equal(performance.failure, RLMD_ERROR_NONE);
	drop_curtain(&performance);
}

/* ASY-23: what one is taken to cost is the mean of those that have ended. */
static void test_mean(void **state)
{
	static const char plan[] = "{\"maxParallel\":8,\"operations\":["
				   "{\"id\":\"a\",\"input\":\"\"},{\"id\":\"b\",\"input\":\"\"},"
				   "{\"id\":\"c\",\"input\":\"\"},{\"id\":\"d\",\"input\":\"\"},"
				   "{\"id\":\"e\",\"input\":\"\"},{\"id\":\"f\",\"input\":\"\"},"
				   "{\"id\":\"g\",\"input\":\"\"},{\"id\":\"h\",\"input\":\"\"}]}";
	static const int64_t estimates[] = {2500, 3000, 2000};
	struct stage_config config = usual;
	struct performance performance;
	const json_t *event;
	size_t i, told = 0;

	(void)state;
	called = 0;
	fake_model = echo;
	fake_usage = uneven;
	config.limits.tokens = 17000;
	config.max_parallel = 8;
	raise_curtain(&performance, &config, plan);
	play(&performance);
	fake_usage = NULL;
	json_array_foreach (performance.events, i, event) {
		if (!text_equal(json_get_text(event, "event"), "parallelism") || told == 3)
			continue;
		assert_int_equal(json_get_integer(event, "estimate", 0), estimates[told]);
		assert_int_equal(json_get_integer(event, "parallel", 0),
				 json_get_integer(event, "remaining", 0) / estimates[told]);
		told++;
	}
	assert_int_equal(told, 3);
	drop_curtain(&performance);
}

static long long shares[3]; /* tokens, less what each run keeps of its own */
static size_t share_count;

/* Each run's first turn says what it has. */
static const char *sharing(const struct llm_request *request)
{
	struct rlmd_text said = request->messages[request->message_count - 1].text;
	const char *left = text_find(said, "Left: cost ");

	if (request->kind != LLM_TURN)
		return text_starts(said, "bad") ? NULL : "fine";
	assert_non_null(left);
	assert_true(share_count < sizeof shares / sizeof *shares);
	assert_int_equal(sscanf(left, "Left: cost %*s %lld tokens", &shares[share_count++]), 1);
	return "```repl\nfinal\n```";
}

static void share(struct performance *performance, const char *plan, size_t runs)
{
	struct stage_config config = usual;

	share_count = 0;
	fake_model = sharing;
	config.limits.tokens = 400000;
	config.max_parallel = 8;
	raise_curtain(performance, &config, plan);
	for (int i = 0; i < 100000 && share_count < runs; i++)
		event_base_loop(performance->base, EVLOOP_NONBLOCK);
	assert_int_equal(share_count, runs);
}

/* Runs of a plan divide what there is, and count all its calls that have not ended as one more. */
static void test_shares(void **state)
{
	struct performance performance;

	(void)state;
	share(&performance,
	      "{\"operations\":[{\"id\":\"call\",\"input\":\"hang\"},"
	      "{\"id\":\"a\",\"input\":\"\",\"mode\":\"rlm\"},"
	      "{\"id\":\"b\",\"input\":\"\",\"mode\":\"rlm\"},"
	      "{\"id\":\"c\",\"input\":\"\",\"mode\":\"rlm\"}]}",
	      3);
	/* A quarter of what the call has left over, of which a tenth is kept. */
	for (size_t i = 0; i < 3; i++)
		assert_in_range(shares[i], (400000 - 16384) / 4 * 9 / 10, 400000 / 4 * 9 / 10);
	drop_curtain(&performance);
}

/* A call that has ended has no share any more. */
static void test_share_after_a_call(void **state)
{
	struct performance performance;

	(void)state;
	share(&performance,
	      "{\"operations\":[{\"id\":\"call\",\"input\":\"\"},"
	      "{\"id\":\"run\",\"input\":\"\",\"mode\":\"rlm\",\"dependsOn\":[\"call\"]}]}",
	      1);
	assert_in_range(shares[0], (400000 - 1000) * 9 / 10, 400000 * 9 / 10);
	drop_curtain(&performance);
}

/* Nor has a run that will never begin. */
static void test_share_after_a_failure(void **state)
{
	struct performance performance;

	(void)state;
	share(&performance,
	      "{\"partialFailure\":\"FailDependents\",\"operations\":["
	      "{\"id\":\"call\",\"input\":\"bad\"},"
	      "{\"id\":\"never\",\"input\":\"\",\"mode\":\"rlm\",\"dependsOn\":[\"call\"]},"
	      "{\"id\":\"other\",\"input\":\"\"},"
	      "{\"id\":\"run\",\"input\":\"\",\"mode\":\"rlm\",\"dependsOn\":[\"other\"]}]}",
	      1);
	assert_in_range(shares[0], (400000 - 2000) * 9 / 10, 400000 * 9 / 10);
	drop_curtain(&performance);
}

/* C4, ASY-35: stopped after any number of events a plan ends at once and once, with sums that are
 * right; and freed then, it leaves nothing. */
static void test_stop_sweep(void **state)
{
	struct performance performance;
	bool finished = false;

	(void)state;
	fake_model = echo;
	for (int n = 0; !finished; n++) {
		for (int stop = 0; stop < 2; stop++) {
			raise_curtain(&performance, &usual, mixed);
			for (int i = 0; i < n; i++)
				event_base_loop(performance.base, EVLOOP_NONBLOCK);
			finished = performance.ends;
			if (stop) {
				rlmd_job_cancel(performance.job);
				while (!performance.job->yields && !performance.ends)
					event_base_loop(performance.base, EVLOOP_NONBLOCK);
				assert_int_equal(fake_calls, 0);
				assert_int_equal(fake_workers, 0);
				play(&performance);
				assert_sums(&performance);
				if (!finished && performance.failure)
					assert_int_equal(performance.failure, RLMD_ERROR_CANCELLED);
			}
			drop_curtain(&performance);
		}
	}
}

static const char *block;

/* The root orders `block`; sub-runs end at once, and calls echo. */
static const char *ordering(const struct llm_request *request)
{
	if (request->kind == LLM_TURN && !request->depth)
		return request->turn ? "FINAL(the end)" : block;
	return echo(request);
}

/* run_plan: by the same code, out of the caller's budget, answered with one slot of JSON. */
static void test_of_a_block(void **state)
{
	struct fixture fixture;
	json_t *told;

	(void)state;
	fake_model = ordering;
	block = "```repl\nplan {\"operations\":[{\"id\":\"a\",\"input\":\"t\",\"mode\":\"rlm\"},"
		"{\"id\":\"b\",\"input\":\"and {{a}}\",\"dependsOn\":[\"a\"]}]}\n```";
	begin(&fixture, &usual);
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "the end"));
	fake_told[strlen(fake_told) - 1] = '\0';
	told = json_loads(fake_told, 0, NULL);
	assert_non_null(told);
	assert_true(text_equal(
		json_get_text(json_object_get(json_object_get(told, "results"), "b"), "response"),
		"fake<and from code>"));
	assert_int_equal(json_get_integer(told, "totalTokens", 0), 2 * 15);
	assert_int_equal(used(&fixture, "tokens"), 4 * 15);
	assert_int_equal(used(&fixture, "subcalls"), 1);
	json_decref(told);
	end(&fixture);
}

/* An invalid plan fails its call, with the place, and nothing is sent. */
static void test_no_plan(void **state)
{
	struct fixture fixture;

	(void)state;
	fake_model = ordering;
	block = "```repl\nplan {\"operations\":[{\"id\":\"a\"}]}\n```";
	begin(&fixture, &usual);
	drive(&fixture);
	assert_string_equal(fake_told, "!operations[0].input: is missing|");
	assert_int_equal(used(&fixture, "llmCalls"), 2);
	end(&fixture);
}

/* Schemas are checked in a process of their own, which is there for the host's alone. */
static void test_no_schema(void **state)
{
	struct fixture fixture;

	(void)state;
	fake_model = ordering;
	block = "```repl\nplan {\"operations\":[{\"id\":\"a\",\"input\":\"x\",\"schema\":{}}]}\n```";
	begin(&fixture, &usual);
	drive(&fixture);
	assert_non_null(strstr(fake_told, "!operations[0].schema: plans of code have none"));
	assert_int_equal(used(&fixture, "llmCalls"), 2);
	end(&fixture);
}

/* Code can write more JSON values into a plan than anybody has memory for: with the most that it
 * may have it is read, with one more it is not. */
static void test_too_many_values(void **state)
{
	enum { MOST = 250000 };
	static const char start[] = "```repl\nplan [", end_of_block[] = "]\n```";
	static const char *const told[] = {"!the plan must be an object|",
					   "!the plan has 250001 JSON values, of at most 250000: "};
	char *text = xcalloc(sizeof start + sizeof end_of_block + 2 * MOST + 1, 1);
	struct fixture fixture;

	(void)state;
	fake_model = ordering;
	block = text;
	for (size_t more = 0; more < 2; more++) {
		char *at = stpcpy(text, start);

		for (size_t values = 1; values < MOST + more; values++)
			at = stpcpy(at, "0,");
		strcpy(at, "0");
		strcat(at, end_of_block);
		begin(&fixture, &usual);
		drive(&fixture);
		assert_memory_equal(fake_told, told[more], strlen(told[more]));
		assert_int_equal(used(&fixture, "llmCalls"), 2);
		end(&fixture);
	}
	free(text);
}

/* C4: a plan in a block, cancelled or bereft of its worker at any event. */
static void test_sweeps_of_a_block(void **state)
{
	struct fixture fixture;
	size_t all;

	(void)state;
	fake_model = ordering;
	block = "```repl\nplan {\"strategy\":\"Speculative\",\"operations\":["
		"{\"id\":\"a\",\"input\":\"t\",\"mode\":\"rlm\"},"
		"{\"id\":\"b\",\"input\":\"t\",\"mode\":\"rlm\"},"
		"{\"id\":\"c\",\"input\":\"bad\"}]}\n```";
	begin(&fixture, &usual);
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "the end"));
	all = fake_events;
	end(&fixture);
	for (size_t n = 0; n <= 4 * all; n++) {
		begin(&fixture, &usual);
		for (size_t i = 0; i < n; i++)
			event_base_loop(fixture.base, EVLOOP_NONBLOCK);
		end(&fixture);
	}
	for (size_t death = 1; death <= all; death++) {
		begin(&fixture, &usual);
		fake_death = death;
		drive(&fixture);
		assert_int_equal(fixture.results, 1);
		end(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_least_share),
		cmocka_unit_test(test_cancelled_after_a_cut),
		cmocka_unit_test(test_large_prompt),
		cmocka_unit_test(test_race),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_continue_on_error),
		cmocka_unit_test(test_no_budget),
		cmocka_unit_test(test_mean),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_share_after_a_call),
		cmocka_unit_test(test_share_after_a_failure),
		cmocka_unit_test(test_no_time),
		cmocka_unit_test(test_parallelism),
		cmocka_unit_test(test_no_more_than_in_flight),
		cmocka_unit_test(test_stop_sweep),
		cmocka_unit_test(test_of_a_block),
		cmocka_unit_test(test_no_plan),
		cmocka_unit_test(test_too_many_values),
		cmocka_unit_test(test_no_schema),
		cmocka_unit_test(test_sweeps_of_a_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
