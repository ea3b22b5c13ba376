/* llm/model_list: the sizes in a server's list of models, and those who wait for it. */
#include "llm/model_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "net/http.h"
#include "server.h"

static void on_room(void *owner, const char *model, const struct room *room)
{
	buffer_add_printf(owner, "%s: %d, %d; ", model, (int)room->window, (int)room->output);
}

static void test_read(void **state)
{
	static const struct {
		const char *json, *told;
	} rows[] = {
		/* vLLM */
		{"{\"object\":\"list\",\"data\":[{\"id\":\"Qwen/Qwen3-8B\",\"object\":\"model\","
		 "\"owned_by\":\"vllm\",\"root\":\"Qwen/Qwen3-8B\",\"max_model_len\":8192}]}",
		 "Qwen/Qwen3-8B: 8192, 0; : 8192, 0; "},
		/* llama.cpp */
		{"{\"models\":[{\"name\":\"q.gguf\"}],\"data\":[{\"id\":\"q.gguf\",\"meta\":{\"n_vocab\":"
		 "151936,\"n_ctx_train\":32768,\"n_ctx\":4096}}]}",
		 "q.gguf: 4096, 0; : 4096, 0; "},
		{"{\"data\":[{\"id\":\"q\",\"meta\":{\"n_ctx_train\":32768}}]}", ""},
		/* OpenRouter */
		{"{\"data\":[{\"id\":\"a/b\",\"context_length\":131072,\"top_provider\":{"
		 "\"max_completion_tokens\":16384}},{\"id\":\"c\",\"context_length\":null}]}",
		 "a/b: 131072, 16384; "},
		/* what has none, or none that can be */
		{"{\"data\":[{\"id\":\"m\",\"max_model_len\":-1}]}", ""},
		{"{\"data\":[{\"id\":\"m\",\"max_model_len\":1e30}]}", ""},
		{"{\"data\":[{\"id\":\"m\",\"max_model_len\":\"8192\",\"meta\":7}]}", ""},
		{"{\"data\":[{\"id\":7,\"max_model_len\":8192},1,null]}", ""},
		{"{\"data\":{\"id\":\"m\"}}", ""},
		{"[]", ""},
		{"no JSON", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_evbuffer struct evbuffer *out = buffer_new();

		model_list_read(text_of(rows[i].json), on_room, out);
		assert_string_equal(text_in(out).size ? text_in(out).bytes : "", rows[i].told);
	}
}

/* --- asking a server ----------------------------------------------------------------------- */

static struct event_base *base;
static struct server *server;
static struct http *http;
static struct evbuffer *told;
static struct model_list *list;

static void begin(void)
{
	base = event_base_new();
	server = server_new(base);
	server->lists = true;
	http = http_new(base, NULL);
	told = buffer_new();
}

static void ask(void)
{
	const char *const headers[] = {"Authorization: Bearer key", NULL};

	list = model_list_start(http, server->url, headers, on_room, told);
}

static void end(void)
{
	model_list_free(list);
	evbuffer_free(told);
	http_free(http);
	server_free(server);
	event_base_free(base);
}

static void on_go(void *owner)
{
	++*(size_t *)owner;
}

/* All who wait go on once, in whatever way it ends; later ones have nothing to wait for. */
static void test_wait(void **state)
{
	static const char answer[] = "{\"data\":[{\"id\":\"m\",\"max_model_len\":4096}]}";

	(void)state;
	for (int row = 0; row < 3; row++) {
		size_t gone[3] = {0};
		struct model_list_waiter waiters[3];

		begin();
		if (row == 0)
			server_json(server, 200, "", answer);
		else if (row == 1)
			server_json(server, 404, "", answer);
		else
			server_answer(server, "", SERVER_CLOSE, 0);
		ask();
		for (int i = 0; i < 3; i++) {
			waiters[i] = (struct model_list_waiter){.go = on_go, .owner = &gone[i]};
			assert_true(model_list_wait(list, &waiters[i]));
		}
		model_list_wait_no_more(&waiters[1]);
		model_list_wait_no_more(&waiters[1]);
		run_until_count(base, &gone[2], 1);
		assert_int_equal(gone[0], 1);
		assert_int_equal(gone[1], 0);
		assert_string_equal(text_in(told).size ? text_in(told).bytes : "",
				    row ? "" : "m: 4096, 0; : 4096, 0; ");
		assert_false(model_list_wait(list, &waiters[0]));
		end();
	}
	assert_false(model_list_wait(NULL, &(struct model_list_waiter){0}));
}

static void test_freed_in_the_middle(void **state)
{
	struct model_list_waiter waiter = {.go = on_go};

	(void)state;
	begin();
	server_answer(server, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", SERVER_HOLD, 0);
	ask();
	assert_true(model_list_wait(list, &waiter));
	run_until_count(base, &server->holding, 1);
	model_list_wait_no_more(&waiter);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_freed_in_the_middle),
	};

	return cmocka_run_group_tests_name("model_list", tests, NULL, NULL);
}
