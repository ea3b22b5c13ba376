/* The promises to the owner of a worker, whichever way its process behaves. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memfile.h"
#include "fake/clock.h"
#include "pool/script.h"
#include "pool/stage.h"

static struct stage stage;
static struct actor actor;

static int set_up(void **state)
{
	(void)state;
	stage_init(&stage);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	actor_done(&actor);
	stage_done(&stage);
	return 0;
}

static void perform(fake_script_fn *script)
{
	actor_start(&actor, &stage, script, NULL);
	actor_await(&actor, WORKER_READY, 1);
}

static struct memfile *file_of(const char *bytes)
{
	struct memfile *file = memfile_new("test");

	assert_true(memfile_append(file, text_of(bytes), NULL));
	assert_true(memfile_seal(file, NULL));
	return file;
}

/* It is there before the walls stand. */
static int checks_start(int in, int out)
{
	expect(in,
	       "{\"type\":\"start\",\"names\":[\"context\",\"tree\"],\"forms\":[\"utf-8\",\"utf-8\"],\"sizes\":[5,3],"
	       "\"starts\":[0,0],\"indexes\":[0,5],\"task\":\"why?\",\"max_output\":1234,\"functions\":\"[]\"}");
	say(out, "{\"type\":\"ready\",\"python\":\"3\",\"layers\":[]}");
	say(out, "{\"type\":\"started\",\"error\":null,\"no_memory\":false}");
	return 0;
}

/* `start` names the inputs and the task; their memory is asked for: once more where Python must
 * widen them, and once more where they have files. */
static void test_start(void **state)
{
	struct worker_input inputs[] = {{"context", file_of("ascii"), NULL},
					{"tree", file_of("\xe2\x82\xac"), file_of("index")}};
	struct worker_options options = {
		.inputs = inputs, .input_count = 2, .task = text_of("why?"), .max_output = 1234};

	(void)state;
	actor_start(&actor, &stage, checks_start, &options);
	memfile_unref(inputs[0].file);
	memfile_unref(inputs[1].file);
	memfile_unref(inputs[1].index);
	actor_await(&actor, WORKER_READY, 1);
	assert_int_equal(fake_sandbox_memory(stage.sandbox),
			 (5 + 5 + 80) + (3 + 3 * (2 + 80)) + 2 * 4);
}

/* A sandbox that gives no process, as one that gives no pipe: told from the loop. */
static void test_refused(void **state)
{
	(void)state;
	fake_sandbox_refuse(stage.sandbox, true);
	actor_start(&actor, &stage, checks_start, NULL);
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.error.kind, RLMD_ERROR_SANDBOX);
	assert_string_equal(actor.error.text, "this sandbox refuses");
}

static int runs_blocks(int in, int out)
{
	handshake(in, out);
	expect(in, "{\"type\":\"exec\",\"block\":1,\"code\":\"code\"}");
	say_done(out, "one");
	expect(in, "\"exec\"");
	say(out,
	    "{\"type\":\"done\",\"block\":1,\"stdout\":0,\"stderr\":\"\",\"error\":\"Traceback\","
	    "\"missing\":null,\"final\":\"final_var\",\"answer\":1,\"attachments\":[3,5]}");
	put_bytes(out, "twothree", 8);
	expect(in, "{\"type\":\"get\",\"name\":\"x\"}");
	say(out,
	    "{\"type\":\"value\",\"value\":\"42\",\"expression\":false,\"variables\":\"x int\"}");
	expect(in, "{\"type\":\"get\",\"name\":\"\"}");
	say(out,
	    "{\"type\":\"value\",\"value\":null,\"expression\":false,\"variables\":\"x int\"}");
	return hear(in) != NULL;
}

