#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "store/checksum.h"
#include "store/database.h"
#include "store/query.h"

enum { LOOK_MS = 1000 };

struct store {
	const struct database_kind *kind;
	void *database; /* owned */
	char *node;     /* owned */
};

/* Which database an address names; moves `*address` to what is the database's own of it. */
static const struct database_kind *kind_of(const char **address)
{
	struct rlmd_text text = text_of(*address);
	const char *colon = strstr(*address, "://");

	if (text_starts(text, "postgresql://") || text_starts(text, "postgres://"))
		return &postgres_kind;
	if (text_starts(text, "sqlite:"))
		*address += strlen("sqlite:");
	else if (colon && !memchr(*address, '/', (size_t)(colon - *address)))
		return NULL;
	return **address ? &sqlite_kind : NULL;
}

bool store_is_shared(const char *address)
{
	return kind_of(&address) == &postgres_kind;
}

static struct query *run(struct store *store, struct query *query)
{
	if (!query->sets)
		query_fail(query, STORE_USAGE, "nothing is asked for");
	store->kind->run(store->database, query);
	return query;
}

struct store *store_open(struct event_base *base, const char *address,
			 const struct store_options *options, store_fn *opened,
			 struct rlmd_error *err)
{
	struct store_options ours = *options;
	auto_free char *shown = xstrdup(address);
	const char *rest = address;
	const struct database_kind *kind = kind_of(&rest);
	struct store *store;

	if (!kind) {
		address_hide(shown);
		error_set(err, RLMD_ERROR_USAGE,
			  "no store is known by '%s': give the path of a file, or postgresql://...",
			  shown);
		return NULL;
	}
	if (kind == &postgres_kind && !address_check(address, err))
		return NULL;
	if (!ours.look_ms)
		ours.look_ms = LOOK_MS;
	store = xcalloc(1, sizeof *store);
	store->kind = kind;
	store->node = xstrdup(options->node ? options->node : "");
	store->database = kind->open(base, rest, &ours, err);
	if (!store->database) {
		free(store->node);
		free(store);
		return NULL;
	}
	run(store, query_new(SCRIPT_OPEN, 1, opened, options->owner));
	return store;
}

void store_free(struct store *store)
{
	if (!store)
		return;
	store->kind->free(store->database);
	free(store->node);
	free(store);
}

void store_forget(struct query *query)
{
	if (query)
		query->fn = NULL;
}

struct query *store_load_begin(struct store *store, struct rlmd_text name, bool add, store_fn *fn,
			       void *owner)
{
	struct query *query = query_new(SCRIPT_LOAD_BEGIN, 1, fn, owner);

	query_put_text(query, name);
	query_put(query, add);
	query_put_text(query, text_of(store->node));
	return run(store, query);
}

struct query *store_load_add(struct store *store, const struct store_load *load,
			     const struct store_line *lines, size_t count, store_fn *fn,
			     void *owner)
{
	struct query *query = query_new(SCRIPT_LOAD_ADD, count, fn, owner);

	for (size_t i = 0; i < count; i++) {
		const struct store_job job = {
			.number = load->after + lines[i].number,
			.custom_id = lines[i].custom_id,
			.tenant = lines[i].tenant,
			.digest = lines[i].digest,
			.line = lines[i].line,
		};

		query_put(query, load->batch);
		query_put(query, load->token);
		query_put(query, job.number);
		query_put_text(query, lines[i].custom_id);
		query_put_text(query, lines[i].tenant);
		query_put_text(query, lines[i].digest);
		query_put_text(query, lines[i].line);
		query_put(query, checksum_of_name(&job));
		query_put(query, checksum_of_line(&job));
		if (lines[i].number < 1 || !lines[i].custom_id.size)
			query_fail(query, STORE_USAGE, "a job has no number or no custom_id");
	}
	return run(store, query);
}

struct query *store_load_end(struct store *store, const struct store_load *load,
			     struct rlmd_text digest, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_LOAD_END, 1, fn, owner);

	query_put(query, load->batch);
	query_put(query, load->token);
	query_put_text(query, digest);
	if (!digest.size)
		query_fail(query, STORE_USAGE, "a batch needs the digest of its jobs file");
	return run(store, query);
}

