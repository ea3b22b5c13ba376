/* Chat Completions: bodies as OpenAI and its compatible servers take them, answers as they give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "adapting.h"

static const struct adapter *const openai = &adapter_openai;

#define CHUNK(delta, finish)                                                                       \
	"data: {\"object\":\"chat.completion.chunk\",\"model\":\"gpt-5.4-2026-03-05\","            \
	"\"choices\":[{\"index\":0,\"delta\":" delta ",\"finish_reason\":" finish "}],"            \
	"\"usage\":null,\"obfuscation\":\"xyz\"}\n\n"
#define USAGE                                                                                      \
	"{\"prompt_tokens\":1000,\"completion_tokens\":200,\"total_tokens\":1200,"                 \
	"\"prompt_tokens_details\":{\"cached_tokens\":600,\"cache_write_tokens\":100},"            \
	"\"completion_tokens_details\":{\"reasoning_tokens\":150}}"
#define USAGE_CHUNK "data: {\"choices\":[],\"usage\":" USAGE "}\n\n"

static const struct llm_message conversation[] = {
	{LLM_SYSTEM, {"Be\0brief", 8}},
	{LLM_USER, {"\xff\n\"quoted\" \xe2\x82\xac", 15}},
	{LLM_ASSISTANT, {"yes", 3}},
	{LLM_USER, {"", 0}},
};

static struct llm_request request(void)
{
	return (struct llm_request){
		.model = "gpt-5.4",
		.messages = conversation,
		.message_count = 4,
		.max_tokens = 512,
	};
}

/* LIB-20: the body is Chat Completions, streamed with usage, any bytes made valid UTF-8. */
static void encodes_a_streamed_request(void **state)
{
	struct llm_request asked = request();
	json_auto_t *body = encoded_json(openai, &asked, 0, true);
	json_t *messages = json_object_get(body, "messages");
	json_t *usage = json_object_get(json_object_get(body, "stream_options"), "include_usage");

	(void)state;
	assert_string_equal(string_at(body, "model"), "gpt-5.4");
	assert_int_equal(json_array_size(messages), 4);
	assert_string_equal(string_at(json_array_get(messages, 0), "role"), "system");
	assert_int_equal(json_get_text(json_array_get(messages, 0), "content").size, 8);
	assert_string_equal(string_at(json_array_get(messages, 1), "content"),
			    "\xef\xbf\xbd\n\"quoted\" \xe2\x82\xac");
	assert_string_equal(string_at(json_array_get(messages, 2), "role"), "assistant");
	assert_int_equal(json_get_integer(body, "max_completion_tokens", 0), 512);
	assert_true(json_get_bool(body, "stream", false));
	assert_true(json_is_true(usage));
}

/* A3: models refuse sampling parameters, so none is sent; nor anything else beside what is needed.
 */
static void sends_nothing_more(void **state)
{
	struct llm_request asked = request();
	json_auto_t *body = encoded_json(openai, &asked, 0, true);

	(void)state;
	assert_int_equal(json_object_size(body), 5);
}

/* ... but what was asked for, and not refused. */
static void sends_the_sampling_asked_for(void **state)
{
	static const char *const stops[] = {"a\n", "\"b\""};
	struct llm_request asked = request();
	unsigned refused = QUIRK_NO_TEMPERATURE | QUIRK_NO_STOP;
	json_t *body, *texts;

	(void)state;
	asked.sampling = (struct llm_sampling){true, 0.7, stops, 2};
	body = encoded_json(openai, &asked, 0, true);
	texts = json_object_get(body, "stop");
	assert_true(json_number_value(json_object_get(body, "temperature")) == 0.7);
	assert_int_equal(json_array_size(texts), 2);
	assert_string_equal(json_string_value(json_array_get(texts, 1)), "\"b\"");
	json_decref(body);
	assert_true(adapter_can_adapt(&asked, QUIRK_NO_STOP));
	body = encoded_json(openai, &asked, refused, true);
	assert_int_equal(json_object_size(body), 5);
	json_decref(body);
	asked.sampling = (struct llm_sampling){0};
	assert_false(adapter_can_adapt(&asked, QUIRK_NO_STOP));
	assert_false(adapter_can_adapt(&asked, QUIRK_NO_TEMPERATURE));
	assert_true(adapter_can_adapt(&asked, QUIRK_NO_STREAM));
}