/* Blocks and variables, one after the other in one process; texts inline and attached. */
static void test_blocks(void **state)
{
	char name[300];

	(void)state;
	perform(runs_blocks);
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	assert_string_equal(actor.printed, "one");
	assert_false(actor.failed);
	assert_int_equal(actor.final, ANSWER_MISSING);
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 2);
	assert_string_equal(actor.printed, "two");
	assert_true(actor.failed);
	assert_string_equal(actor.problem, "Traceback");
	assert_int_equal(actor.final, ANSWER_FINAL_VAR);
	assert_string_equal(actor.answer, "three");
	assert_false(actor.interrupted);
	worker_get(actor.worker, "x", 1000000);
	actor_await(&actor, WORKER_VALUE, 1);
	assert_true(actor.found);
	assert_string_equal(actor.value, "42");
	assert_string_equal(actor.variables, "x int");
	memset(name, 'n', sizeof name);
	name[299] = '\0';
	worker_get(actor.worker, name,
		   1000000); /* longer than any message may say: names nothing */
	actor_await(&actor, WORKER_VALUE, 2);
	assert_false(actor.found);
}

static int calls(int in, int out)
{
	begin_block(in, out);
	say(out,
	    "{\"type\":\"llm_query\",\"id\":5,\"prompts\":[\"a\",0]," USUAL ",\"model\":\"big\","
	    "\"attachments\":[2]}");
	put_bytes(out, "b\xff", 2);
	expect(in, "{\"type\":\"reply\",\"id\":5,\"values\":[\"A\",null],"
		   "\"errors\":[null,\"budget\"],\"messages\":[null,\"no money\"],"
		   "\"degraded\":[\"cut\",null]}");
	say(out, "{\"type\":\"rlm_query\",\"id\":5,\"tasks\":[\"t\",\"u\",\"v\"],"
		 "\"subsets\":[\"[2,0,3,7,1]\",null,null],\"contexts\":[null,0,\"in\\u0000line\"],"
		 "\"models\":[null,\"m\",null],\"attachments\":[3]}");
	put_bytes(out, "raw", 3);
	expect(in, "\"values\":[\"t\",\"u\",\"v\"]");
	say(out, "{\"type\":\"llm_query\",\"id\":0,\"prompts\":[]," USUAL ",\"model\":null}");
	expect(in, "\"values\":[]");
	say(out, "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"a\",\"b\",\"c\",\"d\"],"
		 "\"turns\":[3,1],"
		 "\"model\":null,\"system\":0,\"max_tokens\":5,\"temperature\":2000,"
		 "\"attachments\":[3]}");
	put_bytes(out, "sys", 3);
	expect(in, "\"values\":[\"a\",\"b\"]");
	say(out, "{\"type\":\"run_plan\",\"id\":5,\"plan\":0,\"attachments\":[4]}");
	put_bytes(out, "plan", 4);
	expect(in, "\"values\":[\"plan\"]");
	say(out, "{\"type\":\"budget\",\"id\":9007199254740992}");
	expect(in, "\"values\":[\"{}\"]");
	say_done(out, "all answered");
	return hear(in) != NULL;
}

static void on_call(struct actor *who, const struct worker_call *call)
{
	struct worker_result results[] = {
		{.value = {"A", 1}, .degraded = "cut"},
		{.failed = true, .kind = RLMD_ERROR_BUDGET, .message = "no money"},
	};

	switch (who->heard[WORKER_CALL]) {
	case 1:
		assert_int_equal(call->kind, WORKER_LLM_QUERY);
		assert_int_equal(call->count, 2);
		assert_string_equal(call->model, "big");
		assert_memory_equal(call->texts[1].bytes, "b\xff", 2);
		who->unanswered--;
		worker_reply(who->worker, call->id, results, 2);
		return;
	case 2:
		assert_int_equal(call->kind, WORKER_RLM_QUERY);
		assert_int_equal(call->count, 3);
		assert_null(call->contexts[0]);
		assert_int_equal(call->subsets[0].input, 2);
		assert_int_equal(call->subsets[0].count, 2);
		assert_int_equal(call->subsets[0].ranges[1], 3);
		assert_int_equal(call->subsets[0].ranges[2], 7);
		assert_null(call->subsets[1].ranges);
		assert_true(text_equal(memfile_text(call->contexts[1]), "raw"));
		assert_int_equal(memfile_size(call->contexts[2]), 7);
		assert_memory_equal(memfile_text(call->contexts[2]).bytes, "in\0line", 7);
		assert_null(call->models[0]);
		assert_string_equal(call->models[1], "m");
		break;
	case 3:
		assert_int_equal(call->count, 0);
		assert_null(call->model);
		assert_null(call->turns);
		assert_int_equal(call->system.size, 0);
		assert_int_equal(call->max_tokens, 0);
		assert_int_equal(call->temperature, -1);
		break;
	case 4:
		assert_int_equal(call->count, 2);
		assert_int_equal(call->text_count, 4);
		assert_int_equal(call->turns[0], 3);
		assert_int_equal(call->turns[1], 1);
		assert_true(text_equal(call->system, "sys"));
		assert_int_equal(call->max_tokens, 5);
		assert_int_equal(call->temperature, 2000);
		break;
	case 5:
		assert_int_equal(call->kind, WORKER_RUN_PLAN);
		assert_int_equal(call->count, 1);
		assert_true(text_equal(call->texts[0], "plan"));
		assert_null(call->contexts);
		break;
	default:
		assert_int_equal(call->kind, WORKER_BUDGET);
	}
	answer_all(who, call);
}

