#include "engine/token_counter.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/timer.h"
#include "prompt/conversation.h"

enum {
	LITTLE = 128 << 10,  /* bytes that are counted by whoever asks for it */
	AT_ONCE = 256 << 10, /* bytes counted in a turn of the loop: about a millisecond */
};

struct token_counter {
	struct timer *turn;           /* owned */
	struct llm_message *messages; /* lent */
	struct text_scan *scans;      /* owned: one for each of them */
	size_t count;
	size_t next; /* the message that is being counted */
	token_counter_done_fn *fn;
	void *owner;
};

/* Counts on; true once the message is counted. */
static bool count_on(struct token_counter *counter, size_t *left)
{
	struct llm_message *message = &counter->messages[counter->next];
	struct text_scan *scan = &counter->scans[counter->next];
	struct rlmd_text text = conversation_counted(message);
	size_t rest = text.size - scan->bytes, size = rest < *left ? rest : *left;

	if (message->scan)
		return true;
	text_scan_feed(scan, text_slice(text, scan->bytes, scan->bytes + size));
	*left -= size;
	if (scan->bytes < text.size)
		return false;
	text_scan_end(scan);
	message->scan = scan;
	return true;
}

static void on_turn(void *arg)
{
	struct token_counter *counter = arg;
	size_t left = AT_ONCE;

	while (counter->next < counter->count && count_on(counter, &left))
		counter->next++;
	if (counter->next < counter->count)
		timer_post(counter->turn);
	else
		counter->fn(counter->owner);
}

static size_t uncounted(const struct llm_message *messages, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		if (!messages[i].scan)
			size += conversation_counted(&messages[i]).size;
	return size;
}

struct token_counter *token_counter_start(struct event_base *base, struct llm_message *messages,
					  size_t count, token_counter_done_fn *fn, void *owner)
{
	struct token_counter *counter;

	if (uncounted(messages, count) <= LITTLE)
		return NULL;
	counter = xcalloc(1, sizeof *counter);
	counter->messages = messages;
	counter->scans = xcalloc(count, sizeof *counter->scans);
	counter->count = count;
	counter->fn = fn;
	counter->owner = owner;
	counter->turn = timer_new(base, on_turn, counter);
	timer_post(counter->turn);
	return counter;
}

void token_counter_free(struct token_counter *counter)
{
	if (!counter)
		return;
	timer_free(counter->turn);
	free(counter->scans);
	free(counter);
}