static void whole_requests_say_so(void **state)
{
	struct llm_request asked = request();
	json_auto_t *body = encoded_json(openai, &asked, 0, false);

	(void)state;
	assert_true(json_is_false(json_object_get(body, "stream")));
	assert_null(json_object_get(body, "stream_options"));
}

/* A3: what a model refused is left out or renamed; the newest lesson on the name wins. */
static void quirks_change_the_body(void **state)
{
	struct llm_request asked = request();
	json_auto_t *old = encoded_json(openai, &asked, QUIRK_OLD_MAX_TOKENS, true);
	json_auto_t *both = encoded_json(openai, &asked,
					 QUIRK_OLD_MAX_TOKENS | QUIRK_NEW_MAX_TOKENS, true);
	json_auto_t *plain = encoded_json(openai, &asked, QUIRK_NO_STREAM_OPTIONS, true);

	(void)state;
	assert_int_equal(json_get_integer(old, "max_tokens", 0), 512);
	assert_null(json_object_get(old, "max_completion_tokens"));
	assert_int_equal(json_get_integer(both, "max_completion_tokens", 0), 512);
	assert_null(json_object_get(both, "max_tokens"));
	assert_null(json_object_get(plain, "stream_options"));
}

/* A system prompt that the model refuses stands in front of the first message of the user's. */
static void no_system_prompt(void **state)
{
	static const struct llm_message messages[] = {{LLM_SYSTEM, {"Be brief.", 9}},
						      {LLM_USER, {"Is it \"so\"?", 12}},
						      {LLM_ASSISTANT, {"yes", 3}}};
	struct llm_request asked = request();
	const json_t *all, *first;
	json_t *body;

	(void)state;
	asked.messages = messages;
	asked.message_count = 3;
	assert_true(adapter_can_adapt(&asked, QUIRK_NO_SYSTEM));
	body = encoded_json(openai, &asked, QUIRK_NO_SYSTEM, true);
	all = json_object_get(body, "messages");
	first = json_array_get(all, 0);
	assert_int_equal(json_array_size(all), 2);
	assert_string_equal(string_at(first, "role"), "user");
	assert_string_equal(string_at(first, "content"), "Be brief.\n\nIs it \"so\"?");
	assert_string_equal(string_at(json_array_get(all, 1), "content"), "yes");
	json_decref(body);
	/* Without one there is nothing to adapt. */
	asked.messages = messages + 1;
	asked.message_count = 2;
	assert_false(adapter_can_adapt(&asked, QUIRK_NO_SYSTEM));
	body = encoded_json(openai, &asked, QUIRK_NO_SYSTEM, true);
	assert_int_equal(json_array_size(json_object_get(body, "messages")), 2);
	json_decref(body);
}

static void no_model_means_the_default_one(void **state)
{
	struct llm_request asked = request();
	json_t *body;

	(void)state;
	asked.model = "";
	body = encoded_json(openai, &asked, 0, true);
	assert_string_equal(string_at(body, "model"), openai->default_model);
	json_decref(body);
	asked.model = NULL;
	body = encoded_json(openai, &asked, 0, true);
	assert_string_equal(string_at(body, "model"), openai->default_model);
	json_decref(body);
}

/* A9: a turn's request begins with the bytes of the one before, so that prompt caches hit. */
static void turns_share_their_prefix(void **state)
{
	(void)state;
	check_prefixes(openai);
}

/* A4: comments, unknown fields, null usage and the chunk without choices are all in a day's work.
 */
