/* prompt/conversation: what is added, replaced and dropped, and which text of it is counted. */
#include "prompt/conversation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_texts(const struct conversation *conversation, const char *wanted)
{
	char joined[64] = "";

	for (size_t i = 0; i < conversation->count; i++) {
		strncat(joined, conversation->messages[i].text.bytes,
			conversation->messages[i].text.size);
		strcat(joined, " ");
	}
	assert_string_equal(joined, wanted);
}

static void say(struct conversation *conversation, const char *text)
{
	conversation_add(conversation, LLM_USER, text_of(text), text_of(""));
}

/* Both texts are copied, and all of a conversation's is freed with it. */
static void test_added(void **state)
{
	struct conversation conversation = {0};
	char text[] = "left: 3s", timeless[] = "left: ";

	(void)state;
	conversation_add(&conversation, LLM_SYSTEM, text_of(text), text_of(timeless));
	memset(text, 'x', sizeof text - 1);
	memset(timeless, 'x', sizeof timeless - 1);
	assert_int_equal(conversation.messages[0].role, LLM_SYSTEM);
	assert_true(text_equal(conversation.messages[0].text, "left: 3s"));
	assert_true(text_equal(conversation.messages[0].timeless, "left: "));
	conversation_done(&conversation);
	assert_int_equal(conversation.count, 0);
	assert_null(conversation.messages);
}

/* The text without words that depend on the time is counted, where there is one. */
static void test_counted(void **state)
{
	struct conversation conversation = {0};
	struct llm_message bare = {.text = {"left: ", 6}};
	struct text_scan kept, made;

	(void)state;
	conversation_add(&conversation, LLM_USER, text_of("left: 3s of a day"), text_of("left: "));
	say(&conversation, "left: 3s of a day");
	assert_true(text_equal(conversation_counted(&conversation.messages[0]), "left: "));
	assert_true(
		text_equal(conversation_counted(&conversation.messages[1]), "left: 3s of a day"));
	kept = conversation_scan(&conversation.messages[0]);
	made = conversation_scan(&bare);
	assert_memory_equal(&kept, &made, sizeof kept);
	made = conversation_scan(&conversation.messages[1]);
	assert_memory_not_equal(&kept, &made, sizeof kept);
	conversation_done(&conversation);
}

static void test_replaced(void **state)
{
	struct conversation conversation = {0};

	(void)state;
	for (const char *const *text = (const char *const[]){"a", "b", "c", "d", NULL}; *text;
	     text++)
		say(&conversation, *text);
	conversation_replace(&conversation, 1, 2, LLM_ASSISTANT, text_of("x"));
	assert_texts(&conversation, "a x d ");
	assert_int_equal(conversation.messages[1].role, LLM_ASSISTANT);
	conversation_replace(&conversation, 2, 1, LLM_USER, text_of("y"));
	assert_texts(&conversation, "a x y ");
	conversation_replace(&conversation, 0, 3, LLM_USER, text_of("z"));
	assert_texts(&conversation, "z ");
	say(&conversation, "e");
	conversation_drop_last(&conversation);
	assert_texts(&conversation, "z ");
	conversation_done(&conversation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_added),
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_replaced),
	};

	return cmocka_run_group_tests_name("conversation", tests, NULL, NULL);
}
