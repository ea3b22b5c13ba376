#include "engine/measure.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/loop.h"
#include "prompt/conversation.h"

enum {
	LITTLE = 128 << 10,  /* bytes that are counted by whoever asks for it */
	AT_ONCE = 256 << 10, /* bytes counted in a turn of the loop: about a millisecond */
};

struct measure {
	struct event *turn;           /* owned */
	struct llm_message *messages; /* lent */
	struct text_scan *scans;      /* owned: one for each of them */
	size_t count;
	size_t next; /* the message that is being counted */
	measure_done_fn *fn;
	void *owner;
};

/* Counts on; true once the message is counted. */
static bool count_on(struct measure *measure, size_t *left)
{
	struct llm_message *message = &measure->messages[measure->next];
	struct text_scan *scan = &measure->scans[measure->next];
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

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct measure *measure = arg;
	size_t left = AT_ONCE;

	(void)fd;
	(void)what;
	while (measure->next < measure->count && count_on(measure, &left))
		measure->next++;
	if (measure->next < measure->count)
		loop_post(measure->turn);
	else
		measure->fn(measure->owner);
}

static size_t uncounted(const struct llm_message *messages, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		if (!messages[i].scan)
			size += conversation_counted(&messages[i]).size;
	return size;
}

struct measure *measure_start(struct event_base *base, struct llm_message *messages, size_t count,
			      measure_done_fn *fn, void *owner)
{
	struct measure *measure;

	if (uncounted(messages, count) <= LITTLE)
		return NULL;
	measure = xcalloc(1, sizeof *measure);
	measure->messages = messages;
	measure->scans = xcalloc(count, sizeof *measure->scans);
	measure->count = count;
	measure->fn = fn;
	measure->owner = owner;
	measure->turn = event_new(base, -1, 0, on_turn, measure);
	loop_post(measure->turn);
	return measure;
}

void measure_free(struct measure *measure)
{
	if (!measure)
		return;
	event_free(measure->turn);
	free(measure->scans);
	free(measure);
}