static void reads_a_stream(void **state)
{
	struct outcome outcome = stream_of(
		openai,
		": OPENROUTER PROCESSING\n\n" CHUNK("{\"role\":\"assistant\",\"content\":\"\"}",
						    "null")
			CHUNK("{\"content\":\"Hel\"}", "null") ": keep-alive\n\n" CHUNK(
				"{\"content\":\"lo\\u0000!\"}", "null") CHUNK("{}", "\"stop\"")
				USAGE_CHUNK "data: [DONE]\n\n"
					    "data: not looked at\n\n");
	struct llm_usage expected = {.input = 1000,
				     .output = 200,
				     .cache_read = 600,
				     .cache_write = 100,
				     .reasoning = 150};

	(void)state;
	assert_true(outcome.ok);
	assert_memory_equal(outcome.text, "Hello\0!", 8);
	assert_true(outcome.reply.finished && outcome.reply.complete);
	assert_int_equal(outcome.reply.finish, LLM_FINISH_STOP);
	assert_true(outcome.reply.usage_seen);
	assert_usage(&outcome.reply.usage, &expected);
	assert_string_equal(outcome.reply.model, "gpt-5.4-2026-03-05");
	assert_false(outcome.reply.refused);
	assert_int_equal(outcome.reply.cost_reported, -1);
	outcome_free(&outcome);
}

/* A4: where the network cuts a stream makes no difference. */
static void splits_do_not_matter(void **state)
{
	(void)state;
	check_splits(openai, "\xef\xbb\xbf: hi\r\n\r\n" CHUNK(
				     "{\"reasoning\":\"hm\",\"content\":\"\xe2\x82\xac\"}", "null")
				     CHUNK("{\"content\":\"x\"}", "\"length\"") USAGE_CHUNK
		     "data: [DONE]\r\r");
	check_splits(openai,
		     CHUNK("{\"content\":\"x\"}",
			   "null") "data: {\"error\":{\"code\":429,\"message\":\"slow\"}}\n\n");
}

/* ENG-4: a provider's own reasoning field is kept apart, whichever of its names it has. */
static void reasoning_goes_to_thinking(void **state)
{
	struct outcome one = stream_of(openai, CHUNK("{\"reasoning_content\":\"a\"}", "null")
						       CHUNK("{\"reasoning\":\"b\"}", "null"));
	struct outcome both = whole_of(
		openai, "{\"choices\":[{\"message\":{\"content\":\"t\",\"reasoning\":\"r\","
			"\"reasoning_content\":\"r\"},\"finish_reason\":\"stop\"}]}");

	(void)state;
	assert_string_equal(one.thinking, "ab");
	assert_string_equal(one.text, "");
	assert_string_equal(both.thinking, "r");
	assert_string_equal(both.text, "t");
	outcome_free(&one);
	outcome_free(&both);
}

static void reads_a_whole_answer(void **state)
{
	struct outcome outcome = whole_of(
		openai, "{\"model\":\"m\",\"choices\":[{\"message\":{\"role\":\"assistant\","
			"\"content\":\"Hi\",\"refusal\":null},\"finish_reason\":\"stop\"}],"
			"\"usage\":" USAGE "}");

	(void)state;
	assert_true(outcome.ok);
	assert_string_equal(outcome.text, "Hi");
	assert_true(outcome.reply.finished);
	assert_true(outcome.reply.usage_seen);
	assert_int_equal(outcome.reply.usage.input, 1000);
	outcome_free(&outcome);
}

/* Reasoning models spend the whole allowance and say nothing: that is a cut, not an error. */
static void null_content_cut_by_length(void **state)
{
	struct outcome outcome = whole_of(openai, "{\"choices\":[{\"message\":{\"content\":null},"
						  "\"finish_reason\":\"length\"}]}");

	(void)state;
	assert_true(outcome.ok);
	assert_string_equal(outcome.text, "");
	assert_int_equal(outcome.reply.finish, LLM_FINISH_LENGTH);
	assert_false(outcome.reply.usage_seen);
	outcome_free(&outcome);
}

static void content_in_parts(void **state)
{
	struct outcome outcome = whole_of(
		openai, "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"thinking\","
			"\"thinking\":[]},{\"type\":\"text\",\"text\":\"a\"},"
			"{\"type\":\"text\",\"text\":\"b\"},7]},\"finish_reason\":\"stop\"}]}");

	(void)state;
	assert_true(outcome.ok);
	assert_string_equal(outcome.text, "ab");
	outcome_free(&outcome);
}

