/*
 * The operations of bench/counts.def, each as often as the command line says, one after the other:
 *
 *   counts TIMES [PLANTED]
 *
 * To be run under callgrind; bench/counts.py reads what that wrote. PLANTED is the operation to
 * make a quarter slower, for the test of the check. `counts --build` says what it was built by.
 */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_quote.h"
#include "base/loop.h"
#include "bench/measure.h"
#include "budget/budget.h"
#include "llm/stream.h"
#include "pool/translate.h"

enum { TEXT_SIZE = 10000, FRAME_BYTES_MAX = 4000, REPLY_BYTES_MAX = 1000 };

/* The state that the operations work with. */
struct ground {
	char text[TEXT_SIZE]; /* log lines with quotes and characters of several bytes */
	struct evbuffer *out;
	struct event_base *base;
	struct channel *channel;
	int to, from; /* the other ends of its pipes */
	char done[FRAME_BYTES_MAX], query[FRAME_BYTES_MAX];
	size_t done_size, query_size;
	bool answers, arrived;
	struct reply reply;
	struct stream *stream;
	struct budget *root, *pool, *child;
};

/* callgrind names functions: these may not become part of main(). */
#define OPERATION __attribute__((noinline)) static

OPERATION void count_frame(struct ground *ground, int times)
{
	const struct worker_result result = {.value = text_from(ground->text, 200)};

	for (int i = 0; i < times; i++) {
		struct frame *frame = translate_reply(i, &result, 1);

		frame_encode(frame, ground->out);
		frame_free(frame);
		evbuffer_drain(ground->out, evbuffer_get_length(ground->out));
	}
}

static void answer(struct ground *ground, const struct packet *packet, enum message_type type)
{
	const struct worker_result result = {.value = text_from(ground->text, 200)};
	struct translated_call call;
	struct rlmd_error err;

	if (!translate_call(packet, type, NULL, &call, &err))
		measure_fail("%s", err.text);
	channel_send(ground->channel, translate_reply(call.request.id, &result, 1));
	translate_call_done(&call);
}

static void on_packet(void *owner, const struct packet *packet)
{
	struct ground *ground = owner;
	enum message_type type;
	struct rlmd_error err;

	if (!message_check(packet, MESSAGE_FROM_WORKER, WORKER_BUSY, &type, &err))
		measure_fail("%s", err.text);
	ground->arrived = true;
	if (ground->answers)
		answer(ground, packet, type);
}

static void on_over(void *owner, const struct rlmd_error *err)
{
	(void)owner;
	measure_fail("the channel ended: %s", err->text);
}

static void send_and_wait(struct ground *ground, const char *frame, size_t size)
{
	ground->arrived = false;
	if (write(ground->to, frame, size) != (ssize_t)size)
		measure_fail("the pipe is full");
	while (!ground->arrived)
		event_base_loop(ground->base, EVLOOP_ONCE);
}

OPERATION void count_message(struct ground *ground, int times)
{
	ground->answers = false;
	for (int i = 0; i < times; i++)
		send_and_wait(ground, ground->done, ground->done_size);
}

OPERATION void count_rpc(struct ground *ground, int times)
{
	char reply[REPLY_BYTES_MAX];

	ground->answers = true;
	for (int i = 0; i < times; i++) {
		send_and_wait(ground, ground->query, ground->query_size);
		while (read(ground->from, reply, sizeof reply) < 0)
			event_base_loop(ground->base, EVLOOP_ONCE);
	}
}

OPERATION void count_quote(struct ground *ground, int times)
{
	for (int i = 0; i < times; i++) {
		json_quote(text_from(ground->text, sizeof ground->text), ground->out);
		evbuffer_drain(ground->out, evbuffer_get_length(ground->out));
	}
}

OPERATION void count_tree(struct ground *ground, int times)
{
	for (int i = 0; i < times; i++) {
		json_t *tree = json_pack(
			"{s:s, s:i, s:o}", "event", "llm_call", "index", i, "response",
			json_from_text(text_from(ground->text, sizeof ground->text)));

		json_write(tree, false, ground->out);
		evbuffer_drain(ground->out, evbuffer_get_length(ground->out));
		json_decref(tree);
	}
}

OPERATION void count_stream_event(struct ground *ground, int times)
{
	static const char event[] =
		"data: {\"id\":\"chatcmpl-Bq2mK\",\"object\":\"chat.completion.chunk\","
		"\"created\":1750000000,\"model\":\"gpt-4o-mini-2024-07-18\","
		"\"system_fingerprint\":\"fp_34a54ae93c\",\"choices\":[{\"index\":0,"
		"\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}],"
		"\"usage\":null}\n\n";
	struct rlmd_error err;

	for (int i = 0; i < times; i++)
		if (!stream_feed(ground->stream, text_of(event), &err))
			measure_fail("%s", err.text);
}