/* Calls arrive with all that is in them, and results go back in order; a number may be used again.
 */
static void test_calls(void **state)
{
	(void)state;
	perform(calls);
	actor.on_call = on_call;
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	assert_string_equal(actor.printed, "all answered");
}

static int asks_much(int in, int out)
{
	char call[64];

	begin_block(in, out);
	for (int i = 0; i < 3000; i++) {
		snprintf(call, sizeof call, "{\"type\":\"budget\",\"id\":%d}", i);
		say(out, call);
	}
	for (int i = 0; i < 3000; i++)
		expect(in, "reply");
	say_done(out, "served");
	return hear(in) != NULL;
}

static void answer_oldest(evutil_socket_t fd, short what, void *arg)
{
	struct worker_result result = {.value = {"{}", 2}};
	int *next = arg;

	(void)fd;
	(void)what;
	for (int i = 0; i < 50 && actor.unanswered > 0; i++) {
		actor.unanswered--;
		worker_reply(actor.worker, (*next)++, &result, 1);
	}
}

/* A worker that asks for much is not killed: it is read as fast as it is served. */
static void test_flood(void **state)
{
	int next = 0;
	struct event *server = event_new(stage.base, -1, EV_PERSIST, answer_oldest, &next);

	(void)state;
	perform(asks_much);
	event_add(server, &(struct timeval){.tv_usec = 1000});
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	event_free(server);
	assert_int_equal(actor.heard[WORKER_CALL], 3000);
	assert_int_equal(actor.unanswered_max, 64);
}

static int asks_and_dies(int in, int out)
{
	char call[64];

	begin_block(in, out);
	for (int i = 0; i < 100; i++) {
		snprintf(call, sizeof call, "{\"type\":\"budget\",\"id\":%d}", i);
		say(out, call);
	}
	return 5;
}

/* One that dies while it is not read is noticed all the same. */
static void test_death_while_paused(void **state)
{
	(void)state;
	perform(asks_and_dies);
	actor_exec(&actor);
	actor_await(&actor, WORKER_GONE, 1);
	assert_non_null(strstr(actor.error.text, "exit status 5"));
	assert_true(actor.heard[WORKER_CALL] <= 64);
}

static int asks_many_times(int in, int out, int prompts, size_t size)
{
	static char json[1 << 20];

	begin_block(in, out);
	for (int id = 0; id < 64; id++) {
		size_t used = (size_t)snprintf(json, sizeof json,
					       "{\"type\":\"llm_query\",\"id\":%d," USUAL
					       ",\"model\":null,\"prompts\":[",
					       id);

		for (int i = 0; i < prompts; i++) {
			memcpy(json + used, ",\"", 3);
			used += i ? 2 : 1;
			json[used - 1] = '"';
			memset(json + used, 'x', size);
			used += size;
			json[used++] = '"';
		}
		memcpy(json + used, "]}", 3);
		say(out, json);
	}
	return pause();
}

static int asks_batches(int in, int out)
{
	return asks_many_times(in, out, 10000, 0);
}

static int asks_large_batches(int in, int out)
{
	return asks_many_times(in, out, 1, 1000000);
}

