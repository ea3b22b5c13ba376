/* A frame's JSON as a packet: what it keeps, and what it refuses before it takes room. */
#include "wire/packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/bounds.h"

static void assert_refused(const char *json, const char *why)
{
	struct packet packet = {0};
	struct rlmd_error err = {0};

	assert_false(packet_read(&packet, text_of(json), &err));
	assert_int_equal(err.kind, RLMD_ERROR_WORKER);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
	packet_done(&packet);
}

/* Members and elements are found as they stand there, texts without their escapes. */
static void test_values(void **state)
{
	struct packet packet = {0};
	const struct packet_value *list;
	struct rlmd_text text;
	struct rlmd_error err;

	(void)state;
	assert_true(
		packet_read(&packet,
			    text_of(" {\"type\":\"x\", \"n\":-7, \"none\":null, \"yes\":true,"
				    "\"li\\u0073t\":[\"a\\u0000\\n\\ud83d\\ude42\", 5, null, \"\"],"
				    "\"deep\":{\"n\":[1,{}]}, \"real\":1.0, \"empty\":[]} "),
			    &err));
	assert_int_equal(packet.member_count, 8);
	assert_string_equal(packet_string(&packet, "type"), "x");
	assert_null(packet_string(&packet, "none"));
	assert_int_equal(packet_integer(&packet, "n"), -7);
	assert_true(packet_is_null(&packet, "none"));
	assert_int_equal(packet_field(&packet, "yes")->kind, JSON_VIEW_TRUE);
	assert_int_equal(packet_field(&packet, "deep")->kind, JSON_VIEW_OBJECT);
	assert_int_equal(packet_field(&packet, "real")->kind, JSON_VIEW_REAL);
	assert_int_equal(packet_field(&packet, "empty")->count, 0);
	assert_null(packet_field(&packet, "a"));
	list = packet_field(&packet, "list");
	assert_int_equal(list->kind, JSON_VIEW_ARRAY);
	assert_int_equal(list->count, 4);
	text = packet_text(&packet, packet_element(&packet, list, 0), NULL);
	assert_int_equal(text.size, 7);
	assert_memory_equal(text.bytes, "a\0\n\xf0\x9f\x99\x82", 8); /* and a NUL behind it */
	assert_int_equal(packet_element(&packet, list, 1)->integer, 5);
	assert_int_equal(packet_element(&packet, list, 2)->kind, JSON_VIEW_NULL);
	assert_string_equal(packet_element(&packet, list, 3)->text.bytes, "");
	packet_done(&packet);
	assert_null(packet.strings);
}

/* The sizes are taken out of the message, wherever they stand. */
static void test_attachments(void **state)
{
	struct packet packet = {0};
	struct rlmd_error err;

	(void)state;
	assert_true(packet_read(&packet, text_of("{\"attachments\":[3,0],\"n\":1}"), &err));
	assert_int_equal(packet.member_count, 1);
	assert_int_equal(packet.attachment_count, 2);
	assert_int_equal(packet.sizes[0], 3);
	assert_int_equal(packet.sizes[1], 0);
	assert_int_equal(packet.weight, 3 + 2 * ATTACHMENT_WEIGHT);
	assert_null(packet.attachments[1]);
	packet_done(&packet);
	assert_refused("{\"attachments\":5}", "no list");
	assert_refused("{\"attachments\":[\"1\"]}", "wrong size");
	assert_refused("{\"attachments\":[-1]}", "wrong size");
	assert_refused("{\"attachments\":[134217728]}", "wrong size");
	assert_refused("{\"attachments\":[67108864,67108864]}", "wrong size");
	assert_refused("{\"attachments\":[9223372036854775807]}", "wrong size");
}

/* Text that is no JSON, or no object, or more than any message has. */
static void test_refused(void **state)
{
	static char many[64 << 10];
	size_t used;

	(void)state;
	assert_refused("", "not JSON");
	assert_refused("[]", "no JSON object");
	assert_refused("5", "no JSON object");
	assert_refused("{\"a\":1}}", "not JSON");
	assert_refused("{\"a\":1,\"\\u0061\":2}", "duplicate object key");
	assert_refused("{\"a\":[1,]}", "not JSON");
	assert_refused("{\"a\":\"\xff\"}", "invalid UTF-8");
	assert_refused("{\"a\":\"\\ud800\"}", "not JSON");
	assert_refused("{\"a\":NaN}", "not JSON");
	assert_refused("{\"a\":9223372036854775808}", "too large");
	assert_refused("{\"a\":[[[[[[[[0]]]]]]]]}", "nested more than");
	used = (size_t)snprintf(many, sizeof many, "{\"a\":[0");
	for (int i = 0; i < ELEMENTS_MAX; i++)
		used += (size_t)snprintf(many + used, sizeof many - used, ",0");
	snprintf(many + used, sizeof many - used, "]}");
	assert_refused(many, "more elements than any message has");
	used = (size_t)snprintf(many, sizeof many, "{\"a\":0");
	for (int i = 0; i < PACKET_MEMBERS_MAX; i++)
		used += (size_t)snprintf(many + used, sizeof many - used, ",\"%d\":0", i);
	snprintf(many + used, sizeof many - used, "}");
	assert_refused(many, "more members than any message has");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_attachments),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("packet", tests, NULL, NULL);
}
