/* Anthropic's Messages: bodies with a cache that pays, answers whose first block may be thinking.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapting.h"

static const struct adapter *const anthropic = &adapter_anthropic;

#define EVENT(name, rest) "event: " name "\ndata: {\"type\":\"" name "\"" rest "}\n\n"
#define START                                                                                      \
	EVENT("message_start",                                                                     \
	      ",\"message\":{\"model\":\"claude-sonnet-5-20260601\",\"content\":[],\"usage\":{"    \
	      "\"input_tokens\":10,\"cache_creation_input_tokens\":300,"                           \
	      "\"cache_read_input_tokens\":1000,\"cache_creation\":{"                              \
	      "\"ephemeral_5m_input_tokens\":100,\"ephemeral_1h_input_tokens\":200},"              \
	      "\"output_tokens\":1}}")
#define BLOCK(type)  EVENT("content_block_start", ",\"index\":0,\"content_block\":" type)
#define DELTA(delta) EVENT("content_block_delta", ",\"index\":0,\"delta\":" delta)
#define TEXT(text)   DELTA("{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define STOPPED(reason)                                                                            \
	EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" reason "\"},\"usage\":{"           \
			       "\"output_tokens\":77,"                                             \
			       "\"output_tokens_details\":{\"thinking_tokens\":50}}")
#define STOP EVENT("message_stop", "")

static const struct llm_message conversation[] = {
	{LLM_SYSTEM, {"Be \"brief\"", 10}},
	{LLM_USER, {"\xff", 1}},
	{LLM_ASSISTANT, {" \n", 2}},
	{LLM_USER, {"go on", 5}},
};

static struct llm_request request(void)
{
	return (struct llm_request){
		.model = "claude-sonnet-5",
		.messages = conversation,
		.message_count = 4,
		.max_tokens = 512,
		.kind = LLM_TURN,
	};
}

/* LIB-19: the system text stands apart, and no message may be empty. */
static void encodes_messages(void **state)
{
	struct llm_request asked = request();
	json_auto_t *body = encoded_json(anthropic, &asked, 0, true);
	json_t *system = json_object_get(body, "system");
	json_t *messages = json_object_get(body, "messages");

	(void)state;
	assert_string_equal(string_at(body, "model"), "claude-sonnet-5");
	assert_int_equal(json_array_size(system), 1);
	assert_string_equal(string_at(json_array_get(system, 0), "type"), "text");
	assert_string_equal(string_at(json_array_get(system, 0), "text"), "Be \"brief\"");
	assert_int_equal(json_array_size(messages), 3);
	assert_string_equal(string_at(json_array_get(messages, 0), "role"), "user");
	assert_string_equal(string_at(json_array_get(messages, 0), "content"), "\xef\xbf\xbd");
	assert_string_equal(string_at(json_array_get(messages, 1), "role"), "assistant");
	assert_string_equal(string_at(json_array_get(messages, 1), "content"), "(empty)");
	assert_int_equal(json_get_integer(body, "max_tokens", 0), 512);
	assert_true(json_get_bool(body, "stream", false));
	/* model, system, messages, max_tokens, stream, cache_control: A3, no sampling parameter. */
	assert_int_equal(json_object_size(body), 6);
}

/* Conversations are cached, at the system text for its siblings and at the end for themselves. */
static void conversations_are_cached(void **state)
{
	struct llm_request asked = request();
	json_auto_t *turn = encoded_json(anthropic, &asked, 0, true);
	json_t *block = json_array_get(json_object_get(turn, "system"), 0);

	(void)state;
	assert_string_equal(string_at(json_object_get(turn, "cache_control"), "type"), "ephemeral");
	assert_string_equal(string_at(json_object_get(block, "cache_control"), "type"),
			    "ephemeral");
}

/* A call that nobody goes on with would pay for writing a cache that nobody reads. */
static void single_calls_are_not_cached(void **state)
{
	struct llm_request asked = request();
	char *learned = encoded(anthropic, &asked, QUIRK_NO_CACHE_CONTROL, true);
	char *single;

	(void)state;
	asked.kind = LLM_QUERY;
	single = encoded(anthropic, &asked, 0, true);
	assert_null(strstr(single, "cache_control"));
	assert_null(strstr(learned, "cache_control"));
	assert_string_equal(single, learned);
	free(single);
	free(learned);
}

