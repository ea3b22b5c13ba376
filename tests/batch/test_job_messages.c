/* batch/job_messages: a conversation as a task and its context, and what cannot be one. */
#include "batch/job_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static struct job_messages read_body(const char *body)
{
	struct job_messages messages;
	struct rlmd_error err = {0};

	if (!job_messages_read(text_of(body), &messages, &err))
		fail_msg("%s: %s", body, err.text);
	assert_int_equal(strlen(messages.task), messages.task_size);
	return messages;
}

static void done(struct job_messages *messages)
{
	free(messages->task);
	free(messages->context);
}

/* The user's last message is the task, wherever it stands. */
static void test_split(void **state)
{
	struct job_messages messages = read_body(
		"{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"},"
		"{\"role\": \"user\", \"content\": \"one\", \"name\": \"me\"},"
		"{\"role\": \"user\", \"content\": \"t\\u0077o\"},"
		"{\"role\": \"assistant\", \"content\": null}]}");

	(void)state;
	assert_string_equal(messages.task, "two");
	assert_string_equal(messages.context,
			    "system:\nBe brief.\n\nuser:\none\n\nassistant:\n\n\n");
	assert_int_equal(messages.context_size, strlen(messages.context));
	assert_int_equal(messages.model.kind, JSON_VIEW_NONE);
	assert_int_equal(messages.schema.kind, JSON_VIEW_NONE);
	assert_null(messages.ignored);
	done(&messages);
}

static void test_one_message(void **state)
{
	struct job_messages messages = read_body(
		"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
		"\"text\": \"a\"}, {\"text\": \"b\", \"type\": \"text\"}]}]}");

	(void)state;
	assert_string_equal(messages.task, "ab");
	assert_null(messages.context);
	done(&messages);
}

/* Model and schema are kept; the first member that has no effect is named. */
static void test_other_members(void **state)
{
	struct job_messages messages = read_body(
		"{\"model\": \"m\", \"n\": 1, \"stream\": false, \"temperature\": 0.5, "
		"\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"n\", "
		"\"schema\": {\"type\": \"array\"}}}, "
		"\"messages\": [{\"role\": \"user\", \"content\": \"t\"}]}");

	(void)state;
	assert_true(json_view_equal(&messages.model, "m"));
	assert_true(text_equal(messages.schema.text, "{\"type\": \"array\"}"));
	assert_string_equal(messages.ignored, "temperature");
	done(&messages);
	messages = read_body("{\"response_format\": {\"type\": \"text\"}, "
			     "\"messages\": [{\"role\": \"user\", \"content\": \"t\"}]}");
	assert_int_equal(messages.schema.kind, JSON_VIEW_NONE);
	assert_null(messages.ignored);
	done(&messages);
}

#define USER "{\"role\": \"user\", \"content\": \"t\"}"

static void test_refused(void **state)
{
	static const char *const table[][2] = {
		{"{}", "body.messages: must be an array of messages"},
		{"[]", "the body of a job must be an object, this is an array"},
		{"{\"messages\": [{\"role\": \"system\", \"content\": \"t\"}]}",
		 "body.messages: has no message of the user"},
		{"{\"messages\": [" USER ", 7]}", "body.messages[1]: must be an object"},
		{"{\"messages\": [" USER ", {\"content\": \"t\"}]}",
		 "body.messages[1].role: must be a string"},
		{"{\"messages\": [" USER ", {\"role\": \"tool\", \"tool_call_id\": \"1\"}]}",
		 "body.messages[1].tool_call_id: a message that rlmd can take has no such key"},
		{"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
		 "body.messages[0].content: must be text, or parts of type text"},
		{"{\"messages\": [" USER "], \"tools\": []}",
		 "body.tools: the body of a job has no such key"},
		{"{\"messages\": [" USER "], \"n\": 2}",
		 "body.n: 2 is no whole number from 1 to 1"},
		{"{\"messages\": [" USER "], \"response_format\": {\"type\": \"json_object\"}}",
		 "body.response_format: must be of type text or json_schema"},
		{"{\"messages\": [" USER "], \"response_format\": []}",
		 "body.response_format: must be an object, not an array"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct job_messages messages;
		struct rlmd_error err = {0};

		assert_false(job_messages_read(text_of(table[i][0]), &messages, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		if (!strstr(err.text, table[i][1]))
			fail_msg("of %s: %s", table[i][0], err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_one_message),
		cmocka_unit_test(test_other_members),
		cmocka_unit_test(test_refused),
	};

	alloc_install();
	return cmocka_run_group_tests_name("job_messages", tests, NULL, NULL);
}
