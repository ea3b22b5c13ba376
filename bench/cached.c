/*
 * The cost of a call that the cache answers, in CPU time of the process that makes it, beside the
 * same call of a server that answers at once, over a connection that is open. It saves the model's
 * time and money, which no benchmark has to show.
 */
#include <dirent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "bench/measure.h"
#include "bench/server.h"
#include "llm/llm.h"
#include "llm/provider.h"
#include "llm/registry.h"

enum { PATIENCE_MS = 60000, PROMPT_SIZE = 4000, WEEK_MS = 604800000 };

struct client {
	struct event_base *base;
	struct llm *llm;
	struct kept_lookup *lookup; /* owned: of the call that is under way; NULL: none */
	char prompt[PROMPT_SIZE + 1];
	struct llm_message message; /* the same */
	int number, last;           /* of the prompt that is asked */
	bool cached;                /* as it has to be */
};

static void ask(struct client *client);

static void on_answer(void *owner, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	struct client *client = owner;

	if (err)
		measure_fail("%s", err->text);
	if (response->cached != client->cached || !response->text.size)
		measure_fail("call %d was %sanswered from the cache", client->number,
			     response->cached ? "" : "not ");
	kept_lookup_free(take_pointer(&client->lookup));
	if (++client->number < client->last)
		ask(client);
	else
		event_base_loopbreak(client->base);
}

static void ask(struct client *client)
{
	struct llm_request request = {
		.messages = &client->message,
		.message_count = 1,
		.max_tokens = 1000,
		.deadline = clock_ms() + PATIENCE_MS,
		.kind = LLM_QUERY,
	};
	auto_free char *asker = xasprintf("%d", client->number);

	snprintf(client->prompt, sizeof client->prompt, "events=1 %-*d", PROMPT_SIZE - 10,
		 client->number);
	client->message = (struct llm_message){.role = LLM_USER, .text = text_of(client->prompt)};
	client->lookup = llm_look_up(client->llm, &request, asker);
	request.lookup = client->lookup;
	llm_start(client->llm, &request, on_answer, client);
}

/* Microseconds of CPU a call, of prompts from `first` to before `last`. */
static double cost(struct client *client, int first, int last, bool cached)
{
	double start = measure_cpu();

	client->number = first;
	client->last = last;
	client->cached = cached;
	ask(client);
	event_base_dispatch(client->base);
	return (measure_cpu() - start) / (last - first);
}

static void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *file;

	while (dir && (file = readdir(dir)))
		if (file->d_name[0] != '.')
			unlinkat(dirfd(dir), file->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static struct llm *open_llm(struct registry *registry, const struct server *server,
			    const char *cache)
{
	auto_free char *url = xasprintf("%s/v1", server->url);
	struct rlmd_provider_options config = {.kind = "openai",
					       .name = cache ? "cached" : "plain",
					       .model = "bench",
					       .base_url = url,
					       .key = "none",
					       .no_stream = true};
	struct llm_config job = {.provider = config.name,
				 .cache_dir = cache,
				 .cache_age_ms = WEEK_MS,
				 .cache_size = 1 << 30};
	struct rlmd_error err;
	struct rlmd_provider *provider = provider_new(&config, &err);
	struct llm *llm = NULL;

	if (provider && registry_add(registry, NULL, provider, &err))
		llm = llm_new(registry, &job, &err);
	if (!llm)
		measure_fail("%s", err.text);
	provider_unref(provider);
	return llm;
}

int main(int argc, char **argv)
{
	struct samples hits = {.what = "a call that the cache answers, CPU"};
	struct samples calls = {.what = "the same, answered by a server at once"};
	struct client cached = {.base = loop_new()}, plain = {.base = cached.base};
	struct registry *registry = registry_new(cached.base);
	char dir[] = "/tmp/rlmd-bench-XXXXXX";
	struct server server;
	int count, each;

	if (argc != 3 || !mkdtemp(dir))
		measure_fail("usage: cached SERVER COUNT");
	count = measure_count(argv[2]);
	each = count > 1 ? 500 : 20; /* one sample shows that it runs */
	alloc_install();
	setenv("no_proxy", "*", 1);
	server = server_start(argv[1], "0", NULL);
	cached.llm = open_llm(registry, &server, dir);
	plain.llm = open_llm(registry, &server, NULL);
	cost(&cached, 0, each, false);
	for (int i = 0; i < count; i++) {
		llm_free(cached.llm); /* a new job: it asks all of it for the first time */
		cached.llm = llm_new(registry,
				     &(struct llm_config){.provider = "cached",
							  .cache_dir = dir,
							  .cache_age_ms = WEEK_MS,
							  .cache_size = 1 << 30},
				     NULL);
		samples_add(&hits, cost(&cached, 0, each, true));
		samples_add(&calls, cost(&plain, 0, each, false));
	}
	measure_at_most("18", &hits, &calls, 3);
	samples_done(&hits);
	samples_done(&calls);
	llm_free(cached.llm);
	llm_free(plain.llm);
	registry_free(registry);
	event_base_free(cached.base);
	server_stop(&server);
	remove_all(dir);
	return (int)measure_end();
}