/* The API wants a user to speak first: whoever does becomes one. */
static void a_user_speaks_first(void **state)
{
	static const struct llm_message alone[] = {{LLM_SYSTEM, {"s", 1}}};
	static const struct llm_message answered[] = {
		{LLM_SYSTEM, {"", 0}}, {LLM_ASSISTANT, {"a", 1}}, {LLM_ASSISTANT, {"b", 1}}};
	struct llm_request one = {.messages = alone, .message_count = 1, .max_tokens = 1};
	struct llm_request two = {.messages = answered, .message_count = 3, .max_tokens = 1};
	json_auto_t *first = encoded_json(anthropic, &one, 0, false);
	json_auto_t *second = encoded_json(anthropic, &two, 0, false);
	json_t *messages = json_object_get(second, "messages");

	(void)state;
	assert_null(json_object_get(first, "system"));
	assert_string_equal(
		string_at(json_array_get(json_object_get(first, "messages"), 0), "role"), "user");
	assert_null(json_object_get(second, "system"));
	assert_string_equal(string_at(json_array_get(messages, 0), "role"), "user");
	assert_string_equal(string_at(json_array_get(messages, 0), "content"), "a");
	assert_string_equal(string_at(json_array_get(messages, 1), "role"), "assistant");
	assert_true(json_is_false(json_object_get(second, "stream")));
}

/* A9: a turn's request begins with the bytes of the one before, so that prompt caches hit. */
static void turns_share_their_prefix(void **state)
{
	(void)state;
	check_prefixes(anthropic);
}

/* A4: thinking comes first and is kept apart; what is cached counts to the input. */
static void reads_a_stream(void **state)
{
	struct outcome outcome = stream_of(
		anthropic,
		START BLOCK("{\"type\":\"thinking\",\"thinking\":\"\"}") EVENT("ping", "")
			DELTA("{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}")
				DELTA("{\"type\":\"signature_delta\",\"signature\":\"x\"}")
					EVENT("content_block_stop", ",\"index\":0")
						BLOCK("{\"type\":\"text\",\"text\":\"He\"}")
							TEXT("llo \\u20ac\\u0000")
								EVENT("news_of_tomorrow", "")
									STOPPED("end_turn") STOP
		"event: x\ndata: not looked at\n\n");
	struct llm_usage expected = {.input = 1310,
				     .output = 77,
				     .cache_read = 1000,
				     .cache_write = 100,
				     .cache_write_1h = 200,
				     .reasoning = 50};

	(void)state;
	assert_true(outcome.ok);
	assert_memory_equal(outcome.text, "Hello \xe2\x82\xac\0", 11);
	assert_string_equal(outcome.thinking, "hm");
	assert_true(outcome.reply.finished && outcome.reply.complete);
	assert_int_equal(outcome.reply.finish, LLM_FINISH_STOP);
	assert_true(outcome.reply.usage_seen);
	assert_usage(&outcome.reply.usage, &expected);
	assert_string_equal(outcome.reply.model, "claude-sonnet-5-20260601");
	outcome_free(&outcome);
}

static void splits_do_not_matter(void **state)
{
	(void)state;
	check_splits(anthropic,
		     START DELTA("{\"type\":\"thinking_delta\",\"thinking\":\"\xe2\x82\xac\"}")
			     TEXT("text") STOPPED("max_tokens") STOP);
	check_splits(anthropic,
		     START TEXT("te") EVENT("error", ",\"error\":{\"type\":\"overloaded_error\","
						     "\"message\":\"Overloaded\"}"));
}

/* A cut stream still says what its input was; the output is left to an estimate. */
static void a_cut_stream(void **state)
{
	struct outcome outcome = stream_of(anthropic, START TEXT("te"));

	(void)state;
	assert_true(outcome.ok);
	assert_false(outcome.reply.finished || outcome.reply.complete);
	assert_false(outcome.reply.usage_seen);
	assert_int_equal(outcome.reply.usage.input, 1310);
	assert_int_equal(outcome.reply.usage.output, 0);
	outcome_free(&outcome);
}

/* Gateways report the input at the end only; the last word on each count holds. */
static void usage_may_come_late(void **state)
{
	struct outcome outcome = stream_of(
		anthropic,
		EVENT("message_start", ",\"message\":{\"usage\":{\"input_tokens\":0,"
				       "\"output_tokens\":0}}")
			EVENT("message_delta", ",\"delta\":{},\"usage\":{\"input_tokens\":9,"
					       "\"output_tokens\":3}")
				EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"},"
						       "\"usage\":{\"output_tokens\":5}") STOP);

	(void)state;
	assert_true(outcome.reply.usage_seen);
	assert_int_equal(outcome.reply.usage.input, 9);
	assert_int_equal(outcome.reply.usage.output, 5);
	outcome_free(&outcome);
}

