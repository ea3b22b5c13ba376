/* Messages: who may say which, when, and with what in it: wire/messages.def, seen from outside. */
#include "wire/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Checks JSON said by `from` in `state`, with `attachments` empty attachments. */
static bool check(const char *json, enum message_sender from, enum worker_state state,
		  size_t attachments, struct rlmd_error *err)
{
	struct packet packet = {0};
	enum message_type type;
	bool good;

	good = packet_read(&packet, text_of(json), err);
	packet.attachment_count = attachments;
	good = good && message_check(&packet, from, state, &type, err);
	if (good)
		assert_string_equal(message_name(type), packet_string(&packet, "type"));
	packet.attachment_count = 0;
	packet_done(&packet);
	return good;
}

static bool worker_may(const char *json, enum worker_state state)
{
	struct rlmd_error err = {0};
	bool good = check(json, MESSAGE_FROM_WORKER, state, 0, &err);

	assert_int_equal(err.kind, good ? RLMD_ERROR_NONE : RLMD_ERROR_WORKER);
	return good;
}

#define USUAL "\"turns\":[],\"system\":null,\"max_tokens\":null,\"temperature\":null"
#define DONE(stdout_value)                                                                         \
	"{\"type\":\"done\",\"block\":1,\"stdout\":" stdout_value                                  \
	",\"stderr\":\"\",\"error\":null,"                                                         \
	"\"missing\":null,\"final\":null,\"answer\":null}"
#define READY      "{\"type\":\"ready\",\"python\":\"3.11.2\",\"layers\":[]}"
#define STARTED    "{\"type\":\"started\",\"error\":null,\"no_memory\":false}"
#define BUDGET(id) "{\"type\":\"budget\",\"id\":" id "}"
#define QUERY(prompts, model)                                                                      \
	"{\"type\":\"llm_query\",\"id\":1,\"prompts\":" prompts "," USUAL ",\"model\":" model "}"

/* Each message is legal in exactly the states that its row names, and from its side only. */
static void test_states(void **state)
{
	struct rlmd_error err;

	(void)state;
	assert_true(worker_may(READY, WORKER_STARTING));
	assert_false(worker_may(READY, WORKER_LOADING)); /* twice */
	assert_false(worker_may(STARTED, WORKER_STARTING));
	assert_true(worker_may(STARTED, WORKER_LOADING));
	assert_false(worker_may(STARTED, WORKER_IDLE));
	assert_true(worker_may(DONE("\"\""), WORKER_BUSY));
	assert_false(worker_may(DONE("\"\""), WORKER_IDLE));
	assert_false(worker_may(DONE("\"\""), WORKER_ASKED));
	assert_false(worker_may(DONE("\"\""), WORKER_STARTING));
	assert_true(worker_may(BUDGET("1"), WORKER_IDLE));
	assert_true(worker_may(BUDGET("1"), WORKER_ASKED));
	assert_false(worker_may(BUDGET("1"), WORKER_STARTING));
	assert_false(worker_may("{\"type\":\"exit\"}", WORKER_IDLE));
	assert_true(check("{\"type\":\"exit\"}", MESSAGE_FROM_SUPERVISOR, WORKER_IDLE, 0, &err));
	assert_false(check(DONE("\"\""), MESSAGE_FROM_SUPERVISOR, WORKER_BUSY, 0, &err));
}

/* A type that is missing, no string, or unknown is refused, and named where it can be. */
static void test_type(void **state)
{
	struct rlmd_error err;

	(void)state;
	assert_false(worker_may("{}", WORKER_BUSY));
	assert_false(worker_may("{\"type\":7}", WORKER_BUSY));
	assert_false(worker_may("{\"type\":\"done\\u0000\"}", WORKER_BUSY));
	assert_false(check("{\"type\":\"pwn\\u001b\"}", MESSAGE_FROM_WORKER, WORKER_BUSY, 0, &err));
	assert_string_equal(err.text, "no message is called 'pwn\\x1b'");
}

/* No field may be missing, and none may be left over. */
static void test_exact_fields(void **state)
{
	(void)state;
	assert_false(worker_may("{\"type\":\"budget\"}", WORKER_BUSY));
	assert_false(worker_may("{\"type\":\"budget\",\"id\":1,\"job\":2}", WORKER_BUSY));
	assert_false(worker_may("{\"type\":\"budget\",\"id\":1,\"__proto__\":{}}", WORKER_BUSY));
}