struct query *store_compare(struct store *store, int64_t batch, const struct store_line *lines,
			    size_t count, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_COMPARE, count, fn, owner);

	for (size_t i = 0; i < count; i++) {
		query_put(query, batch);
		query_put_text(query, lines[i].custom_id);
		query_put_text(query, lines[i].digest);
	}
	return run(store, query);
}

struct query *store_find(struct store *store, struct rlmd_text name, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_FIND, 1, fn, owner);

	query_put_text(query, name);
	return run(store, query);
}

struct query *store_batches(struct store *store, store_fn *fn, void *owner)
{
	return run(store, query_new(SCRIPT_BATCHES, 1, fn, owner));
}

struct query *store_unfinished(struct store *store, store_fn *fn, void *owner)
{
	return run(store, query_new(SCRIPT_UNFINISHED, 1, fn, owner));
}

struct query *store_claim(struct store *store, int64_t batch, const struct rlmd_text *tenant,
			  struct rlmd_text node, int64_t most, int64_t lease_ms, store_fn *fn,
			  void *owner)
{
	struct query *query = query_new(tenant ? SCRIPT_CLAIM_OF : SCRIPT_CLAIM, 1, fn, owner);

	query_put(query, batch);
	query_put_text(query, node);
	query_put(query, most);
	query_put_ms(query, lease_ms);
	if (tenant)
		query_put_text(query, *tenant);
	return run(store, query);
}

struct query *store_alone(struct store *store, const struct store_claim *claim, store_fn *fn,
			  void *owner)
{
	struct query *query = query_new(SCRIPT_ALONE, 1, fn, owner);

	query_put(query, claim->job);
	query_put(query, claim->token);
	return run(store, query);
}

struct query *store_renew(struct store *store, const struct store_claim *claims, size_t count,
			  int64_t lease_ms, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_RENEW, count, fn, owner);

	for (size_t i = 0; i < count; i++) {
		query_put(query, claims[i].job);
		query_put(query, claims[i].token);
		query_put_ms(query, lease_ms);
	}
	return run(store, query);
}

/* A set for each lease; one where there is none: no lease has the id 0. */
struct query *store_journal_add(struct store *store, const struct store_claim *claim,
				const struct store_exchange *exchange, const int64_t *leases,
				size_t count, store_fn *fn, void *owner)
{
	size_t sets = count ? count : 1;
	struct query *query = query_new(SCRIPT_JOURNAL_ADD, sets, fn, owner);

	for (size_t i = 0; i < sets; i++) {
		query_put(query, claim->job);
		query_put(query, claim->token);
		query_put_text(query, exchange->key);
		query_put(query, exchange->number);
		query_put_text(query, i ? text_of("") : exchange->bytes);
		query_put_amount(query, exchange->cost, exchange->tokens);
		query_put(query, count ? leases[i] : 0);
		query_put(query, i ? 0 : checksum_of_exchange(claim->job, exchange));
	}
	return run(store, query);
}

struct query *store_journal_read(struct store *store, int64_t job, int64_t after, int64_t most,
				 store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_JOURNAL_READ, 1, fn, owner);

	query_put(query, job);
	query_put(query, after);
	query_put(query, most);
	return run(store, query);
}

struct query *store_finish(struct store *store, const struct store_claim *claim,
			   const struct store_outcome *outcome, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_FINISH, 1, fn, owner);
	enum store_state state = outcome->succeeded ? STORE_JOB_SUCCEEDED : STORE_JOB_FAILED;

	query_put(query, claim->job);
	query_put(query, claim->token);
	query_put(query, state);
	query_put_text(query, outcome->result);
	query_put_text(query, outcome->error);
	query_put_amount(query, outcome->cost, outcome->tokens);
	query_put_text(query, outcome->trace);
	query_put(query, outcome->attempts);
	query_put(query, checksum_of_end(claim->job, state, outcome));
	return run(store, query);
}

struct query *store_postpone(struct store *store, const struct store_claim *claim, int64_t delay_ms,
			     struct rlmd_text error, bool counts, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_POSTPONE, 1, fn, owner);

	query_put(query, claim->job);
	query_put(query, claim->token);
	query_put_ms(query, delay_ms);
	query_put_text(query, error);
	query_put(query, counts);
	return run(store, query);
}