/* ENG-1: both ways of being cut are a cut, so that half a block is not taken for a whole one. */
static void cut_answers(void **state)
{
	struct outcome tokens = stream_of(anthropic, START STOPPED("max_tokens") STOP);
	struct outcome window = stream_of(anthropic,
					  START STOPPED("model_context_window_exceeded") STOP);
	struct outcome paused = stream_of(anthropic, START STOPPED("pause_turn") STOP);

	(void)state;
	assert_int_equal(tokens.reply.finish, LLM_FINISH_LENGTH);
	assert_int_equal(window.reply.finish, LLM_FINISH_LENGTH);
	assert_int_equal(paused.reply.finish, LLM_FINISH_STOP);
	outcome_free(&tokens);
	outcome_free(&window);
	outcome_free(&paused);
}

/* A4: stop_reason "refusal" is a refusal, with the provider's explanation or category. */
static void refusals(void **state)
{
	struct outcome streamed = stream_of(
		anthropic, START EVENT("message_delta",
				       ",\"delta\":{\"stop_reason\":\"refusal\",\"stop_details\":{"
				       "\"category\":\"cyber\",\"explanation\":\"Not this.\"}},"
				       "\"usage\":{\"output_tokens\":2}") STOP);
	struct outcome whole = whole_of(
		anthropic, "{\"type\":\"message\",\"content\":[],\"stop_reason\":\"refusal\","
			   "\"stop_details\":{\"category\":\"cyber\"}}");

	(void)state;
	assert_true(streamed.ok && streamed.reply.refused);
	assert_string_equal(streamed.reply.refusal, "Not this.");
	assert_true(whole.ok && whole.reply.refused);
	assert_string_equal(whole.reply.refusal, "cyber");
	outcome_free(&streamed);
	outcome_free(&whole);
}

/* A4: an overloaded server says so after its 200. */
static void errors_inside_a_stream(void **state)
{
	struct outcome overloaded = stream_of(
		anthropic, START TEXT("te") EVENT("error", ",\"error\":{\"type\":"
							   "\"overloaded_error\",\"message\":"
							   "\"Overloaded\"},\"request_id\":\"r\""));
	struct outcome broken = stream_of(anthropic, "event: message_start\ndata: {\n\n");

	(void)state;
	assert_false(overloaded.ok);
	assert_int_equal(overloaded.error.kind, RLMD_ERROR_OVERLOADED);
	assert_string_equal(overloaded.error.text, "Overloaded");
	assert_string_equal(overloaded.text, "te");
	assert_int_equal(overloaded.reply.usage.input, 1310);
	assert_false(broken.ok);
	assert_int_equal(broken.error.kind, RLMD_ERROR_BAD_REPLY);
	outcome_free(&overloaded);
	outcome_free(&broken);
}

/* A4: the texts of all blocks, wherever they stand. */
static void reads_a_whole_answer(void **state)
{
	struct outcome outcome = whole_of(
		anthropic,
		"{\"type\":\"message\",\"model\":\"m\",\"content\":[{\"type\":\"thinking\","
		"\"thinking\":\"hm\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"a\"},"
		"{\"type\":\"redacted_thinking\",\"data\":\"x\"},{\"type\":\"text\",\"text\":"
		"\"b\"}],"
		"\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":5,\"output_tokens\":2,"
		"\"cache_creation_input_tokens\":7,\"cache_read_input_tokens\":null}}");
	struct llm_usage expected = {.input = 12, .output = 2, .cache_write = 7};

	(void)state;
	assert_true(outcome.ok);
	assert_string_equal(outcome.text, "ab");
	assert_string_equal(outcome.thinking, "hm");
	assert_true(outcome.reply.finished && outcome.reply.usage_seen);
	assert_usage(&outcome.reply.usage, &expected);
	outcome_free(&outcome);
}

#define SPLIT_IN_WORDS                                                                             \
	"{\"input_tokens\":1,\"output_tokens\":1,"                                                 \
	"\"cache_creation\":{\"ephemeral_1h_input_tokens\":\"2\"}}"

/* Counts that cannot be are not taken for true, and never become negative ones; what is only
 * missing, in the first of these, is not called absurd. */
