/* Bytes into events, whatever the network does to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "effort.h"
#include "llm/stream.h"

/* Events as one string: "name=data;" each, or "+" for one that was taken ahead. */
struct record {
	struct evbuffer *events; /* owned */
	const char *expected;    /* an event's bytes: such ones are taken ahead; NULL: none is */
	size_t whole;            /* events that came with their bytes */
	size_t refuse_at;        /* the event of this number is refused; 0: none */
	size_t count;
};

static bool on_event(void *owner, const struct adapter_event *event, struct rlmd_error *err)
{
	struct record *record = owner;

	if (event->bytes.size) {
		assert_true(event->data.bytes >= event->bytes.bytes);
		assert_true(event->data.bytes + event->data.size <
			    event->bytes.bytes + event->bytes.size);
		assert_int_equal(event->bytes.bytes[event->bytes.size - 1], '\n');
		record->whole++;
	}
	evbuffer_add(record->events, event->name.bytes, event->name.size);
	evbuffer_add(record->events, "=", 1);
	evbuffer_add(record->events, event->data.bytes, event->data.size);
	evbuffer_add(record->events, ";", 1);
	if (++record->count == record->refuse_at)
		return error_set(err, RLMD_ERROR_REFUSED, "enough");
	return true;
}

static bool on_ahead(void *owner, struct rlmd_text bytes, size_t *ret_taken, struct rlmd_error *err)
{
	struct record *record = owner;

	(void)err;
	*ret_taken = 0;
	while (record->expected &&
	       text_starts(text_slice(bytes, *ret_taken, bytes.size), record->expected)) {
		*ret_taken += strlen(record->expected);
		evbuffer_add(record->events, "+", 1);
	}
	return true;
}

/* Feeds pieces of `step` bytes after a first one of `first`. */
static char *events_with(const char *expected, enum adapter_framing framing, struct rlmd_text bytes,
			 size_t first, size_t step)
{
	struct record record = {.events = evbuffer_new(), .expected = expected};
	struct stream *stream = stream_new(framing, on_event, on_ahead, &record);
	struct rlmd_error error = {0};
	char *events;

	for (size_t at = 0, size = first; at < bytes.size; at += size, size = step) {
		char *piece;

		size = size < bytes.size - at ? size : bytes.size - at;
		piece = xstrndup(bytes.bytes + at, size);
		assert_true(stream_feed(stream, text_from(piece, size), &error));
		free(piece);
	}
	assert_true(stream_end(stream, &error));
	stream_free(stream);
	events = text_drain(record.events, NULL);
	evbuffer_free(record.events);
	return events;
}

static char *events_of(enum adapter_framing framing, struct rlmd_text bytes, size_t first,
		       size_t step)
{
	return events_with(NULL, framing, bytes, first, step);
}

static void assert_events_with(const char *ahead, enum adapter_framing framing, const char *bytes,
			       const char *expected)
{
	struct rlmd_text text = text_of(bytes);

	for (size_t first = 0; first <= text.size; first += effort(1, 3)) {
		char *events = events_with(ahead, framing, text, first, text.size);

		assert_string_equal(events, expected);
		free(events);
	}
	for (size_t step = 1; step <= 3; step++) {
		char *events = events_with(ahead, framing, text, 0, step);

		assert_string_equal(events, expected);
		free(events);
	}
}

static void assert_events(enum adapter_framing framing, const char *bytes, const char *expected)
{
	assert_events_with(NULL, framing, bytes, expected);
}

