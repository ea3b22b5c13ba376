/* wire/frame: the bytes of a frame, and which of its texts travel behind it. */
#include "wire/frame.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"

/* Encodes and frees the frame: its JSON, new, and `out` without it, which are its attachments. */
static char *encode(struct frame *frame, struct evbuffer *out)
{
	uint32_t length;
	char *json;

	frame_encode(frame, out);
	frame_free(frame);
	assert_int_equal(evbuffer_remove(out, &length, sizeof length), sizeof length);
	json = xcalloc(ntohl(length) + 1, 1);
	assert_int_equal(evbuffer_remove(out, json, ntohl(length)), ntohl(length));
	return json;
}

static void test_members(void **state)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct frame *frame = frame_new("answer");
	auto_free char *json = NULL;

	(void)state;
	frame_integer(frame, "n", -INT64_MAX);
	frame_null(frame, "none");
	frame_string(frame, "s", text_of("a\"b\n\xff"));
	frame_array(frame, "empty");
	frame_array_end(frame);
	frame_array(frame, "list");
	frame_integer(frame, NULL, 1);
	frame_text(frame, NULL, text_of("t"));
	frame_null(frame, NULL);
	frame_array_end(frame);
	frame_text(frame, "last", (struct rlmd_text){0});
	json = encode(frame, out);
	assert_string_equal(json, "{\"type\":\"answer\",\"n\":-9223372036854775807,\"none\":null,"
				  "\"s\":\"a\\\"b\\n\xef\xbf\xbd\",\"empty\":[],"
				  "\"list\":[1,\"t\",null],\"last\":\"\"}");
	assert_int_equal(evbuffer_get_length(out), 0);
	frame_free(NULL);
}

/* A text of one byte more than stands in the JSON goes behind it, under its number. */
static void test_long_texts(void **state)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct frame *frame = frame_new("x");
	auto_free char *json = NULL, *wanted = NULL, *behind = NULL;
	char bytes[TEXT_INLINE_MAX + 2];

	(void)state;
	memset(bytes, 'a', sizeof bytes);
	frame_text(frame, "in", text_from(bytes, TEXT_INLINE_MAX));
	frame_text(frame, "out", text_from(bytes, TEXT_INLINE_MAX + 1));
	frame_text(frame, "again", text_from(bytes, TEXT_INLINE_MAX + 2));
	json = encode(frame, out);
	wanted = xasprintf("{\"type\":\"x\",\"in\":\"%.*s\",\"out\":0,\"again\":1,"
			   "\"attachments\":[%d,%d]}",
			   TEXT_INLINE_MAX, bytes, TEXT_INLINE_MAX + 1, TEXT_INLINE_MAX + 2);
	assert_string_equal(json, wanted);
	assert_int_equal(evbuffer_get_length(out), 2 * TEXT_INLINE_MAX + 3);
	behind = text_drain(out, NULL);
	assert_int_equal(strspn(behind, "a"), 2 * TEXT_INLINE_MAX + 3);
}

/* Bytes that are no UTF-8 are repaired, and travel behind the JSON, however few they are. */
static void test_repaired(void **state)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct frame *frame = frame_new("x");
	auto_free char *json = NULL, *behind = NULL;

	(void)state;
	frame_text(frame, "t", text_of("a\xff"));
	json = encode(frame, out);
	assert_string_equal(json, "{\"type\":\"x\",\"t\":0,\"attachments\":[4]}");
	behind = text_drain(out, NULL);
	assert_string_equal(behind, "a\xef\xbf\xbd");
}

/* A long text is taken, and not copied; a short one stays its owner's. */
static void test_owned(void **state)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct frame *frame = frame_new("x");
	auto_free char *json = NULL, *kept = xstrdup("short");
	char *taken = xcalloc(TEXT_INLINE_MAX + 2, 1), *bytes = taken;

	(void)state;
	memset(taken, 'b', TEXT_INLINE_MAX + 1);
	frame_text_owned(frame, "short", &kept, 5);
	frame_text_owned(frame, "long", &taken, TEXT_INLINE_MAX + 1);
	assert_non_null(kept);
	assert_null(taken);
	json = encode(frame, out);
	assert_string_equal(json, "{\"type\":\"x\",\"short\":\"short\",\"long\":0,"
				  "\"attachments\":[1025]}");
	assert_ptr_equal(evbuffer_pullup(out, -1), bytes);
}

/* However many short texts there are, their JSON stays within a frame. */
static void test_many_texts(void **state)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct frame *frame = frame_new("x");
	auto_free char *json = NULL;
	char bytes[TEXT_INLINE_MAX];

	(void)state;
	memset(bytes, 1, sizeof bytes); /* six bytes each, as JSON */
	frame_array(frame, "list");
	for (int i = 0; i < 200; i++)
		frame_text(frame, NULL, text_from(bytes, sizeof bytes));
	frame_array_end(frame);
	json = encode(frame, out);
	assert_in_range(strlen(json), 6 * (64 << 10), FRAME_MAX);
	assert_int_equal(evbuffer_get_length(out), (200 - 64) * sizeof bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),    cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_repaired),   cmocka_unit_test(test_owned),
		cmocka_unit_test(test_many_texts),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
