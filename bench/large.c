/*
 * Prompts and whole answers of megabytes: what a call with one takes beside Python's own
 * http.client and json, and how long the loop is held meanwhile, in CPU time, so that nobody else
 * on the machine counts. Against a server of our own that reads what it is sent and says as much
 * as the path asks for.
 */
#include <arpa/inet.h>
#include <event2/event.h>
#include <rlmd/rlmd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"
#include "bench/measure.h"
#include "llm/llm.h"
#include "llm/provider.h"
#include "llm/registry.h"

enum { MEGABYTE = 1000000, LARGEST = 100 * MEGABYTE, PATIENCE_MS = 60000, HELD_MS = 5, SIZES = 2 };

static const size_t prompts[SIZES] = {MEGABYTE, 10 * MEGABYTE};
static const size_t answers[SIZES] = {MEGABYTE, 7 * MEGABYTE};

static const char line[] = "2026-11-22 10:00:01 \"GET /\" 200 fine, as all of them were today\n";

/* An answer whose text has so many bytes, as JSON: nobody counts its tokens, so that we do. */
static void answer(int out, size_t text)
{
	static const char quoted[] =
		"2026-11-22 10:00:01 \\\"GET /\\\" 200 fine, as all of them were today\\n";
	static const char head[] = "{\"choices\":[{\"message\":{\"content\":\"";
	static const char tail[] = "\"},\"finish_reason\":\"stop\"}]}";
	size_t lines = text / (sizeof line - 1), rest = text % (sizeof line - 1);
	FILE *file = fdopen(dup(out), "w");

	fprintf(file,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n%s",
		sizeof head - 1 + lines * (sizeof quoted - 1) + rest + sizeof tail - 1, head);
	while (lines--)
		fwrite(quoted, sizeof quoted - 1, 1, file);
	fprintf(file, "%.*s%s", (int)rest,
		"................................................................"
		"................",
		tail);
	fclose(file);
}

/* One request after the other: all of a body is read, nothing of it is looked at. */
static void serve(FILE *in, int out)
{
	static char room[1 << 18];
	size_t left = 0, asked = 0;

	while (fgets(room, sizeof room, in)) {
		if (!strncmp(room, "POST /", 6))
			asked = strtoul(room + 6, NULL, 10);
		if (!strncmp(room, "Content-Length: ", 16))
			left = strtoul(room + 16, NULL, 10);
		if (strcmp(room, "\r\n") != 0)
			continue;
		while (left) {
			size_t size = fread(room, 1, left < sizeof room ? left : sizeof room, in);

			left -= size;
			if (!size)
				return;
		}
		answer(out, asked);
	}
}

/* A process for each connection, which ends with it; all end with the benchmark. */
static pid_t start_server(int *ret_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	pid_t pid;

	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		measure_fail("no port on loopback");
	*ret_port = ntohs(address.sin_port);
	pid = fork();
	if (pid) {
		close(listener);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve(fdopen(fd, "r"), fd);
			_exit(0);
		}
		close(fd);
	}
	_exit(0);
}

struct client {
	struct event_base *base;
	struct registry *registries[1 + SIZES]; /* a provider for each size of an answer: */
	struct llm *llms[1 + SIZES];            /* 1 byte, and `answers` */
	size_t wanted;                          /* of the answer that comes */
	struct event *turn;                     /* due in each turn of the loop */
	double last, held; /* CPU time of ours, milliseconds: at the last turn, most between two */
	char *text;
	struct text_scan scan;
	FILE *to, *from; /* the floor's process */
};

static double thread_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void on_turn(evutil_socket_t fd, short what, void *owner)
{
	struct client *client = owner;
	double now = thread_ms();

	(void)fd, (void)what;
	if (now - client->last > client->held)
		client->held = now - client->last;
	client->last = now;
	loop_post(client->turn);
}

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	struct client *client = owner;

	if (err || response->text.size != client->wanted)
		measure_fail("%s", err ? err->text : "another answer");
	event_base_loopbreak(client->base);
}

static size_t answer_size(size_t which)
{
	return which ? answers[which - 1] : 1;
}

/* Microseconds of one call; with `watched` the loop looks up in each turn, as it does for others.
 */
static double ask(struct client *client, size_t size, size_t which, bool watched)
{
	const struct llm_message message = {
		LLM_USER, text_from(client->text, size), {0}, &client->scan};
	const struct llm_request request = {
		.messages = &message,
		.message_count = 1,
		.max_tokens = 10 * MEGABYTE,
		.deadline = clock_ms() + PATIENCE_MS,
		.kind = LLM_QUERY,
	};
	double start = measure_now();

	client->wanted = answer_size(which);
	client->held = 0;
	client->last = thread_ms();
	if (watched)
		loop_post(client->turn);
	llm_start(client->llms[which], &request, on_answer, client);
	event_base_dispatch(client->base);
	event_del(client->turn);
	return measure_now() - start;
}