static int never_reads(int in, int out)
{
	char call[64];

	signal(SIGINT, SIG_IGN);
	begin_block(in, out);
	for (int i = 0; i < 1000000; i++) {
		snprintf(call, sizeof call, "{\"type\":\"budget\",\"id\":%d}", i);
		say(out, call);
	}
	return 0;
}

static void answer_megabyte(struct actor *who, const struct worker_call *call)
{
	static char megabyte[1 << 20];
	struct worker_result result = {.value = {megabyte, sizeof megabyte}};

	who->unanswered--;
	worker_reply(who->worker, call->id, &result, 1);
}

/* One that does not read its replies is not read either, and so comes to the end of its time. */
static void test_never_reads(void **state)
{
	(void)state;
	perform(never_reads);
	actor.on_call = answer_megabyte;
	actor.timeout_ms = 1500; /* in which a busy machine moves ten megabytes */
	actor_exec(&actor);
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.exit, WORKER_EXIT_LATE);
	assert_in_range(actor.heard[WORKER_CALL], 9, 11);
}

/* 20,000 prompts, or 16 MiB of them, wait for their answers; the next call is not read. */
static void test_weight(void **state)
{
	static fake_script_fn *const scripts[] = {asks_batches, asks_large_batches};
	static const int calls[] = {2, 17};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		perform(scripts[i]);
		actor_exec(&actor);
		actor_await(&actor, WORKER_CALL, calls[i]);
		for (int turn = 0; turn < 100; turn++)
			event_base_loop(stage.base, EVLOOP_NONBLOCK);
		assert_int_equal(actor.heard[WORKER_CALL], calls[i]);
		actor_done(&actor);
	}
}

static int attaches_much(int in, int out)
{
	static char text[100000];

	begin_block(in, out);
	say(out, "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[0,1,2,3,4,5,6,7,8,9]," USUAL
		 ",\"model\":null,"
		 "\"attachments\":[300000,300000,300000,300000,300000,300000,300000,300000,"
		 "300000,300000]}");
	for (int i = 0; i < 30; i++)
		put_bytes(out, text, sizeof text);
	return hear(in) != NULL;
}

#ifndef RLMD_SANITIZED /* its own memory would be counted too, and it dies without */

/* The number that RLIMIT_DATA is compared with. */
static rlim_t data_size(void)
{
	auto_file FILE *status = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (fgets(line, sizeof line, status))
		if (sscanf(line, "VmData: %llu", &kib) == 1)
			break;
	return (rlim_t)kib << 10;
}

/* Where we have no room for what it says it cannot go on; but that is no lie of its. */
static void test_no_room(void **state)
{
	struct rlimit before, little;

	(void)state;
	perform(attaches_much);
	getrlimit(RLIMIT_DATA, &before);
	little = (struct rlimit){data_size() + (1 << 20), before.rlim_max};
	setrlimit(RLIMIT_DATA, &little);
	actor_exec(&actor);
	actor_await(&actor, WORKER_GONE, 1);
	setrlimit(RLIMIT_DATA, &before);
	assert_int_equal(actor.error.kind, RLMD_ERROR_WORKER);
	assert_non_null(strstr(actor.error.text, "the worker was ended: no memory for "));
}

#endif

/* However much it attaches, no descriptor of ours is taken for it: others need them. */
static void test_no_descriptors(void **state)
{
	struct rlimit before, few;
	int lowest;

	(void)state;
	perform(attaches_much);
	getrlimit(RLIMIT_NOFILE, &before);
	lowest = dup(0);
	close(lowest);
	few = (struct rlimit){(rlim_t)lowest, before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &few);
	actor_exec(&actor);
	actor_await(&actor, WORKER_CALL, 1);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(actor.heard[WORKER_GONE], 0);
}

static int says_done_and_dies(int in, int out)
{
	begin_block(in, out);
	say_done(out, "last words");
	return 0;
}

/* Messages from before the death are heard, and the death after them. */
static void test_last_words(void **state)
{
	(void)state;
	perform(says_done_and_dies);
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	assert_string_equal(actor.printed, "last words");
	actor_exec(&actor); /* the owner cannot know; it is lost without harm */
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.error.kind, RLMD_ERROR_WORKER);
	assert_int_equal(actor.heard[WORKER_DONE], 1);
}