/* The WHATWG standard's rules, one case each. */
static void server_sent_events(void **state)
{
	static const char *const cases[][2] = {
		{"data: a\n\n", "=a;"},
		{"data: a\r\n\r\ndata: b\r\rdata: c\n\n", "=a;=b;=c;"},
		{"data:a\n\n", "=a;"},
		{"data:  a \n\n", "= a ;"},
		{"data: a\ndata: b\ndata\n\n", "=a\nb\n;"},
		{"data\n\n", "=;"},
		{"data:\n\n", "=;"},
		{"event: e\ndata: a\n\ndata: b\n\n", "e=a;=b;"},
		{"event: e\n\ndata: a\n\n", "=a;"},
		{"event: e\nevent: f\ndata: a\n\n", "f=a;"},
		{"\n\n: a comment\n:\ndata: a\n: another\n\n", "=a;"},
		{"id: 1\nretry: 10\nunknown: x\ndatax: y\ndata: a\n\n", "=a;"},
		{"\xef\xbb\xbf"
		 "data: a\n\n",
		 "=a;"},
		{"data: a\n\n\xef\xbb\xbf"
		 "data: b\n\n",
		 "=a;"},
		{"data: a: b\n\n", "=a: b;"},
		{"data: a\n\ndata: half", "=a;=half;"},
		{"data: a\n\ndata: half\n", "=a;=half;"},
		{"data: a\n\nevent: e\ndata: b\ndata: c\r", "=a;e=b\nc;"},
		{"data: a\n\nevent: e\n", "=a;"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_events(FRAMING_SSE, cases[i][0], cases[i][1]);
}

/* A line an event, the last one also without its line feed. */
static void lines_of_json(void **state)
{
	(void)state;
	assert_events(FRAMING_NDJSON, "{\"a\":1}\n{\"b\":2}\r\n\n  \n{\"c\":3}",
		      "={\"a\":1};={\"b\":2};={\"c\":3};");
	assert_events(FRAMING_NDJSON, "\xef\xbb\xbf{}\n", "={};");
	assert_events(FRAMING_NDJSON, "{\"a\":\r1}\n", "={\"a\":\r1};");
}

/* Events are asked for before they are read, from their first byte, wherever they are cut. */
static void events_are_taken_ahead(void **state)
{
	static const char lines[] = "id: 1\ndata: a\n\n", feeds[] = "data: a\r\n\r\n";
	char *longer = xasprintf("data: a\ndata: %020000d\n\n", 1), *events;

	(void)state;
	assert_events_with("data: a\n\n", FRAMING_SSE,
			   "data: a\n\ndata: a\n\ndata: b\n\ndata: a\n\n: c\n\ndata: a\n\n",
			   "++=b;++");
	assert_events_with("data: a\n\n", FRAMING_SSE,
			   "data: b\ndata: a\n\nevent: e\ndata: a\n\ndata: a\n", "=b\na;e=a;=a;");
	assert_events_with(lines, FRAMING_SSE, "id: 1\ndata: a\n\nid: 1\ndata: a\n\ndata: a\n\n",
			   "++=a;");
	events = events_with(feeds, FRAMING_SSE, text_of("data: a\r\n\r\ndata: a\n\n"), 0, 100);
	assert_string_equal(events, "+=a;");
	free(events);
	assert_events_with("{}\n", FRAMING_NDJSON, "{}\n{}\n\n{1}\n{}\n{}", "++={1};+={};");
	/* More than is kept of an event: what it ends with is none of its own. */
	events = events_with("data: a\n\n", FRAMING_SSE, text_of(longer), 10, 15000);
	assert_int_equal(strlen(events), strlen("=a\n;") + 20000);
	free(events);
	free(longer);
}

/* Where its data are no copy, an event comes with its bytes. */
static void events_have_their_bytes(void **state)
{
	static const struct {
		enum adapter_framing framing;
		const char *bytes;
		size_t whole;
	} cases[] = {
		{FRAMING_SSE, "data: a\n\nevent: e\ndata: b\r\n\r\n", 2},
		{FRAMING_SSE, "data: a\ndata: b\n\ndata: c\r\rdata: d\n", 0},
		{FRAMING_SSE,
		 "\xef\xbb\xbf"
		 "data: a\n\n",
		 1},
		{FRAMING_NDJSON, "{}\n {} \r\n{}", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct record record = {.events = evbuffer_new()};
		struct stream *stream = stream_new(cases[i].framing, on_event, on_ahead, &record);

		assert_true(stream_feed(stream, text_of(cases[i].bytes), NULL));
		assert_true(stream_end(stream, NULL));
		assert_int_equal(record.whole, cases[i].whole);
		stream_free(stream);
		evbuffer_free(record.events);
	}
}

static void nul_bytes_are_bytes(void **state)
{
	struct record record = {.events = evbuffer_new()};
	struct stream *stream = stream_new(FRAMING_SSE, on_event, on_ahead, &record);

	(void)state;
	assert_true(stream_feed(stream, text_from("data: a\0b\n\n", 11), NULL));
	assert_int_equal(evbuffer_get_length(record.events), 5);
	stream_free(stream);
	evbuffer_free(record.events);
}

/* An event's name is cut, not its rest mistaken for something else. */
static void long_names_are_cut(void **state)
{
	char name[200];
	char *bytes, *events;

	(void)state;
	memset(name, 'e', sizeof name);
	bytes = xasprintf("event: %.*s\ndata: a\n\n", (int)sizeof name, name);
	events = events_of(FRAMING_SSE, text_of(bytes), 0, 1000);
	assert_int_equal(strspn(events, "e"), 63);
	assert_string_equal(events + 63, "=a;");
	free(bytes);
	free(events);
}

/* The receiver's refusal ends the feed, with its error, before the next event. */
static void a_refusal_stops(void **state)
{
	struct record record = {.events = evbuffer_new(), .refuse_at = 2};
	struct stream *stream = stream_new(FRAMING_SSE, on_event, on_ahead, &record);
	struct rlmd_error error = {0};

	(void)state;
	assert_false(stream_feed(stream, text_of("data: a\n\ndata: b\n\ndata: c\n\n"), &error));
	assert_int_equal(error.kind, RLMD_ERROR_REFUSED);
	assert_int_equal(record.count, 2);
	stream_free(stream);
	evbuffer_free(record.events);
}

/* Feeds `piece` until it is refused or `limit` bytes have gone in; how many went in. */
static size_t feed_until_refused(enum adapter_framing framing, const char *piece, size_t limit,
				 struct rlmd_error *error)
{
	struct record record = {.events = evbuffer_new()};
	struct stream *stream = stream_new(framing, on_event, on_ahead, &record);
	size_t size = strlen(piece), fed = 0;

	while (fed < limit && stream_feed(stream, text_from(piece, size), error))
		fed += size;
	stream_free(stream);
	evbuffer_free(record.events);
	return fed;
}

/* Neither a line nor the lines of one event may grow without bound. */
static void events_are_bounded(void **state)
{
	static const struct {
		enum adapter_framing framing;
		const char *start;
		char fill;
		const char *end;
	} cases[] = {
		{FRAMING_SSE, "data: ", 'x', ""},
		{FRAMING_SSE, ": ", 'x', ""},
		{FRAMING_SSE, "data: ", 'x', "\n"},
		{FRAMING_NDJSON, "", 'x', ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rlmd_error error = {0};
		char filler[1000];
		char *piece;
		size_t fed;

		memset(filler, cases[i].fill, sizeof filler);
		piece = xasprintf("%s%.*s%s", cases[i].start, (int)sizeof filler, filler,
				  cases[i].end);
		fed = feed_until_refused(cases[i].framing, piece, 2 * REPLY_EVENT_MAX, &error);
		assert_int_equal(error.kind, RLMD_ERROR_BAD_REPLY);
		assert_true(fed > REPLY_EVENT_MAX / 2 && fed < REPLY_EVENT_MAX + 100000);
		free(piece);
	}
}

/* Long streams of short events, and of comments, are no long event. */
static void streams_are_not_bounded(void **state)
{
	struct rlmd_error error = {0};
	size_t enough = 2 * (size_t)REPLY_EVENT_MAX;

	(void)state;
	assert_true(feed_until_refused(FRAMING_SSE, "data: some text that is short\n\n", enough,
				       &error) >= enough);
	assert_true(feed_until_refused(FRAMING_SSE, ": keep-alive, nothing yet\n\n", enough,
				       &error) >= enough);
}

/* A server of nothing but carriage returns must not cost more than its bytes. */
static void many_line_ends_are_cheap(void **state)
{
	size_t size = 1 << 20;
	char *returns = xcalloc(size, 1);
	struct record record = {.events = evbuffer_new()};
	struct stream *stream = stream_new(FRAMING_SSE, on_event, on_ahead, &record);

	(void)state;
	memset(returns, '\r', size);
	assert_true(stream_feed(stream, text_from(returns, size), NULL));
	assert_int_equal(record.count, 0);
	stream_free(stream);
	evbuffer_free(record.events);
	free(returns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_sent_events),
		cmocka_unit_test(lines_of_json),
		cmocka_unit_test(events_are_taken_ahead),
		cmocka_unit_test(events_have_their_bytes),
		cmocka_unit_test(nul_bytes_are_bytes),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(a_refusal_stops),
		cmocka_unit_test(events_are_bounded),
		cmocka_unit_test(streams_are_not_bounded),
		cmocka_unit_test(many_line_ends_are_cheap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
