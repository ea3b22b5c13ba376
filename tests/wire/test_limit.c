/* How long the texts of a message may be, inline or only announced. */
#include "wire/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool within(enum message_type type, const char *json, size_t first, size_t second,
		   struct rlmd_error *err)
{
	size_t sizes[] = {first, second};
	struct packet packet = {0};
	bool good;

	assert_true(packet_read(&packet, text_of(json), err));
	packet.sizes = sizes;
	good = limit_check(&packet, type, 1000, err);
	packet.sizes = NULL;
	packet_done(&packet);
	return good;
}

/* Each text has its limit: to the byte it passes, with one more it is refused by its name. */
static void test_texts(void **state)
{
	static const struct {
		enum message_type type;
		const char *key;
		size_t max;
	} texts[] = {
		{MESSAGE_STARTED, "error", REPORT_MAX},
		{MESSAGE_DONE, "stdout", 10096},
		{MESSAGE_DONE, "stderr", 10096},
		{MESSAGE_DONE, "error", 10096},
		{MESSAGE_DONE, "answer", ANSWER_MAX},
		{MESSAGE_VALUE, "value", ANSWER_MAX},
		{MESSAGE_VALUE, "variables", REPORT_MAX},
		{MESSAGE_RUN_PLAN, "plan", PROMPTS_MAX},
		{MESSAGE_FUNCTION, "arguments", ARGUMENTS_MAX},
	};
	char json[64];

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct rlmd_error err = {0};

		snprintf(json, sizeof json, "{\"%s\":0}", texts[i].key);
		assert_true(within(texts[i].type, json, texts[i].max, 0, &err));
		assert_false(within(texts[i].type, json, texts[i].max + 1, 0, &err));
		assert_int_equal(err.kind, RLMD_ERROR_WORKER);
		assert_non_null(strstr(err.text, texts[i].key));
	}
}

/* A text in the JSON counts like an attached one. */
static void test_inline(void **state)
{
	char json[10200] = "{\"stdout\":\"";
	size_t head = strlen(json);
	struct rlmd_error err;

	(void)state;
	memset(json + head, 'x', 10097);
	memcpy(json + head + 10097, "\"}", 3);
	assert_false(within(MESSAGE_DONE, json, 0, 0, &err));
	memcpy(json + head + 10096, "\"}", 3);
	assert_true(within(MESSAGE_DONE, json, 0, 0, &err));
}

/* All prompts of a call share one limit; contexts have that of all attachments. */
static void test_prompts(void **state)
{
	const char *query = "{\"prompts\":[\"abc\",1,0]}";
	const char *tasks = "{\"tasks\":[\"abc\",0],\"contexts\":[null,1]}";
	struct rlmd_error err;

	(void)state;
	assert_true(within(MESSAGE_LLM_QUERY, query, PROMPTS_MAX - 13, 10, &err));
	assert_false(within(MESSAGE_LLM_QUERY, query, PROMPTS_MAX - 12, 10, &err));
	assert_true(within(MESSAGE_RLM_QUERY, tasks, PROMPTS_MAX - 3, (size_t)3 << 30, &err));
	assert_false(within(MESSAGE_RLM_QUERY, tasks, PROMPTS_MAX - 2, 0, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_prompts),
	};

	return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