static void on_interrupt(int signal)
{
	(void)signal;
}

/* For sigwait(3), or until sigsuspend(2). */
static void block_interrupt(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigprocmask(SIG_BLOCK, ret, NULL);
}

/* As a block that does nothing until it is interrupted, at whatever moment of it that comes. */
static void begin_block_and_wait(int in, int out)
{
	sigset_t interrupts, none;

	sigemptyset(&none);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
	block_interrupt(&interrupts);
	begin_block(in, out);
	sigsuspend(&none);
}

static int heeds_the_interrupt(int in, int out)
{
	begin_block_and_wait(in, out);
	say_done(out, "interrupted");
	expect(in, "exec");
	say_done(out, "alive");
	return hear(in) != NULL;
}

/* A block beyond its time is interrupted; the worker lives on for the next (LIB-12). */
static void test_interrupt(void **state)
{
	(void)state;
	perform(heeds_the_interrupt);
	actor.timeout_ms = 50;
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	assert_true(actor.interrupted);
	assert_true(actor.duration_ms >= 50);
	actor.timeout_ms = 1000000;
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 2);
	assert_string_equal(actor.printed, "alive");
	assert_false(actor.interrupted);
	assert_true(fake_sandbox_interrupts(stage.sandbox) >= 1);
}

static int heeds_the_second_signal(int in, int out)
{
	sigset_t interrupt;
	int number;

	block_interrupt(&interrupt);
	begin_block(in, out);
	sigwait(&interrupt, &number); /* as one that came before the block was read */
	sigwait(&interrupt, &number);
	say_done(out, "interrupted");
	return hear(in) != NULL;
}

/* An interrupt is not lost where its first signal was. */
static void test_a_lost_signal(void **state)
{
	(void)state;
	perform(heeds_the_second_signal);
	actor.timeout_ms = 50;
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	assert_true(actor.interrupted);
	assert_string_equal(actor.printed, "interrupted");
}

static int ignores_the_interrupt(int in, int out)
{
	sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	begin_block(in, out);
	return pause();
}

static int stops_itself(int in, int out)
{
	begin_block(in, out);
	return raise(SIGSTOP);
}

/* One that ignores the interrupt, or stopped itself, is killed after the grace (LIB-12). */
static void test_kill(void **state)
{
	static fake_script_fn *const scripts[] = {ignores_the_interrupt, stops_itself};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		perform(scripts[i]);
		fake_clock_speed(20);
		actor.timeout_ms = 1000;
		actor_exec(&actor);
		actor_await(&actor, WORKER_GONE, 1);
		assert_int_equal(actor.exit, WORKER_EXIT_LATE);
		assert_int_equal(actor.error.kind, RLMD_ERROR_WORKER);
		assert_string_equal(actor.error.text, "no interrupt ended the code after 1000 ms");
		actor_done(&actor);
		fake_clock_speed(1);
	}
}

/* Where its user interrupts, no time of the block's is over. */
static void test_kill_after_a_request(void **state)
{
	(void)state;
	perform(ignores_the_interrupt);
	fake_clock_speed(20);
	actor.timeout_ms = 1000000;
	actor_exec(&actor);
	worker_interrupt(actor.worker);
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.exit, WORKER_EXIT_LATE);
	assert_string_equal(actor.error.text, "no interrupt ended the code");
}

/* One that lives on after its kill is waited for no longer than that may take. */
static void test_no_kill(void **state)
{
	(void)state;
	perform(ignores_the_interrupt);
	fake_sandbox_spare(stage.sandbox, true);
	fake_clock_speed(20);
	actor.timeout_ms = 1000;
	actor_exec(&actor);
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.exit, WORKER_EXIT_LATE);
	assert_string_equal(actor.error.text, "no interrupt ended the code after 1000 ms");
	assert_int_equal(fake_sandbox_living(stage.sandbox), 0); /* the sandbox has it back */
	fake_sandbox_spare(stage.sandbox, false);
}

static int dies_slowly(int in, int out)
{
	begin_block(in, out);
	close(out);
	return pause();
}

