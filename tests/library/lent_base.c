/*
 * A program outside of the tree that lends an engine its own event base, of libevent's usual make:
 * its own events still have their turns while a plan of 1,000 calls goes by, which are all answered
 * as soon as they are asked, and no more calls of a job are in flight than it may have. Silent,
 * where all is well.
 */
#include <event2/event.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/plan.h>
#include <rlmd/provider.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 1000, FEW = 16, PARALLEL = 3 };

static struct rlmd_provider *provider;
static struct event *mine;
static bool at_once, over;
static int asked, asked_before, most_between, open_most, open_now;
static uint64_t open_ids[CALLS];

static void answer(uint64_t id)
{
	const struct rlmd_model_answer words = {.size = sizeof words, .text = rlmd_text_of("well")};

	if (!rlmd_provider_answer(provider, id, &words))
		puts("an answer was not taken");
}

static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	(void)owner;
	asked++;
	if (at_once) {
		answer(request->id);
		return;
	}
	open_ids[open_now++] = request->id;
	if (open_now > open_most)
		open_most = open_now;
}

static void look(void)
{
	if (asked - asked_before > most_between)
		most_between = asked - asked_before;
	asked_before = asked;
}

/* The host's own work, a piece each turn. Calls are answered once as many are open as may be. */
static void on_mine(evutil_socket_t fd, short what, void *owner)
{
	const struct timeval now = {0};

	(void)fd;
	(void)what;
	(void)owner;
	look();
	if (open_now == PARALLEL || asked == CALLS)
		while (open_now)
			answer(open_ids[--open_now]);
	if (!over)
		event_add(mine, &now);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	(void)owner;
	(void)job;
	look();
	if (!rlmd_result_success(result))
		printf("%.*s\n", (int)rlmd_result_json(result).size,
		       rlmd_result_json(result).bytes);
	over = true;
}

static struct rlmd_plan_file *plan_new(void)
{
	char *json = malloc(CALLS * 64 + 64);
	struct rlmd_plan_file *plan;
	int size = sprintf(json, "{\"maxParallel\": %d, \"operations\": [", CALLS);

	for (int i = 0; i < CALLS; i++)
		size += sprintf(json + size, "%s{\"id\": \"o%d\", \"input\": \"how?\"}",
				i ? ", " : "", i);
	sprintf(json + size, "]}");
	plan = rlmd_plan_file_new(rlmd_text_of(json), NULL);
	free(json);
	return plan;
}

static void use(struct event_base *base)
{
	const struct rlmd_provider_options its = {.size = sizeof its,
						  .name = "mine",
						  .model = "any",
						  .ask = on_ask,
						  .costs_nothing = true};
	const struct rlmd_engine_options ours = {.size = sizeof ours, .base = base};
	const struct rlmd_limits limits = {
		.size = sizeof limits, .tokens = RLMD_UNLIMITED, .time_ms = 3600000};
	const struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end};
	struct rlmd_plan_file *plan = plan_new();
	struct rlmd_engine *engine = rlmd_engine_new(&ours, NULL);
	const struct rlmd_job_options options = {.size = sizeof options,
						 .plan = plan,
						 .limits = &limits,
						 .max_parallel = PARALLEL,
						 .hooks = &hooks};
	struct rlmd_error err = {0};

	asked = asked_before = most_between = open_most = 0;
	over = false;
	provider = rlmd_provider_new(&its, NULL);
	if (!plan || !rlmd_engine_add_provider(engine, NULL, provider, &err) ||
	    !rlmd_job_start(engine, &options, &err))
		printf("refused: %s\n", err.text);
	else
		event_base_dispatch(base);
	rlmd_engine_free(engine);
	rlmd_plan_file_free(plan);
	rlmd_provider_unref(provider);
	if (asked != CALLS)
		printf("%d calls\n", asked);
}

int main(void)
{
	struct event_base *base = event_base_new();
	const struct timeval now = {0};

	mine = event_new(base, -1, 0, on_mine, NULL);
	at_once = true;
	event_add(mine, &now);
	use(base);
	if (most_between > FEW)
		printf("%d calls went by between two turns of the host\n", most_between);

	at_once = false;
	event_add(mine, &now);
	use(base);
	if (open_most != PARALLEL)
		printf("%d calls were in flight\n", open_most);
	event_free(mine);
	event_base_free(base);
	return 0;
}