/* ENG-1: calls of tools that nobody offered are text, whole and in pieces. */
static void calls_of_tools(void **state)
{
	struct outcome whole = whole_of(
		openai, "{\"choices\":[{\"message\":{\"content\":\"I look.\",\"tool_calls\":["
			"{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"python\","
			"\"arguments\":\"{\\\"code\\\": \\\"a\\\"}\"}},"
			"{\"function\":{\"name\":\"python\",\"arguments\":\"{}\"}}]},"
			"\"finish_reason\":\"tool_calls\"}]}");
	struct outcome pieces = stream_of(
		openai,
		CHUNK("{\"content\":null,\"tool_calls\":[{\"index\":0,\"function\":"
		      "{\"name\":\"python\",\"arguments\":\"\"}}]}",
		      "null") CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"python\","
				    "\"arguments\":\"{\\\"code\\\": \"}}]}",
				    "null")
			CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
			      "\"\\\"a\\\"}\"}}]}",
			      "null")
				CHUNK("{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"repl\","
				      "\"arguments\":\"{}\"}}]}",
				      "null") CHUNK("{}", "\"tool_calls\""));

	(void)state;
	assert_string_equal(whole.text, "I look.\n[TOOL_CALLS]python[ARGS]{\"code\": \"a\"}"
					"\n[TOOL_CALLS]python[ARGS]{}");
	assert_string_equal(pieces.text, "\n[TOOL_CALLS]python[ARGS]{\"code\": \"a\"}"
					 "\n[TOOL_CALLS]repl[ARGS]{}");
	outcome_free(&whole);
	outcome_free(&pieces);
}

/* LIB-20: members in which only one provider tells what it bills. */
static void usage_in_other_places(void **state)
{
	struct outcome groq = stream_of(
		openai,
		CHUNK("{\"content\":\"a\"}",
		      "null") "data: {\"choices\":[{\"index\":0,"
			      "\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"id\":\"1\",\"usage\":"
			      "{\"prompt_tokens\":7,\"completion_tokens\":3}}}\n\n");
	struct outcome deepseek = whole_of(
		openai,
		"{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],"
		"\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1,"
		"\"prompt_cache_hit_tokens\":8,\"prompt_cache_miss_tokens\":2}}");

	(void)state;
	assert_true(groq.reply.usage_seen);
	assert_int_equal(groq.usage.input, 7);
	assert_int_equal(groq.usage.output, 3);
	assert_int_equal(deepseek.usage.cache_read, 8);
	outcome_free(&groq);
	outcome_free(&deepseek);
}

/* A refusal is told apart from an answer, in pieces as well, and a filter's from a model's. */
static void refusals(void **state)
{
	struct outcome model = stream_of(openai, CHUNK("{\"refusal\":\"I can\"}", "null")
							 CHUNK("{\"refusal\":\"not.\\u001b\"}",
							       "null") CHUNK("{}", "\"stop\""));
	struct outcome filter = stream_of(openai, CHUNK("{\"content\":\"a\"}", "null")
							  CHUNK("{}", "\"content_filter\""));

	(void)state;
	assert_true(model.reply.refused);
	assert_string_equal(model.reply.refusal, "I cannot.\\x1b");
	assert_true(filter.reply.refused);
	assert_string_equal(filter.reply.refusal, "content_filter");
	outcome_free(&model);
	outcome_free(&filter);
}