/* Of one with much to free the pipe is closed long before it is over: its verdict tells why. */
static void test_slow_death(void **state)
{
	(void)state;
	perform(dies_slowly);
	fake_sandbox_condemn(stage.sandbox, "it had more than 256 threads");
	fake_clock_speed(20);
	actor_exec(&actor);
	actor_await(&actor, WORKER_GONE, 1);
	assert_string_equal(actor.error.text,
			    "the worker was killed: it had more than 256 threads");
	fake_sandbox_condemn(stage.sandbox, NULL);
}

static int says_nothing(int in, int out)
{
	(void)in;
	(void)out;
	return pause();
}

static int loads_for_ever(int in, int out)
{
	(void)in;
	say(out, "{\"type\":\"ready\",\"python\":\"3\",\"layers\":[]}");
	return pause();
}

/* One that does not start in time is told from one whose inputs are not there in time. */
static void test_late_starts(void **state)
{
	(void)state;
	fake_clock_speed(20);
	actor_start(&actor, &stage, says_nothing, NULL);
	while (!actor.heard[WORKER_GONE])
		event_base_loop(stage.base, EVLOOP_ONCE);
	assert_int_equal(actor.error.kind, RLMD_ERROR_SANDBOX);
	assert_non_null(strstr(actor.error.text, "no worker stood after"));
	actor_done(&actor);

	actor_start(&actor, &stage, loads_for_ever, NULL);
	while (!actor.heard[WORKER_GONE])
		event_base_loop(stage.base, EVLOOP_ONCE);
	assert_int_equal(actor.error.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(actor.error.text, "the inputs were not loaded after"));
}

static int ends_when_interrupted(int in, int out)
{
	sigset_t interrupt;
	int number;

	block_interrupt(&interrupt);
	begin_block(in, out);
	sigwait(&interrupt, &number);
	expect(in, "get"); /* it takes its time, as long as nobody loses patience */
	return 0;
}

/* A second lies between the interrupt and the kill, and nothing else (LIB-12). */
static void test_grace(void **state)
{
	(void)state;
	perform(ends_when_interrupted);
	actor.timeout_ms = 30;
	actor_exec(&actor);
	assert_int_equal(fake_clock_asked(), 30);
	while (!fake_sandbox_interrupts(stage.sandbox))
		event_base_loop(stage.base, EVLOOP_ONCE);
	assert_int_equal(fake_clock_asked(), 100); /* to the next of ten signals */
	assert_int_equal(actor.heard[WORKER_GONE], 0);
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.exit, WORKER_EXIT_LATE);
	assert_int_equal(fake_sandbox_interrupts(stage.sandbox), 10);
}

static int renders_for_ever(int in, int out)
{
	sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	handshake(in, out);
	expect(in, "get");
	return pause();
}

/* Rendering a variable runs the user's code: the same rules hold. */
static void test_kill_in_get(void **state)
{
	(void)state;
	perform(renders_for_ever);
	fake_clock_speed(20);
	worker_get(actor.worker, "evil", 1000);
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.exit, WORKER_EXIT_LATE);
}

static int waits_for_a_reply(int in, int out, const char *call)
{
	begin_block(in, out);
	say(out, call);
	expect(in, "reply");
	say_done(out, "patient");
	return hear(in) != NULL;
}

static int waits_for_a_call(int in, int out)
{
	return waits_for_a_reply(in, out,
				 "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\"]," USUAL
				 ",\"model\":null}");
}

static void answer_late(evutil_socket_t fd, short what, void *arg)
{
	struct worker_result result = {.value = {"{}", 2}};

	(void)fd;
	(void)what;
	(void)arg;
	worker_reply(actor.worker, 1, &result, 1);
}

/* Time in which a block waits for its own calls is not its time (LIB-3). */
static void test_waiting_is_free(void **state)
{
	struct event *late = evtimer_new(stage.base, answer_late, NULL);

	(void)state;
	perform(waits_for_a_call);
	fake_clock_speed(10);
	actor.timeout_ms = 20000; /* two seconds of a busy machine */
	actor_exec(&actor);
	actor_await(&actor, WORKER_CALL, 1);
	event_add(late, &(struct timeval){.tv_sec = 3}); /* 30,000 ms of its clock */
	actor_await(&actor, WORKER_DONE, 1);
	event_free(late);
	assert_false(actor.interrupted);
	assert_true(actor.duration_ms < 20000);
	assert_int_equal(fake_sandbox_interrupts(stage.sandbox), 0);
}

