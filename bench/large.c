/*
 * Prompts of megabytes: what a call with one takes beside Python's own http.client and json, and
 * how long the loop is held meanwhile, in CPU time, so that nobody else on the machine counts.
 * Against a server of our own that reads what it is sent and says one word.
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

enum { MEGABYTE = 1000000, LARGEST = 100 * MEGABYTE, PATIENCE_MS = 60000, HELD_MS = 5 };

static const char line[] = "2026-11-22 10:00:01 \"GET /\" 200 fine, as all of them were today\n";

static const char said[] = "{\"choices\":[{\"message\":{\"content\":\"ok\"},\"finish_reason\":"
			   "\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}";

/* One request after the other: all of a body is read, nothing of it is looked at. */
static void serve(FILE *in, int out)
{
	static char room[1 << 18];
	size_t left = 0;

	while (fgets(room, sizeof room, in)) {
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
		dprintf(out,
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			"Content-Length: %zu\r\n\r\n%s",
			sizeof said - 1, said);
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
	struct llm *llm;
	struct event *turn; /* due in each turn of the loop */
	double last, held;  /* CPU time of ours, milliseconds: at the last turn, most between two */
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

	if (err || !text_equal(response->text, "ok"))
		measure_fail("%s", err ? err->text : "another answer");
	event_base_loopbreak(client->base);
}

/* Microseconds of one call; with `watched` the loop looks up in each turn, as it does for others.
 */
static double ask(struct client *client, size_t size, bool watched)
{
	const struct llm_message message = {
		LLM_USER, text_from(client->text, size), {0}, &client->scan};
	const struct llm_request request = {
		.messages = &message,
		.message_count = 1,
		.max_tokens = 100,
		.deadline = clock_ms() + PATIENCE_MS,
		.kind = LLM_QUERY,
	};
	double start = measure_now();

	client->held = 0;
	client->last = thread_ms();
	if (watched)
		loop_post(client->turn);
	llm_start(client->llm, &request, on_answer, client);
	event_base_dispatch(client->base);
	event_del(client->turn);
	return measure_now() - start;
}

static double ask_floor(struct client *client, size_t size)
{
	char answer[64];

	fprintf(client->to, "%zu\n", size);
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

static struct registry *open_provider(struct client *client, int port)
{
	struct registry *registry = registry_new(client->base);
	struct provider_config config = {.kind = "openai",
					 .name = "large",
					 .model = "bench",
					 .key = "none",
					 .no_stream = true};
	struct llm_config job = {.provider = "large"};
	struct rlmd_provider *provider;
	struct rlmd_error err;
	char url[64];

	snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", port);
	config.base_url = url;
	provider = provider_new(&config, &err);
	if (!provider || !registry_add(registry, NULL, provider, &err))
		measure_fail("%s", err.text);
	provider_unref(provider);
	client->llm = llm_new(registry, &job, &err);
	if (!client->llm)
		measure_fail("%s", err.text);
	return registry;
}

static void compare(struct client *client, int times)
{
	struct samples ours[] = {{.what = "a prompt of 1 MB"}, {.what = "a prompt of 10 MB"}};
	struct samples floors[] = {{.what = "http.client and json, 1 MB"},
				   {.what = "http.client and json, 10 MB"}};
	static const size_t sizes[] = {MEGABYTE, 10 * MEGABYTE};
	struct samples held = {.what = "the loop, held while 100 MB move, CPU", .unit = "ms"};

	ask(client, 1, false); /* the connections open */
	ask_floor(client, 1);
	for (size_t k = 0; k < 2; k++) {
		for (int i = 0; i < times; i++) {
			samples_add(&ours[k], ask(client, sizes[k], false));
			samples_add(&floors[k], ask_floor(client, sizes[k]));
		}
		measure_at_most("6", &ours[k], &floors[k], 1.5);
		samples_done(&ours[k]);
		samples_done(&floors[k]);
	}
	for (int i = 0; i < times; i++) { /* one sample shows that it runs */
		ask(client, times > 1 ? LARGEST : LARGEST / 10, true);
		samples_add(&held, client->held);
	}
	measure_limit("17", &held, HELD_MS);
	samples_done(&held);
}

int main(int argc, char **argv)
{
	struct client client = {.base = loop_new(), .text = xcalloc(LARGEST, 1)};
	struct registry *registry;
	pid_t server;
	int port;

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
	registry = open_provider(&client, port);
	compare(&client, measure_count(argv[3]));
	fclose(client.to);
	fclose(client.from);
	event_free(client.turn);
	llm_free(client.llm);
	registry_free(registry);
	event_base_free(client.base);
	free(client.text);
	kill(server, SIGKILL);
	return (int)measure_end();
}
