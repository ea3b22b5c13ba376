#include "batch/batch_queue.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "base/timer.h"
#include "batch/batch_store.h"
#include "store/store.h"

/* How long until a batch is tried again whose jobs could not be begun, as a refused key is seldom
 * mended sooner. */
enum { AGAIN_MS = 30 * 1000 };

struct batch_queue {
	struct batch_queue_options options;
	struct query *query;          /* lent: looks what there is */
	int64_t *batches;             /* owned */
	size_t count, begun;          /* of `batches` */
	struct timer *posted, *again; /* owned */
	bool at_work;                 /* one was told, and is not done with */
	bool left;                    /* some have jobs that could not be begun */
	bool idle, heard; /* idle: it waits for news; heard: there were some since it asked */
	bool draining;
};

static void ask(struct batch_queue *queue);

static void fail(struct batch_queue *queue, const struct rlmd_error *err)
{
	queue->options.end(queue->options.owner, err);
}

static bool is_wanted(const struct batch_queue *queue, const struct store_batch *batch)
{
	return batch->ready &&
	       (!queue->options.name || text_equal(batch->name, queue->options.name));
}

static void on_found(void *owner, const struct store_result *result)
{
	struct batch_queue *queue = owner;
	struct rlmd_error err;

	queue->query = NULL;
	if (result->fault) {
		batch_store_explain(result, &err);
		fail(queue, &err);
		return;
	}
	queue->batches = xreallocarray(queue->batches, result->count + 1, sizeof *queue->batches);
	for (size_t i = 0; i < result->count; i++)
		if (is_wanted(queue, &result->batches[i]))
			queue->batches[queue->count++] = result->batches[i].id;
	if (queue->options.name && !queue->options.wait && !queue->count) {
		error_set(&err, RLMD_ERROR_USAGE,
			  "the store has no batch '%s' that was loaded to its end",
			  queue->options.name);
		fail(queue, &err);
		return;
	}
	queue->idle = !queue->count && queue->options.wait;
	if (queue->idle && queue->heard)
		ask(queue);
	else if (!queue->idle || queue->draining)
		timer_post(queue->posted);
}

/* One that has a name is told also where it is over: that it is there is known then. */
static void ask(struct batch_queue *queue)
{
	const struct batch_queue_options *options = &queue->options;

	queue->idle = queue->heard = queue->left = false;
	queue->count = queue->begun = 0;
	queue->query = options->name && !options->wait
			       ? store_find(options->store, text_of(options->name), on_found, queue)
			       : store_unfinished(options->store, on_found, queue);
}

static void on_again(void *owner)
{
	ask(owner);
}

static void on_posted(void *owner)
{
	struct batch_queue *queue = owner;

	if (queue->draining || (queue->begun == queue->count && !queue->options.wait)) {
		fail(queue, NULL);
	} else if (queue->begun < queue->count) {
		queue->at_work = true;
		queue->options.next(queue->options.owner, queue->batches[queue->begun++]);
	} else if (queue->left) {
		timer_start(queue->again, AGAIN_MS);
	} else {
		ask(queue);
	}
}

void batch_queue_next(struct batch_queue *queue, bool left)
{
	queue->at_work = false;
	queue->left = queue->left || left;
	timer_post(queue->posted);
}

void batch_queue_hear(struct batch_queue *queue)
{
	if (queue->idle)
		ask(queue);
	else
		queue->heard = true;
}

void batch_queue_drain(struct batch_queue *queue)
{
	queue->draining = true;
	if (!queue->at_work && !queue->query)
		timer_post(queue->posted);
}

struct batch_queue *batch_queue_new(struct event_base *base,
				    const struct batch_queue_options *options)
{
	struct batch_queue *queue = xcalloc(1, sizeof *queue);

	queue->options = *options;
	queue->posted = timer_new(base, on_posted, queue);
	queue->again = timer_new(base, on_again, queue);
	ask(queue);
	return queue;
}

void batch_queue_free(struct batch_queue *queue)
{
	if (!queue)
		return;
	store_forget(queue->query);
	timer_free(queue->posted);
	timer_free(queue->again);
	free(queue->batches);
	free(queue);
}