static int makes_two_calls(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\"]," USUAL ",\"model\":null}");
	say(out, "{\"type\":\"llm_query\",\"id\":2,\"prompts\":[\"\"]," USUAL ",\"model\":null}");
	expect(in, "reply");
	expect(in, "reply");
	say_done(out, "both");
	return hear(in) != NULL;
}

/* ... until the last of them is answered: then what is left of its time runs on. */
static void test_waiting_for_several_is_free(void **state)
{
	struct worker_result result = {.value = {"{}", 2}};

	(void)state;
	perform(makes_two_calls);
	actor.timeout_ms = 1000000;
	actor_exec(&actor);
	actor_await(&actor, WORKER_CALL, 2);
	worker_reply(actor.worker, 2, &result, 1);
	assert_in_range(fake_clock_asked(), 0, 500000);
	worker_reply(actor.worker, 1, &result, 1);
	assert_in_range(fake_clock_asked(), 500001, 1000000);
	actor_await(&actor, WORKER_DONE, 1);
}

static int computes_beside_a_call(int in, int out)
{
	begin_block(in, out);
	say(out, "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\"]," USUAL ",\"model\":null}");
	for (;;)
		continue;
	return in;
}

/* A block that computes beside an open call is charged for it, and ends like any other (LIB-3). */
static void test_computing_is_not_waiting(void **state)
{
	(void)state;
	perform(computes_beside_a_call);
	fake_clock_speed(10);
	actor.timeout_ms = 300;
	actor_exec(&actor);
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.heard[WORKER_CALL], 1);
	assert_true(fake_sandbox_interrupts(stage.sandbox) >= 1);
}

static int computes_beside_an_earlier_call(int in, int out)
{
	handshake(in, out);
	say(out, "{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\"]," USUAL ",\"model\":null}");
	expect(in, "exec");
	for (;;)
		continue;
	return in;
}

/* ... also where the call was there before the first block. */
static void test_computing_beside_an_earlier_call(void **state)
{
	(void)state;
	perform(computes_beside_an_earlier_call);
	actor_await(&actor, WORKER_CALL, 1);
	fake_clock_speed(10);
	actor.timeout_ms = 300;
	actor_exec(&actor);
	actor_await(&actor, WORKER_GONE, 1);
	assert_true(fake_sandbox_interrupts(stage.sandbox) >= 1);
}

static int leaves_a_thread(int in, int out)
{
	begin_block(in, out);
	say_done(out, "done, and not done");
	for (;;)
		continue;
	return in;
}

/* Threads that a block left running compute as long as a block may, and no longer (G8). */
static void test_remains_are_ended(void **state)
{
	(void)state;
	perform(leaves_a_thread);
	fake_clock_speed(10);
	actor.timeout_ms = 1500;
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	actor_await(&actor, WORKER_GONE, 1);
	assert_int_equal(actor.error.kind, RLMD_ERROR_WORKER);
	assert_non_null(strstr(actor.error.text, "threads that a block had left running"));
	assert_int_equal(actor.exit, WORKER_EXIT_DIED);
	assert_int_equal(fake_sandbox_interrupts(stage.sandbox), 0);
}

static int leaves_a_thread_and_answers(int in, int out)
{
	begin_block(in, out);
	say_done(out, "done, and not done");
	expect(in, "get");
	say(out, "{\"type\":\"value\",\"value\":null,\"expression\":false,\"variables\":\"\"}");
	for (;;)
		continue;
	return in;
}

/* ... also where less time was given for what was asked since. */
static void test_remains_of_a_block_before(void **state)
{
	(void)state;
	perform(leaves_a_thread_and_answers);
	fake_clock_speed(10);
	actor.timeout_ms = 2000;
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	worker_get(actor.worker, "x", 1000);
	actor_await(&actor, WORKER_VALUE, 1);
	actor_await(&actor, WORKER_GONE, 1);
	if (!strstr(actor.error.text, "than the 2000 ms that a block may"))
		fail_msg("%s", actor.error.text);
}