/* An INTEGER lies between 0 and 2^53, both included, and is written as one. */
static void test_integers(void **state)
{
	(void)state;
	assert_true(worker_may(BUDGET("0"), WORKER_BUSY));
	assert_true(worker_may(BUDGET("9007199254740992"), WORKER_BUSY));
	assert_false(worker_may(BUDGET("9007199254740993"), WORKER_BUSY));
	assert_false(worker_may(BUDGET("9223372036854775807"), WORKER_BUSY));
	assert_false(worker_may(BUDGET("-1"), WORKER_BUSY));
	assert_false(worker_may(BUDGET("1.0"), WORKER_BUSY));
	assert_false(worker_may(BUDGET("true"), WORKER_BUSY));
	assert_false(worker_may(BUDGET("null"), WORKER_BUSY));
	assert_false(worker_may(BUDGET("\"1\""), WORKER_BUSY));
}

/* A STRING has at most 256 bytes and no NUL, for it is used as a C string. */
static void test_strings(void **state)
{
	char json[512], longest[258];

	(void)state;
	memset(longest, 'm', sizeof longest);
	longest[257] = '\0';
	snprintf(json, sizeof json, QUERY("[]", "\"%.256s\""), longest);
	assert_true(worker_may(json, WORKER_BUSY));
	snprintf(json, sizeof json, QUERY("[]", "\"%s\""), longest);
	assert_false(worker_may(json, WORKER_BUSY));
	assert_true(worker_may(QUERY("[]", "null"), WORKER_BUSY));
	assert_false(worker_may(QUERY("[]", "\"a\\u0000b\""), WORKER_BUSY));
	assert_false(worker_may(QUERY("[]", "0"), WORKER_BUSY));
}

/* Arrays hold the type that they should, at most 10,000 times. */
static void test_arrays(void **state)
{
	static char json[64000];
	size_t used;

	(void)state;
	assert_true(worker_may(QUERY("[\"a\",null]", "null"), WORKER_BUSY));
	assert_false(worker_may(QUERY("\"a\"", "null"), WORKER_BUSY));
	assert_false(worker_may(QUERY("{\"0\":\"a\"}", "null"), WORKER_BUSY));
	assert_false(worker_may(QUERY("[[\"a\"]]", "null"), WORKER_BUSY));
	for (int count = 10000; count <= 10001; count++) {
		used = (size_t)snprintf(json, sizeof json,
					"{\"type\":\"llm_query\",\"id\":1," USUAL ",\"model\":null,"
					"\"prompts\":[\"\"");
		for (int i = 1; i < count; i++)
			used += (size_t)snprintf(json + used, sizeof json - used, ",\"\"");
		snprintf(json + used, sizeof json - used, "]}");
		assert_int_equal(worker_may(json, WORKER_BUSY), count == 10000);
	}
}

/* Every attachment is named by exactly one TEXT; no index points outside. */
static void test_attachments(void **state)
{
	struct rlmd_error err;

	(void)state;
	assert_true(check(DONE("0"), MESSAGE_FROM_WORKER, WORKER_BUSY, 1, &err));
	assert_true(check(QUERY("[1,\"x\",0]", "null"), MESSAGE_FROM_WORKER, WORKER_BUSY, 2, &err));
	assert_false(check(DONE("0"), MESSAGE_FROM_WORKER, WORKER_BUSY, 0, &err));
	assert_false(check(DONE("1"), MESSAGE_FROM_WORKER, WORKER_BUSY, 1, &err));
	assert_false(check(DONE("-1"), MESSAGE_FROM_WORKER, WORKER_BUSY, 1, &err));
	assert_false(check(DONE("9007199254740992"), MESSAGE_FROM_WORKER, WORKER_BUSY, 1, &err));
	assert_false(check(DONE("0.0"), MESSAGE_FROM_WORKER, WORKER_BUSY, 1, &err));
	assert_false(check(QUERY("[0,0]", "null"), MESSAGE_FROM_WORKER, WORKER_BUSY, 1, &err));
	assert_false(check(QUERY("[0]", "null"), MESSAGE_FROM_WORKER, WORKER_BUSY, 2, &err));
	assert_non_null(strstr(err.text, "an attachment that nothing names"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),       cmocka_unit_test(test_type),
		cmocka_unit_test(test_exact_fields), cmocka_unit_test(test_integers),
		cmocka_unit_test(test_strings),      cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_attachments),
	};

	return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
