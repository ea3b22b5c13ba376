#include "batch/store_status.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/money.h"
#include "base/text.h"
#include "batch/batch_store.h"
#include "store/store.h"

enum { SECOND_MS = 1000 };

struct store_status {
	struct store_status_options options;
	struct store *store; /* owned */
	struct query *query; /* lent */
	json_t *status;      /* owned: with batches up to the one that is asked about */
	int64_t *ids;        /* owned: of all of its batches */
	size_t count, at;
};

static const char *const states[STORE_JOB_STATES] = {
	[STORE_JOB_PENDING] = "pending",
	[STORE_JOB_RUNNING] = "running",
	[STORE_JOB_SUCCEEDED] = "succeeded",
	[STORE_JOB_FAILED] = "failed",
};

static void tell(struct store_status *status, const struct rlmd_error *err)
{
	status->options.done(status->options.owner, err ? NULL : status->status, err);
}

static bool failed(struct store_status *status, const struct store_result *result)
{
	struct rlmd_error err;

	status->query = NULL;
	if (!result->fault)
		return false;
	batch_store_explain(result, &err);
	tell(status, &err);
	return true;
}

static json_t *batch_of(const struct store_status *status)
{
	return json_array_get(json_object_get(status->status, "batches"), status->at);
}

static void put_counts(json_t *object, const struct store_count *count)
{
	for (int state = 0; state < STORE_JOB_STATES; state++)
		json_object_set_new(object, states[state], json_integer(count->jobs[state]));
	json_object_set_new(object, "degraded", json_integer(count->degraded));
	json_object_set_new(object, "cost", json_real(money_to_dollars(count->cost)));
	json_object_set_new(object, "tokens", json_integer(count->tokens));
}

static json_t *seconds(int64_t ms)
{
	return json_integer(ms > 0 ? ms / SECOND_MS : 0);
}

/* --- what is asked of each batch, in this order ------------------------------------------ */

static void ask(struct store_status *status);

/* A name is "host:pid:..." (batch/node.h). */
static json_t *node_in(const struct store_node *node)
{
	auto_free char *name = text_copy(node->node);
	char *pid = strchr(name, ':');

	if (pid)
		*pid++ = 0;
	return json_pack("{s:o, s:I, s:I, s:o}", "host", json_from_text(text_of(name)), "pid",
			 (json_int_t)(pid ? strtoll(pid, NULL, 10) : 0), "jobs",
			 (json_int_t)node->jobs, "leaseSeconds", seconds(node->left_ms));
}

static void on_nodes(void *owner, const struct store_result *result)
{
	struct store_status *status = owner;
	json_t *nodes = json_array();

	if (!failed(status, result)) {
		/* Of a node that was killed a lease of money may be left until others take some. */
		for (size_t i = 0; i < result->count; i++)
			if (result->nodes[i].jobs || result->nodes[i].left_ms > 0)
				json_array_append_new(nodes, node_in(&result->nodes[i]));
		json_object_set(batch_of(status), "nodes", nodes);
		status->at++;
		ask(status);
	}
	json_decref(nodes);
}

static void on_breakers(void *owner, const struct store_result *result)
{
	struct store_status *status = owner;
	json_t *breakers = json_array();

	if (!failed(status, result)) {
		for (size_t i = 0; i < result->count; i++) {
			const struct store_breaker *one = &result->breakers[i];

			json_array_append_new(breakers,
					      json_pack("{s:o, s:o, s:o, s:o}", "tenant",
							json_from_text(one->tenant), "provider",
							json_from_text(one->provider), "why",
							json_from_text(one->why), "seconds",
							seconds(one->since_ms)));
		}
		json_object_set(batch_of(status), "breakers", breakers);
		status->query = store_nodes(status->store, status->ids[status->at], on_nodes,
					    status);
	}
	json_decref(breakers);
}

static void on_counts(void *owner, const struct store_result *result)
{
	struct store_status *status = owner;
	json_t *tenants = json_array(), *batch = batch_of(status);
	struct store_count sum = {0};

	if (!failed(status, result)) {
		for (size_t i = 0; i < result->count; i++) {
			const struct store_count *count = &result->counts[i];
			json_t *tenant = json_pack("{s:o}", "tenant",
						   json_from_text(count->tenant));

			put_counts(tenant, count);
			json_array_append_new(tenants, tenant);
			for (int state = 0; state < STORE_JOB_STATES; state++)
				sum.jobs[state] += count->jobs[state];
			sum.degraded += count->degraded;
			sum.cost = money_add(sum.cost, count->cost);
			sum.tokens += count->tokens;
		}
		put_counts(batch, &sum);
		json_object_set(batch, "tenants", tenants);
		status->query = store_breakers(status->store, status->ids[status->at], on_breakers,
					       status);
	}
	json_decref(tenants);
}

static void ask(struct store_status *status)
{
	if (status->at == status->count)
		tell(status, NULL);
	else
		status->query = store_counts(status->store, status->ids[status->at], on_counts,
					     status);
}

/* --- which batches ----------------------------------------------------------------------- */

static void add(struct store_status *status, const struct store_batch *batch)
{
	status->ids[status->count++] = batch->id;
	json_array_append_new(json_object_get(status->status, "batches"),
			      json_pack("{s:o, s:I}", "batch", json_from_text(batch->name), "jobs",
					(json_int_t)batch->jobs));
}

static void on_batches(void *owner, const struct store_result *result)
{
	struct store_status *status = owner;
	const struct store_batch *chosen = NULL;
	struct rlmd_error err;

	if (failed(status, result))
		return;
	if (status->options.batch &&
	    !(chosen = batch_store_choose(result, status->options.batch, &err))) {
		tell(status, &err);
		return;
	}
	status->ids = xcalloc(result->count + 1, sizeof *status->ids);
	for (size_t i = 0; i < result->count; i++)
		if (!chosen || chosen == &result->batches[i])
			add(status, &result->batches[i]);
	ask(status);
}

static void on_store(void *owner, const struct store_result *result)
{
	struct store_status *status = owner;

	if (!failed(status, result))
		status->query = store_batches(status->store, on_batches, status);
}

static void on_news(void *owner, enum store_news news)
{
	const struct store_status *status = owner;
	const char *text = batch_store_news(news);

	if (text)
		status->options.warn(status->options.owner, text);
}

struct store_status *store_status_new(struct event_base *base,
				      const struct store_status_options *options,
				      struct rlmd_error *err)
{
	struct store_status *status = xcalloc(1, sizeof *status);
	const struct store_options store = {.existing = true, .news = on_news, .owner = status};

	status->options = *options;
	status->status = json_pack("{s:[]}", "batches");
	status->store = store_open(base, options->store, &store, on_store, err);
	if (status->store)
		return status;
	store_status_free(status);
	return NULL;
}

void store_status_free(struct store_status *status)
{
	if (!status)
		return;
	store_forget(status->query);
	store_free(status->store);
	json_decref(status->status);
	free(status->ids);
	free(status);
}