struct query *store_rerun(struct store *store, int64_t batch, const struct rlmd_text *error,
			  bool afresh, store_fn *fn, void *owner)
{
	struct query *query = query_new(error ? SCRIPT_RERUN_OF : SCRIPT_RERUN, 1, fn, owner);

	query_put(query, batch);
	query_put(query, afresh);
	if (error)
		query_put_text(query, *error);
	return run(store, query);
}

struct query *store_rerun_degraded(struct store *store, int64_t batch, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_RERUN_DEGRADED, 1, fn, owner);

	query_put(query, batch);
	query_put(query, true);
	return run(store, query);
}

struct query *store_account(struct store *store, int64_t batch, struct rlmd_text tenant,
			    int64_t limit_cost, int64_t limit_tokens, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_ACCOUNT, 1, fn, owner);

	query_put(query, batch);
	query_put(query, !batch);
	query_put_text(query, tenant);
	query_put(query, limit_cost);
	query_put(query, limit_tokens);
	return run(store, query);
}

struct query *store_lease_take(struct store *store, int64_t account, struct rlmd_text node,
			       int64_t cost, int64_t tokens, int64_t lease_ms, store_fn *fn,
			       void *owner)
{
	struct query *query = query_new(SCRIPT_LEASE_TAKE, 1, fn, owner);

	query_put(query, account);
	query_put_text(query, node);
	query_put_amount(query, cost, tokens);
	query_put_ms(query, lease_ms);
	return run(store, query);
}

struct query *store_lease_hold(struct store *store, int64_t lease, int64_t cost, int64_t tokens,
			       int64_t open_cost, int64_t open_tokens, int64_t lease_ms,
			       store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_LEASE_HOLD, 1, fn, owner);

	query_put(query, lease);
	query_put_amount(query, cost, tokens);
	query_put_amount(query, open_cost, open_tokens);
	query_put_ms(query, lease_ms);
	return run(store, query);
}

struct query *store_lease_settle(struct store *store, int64_t lease, int64_t cost, int64_t tokens,
				 store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_LEASE_SETTLE, 1, fn, owner);

	query_put(query, lease);
	query_put_amount(query, cost, tokens);
	return run(store, query);
}

struct query *store_breaker_open(struct store *store, int64_t batch, struct rlmd_text tenant,
				 struct rlmd_text provider, struct rlmd_text why, store_fn *fn,
				 void *owner)
{
	struct query *query = query_new(SCRIPT_BREAKER_OPEN, 1, fn, owner);

	query_put(query, batch);
	query_put_text(query, tenant);
	query_put_text(query, provider);
	query_put_text(query, why);
	return run(store, query);
}

struct query *store_breaker_close(struct store *store, int64_t batch, struct rlmd_text tenant,
				  struct rlmd_text provider, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_BREAKER_CLOSE, 1, fn, owner);

	query_put(query, batch);
	query_put_text(query, tenant);
	query_put_text(query, provider);
	return run(store, query);
}

struct query *store_breakers(struct store *store, int64_t batch, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_BREAKERS, 1, fn, owner);

	query_put(query, batch);
	return run(store, query);
}

struct query *store_jobs(struct store *store, int64_t batch, const struct rlmd_text *custom_ids,
			 size_t count, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_JOBS, count, fn, owner);

	for (size_t i = 0; i < count; i++) {
		query_put(query, batch);
		query_put_text(query, custom_ids[i]);
	}
	return run(store, query);
}

struct query *store_counts(struct store *store, int64_t batch, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_COUNTS, 1, fn, owner);

	query_put(query, batch);
	return run(store, query);
}

struct query *store_nodes(struct store *store, int64_t batch, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_NODES, 1, fn, owner);

	query_put(query, batch);
	return run(store, query);
}

struct query *store_release(struct store *store, struct rlmd_text node, store_fn *fn, void *owner)
{
	struct query *query = query_new(SCRIPT_RELEASE, 1, fn, owner);

	query_put_text(query, node);
	return run(store, query);
}

struct query *store_results(struct store *store, int64_t batch, int64_t after, int64_t most,
			    bool sorted, store_fn *fn, void *owner)
{
	enum script script = sorted ? SCRIPT_RESULTS_SORTED : SCRIPT_RESULTS;
	struct query *query = query_new(script, 1, fn, owner);

	query_put(query, batch);
	query_put(query, after);
	query_put(query, most);
	return run(store, query);
}
