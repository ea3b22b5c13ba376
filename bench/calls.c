/*
 * The cost of a model call to the process that makes it, in CPU time of its own: whole answers,
 * the same text as a stream of many events, with few and with thousands in flight, plain and over
 * TLS. Against bench/answers, all kinds in turn in the same run, through the floor that makes the
 * calls.
 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "bench/bare_curl.h"
#include "bench/measure.h"
#include "bench/server.h"
#include "llm/llm.h"
#include "llm/provider.h"
#include "llm/registry.h"

enum { PATIENCE_MS = 60000, ALLOWED_OPEN = 11000, ALONE = 300 };

struct client {
	struct event_base *base;
	struct registry *registry;
	struct llm *plain, *whole, *tls;
};

/* So many calls of one kind, so many of them at once. */
struct load {
	struct client *client;
	struct llm *llm;
	struct llm_message message; /* what all of them ask */
	int left, flying;
};

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err);

static void start_one(struct load *load)
{
	const struct llm_request request = {
		.messages = &load->message,
		.message_count = 1,
		.max_tokens = 100000,
		.deadline = clock_ms() + PATIENCE_MS,
		.kind = LLM_QUERY,
	};

	load->left--;
	load->flying++;
	llm_start(load->llm, &request, on_answer, load);
}

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	struct load *load = owner;

	if (err)
		measure_fail("%s", err->text);
	if (!response->text.size)
		measure_fail("an answer without text");
	load->flying--;
	if (load->left)
		start_one(load);
	else if (!load->flying)
		event_base_loopbreak(load->client->base);
}

/* Microseconds of CPU a call. */
static double cost(struct client *client, struct llm *llm, const char *prompt, int calls,
		   int at_once)
{
	struct load load = {client, llm, {LLM_USER, text_of(prompt), {0}, NULL}, calls, 0};
	double start = measure_cpu();

	while (load.left && load.flying < at_once)
		start_one(&load);
	event_base_dispatch(client->base);
	return (measure_cpu() - start) / calls;
}

static struct llm *llm_at(struct client *client, const char *name, const struct server *server,
			  bool whole)
{
	bool tls = !strcmp(name, "tls");
	auto_free char *url = xasprintf("http%s%s/v1", tls ? "s" : "", server->url + 4);
	struct rlmd_provider_options config = {.kind = "openai",
					       .name = name,
					       .model = "bench",
					       .base_url = url,
					       .key = "none",
					       .no_stream = whole};
	struct llm_config job = {.provider = name};
	struct rlmd_error err;
	struct rlmd_provider *provider = provider_new(&config, &err);
	struct llm *llm;

	if (!provider || !registry_add(client->registry, NULL, provider, &err))
		measure_fail("%s", err.text);
	provider_unref(provider);
	llm = llm_new(client->registry, &job, &err);
	if (!llm)
		measure_fail("%s", err.text);
	return llm;
}

/* Calls of one kind, in turn with those of its floor: each sample is of all of them. */
struct row {
	const char *number; /* of the table */
	struct samples samples, floor;
	struct llm *llm, *floor_llm;
	const char *prompt, *floor_prompt;
	int calls, at_once, floor_at_once;
	double target;
};

static void measure(struct client *client, struct row *row, int times)
{
	int part = times > 1 ? 1 : 10; /* one sample shows that it runs */

	for (int i = 0; i < times; i++) {
		samples_add(&row->samples, cost(client, row->llm, row->prompt, row->calls / part,
						row->at_once / part));
		samples_add(&row->floor, cost(client, row->floor_llm, row->floor_prompt,
					      row->calls / part, row->floor_at_once / part));
	}
	measure_at_most(row->number, &row->samples, &row->floor, row->target);
	samples_done(&row->samples);
	samples_done(&row->floor);
}

/* Calls one at a time, and the same by libcurl alone: what they cost, or, with `less`, how much
 * more than such ones. */
struct alone {
	const char *number; /* of the table */
	struct samples samples, floor;
	struct llm *llm, *less;
	const char *prompt, *url, *less_url, *body, *less_body;
	double target;
};

static void compare_alone(struct client *client, struct alone *row, int times)
{
	for (int i = 0; i < times; i++) {
		double own = cost(client, row->llm, row->prompt, ALONE, 1);
		double bare = bare_curl_cost(row->url, row->body, ALONE);

		if (row->less) {
			own -= cost(client, row->less, row->prompt, ALONE, 1);
			bare -= bare_curl_cost(row->less_url, row->less_body, ALONE);
		}
		samples_add(&row->samples, own);
		samples_add(&row->floor, bare);
	}
	measure_at_most(row->number, &row->samples, &row->floor, row->target);
	samples_done(&row->samples);
	samples_done(&row->floor);
}

#define BODY(events)   "{\"messages\":[{\"content\":\"events=" events "\"}]}"
#define STREAM(events) "{\"messages\":[{\"content\":\"events=" events "\"}],\"stream\":true}"