static double ask_floor(struct client *client, size_t size, size_t which)
{
	char answer[64];

	fprintf(client->to, "%zu %zu\n", size, answer_size(which));
	fflush(client->to);
	if (!fgets(answer, sizeof answer, client->from))
		measure_fail("the floor's process ended");
	return strtod(answer, NULL);
}

/* Ends where its input does. */
static void start_floor(struct client *client, const char *python, const char *script, int port)
{
	int to[2], from[2];
	char number[16];

	snprintf(number, sizeof number, "%d", port);
	if (pipe(to) || pipe(from))
		measure_fail("no pipes");
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl(python, python, "-I", script, number, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	client->to = fdopen(to[1], "w");
	client->from = fdopen(from[0], "r");
}

static void open_provider(struct client *client, size_t which, int port)
{
	struct registry *registry = registry_new(client->base);
	struct rlmd_provider_options config = {.kind = "openai",
					       .name = "large",
					       .model = "bench",
					       .key = "none",
					       .no_stream = true};
	struct llm_config job = {.provider = "large"};
	struct rlmd_provider *provider;
	struct rlmd_error err;
	char url[64];

	snprintf(url, sizeof url, "http://127.0.0.1:%d/%zu", port, answer_size(which));
	config.base_url = url;
	provider = provider_new(&config, &err);
	if (!provider || !registry_add(registry, NULL, provider, &err))
		measure_fail("%s", err.text);
	provider_unref(provider);
	client->registries[which] = registry;
	client->llms[which] = llm_new(registry, &job, &err);
	if (!client->llms[which])
		measure_fail("%s", err.text);
}

/* A prompt of so many bytes and the answer of that number, beside the floor. */
static void compare(struct client *client, size_t prompt, size_t which, int times)
{
	const char *what = which ? "an answer" : "a prompt";
	size_t size = (which ? answer_size(which) : prompt) / MEGABYTE;
	char ours_name[64], floor_name[64];
	struct samples ours = {.what = ours_name}, floor = {.what = floor_name};

	snprintf(ours_name, sizeof ours_name, "%s of %zu MB", what, size);
	snprintf(floor_name, sizeof floor_name, "http.client and json, %s of %zu MB", what, size);
	ask(client, 1, which, false); /* the connections open */
	ask_floor(client, 1, which);
	for (int i = 0; i < times; i++) {
		samples_add(&ours, ask(client, prompt, which, false));
		samples_add(&floor, ask_floor(client, prompt, which));
	}
	measure_at_most("6", &ours, &floor, 1.5);
	samples_done(&ours);
	samples_done(&floor);
}

static void hold(struct client *client, const char *what, size_t prompt, size_t which, int times)
{
	struct samples held = {.what = what, .unit = "ms"};

	for (int i = 0; i < times; i++) {
		ask(client, prompt, which, true);
		samples_add(&held, client->held);
	}
	measure_limit("17", &held, HELD_MS);
	samples_done(&held);
}

int main(int argc, char **argv)
{
	struct client client = {.base = loop_new(), .text = xcalloc(LARGEST, 1)};
	pid_t server;
	int port, times;

	if (argc != 4)
		measure_fail("usage: large PYTHON SCRIPT COUNT");
	alloc_install();
	setenv("no_proxy", "*", 1);
	for (size_t i = 0; i < LARGEST; i++)
		client.text[i] = line[i % (sizeof line - 1)];
	text_scan_feed(&client.scan, text_from(client.text, LARGEST));
	server = start_server(&port);
	start_floor(&client, argv[1], argv[2], port);
	client.turn = evtimer_new(client.base, on_turn, &client);
	for (size_t i = 0; i <= SIZES; i++)
		open_provider(&client, i, port);
	times = measure_count(argv[3]);
	for (size_t i = 0; i < SIZES; i++)
		compare(&client, prompts[i], 0, times);
	for (size_t i = 1; i <= SIZES; i++)
		compare(&client, 1, i, times);
	/* One sample shows that it runs. */
	hold(&client, "the loop, held while 100 MB move, CPU", times > 1 ? LARGEST : LARGEST / 10,
	     0, times);
	hold(&client, "... while an answer of 7 MB comes whole, CPU", 1, SIZES, times);
	fclose(client.to);
	fclose(client.from);
	event_free(client.turn);
	for (size_t i = 0; i <= SIZES; i++) {
		llm_free(client.llms[i]);
		registry_free(client.registries[i]);
	}
	event_base_free(client.base);
	free(client.text);
	kill(server, SIGKILL);
	return (int)measure_end();
}