OPERATION void count_account(struct ground *ground, int times)
{
	const struct rlmd_amount most = {.cost = 1000, .tokens = 1000}, actual = {10, 10};
	const struct budget_usage usage = {
		.cost = 10, .tokens = 10, .llm_calls = 1, .cost_complete = true};
	struct rlmd_error err;

	for (int i = 0; i < times; i++) {
		struct reservation reservation = {0};

		if (!budget_admit_call(ground->child, &err) ||
		    !budget_reserve(ground->child, &reservation, most, &err))
			measure_fail("%s", err.text);
		account_settle(&reservation, actual);
		budget_count_call(ground->child, &usage);
	}
}

static bool on_event(void *owner, const struct adapter_event *event, struct rlmd_error *err)
{
	struct ground *ground = owner;

	return adapter_openai.event(&ground->reply, event, err);
}

static bool on_ahead(void *owner, struct rlmd_text bytes, size_t *ret_taken, struct rlmd_error *err)
{
	struct ground *ground = owner;

	return reply_take_expected(&ground->reply, bytes, ret_taken, err);
}

/* A frame as a worker writes it: a text of so many bytes between two pieces of JSON. */
static size_t put_frame(char frame[static FRAME_BYTES_MAX], const char *before, int size,
			const char *after)
{
	static const char words[] = "some words of output, ";
	char text[1024];
	int length;
	uint32_t prefix;

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = words[i % (sizeof words - 1)];
	length = snprintf(frame + 4, FRAME_BYTES_MAX - 4, "%s%.*s%s", before, size, text, after);
	prefix = htonl((uint32_t)length);
	memcpy(frame, &prefix, sizeof prefix);
	return (size_t)length + 4;
}

static void set_up_wire(struct ground *ground)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC | O_NONBLOCK))
		measure_fail("no pipes");
	ground->to = in[1];
	ground->from = out[0];
	ground->channel = channel_new(ground->base, in[0], out[1], on_packet, on_over, ground);
	ground->done_size = put_frame(
		ground->done, "{\"type\": \"done\", \"block\": 1, \"stdout\": \"", 1000,
		"\\n\", \"stderr\": \"\", \"error\": null, \"missing\": null, \"final\": null, "
		"\"answer\": null}");
	ground->query_size = put_frame(
		ground->query, "{\"type\": \"llm_query\", \"id\": 1, \"prompts\": [\"", 200,
		"\"], \"turns\": [], \"model\": null, \"system\": null, \"max_tokens\": null, "
		"\"temperature\": null}");
}

static void set_up(struct ground *ground)
{
	static const char line[] = "2026-11-22 10:00:01 \"GET /größe\" 200\t\\d+ ok\n";
	const struct budget_limits limits = {.cost = BUDGET_UNLIMITED,
					     .tokens = 1000000000,
					     .time_ms = 1000000,
					     .max_depth = 3,
					     .max_iterations = 100,
					     .calls = BUDGET_UNLIMITED,
					     .subruns = BUDGET_UNLIMITED};

	alloc_install();
	json_object_seed(1); /* the same order in hash tables, each time */
	for (size_t i = 0; i < sizeof ground->text; i++)
		ground->text[i] = line[i % (sizeof line - 1)];
	ground->out = evbuffer_new();
	ground->base = loop_new();
	set_up_wire(ground);
	reply_init(&ground->reply);
	ground->reply.asked = 4096; /* as of nearly every call */
	ground->stream = stream_new(FRAMING_SSE, on_event, on_ahead, ground);
	ground->root = budget_new(&limits, NULL, NULL);
	ground->pool = budget_new_pool(ground->root);
	ground->child = budget_new_child(ground->pool, 1, 1, NULL, NULL);
}

static void tear_down(struct ground *ground)
{
	budget_free(ground->child);
	budget_free(ground->pool);
	budget_free(ground->root);
	stream_free(ground->stream);
	reply_done(&ground->reply);
	channel_free(ground->channel);
	close(ground->to);
	close(ground->from);
	event_base_free(ground->base);
	evbuffer_free(ground->out);
}

/* The build that the counts of the table belong to, in one word each. */
static void print_build(void)
{
	struct utsname system;
	const char *compiler = "gcc-12", *how = "optimized";

#if defined __clang__ || __GNUC__ != 12
	compiler = "another-compiler";
#endif
#ifndef __OPTIMIZE__
	how = "not-optimized";
#endif
#if defined RLMD_SANITIZED || defined RLMD_COUNTED
	how = "instrumented";
#endif
	uname(&system);
	printf("%s %s %s\n", system.machine, compiler, how);
}

int main(int argc, char **argv)
{
	static const struct operation {
		const char *name;
		void (*fn)(struct ground *, int);
	} operations[] = {
#define COUNT(name, instructions, growth, meaning) {#name, count_##name},
#include "bench/counts.def"
#undef COUNT
	};
	struct ground ground = {.answers = false};
	int times;

	if (argc == 2 && !strcmp(argv[1], "--build")) {
		print_build();
		return 0;
	}
	if (argc != 2 && argc != 3)
		measure_fail("usage: counts TIMES [PLANTED] | counts --build");
	times = measure_count(argv[1]);
	set_up(&ground);
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
		bool planted = argc == 3 && !strcmp(argv[2], operations[i].name);

		operations[i].fn(&ground, planted ? times + times / 4 : times);
	}
	tear_down(&ground);
	return 0;
}