static void compare_all_alone(struct client *client, const struct server *plain,
			      const struct server *tls, int times)
{
	auto_free char *url = xasprintf("%s/v1/chat/completions", plain->url);
	auto_free char *tls_url = xasprintf("https%s/v1/chat/completions", tls->url + 4);
	struct alone rows[] = {
		{.number = "11s",
		 .samples = {.what = "a stream of 300 events alone, CPU"},
		 .floor = {.what = "libcurl, the same bytes"},
		 .llm = client->plain,
		 .prompt = "events=300",
		 .url = url,
		 .body = STREAM("300"),
		 .target = 1.3},
		{.number = "11s",
		 .samples = {.what = "a stream of 1000 events alone, CPU"},
		 .floor = {.what = "libcurl, the same bytes"},
		 .llm = client->plain,
		 .prompt = "events=1000",
		 .url = url,
		 .body = STREAM("1000"),
		 .target = 1.3},
		{.number = "11",
		 .samples = {.what = "what TLS adds to a call, CPU"},
		 .floor = {.what = "what it adds to libcurl alone"},
		 .llm = client->tls,
		 .less = client->whole,
		 .prompt = "events=300",
		 .url = tls_url,
		 .less_url = url,
		 .body = BODY("300"),
		 .less_body = BODY("300"),
		 .target = 1.2},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		compare_alone(client, &rows[i], times);
}

static void compare(struct client *client, int times)
{
	static const char few[] = "events=300", many[] = "events=1000", tiny[] = "events=1";
	struct llm *plain = client->plain, *whole = client->whole, *tls = client->tls;
	struct row rows[] = {
		{"11s",
		 {.what = "a stream of 300 events, CPU"},
		 {.what = "the same text as a whole"},
		 plain,
		 whole,
		 few,
		 few,
		 300,
		 50,
		 50,
		 1.2},
		{"11s",
		 {.what = "a stream of 1000 events, CPU"},
		 {.what = "the same text as a whole"},
		 plain,
		 whole,
		 many,
		 many,
		 300,
		 50,
		 50,
		 1.2},
		{"11",
		 {.what = "a call over TLS, CPU"},
		 {.what = "a plain one"},
		 tls,
		 whole,
		 few,
		 few,
		 300,
		 50,
		 50,
		 1.5},
		{"14",
		 {.what = "a call, 5000 in flight, CPU"},
		 {.what = "100 in flight"},
		 whole,
		 whole,
		 tiny,
		 tiny,
		 10000,
		 5000,
		 100,
		 2},
	};

	cost(client, tls, tiny, 50, 50); /* the connections open */
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
		measure(client, &rows[k], times);
}

/* For a profiler: one kind of call alone. */
static void repeat(struct client *client, char **arguments)
{
	struct llm *llm = *arguments[0] == 't'   ? client->tls
			  : *arguments[0] == 'w' ? client->whole
						 : client->plain;

	printf("%.1f us a call\n", cost(client, llm, arguments[1], measure_count(arguments[2]),
					measure_count(arguments[3])));
}

/* Nothing of the environment stands between us and the servers. */
static void prepare(char *certificate)
{
	int fd = mkstemp(certificate);

	if (fd < 0)
		measure_fail("no file %s", certificate);
	close(fd);
	setenv("no_proxy", "*", 1);
	setenv("SSL_CERT_FILE", certificate, 1);
	unsetenv("CURL_CA_BUNDLE");
}

int main(int argc, char **argv)
{
	struct client client = {.base = loop_new()};
	char certificate[] = "/tmp/rlmd-bench-XXXXXX";
	struct server plain, tls;

	if (argc != 4 && argc != 7)
		measure_fail("usage: calls SERVER DELAY_MS COUNT | "
			     "calls SERVER DELAY_MS plain|whole|tls PROMPT CALLS AT_ONCE");
	if (!measure_descriptors("14", ALLOWED_OPEN))
		return measure_end();
	alloc_install();
	prepare(certificate);
	plain = server_start(argv[1], argv[2], NULL);
	tls = server_start(argv[1], argv[2], certificate, NULL);
	client.registry = registry_new(client.base);
	client.plain = llm_at(&client, "plain", &plain, false);
	client.whole = llm_at(&client, "whole", &plain, true);
	client.tls = llm_at(&client, "tls", &tls, true);
	if (argc == 4) {
		compare_all_alone(&client, &plain, &tls, measure_count(argv[3]));
		compare(&client, measure_count(argv[3]));
	} else {
		repeat(&client, argv + 3);
	}
	llm_free(client.plain);
	llm_free(client.whole);
	llm_free(client.tls);
	registry_free(client.registry);
	event_base_free(client.base);
	server_stop(&plain);
	server_stop(&tls);
	unlink(certificate);
	return (int)measure_end();
}
