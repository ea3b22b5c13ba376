#include "asking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void copy(char out[ASKING_TEXT], struct rlmd_text text)
{
	snprintf(out, ASKING_TEXT, "%.*s", (int)text.size, text.size ? text.bytes : "");
}

static void copy_jobs(struct told *told, const struct store_result *result)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct store_job *job = &result->jobs[i];
		struct told_job *to = &told->jobs[i];

		to->id = job->id;
		to->token = job->token;
		to->number = job->number;
		to->attempts = job->attempts;
		to->suspect = job->suspect;
		to->rank = job->rank;
		to->cost = job->cost;
		to->tokens = job->tokens;
		to->state = job->state;
		copy(to->custom_id, job->custom_id);
		copy(to->tenant, job->tenant);
		copy(to->line, job->line);
		copy(to->result, job->result);
		copy(to->trace, job->trace);
		copy(to->error, job->error);
	}
}

static void copy_exchanges(struct told *told, const struct store_result *result)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct store_exchange *exchange = &result->exchanges[i];
		struct told_exchange *to = &told->exchanges[i];

		to->id = exchange->id;
		to->number = exchange->number;
		to->cost = exchange->cost;
		to->size = exchange->bytes.size;
		copy(to->key, exchange->key);
		memcpy(to->bytes, exchange->bytes.bytes, exchange->bytes.size);
	}
}

void on_told(void *owner, const struct store_result *result)
{
	struct told *told = owner;

	told->times++;
	told->fault = result->fault;
	snprintf(told->error, sizeof told->error, "%s", result->error.text);
	told->count = result->count;
	told->load = result->load;
	told->account = result->account;
	told->lease = result->lease;
	if (result->batches && result->count) {
		told->ready = result->batches[0].ready;
		told->jobs_ready = result->batches[0].jobs;
		copy(told->digest, result->batches[0].digest);
	}
	if (result->fault || result->count > ASKING_MOST)
		return;
	for (size_t i = 0; result->lines && i < result->count; i++)
		told->states[i] = result->lines[i];
	for (size_t i = 0; result->lost && i < result->count; i++)
		told->lost[i] = result->lost[i];
	if (result->jobs)
		copy_jobs(told, result);
	if (result->exchanges)
		copy_exchanges(told, result);
	for (size_t i = 0; result->counts && i < result->count; i++) {
		told->counts[i] = result->counts[i];
		copy(told->tenants[i], result->counts[i].tenant);
	}
	for (size_t i = 0; result->breakers && i < result->count; i++) {
		copy(told->tenants[i], result->breakers[i].tenant);
		copy(told->providers[i], result->breakers[i].provider);
		copy(told->whys[i], result->breakers[i].why);
	}
	for (size_t i = 0; result->nodes && i < result->count; i++) {
		told->nodes[i] = result->nodes[i];
		copy(told->node_names[i], result->nodes[i].node);
	}
}

void await(struct event_base *base, const struct told *told)
{
	while (!told->times)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(told->times, 1);
}