/* A4: an error after status 200 is that error, wherever the server puts it. */
static void errors_inside_a_stream(void **state)
{
	static const struct {
		const char *stream;
		enum rlmd_error_kind kind;
	} cases[] = {
		{"data: {\"error\":{\"code\":429,\"message\":\"slow down\"}}\n\n",
		 RLMD_ERROR_THROTTLED},
		{"data: {\"error\":{\"code\":502,\"message\":\"slow down\"},\"choices\":[{}]}\n\n",
		 RLMD_ERROR_OVERLOADED},
		{"data: {\"choices\":[{\"error\":{\"code\":403,\"message\":\"Your input was "
		 "flagged, "
		 "slow down\"},\"finish_reason\":\"error\"}]}\n\n",
		 RLMD_ERROR_REFUSED},
		{"data: {\"object\":\"error\",\"message\":\"slow down\",\"code\":400}\n\n",
		 RLMD_ERROR_BAD_REQUEST},
		{"data: {\"error\":\"slow down\"}\n\n", RLMD_ERROR_OVERLOADED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct outcome outcome = stream_of(openai, cases[i].stream);

		assert_false(outcome.ok);
		assert_int_equal(outcome.error.kind, cases[i].kind);
		assert_non_null(strstr(outcome.error.text, "slow down"));
		outcome_free(&outcome);
	}
}

/* Some servers close without [DONE]: the text is known to be whole, and nothing more is claimed. */
static void a_stream_without_its_end(void **state)
{
	struct outcome whole = stream_of(openai, CHUNK("{\"content\":\"a\"}", "\"stop\""));
	struct outcome cut = stream_of(openai, CHUNK("{\"content\":\"a\"}", "null"));

	(void)state;
	assert_true(whole.ok && whole.reply.complete && !whole.reply.finished);
	assert_true(cut.ok && !cut.reply.complete && !cut.reply.finished);
	assert_false(cut.reply.usage_seen);
	outcome_free(&whole);
	outcome_free(&cut);
}

/* Some servers count in every event: what was counted when the stream was cut is not all of it. */
static void usage_of_a_cut_stream_is_estimated(void **state)
{
	static const char counted[] =
		"data: {\"choices\":[{\"delta\":{\"content\":\"a word\"},\"finish_reason\":%s}],"
		"\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1}}\n\n";
	char cut[256], whole[256];

	(void)state;
	snprintf(cut, sizeof cut, counted, "null");
	snprintf(whole, sizeof whole, counted, "\"stop\"");
	for (size_t i = 0; i < 2; i++) {
		struct outcome outcome = stream_of(openai, i ? whole : cut);

		assert_true(outcome.reply.usage_seen);
		assert_int_equal(outcome.usage.estimated, !i);
		assert_int_equal(outcome.usage.input, 10);
		outcome_free(&outcome);
	}
}

/* A7: what OpenRouter says a call cost; with a key of the customer's own that is not all of it. */
static void reported_costs(void **state)
{
	static const struct {
		const char *more;
		int64_t cost;
	} cases[] = {
		{"\"cost\":0.00014", 140000000},
		{"\"cost\":0", 0},
		{"\"cost\":0.25,\"cost_details\":{\"upstream_inference_cost\":0.5}", 250000000000},
		{"\"cost\":0.25,\"is_byok\":true,\"cost_details\":{\"upstream_inference_cost\":"
		 "0.5}",
		 750000000000},
		{"\"cost\":-1", -1},
		{"\"cost\":1e30", -1},
		{"\"cost\":1e400", -1},
		{"\"cost\":\"1\"", -1},
		{"\"cost\":null", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *body = xasprintf(
			"{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens\":"
			"1,\"completion_tokens\":1,%s}}",
			cases[i].more);
		struct outcome outcome = whole_of(openai, body);

		assert_int_equal(outcome.reply.cost_reported, cases[i].cost);
		outcome_free(&outcome);
		free(body);
	}
}

#define CACHED(count)                                                                              \
	"{\"prompt_tokens\":5,\"completion_tokens\":1,"                                            \
	"\"prompt_tokens_details\":{\"cached_tokens\":" count "}}"

/*
 * Counts that cannot be are not taken for true, and never become negative ones; what is missing is
 * no reason to warn. The rest of the answer is whole, also beside a number that JSON cannot hold.
 */
static void absurd_usage_is_not_believed(void **state)
{
	static const struct {
		const char *usage;
		int64_t input, output;
		bool absurd;
	} cases[] = {
		{"null", 0, 0, false},
		{"{}", 0, 0, false},
		{"7", 0, 0, false},
		{"{\"prompt_tokens\":5}", 5, 0, false},
		{"{\"prompt_tokens\":5,\"completion_tokens\":null}", 5, 0, false},
		{"{\"prompt_tokens\":-5,\"completion_tokens\":1}", 0, 1, true},
		{"{\"prompt_tokens\":5,\"completion_tokens\":\"1\"}", 5, 0, true},
		{"{\"prompt_tokens\":5,\"completion_tokens\":[]}", 5, 0, true},
		{"{\"prompt_tokens\":5,\"completion_tokens\":1.5}", 5, 0, true},
		{"{\"prompt_tokens\":1e300,\"completion_tokens\":1}", 0, 1, true},
		{"{\"prompt_tokens\":1e400,\"completion_tokens\":1}", 0, 1, true},
		{"{\"prompt_tokens\":-1e400,\"completion_tokens\":1}", 0, 1, true},
		{"{\"prompt_tokens\":9223372036854775808,\"completion_tokens\":1}", 0, 1, true},
		{"{\"prompt_tokens\":1000000000000000000,\"completion_tokens\":1}", 0, 1, true},
		{"{\"prompt_tokens\":100000001,\"completion_tokens\":1}", 0, 1, true},
		{CACHED("-1"), 5, 1, true},
		{CACHED("6"), 6, 1, true},
		{CACHED("99999999999999999999"), 5, 1, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *body = xasprintf("{\"choices\":[{\"message\":{\"content\":\"1e999 \\\"2\"}}],"
				       "\"usage\":%s}",
				       cases[i].usage);
		struct outcome outcome = whole_of(openai, body);
		struct llm_usage expected = {.input = cases[i].input, .output = cases[i].output};

		assert_true(outcome.ok);
		assert_string_equal(outcome.text, "1e999 \"2");
		assert_false(outcome.reply.usage_seen);
		assert_int_equal(outcome.reply.usage_absurd, cases[i].absurd);
		assert_usage(&outcome.reply.usage, &expected);
		outcome_free(&outcome);
		free(body);
	}
}

/* Parts are never more than the whole, so that no price is ever paid for a negative rest. */
static void parts_of_usage_are_bounded(void **state)
{
	struct outcome outcome = whole_of(
		openai, "{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens\":10,"
			"\"completion_tokens\":3.0,\"prompt_tokens_details\":{\"cached_tokens\":8,"
			"\"cache_write_tokens\":8},\"completion_tokens_details\":"
			"{\"reasoning_tokens\":4}}}");
	struct llm_usage expected = {
		.input = 10, .output = 3, .cache_read = 8, .cache_write = 2, .reasoning = 3};

	(void)state;
	assert_true(outcome.reply.usage_seen);
	assert_usage(&outcome.reply.usage, &expected);
	outcome_free(&outcome);
}

/* An answer that is not Chat Completions is RLMD_ERROR_BAD_REPLY with a reason, and nothing worse.
 */
static void nonsense_is_refused(void **state)
{
	static const char *const bodies[] = {
		"",
		"[]",
		"7",
		"{",
		"{}",
		"null",
		"<html>",
		"{\"choices\":[]}",
		"{\"choices\":{}}",
		"{\"choices\":[{}]}",
		"{\"choices\":[{\"message\":\"text\"}]}",
		"{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct outcome outcome = whole_of(openai, bodies[i]);

		assert_false(outcome.ok);
		assert_int_equal(outcome.error.kind, RLMD_ERROR_BAD_REPLY);
		assert_true(*outcome.error.text);
		outcome_free(&outcome);
	}
}

/* A model that does not stop fills no memory: text and thinking end at their bound. */
static void text_is_bounded(void **state)
{
	size_t half = REPLY_TEXT_MAX / 2 + 1;
	char *letters = xcalloc(half + 1, 1);
	struct adapter_event event = {0};
	struct rlmd_error error = {0};
	struct reply reply;
	char *data;

	(void)state;
	memset(letters, 'a', half);
	data = xasprintf("{\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}", letters);
	reply_init(&reply);
	event.data = text_of(data);
	assert_true(openai->event(&reply, &event, &error));
	assert_false(openai->event(&reply, &event, &error));
	assert_int_equal(error.kind, RLMD_ERROR_BAD_REPLY);
	assert_true(reply.text.bytes.size <= REPLY_TEXT_MAX);
	reply_done(&reply);
	free(letters);
	free(data);
}

/* A line like no other before it. */
static size_t print_line(char *out, int number)
{
	return (size_t)sprintf(out, "line %d has %x and \xc3\xa9\n", number,
			       (unsigned)number * 7919);
}

/* Of a long answer that no provider counts the tokens are counted while it comes, not at its end;
 * they are those of the text, also where its end is dropped for repeating itself. */
static void long_texts_are_counted_as_they_come(void **state)
{
	enum { LINES = 20000, SOME = 64 << 10 };
	struct reply reply;
	char line[64];

	(void)state;
	for (int repeats = 0; repeats < 2; repeats++) {
		struct rlmd_error error = {0};
		struct rlmd_text text;

		reply_init(&reply);
		reply.watched = true;
		for (int i = 0; i < LINES && !reply.repeating; i++) {
			size_t size = print_line(line, repeats && i > LINES / 2 ? 1 : i);

			assert_true(reply_add_text(&reply, text_from(line, size), &error));
			assert_true(reply.text.bytes.size - reply.text.counted < SOME);
		}
		assert_int_equal(reply.repeating, repeats);
		text = bytes_text(&reply.text.bytes);
		assert_true(text.size > (repeats ? 2 : 4) * (size_t)SOME);
		assert_int_equal(reply_usage(&reply, 0).output, text_tokens(text) + reply.repeated);
		reply_done(&reply);
	}
}

static void base_urls(void **state)
{
	(void)state;
	assert_base_url(openai, "https://api.openai.com/v1", "https://api.openai.com/v1");
	assert_base_url(openai, " http://127.0.0.1:8000/v1// ", "http://127.0.0.1:8000/v1");
	assert_base_url(openai, "HTTP://[::1]:8000", "HTTP://[::1]:8000");
	assert_base_url(openai, "https://h/openai/v1", "https://h/openai/v1");
	assert_base_url_refused(openai, "");
	assert_base_url_refused(openai, "api.openai.com/v1");
	assert_base_url_refused(openai, "ftp://h");
	assert_base_url_refused(openai, "file:///etc/passwd");
	assert_base_url_refused(openai, "https://");
	assert_base_url_refused(openai, "https:///v1");
	assert_base_url_refused(openai, "https://:80");
	assert_base_url_refused(openai, "https://user:secret@h/v1");
	assert_base_url_refused(openai, "https://secret@h\r\nX: y");
	assert_base_url_refused(openai, "https://h/v1\r\nX: y");
	assert_base_url_refused(openai, "ftp://user:secret@h");
	assert_base_url_refused(openai, "user:secret@h/v1");
	assert_base_url_refused(openai, "https://h/v1?key=1");
	assert_base_url_refused(openai, "https://h/v1#x");
	assert_base_url_refused(openai, "https://h\xc3\xa4/v1");
}

/* LIB-17: adapters are found by name, and the names are known for the message of an unknown one. */
static void the_table_of_adapters(void **state)
{
	(void)state;
	assert_ptr_equal(adapter_find("openai"), openai);
	assert_ptr_equal(adapter_find("anthropic"), &adapter_anthropic);
	assert_ptr_equal(adapter_find("ollama"), &adapter_ollama);
	assert_null(adapter_find("OpenAI"));
	assert_string_equal(adapter_names((char[ADAPTER_NAMES_MAX]){0}),
			    "ollama, openai, anthropic");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encodes_a_streamed_request),
		cmocka_unit_test(sends_nothing_more),
		cmocka_unit_test(sends_the_sampling_asked_for),
		cmocka_unit_test(whole_requests_say_so),
		cmocka_unit_test(quirks_change_the_body),
		cmocka_unit_test(no_system_prompt),
		cmocka_unit_test(no_model_means_the_default_one),
		cmocka_unit_test(turns_share_their_prefix),
		cmocka_unit_test(reads_a_stream),
		cmocka_unit_test(splits_do_not_matter),
		cmocka_unit_test(reasoning_goes_to_thinking),
		cmocka_unit_test(reads_a_whole_answer),
		cmocka_unit_test(null_content_cut_by_length),
		cmocka_unit_test(content_in_parts),
		cmocka_unit_test(calls_of_tools),
		cmocka_unit_test(usage_in_other_places),
		cmocka_unit_test(refusals),
		cmocka_unit_test(errors_inside_a_stream),
		cmocka_unit_test(a_stream_without_its_end),
		cmocka_unit_test(reported_costs),
		cmocka_unit_test(absurd_usage_is_not_believed),
		cmocka_unit_test(parts_of_usage_are_bounded),
		cmocka_unit_test(usage_of_a_cut_stream_is_estimated),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(text_is_bounded),
		cmocka_unit_test(long_texts_are_counted_as_they_come),
		cmocka_unit_test(base_urls),
		cmocka_unit_test(the_table_of_adapters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
