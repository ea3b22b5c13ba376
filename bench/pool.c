#include "bench/pool.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"
#include "bench/measure.h"

static void on_event(void *owner, const struct worker_event *event)
{
	struct pool *pool = owner;

	if (event->kind == WORKER_CALL) {
		pool->on_call(pool->owner, event);
		return;
	}
	if (event->kind == WORKER_GONE)
		measure_fail("the worker died: %s", event->error->text);
	if (event->kind == WORKER_DONE && event->block->failed)
		measure_fail("the block failed: %.*s", (int)event->block->error.size,
			     event->block->error.bytes);
	pool->last = event->kind;
	pool->answered = true;
}

static void await(struct pool *pool, enum worker_event_kind kind)
{
	while (!pool->answered)
		event_base_loop(pool->base, EVLOOP_ONCE);
	pool->answered = false;
	if (pool->last != kind)
		measure_fail("the worker said something else");
}

void pool_init(struct pool *pool, const char *python, const char *worker_dir, const char *without)
{
	struct rlmd_error err;

	alloc_install();
	*pool = (struct pool){.base = loop_new()};
	pool->sandbox = sandbox_new(pool->base,
				    &(struct sandbox_config){
					    .python = python,
					    .worker_memory = (size_t)1 << 30,
					    .worker_dir = worker_dir,
					    .without = without,
				    },
				    &err);
	if (!pool->sandbox)
		measure_fail("%s", err.text);
}

void pool_done(struct pool *pool)
{
	pool_stop_worker(pool);
	sandbox_free(pool->sandbox);
	event_base_free(pool->base);
}

void pool_start_worker(struct pool *pool)
{
	const struct worker_input input = {.name = "context", .file = pool->context};
	const struct worker_options options = {
		.max_output = 50000, .inputs = &input, .input_count = pool->context ? 1 : 0};

	pool->worker = worker_start(pool->base, pool->sandbox, &options, on_event, pool);
	await(pool, WORKER_READY);
}

void pool_exec(struct pool *pool, const char *code)
{
	worker_exec(pool->worker, 1, text_of(code), 30000);
	await(pool, WORKER_DONE);
}

void pool_stop_worker(struct pool *pool)
{
	worker_free(pool->worker);
	pool->worker = NULL;
}

void pool_settle(struct pool *pool, int milliseconds)
{
	struct timeval delay = clock_timeval(milliseconds);

	event_base_loopexit(pool->base, &delay);
	event_base_dispatch(pool->base);
}
