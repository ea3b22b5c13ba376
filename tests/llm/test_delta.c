#include "llm/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "one.h"
#include "server.h"

static const char key[] = "sk-secret-0123456789";

static struct {
	char text[512];
	size_t size, pieces, agains;
} seen;

static void on_delta(void *owner, struct rlmd_text more)
{
	assert_ptr_equal(owner, &seen);
	if (!more.size) {
		seen.agains++;
		seen.size = 0;
		return;
	}
	assert_true(text_is_utf8(more));
	assert_true(more.size < sizeof seen.text - seen.size);
	memcpy(seen.text + seen.size, more.bytes, more.size);
	seen.size += more.size;
	seen.text[seen.size] = '\0';
	seen.pieces++;
}

/* However a reply comes, the pieces are the same text, without the key, and without half a one;
 * and what cannot begin a key is told at once. */
static void test_pieces(void **state)
{
	static const struct {
		const char *reply, *told;
	} cases[] = {
		{"hello", "hello"},
		{"the key is sk-secret-0123456789, twice sk-secret-0123456789sk-secret-0123456789",
		 "the key is ***, twice ******"},
		{"sk-secret-0123456789", "***"},
		{"sk-secret-0123", "sk-secret-0123"},
		{"sk-sk-secret-0123456789\xe2\x82\xac\xe2\x82\xac",
		 "sk-***\xe2\x82\xac\xe2\x82\xac"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t piece = 1; piece < 40; piece++) {
			struct reply_delta delta = {on_delta, &seen, key, 0};
			struct rlmd_text whole = text_of(cases[i].reply);
			size_t size = strlen(cases[i].reply);

			memset(&seen, 0, sizeof seen);
			for (size_t at = 0; at < size; at += piece) {
				size_t come = size - at < piece ? size : at + piece;

				reply_tell(&delta, text_slice(whole, 0, come), false);
				assert_null(strstr(seen.text, "sk-secret-01234567"));
			}
			reply_tell(&delta, whole, true);
			assert_string_equal(seen.text, cases[i].told);
		}
}

static void test_without_a_key(void **state)
{
	struct reply_delta delta = {on_delta, &seen, NULL, 0};
	struct rlmd_text reply = text_of("abc");

	(void)state;
	memset(&seen, 0, sizeof seen);
	reply_tell_again(&delta);
	assert_int_equal(seen.agains, 0); /* nothing has come of it yet */
	reply_tell(&delta, reply, false);
	assert_string_equal(seen.text, "abc");
	reply_tell_again(&delta);
	assert_int_equal(seen.agains, 1);
	reply_tell(&delta, reply, false);
	assert_string_equal(seen.text, "abc");
	delta = (struct reply_delta){0};
	reply_tell(&delta, reply, true);
	reply_tell_again(&delta);
	assert_int_equal(seen.pieces, 2);
}

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	if (err)
		fail_msg("%s", err->text);
	assert_int_equal(response->text.size, seen.size);
	assert_memory_equal(response->text.bytes, seen.text, seen.size);
	(void)owner;
	seen.pieces += 1000;
}

static void ask(struct event_base *base, struct llm *llm)
{
	static struct llm_message message; /* for as long as the call lasts */

	message = (struct llm_message){LLM_USER, text_of("hi")};
	memset(&seen, 0, sizeof seen);
	llm_start(llm,
		  &(struct llm_request){.messages = &message,
					.message_count = 1,
					.max_tokens = 100,
					.deadline = clock_ms() + 100000,
					.on_delta = on_delta,
					.delta_owner = &seen},
		  on_answer, &seen);
	run_until_count(base, &seen.pieces, 1000);
}

/* A stream that breaks begins again; a whole answer is one piece. Both are the response's text. */
static void test_over_http(void **state)
{
	static const char half[] =
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nretry-after-ms: 1\r\n"
		"Transfer-Encoding: chunked\r\n\r\n3e\r\n"
		"data: {\"choices\":[{\"delta\":{\"content\":\"a half answer\"}}]}\n\n\r\n";
	static const char stream[] =
		"data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
		"data: {\"choices\":[{\"delta\":{\"content\":\"lo, sk-secret-012345\"}}]}\n\n"
		"data: {\"choices\":[{\"delta\":{\"content\":\"6789!\"},"
		"\"finish_reason\":\"stop\"}]}\n\n"
		"data: [DONE]\n\n";
	struct event_base *base = event_base_new();
	struct server *server = server_new(base);
	struct rlmd_provider_options config = {
		.kind = "openai", .base_url = server->url, .key = key, .max_retries = 2};
	struct one one;

	(void)state;
	assert_true(one_open(&one, base, &config, NULL, NULL));
	server_answer(server, half, SERVER_CLOSE, 0);
	server_sse(server, stream, 1);
	server_json(server, 200, "",
		    "{\"choices\":[{\"message\":{\"content\":\"whole\"},"
		    "\"finish_reason\":\"stop\"}]}");
	ask(base, one.llm);
	assert_int_equal(server->requests, 2);
	assert_int_equal(seen.agains, 0); /* less than a key may be long had come */
	assert_string_equal(seen.text, "hello, ***!");
	assert_true(seen.pieces > 1001);
	ask(base, one.llm);
	assert_string_equal(seen.text, "whole");
	assert_int_equal(seen.pieces, 1001);
	one_close(&one);

	config.key = NULL;
	config.key_environment = "";
	assert_true(one_open(&one, base, &config, NULL, NULL));
	server_answer(server, half, SERVER_CLOSE, 0);
	server_sse(server, stream, 0);
	ask(base, one.llm);
	assert_int_equal(seen.agains, 1);
	one_close(&one);
	server_free(server);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_without_a_key),
		cmocka_unit_test(test_over_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