static void absurd_usage_is_not_believed(void **state)
{
	enum { MISSING_USAGES = 4 };
	static const char *const usages[] = {
		"null",
		"[]",
		"{\"output_tokens\":1}",
		"{\"input_tokens\":1}",
		"{\"input_tokens\":-1,\"output_tokens\":1}",
		"{\"input_tokens\":1,\"output_tokens\":-1}",
		"{\"input_tokens\":1,\"output_tokens\":1e99}",
		"{\"input_tokens\":1,\"output_tokens\":1e400}",
		"{\"input_tokens\":9223372036854775808,\"output_tokens\":1}",
		"{\"input_tokens\":1000000000000000000,\"output_tokens\":1}",
		"{\"input_tokens\":\"7\",\"output_tokens\":1}",
		"{\"input_tokens\":1,\"output_tokens\":1,\"cache_read_input_tokens\":-9}",
		"{\"input_tokens\":1,\"output_tokens\":1,\"cache_creation_input_tokens\":[]}",
		SPLIT_IN_WORDS,
	};

	(void)state;
	for (size_t i = 0; i < sizeof usages / sizeof *usages; i++) {
		char *body = xasprintf("{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],"
				       "\"usage\":%s}",
				       usages[i]);
		struct outcome outcome = whole_of(anthropic, body);
		struct llm_usage *usage = &outcome.reply.usage;

		assert_true(outcome.ok);
		assert_string_equal(outcome.text, "a");
		assert_false(outcome.reply.usage_seen);
		assert_int_equal(outcome.reply.usage_absurd, i >= MISSING_USAGES);
		assert_true(usage->input <= 1 && usage->output <= 1);
		assert_true(usage->input >= 0 && usage->output >= 0 && usage->cache_read >= 0 &&
			    usage->cache_write >= 0 && usage->cache_write_1h >= 0);
		outcome_free(&outcome);
		free(body);
	}
}

/* More written for an hour than written at all: the whole bounds its part. */
static void parts_of_usage_are_bounded(void **state)
{
	struct outcome outcome = whole_of(
		anthropic, "{\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1,"
			   "\"cache_creation_input_tokens\":5,\"cache_creation\":{"
			   "\"ephemeral_1h_input_tokens\":50},\"output_tokens_details\":{"
			   "\"thinking_tokens\":9}}}");
	struct llm_usage expected = {.input = 6, .output = 1, .cache_write_1h = 5, .reasoning = 1};

	(void)state;
	assert_true(outcome.reply.usage_seen);
	assert_usage(&outcome.reply.usage, &expected);
	outcome_free(&outcome);
}

static void nonsense_is_refused(void **state)
{
	static const char *const bodies[] = {
		"", "[]", "{}", "null", "{\"content\":\"a\"}", "<html>", "{\"content\":[]"};
	struct outcome error = whole_of(anthropic, "{\"type\":\"error\",\"error\":{\"type\":"
						   "\"rate_limit_error\",\"message\":\"slow\"}}");

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct outcome outcome = whole_of(anthropic, bodies[i]);

		assert_false(outcome.ok);
		assert_int_equal(outcome.error.kind, RLMD_ERROR_BAD_REPLY);
		outcome_free(&outcome);
	}
	assert_int_equal(error.error.kind, RLMD_ERROR_THROTTLED);
	outcome_free(&error);
}

static void base_urls(void **state)
{
	(void)state;
	assert_base_url(anthropic, "https://api.anthropic.com", "https://api.anthropic.com");
	assert_base_url(anthropic, "https://api.anthropic.com/v1/", "https://api.anthropic.com");
	assert_base_url(anthropic, "http://h:1/x", "http://h:1/x");
	assert_base_url_refused(anthropic, "api.anthropic.com");
	assert_base_url_refused(anthropic, "https://user:secret@h");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encodes_messages),
		cmocka_unit_test(conversations_are_cached),
		cmocka_unit_test(single_calls_are_not_cached),
		cmocka_unit_test(a_user_speaks_first),
		cmocka_unit_test(turns_share_their_prefix),
		cmocka_unit_test(reads_a_stream),
		cmocka_unit_test(splits_do_not_matter),
		cmocka_unit_test(a_cut_stream),
		cmocka_unit_test(usage_may_come_late),
		cmocka_unit_test(cut_answers),
		cmocka_unit_test(refusals),
		cmocka_unit_test(errors_inside_a_stream),
		cmocka_unit_test(reads_a_whole_answer),
		cmocka_unit_test(absurd_usage_is_not_believed),
		cmocka_unit_test(parts_of_usage_are_bounded),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(base_urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