static int waits_between_blocks(int in, int out)
{
	begin_block_and_wait(in, out);
	say_done(out, "interrupted");
	expect(in, "exec");
	say_done(out, "alive");
	return hear(in) != NULL;
}

static void exec_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	actor_exec(&actor);
}

/* A worker that only waits between blocks may do so for ever, also after a block that used all of
 * its time.
 */
static void test_waiting_between_blocks(void **state)
{
	struct event *late = evtimer_new(stage.base, exec_again, NULL);

	(void)state;
	perform(waits_between_blocks);
	fake_clock_speed(20);
	actor.timeout_ms = 1000;
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	assert_true(actor.interrupted);
	event_add(late, &(struct timeval){.tv_usec = 500000}); /* 10,000 ms of its clock */
	actor_await(&actor, WORKER_DONE, 2);
	assert_string_equal(actor.printed, "alive");
	event_free(late);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static int asks_what_is_left(int in, int out)
{
	return waits_for_a_reply(in, out, "{\"type\":\"budget\",\"id\":1}");
}

/* Whatever it asks: while the answer is ours to give, its time rests, be it beyond its limit. */
static void test_every_answer_is_waited_for(void **state)
{
	struct event *late = evtimer_new(stage.base, answer_late, NULL);

	(void)state;
	perform(asks_what_is_left);
	actor.timeout_ms = 1000;
	actor_exec(&actor);
	actor_await(&actor, WORKER_CALL, 1);
	event_add(late, &(struct timeval){.tv_sec = 3}); /* limit, and grace after it */
	actor_await(&actor, WORKER_DONE, 1);
	event_free(late);
	assert_false(actor.interrupted);
	assert_int_equal(fake_sandbox_interrupts(stage.sandbox), 0);
	assert_true(actor.duration_ms < 3000);
}

static int asks_a_batch(int in, int out)
{
	static char json[110000];
	size_t used;

	begin_block(in, out);
	used = (size_t)snprintf(json, sizeof json,
				"{\"type\":\"llm_query\",\"id\":1," USUAL
				",\"model\":null,\"prompts\":[\"\"");
	for (int i = 1; i < 10000; i++)
		used += (size_t)snprintf(json + used, sizeof json - used, ",\"%d\"", i);
	snprintf(json + used, sizeof json - used, "]}");
	say(out, json);
	expect(in, "\"9999\"");
	say_done(out, "batched");
	return hear(in) != NULL;
}

/* A batch of ten thousand is one call, answered by one reply. */
static void test_batch(void **state)
{
	(void)state;
	perform(asks_a_batch);
	actor.on_call = answer_all;
	actor_exec(&actor);
	actor_await(&actor, WORKER_DONE, 1);
	assert_string_equal(actor.printed, "batched");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_start),
		TEST(test_refused),
		TEST(test_blocks),
		TEST(test_calls),
		TEST(test_flood),
		TEST(test_death_while_paused),
		TEST(test_never_reads),
#ifndef RLMD_SANITIZED
		TEST(test_no_room),
#endif
		TEST(test_no_descriptors),
		TEST(test_last_words),
		TEST(test_interrupt),
		TEST(test_a_lost_signal),
		TEST(test_kill),
		TEST(test_kill_after_a_request),
		TEST(test_no_kill),
		TEST(test_slow_death),
		TEST(test_late_starts),
		TEST(test_grace),
		TEST(test_kill_in_get),
		TEST(test_waiting_is_free),
		TEST(test_waiting_for_several_is_free),
		TEST(test_batch),
		TEST(test_weight),
		TEST(test_computing_is_not_waiting),
		TEST(test_computing_beside_an_earlier_call),
		TEST(test_every_answer_is_waited_for),
		TEST(test_remains_are_ended),
		TEST(test_remains_of_a_block_before),
		TEST(test_waiting_between_blocks),
	};

	signal(SIGPIPE, SIG_DFL);
	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
