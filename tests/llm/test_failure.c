/* The meaning of providers' errors: their real bodies, and the traps among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "llm/adapter.h"
#include "llm/failure.h"
#include "net/gate.h"

struct expectation {
	int status;
	const char *body;
	enum rlmd_error_kind kind;
	bool retry;
};

static void check(const struct expectation *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct expectation *expected = &cases[i];
		struct failure failure;

		memset(&failure, 0xa5, sizeof failure);
		failure_of_status(expected->status, text_of(expected->body), &failure);
		if (failure.kind != expected->kind || failure.retry != expected->retry)
			fail_msg("%d %s: %s, retry %d", expected->status, expected->body,
				 rlmd_error_name(failure.kind), failure.retry);
		assert_int_equal(failure.quirk, QUIRK_NONE);
	}
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))

/* A5: an empty budget is never retried, though it may look like a throttle or a bad request ... */
static void empty_budgets(void **state)
{
	static const struct expectation cases[] = {
		{429,
		 "{\"error\":{\"message\":\"You exceeded your current quota, please check your "
		 "plan "
		 "and billing details.\",\"type\":\"insufficient_quota\",\"param\":null,"
		 "\"code\":\"insufficient_quota\"}}",
		 RLMD_ERROR_BILLING, false},
		{429,
		 "{\"error\":{\"message\":\"You exceeded your current quota, please check your "
		 "plan "
		 "and billing details.\",\"type\":\"insufficient_quota\",\"param\":null,\"code\":"
		 "null}}",
		 RLMD_ERROR_BILLING, false},
		{402,
		 "{\"error\":{\"code\":402,\"message\":\"This request requires more credits\"}}",
		 RLMD_ERROR_BILLING, false},
		{402, "", RLMD_ERROR_BILLING, false},
		{402, "{\"error\":{\"message\":\"Insufficient Balance\"}}", RLMD_ERROR_BILLING,
		 false},
		{400,
		 "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		 "\"Your credit balance is too low to access the Anthropic API.\"}}",
		 RLMD_ERROR_BILLING, false},
		{403,
		 "{\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"x\"}}",
		 RLMD_ERROR_BILLING, false},
	};

	(void)state;
	CHECK(cases);
}

/* ... and a throttle is, though it may speak of quotas and link to the billing page. */
static void throttles(void **state)
{
	static const struct expectation cases[] = {
		{429,
		 "{\"status\":429,\"error\":\"INSUFFICIENT QUOTA\",\"message\":\"You exceeded "
		 "your current limit of concurrent requests.\"}",
		 RLMD_ERROR_THROTTLED, true},
		{429,
		 "{\"error\":{\"message\":\"Rate limit reached for gpt-5.4 on tokens per min "
		 "(TPM): "
		 "Limit 10000, Used 9000, Requested 2000. Please try again in 6s. You can increase "
		 "your rate limit by adding a payment method to your account at "
		 "https://platform.openai.com/account/billing.\",\"type\":\"tokens\",\"param\":"
		 "null,"
		 "\"code\":\"rate_limit_exceeded\"}}",
		 RLMD_ERROR_THROTTLED, true},
		{429,
		 "[{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota, please "
		 "check your plan and billing details. Please retry in 31s.\","
		 "\"status\":\"RESOURCE_EXHAUSTED\"}}]",
		 RLMD_ERROR_THROTTLED, true},
		{429,
		 "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"This "
		 "request would exceed your organization's rate limit: the prompt is too long for "
		 "it\"}}",
		 RLMD_ERROR_THROTTLED, true},
		{503,
		 "{\"error\":\"server busy, please try again.  maximum pending requests "
		 "exceeded\"}",
		 RLMD_ERROR_THROTTLED, true},
		{429, "", RLMD_ERROR_THROTTLED, true},
		{429, "<html><title>429 Too Many Requests</title></html>", RLMD_ERROR_THROTTLED,
		 true},
		{500, "Too many requests", RLMD_ERROR_THROTTLED, true},
	};

	(void)state;
	CHECK(cases);
}

/* One request beyond the allowance of a whole minute would be throttled for ever. */
static void too_large_for_any_minute(void **state)
{
	static const struct expectation cases[] = {
		{429,
		 "{\"error\":{\"message\":\"Request too large for gpt-5.4 in organization o on "
		 "tokens "
		 "per min (TPM): Limit 30000, Requested 40000.\",\"type\":\"tokens\","
		 "\"code\":\"rate_limit_exceeded\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{413,
		 "{\"error\":{\"message\":\"Request too large for model `x` on tokens per minute "
		 "(TPM): Limit 6000, Requested 7000\",\"code\":\"rate_limit_exceeded\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
	};

	(void)state;
	CHECK(cases);
}

static void broken_servers(void **state)
{
	static const struct expectation cases[] = {
		{500, "", RLMD_ERROR_OVERLOADED, true},
		{500, "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}",
		 RLMD_ERROR_OVERLOADED, true},
		{502, "<html><head><title>502 Bad Gateway</title></head></html>",
		 RLMD_ERROR_OVERLOADED, true},
		{503, "{\"error\":{\"message\":\"The model is overloaded\",\"type\":null}}",
		 RLMD_ERROR_OVERLOADED, true},
		{504, "upstream request timeout", RLMD_ERROR_OVERLOADED, true},
		{529,
		 "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":"
		 "\"Overloaded\"}}",
		 RLMD_ERROR_OVERLOADED, true},
		{408, "", RLMD_ERROR_OVERLOADED, true},
		{409, "", RLMD_ERROR_OVERLOADED, true},
		{524, "error code: 524", RLMD_ERROR_OVERLOADED, true},
		/* Asking again does not buy memory. */
		{500,
		 "{\"error\":\"model requires more system memory (5.6 GiB) than is available\"}",
		 RLMD_ERROR_OVERLOADED, false},
	};

	(void)state;
	CHECK(cases);
}

static void keys_models_and_requests(void **state)
{
	static const struct expectation cases[] = {
		{401,
		 "{\"error\":{\"message\":\"Incorrect API key provided\",\"code\":"
		 "\"invalid_api_key\"}}",
		 RLMD_ERROR_AUTH, false},
		{401, "", RLMD_ERROR_AUTH, false},
		{403, "{\"type\":\"error\",\"error\":{\"type\":\"permission_error\"}}",
		 RLMD_ERROR_AUTH, false},
		{400,
		 "[{\"error\":{\"code\":400,\"message\":\"API key not valid. Please pass a valid "
		 "API key.\",\"status\":\"INVALID_ARGUMENT\"}}]",
		 RLMD_ERROR_AUTH, false},
		{404, "{\"error\":\"model \\\"x\\\" not found, try pulling it first\"}",
		 RLMD_ERROR_NOT_FOUND, false},
		{403,
		 "{\"error\":{\"message\":\"Project p does not have access to model m\","
		 "\"code\":\"model_not_found\"}}",
		 RLMD_ERROR_NOT_FOUND, false},
		{400, "{\"error\":{\"message\":\"x/y is not a valid model ID\",\"code\":400}}",
		 RLMD_ERROR_NOT_FOUND, false},
		{400,
		 "{\"error\":{\"message\":\"{'error': '/chat/completions: Invalid model name passed "
		 "in model=x. Call `/v1/models` to view available models for your key.'}\",\"type\":"
		 "\"None\",\"param\":\"None\",\"code\":\"400\"}}",
		 RLMD_ERROR_NOT_FOUND, false},
		{400,
		 "{\"error\":{\"message\":{\"error\":\"/chat/completions: Invalid model name passed "
		 "in model=x.\"},\"type\":\"None\",\"param\":\"None\",\"code\":\"400\"}}",
		 RLMD_ERROR_NOT_FOUND, false},
		{400,
		 "{\"error\":{\"message\":\"No models loaded. Please load a model in the developer "
		 "page or use the 'lms load' command.\",\"type\":\"invalid_request_error\","
		 "\"param\":\"model\",\"code\":\"model_not_found\"}}",
		 RLMD_ERROR_NOT_FOUND, false},
		{404, "404 page not found", RLMD_ERROR_NOT_FOUND, false},
		{301, "<html><title>301 Moved Permanently</title>", RLMD_ERROR_NOT_FOUND, false},
		{400, "{\"error\":\"\\\"m\\\" does not support chat\"}", RLMD_ERROR_BAD_REQUEST,
		 false},
		{400, "", RLMD_ERROR_BAD_REQUEST, false},
		{422, "{\"detail\":[{\"loc\":[\"body\",\"messages\"],\"msg\":\"field required\"}]}",
		 RLMD_ERROR_BAD_REQUEST, false},
		{418, "", RLMD_ERROR_BAD_REQUEST, false},
		/* The value is refused, not the field. */
		{400,
		 "{\"error\":{\"message\":\"max_tokens is too large: 100000. This model supports "
		 "at "
		 "most 16384 completion tokens\",\"param\":\"max_tokens\",\"code\":"
		 "\"invalid_value\"}}",
		 RLMD_ERROR_BAD_REQUEST, false},
		{400,
		 "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		 "\"max_tokens: 100000 > 64000, which is the maximum allowed number of output "
		 "tokens\"}}",
		 RLMD_ERROR_BAD_REQUEST, false},
	};

	(void)state;
	CHECK(cases);
}

static void refusals(void **state)
{
	static const struct expectation cases[] = {
		{400,
		 "{\"error\":{\"message\":\"The response was filtered due to the prompt triggering "
		 "Azure OpenAI's content management policy.\",\"code\":\"content_filter\"}}",
		 RLMD_ERROR_REFUSED, false},
		{403,
		 "{\"error\":{\"code\":403,\"message\":\"openai/x requires moderation. Your "
		 "input was "
		 "flagged for \\\"violence\\\"\",\"metadata\":{\"reasons\":[\"violence\"]}}}",
		 RLMD_ERROR_REFUSED, false},
		{400,
		 "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		 "\"Output blocked by content filtering policy\"}}",
		 RLMD_ERROR_REFUSED, false},
	};

	(void)state;
	CHECK(cases);
}

/* A prompt beyond the window in the words of each server, with the window where it names it. */
static void overflows(void **state)
{
	static const struct expectation cases[] = {
		{400,
		 "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		 "\"prompt is too long: 213462 tokens > 200000 maximum\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		 "\"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, "
		 "decrease input length or `max_tokens` and try again\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"This model's maximum context length is 128000 tokens. "
		 "However, your messages resulted in 300000 tokens. Please reduce the length of "
		 "the "
		 "messages.\",\"type\":\"invalid_request_error\",\"param\":\"messages\","
		 "\"code\":\"context_length_exceeded\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"Your input exceeds the context window of this model.\","
		 "\"code\":\"context_length_exceeded\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"Input length (265330) exceeds model's maximum context "
		 "length (262144).\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"Requested token count exceeds the model's maximum "
		 "context "
		 "length of 131,072 tokens.\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "[{\"error\":{\"code\":400,\"message\":\"The input token count (1196265) "
		 "exceeds the "
		 "maximum number of tokens allowed (1048575).\",\"status\":\"INVALID_ARGUMENT\"}}]",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"This model's maximum prompt length is 131072 but the "
		 "request contains 537812 tokens.\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"The input (9000 tokens) is longer than the model's "
		 "context length (8192 tokens).\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"code\":400,\"message\":\"the request exceeds the available context "
		 "size, try increasing it\",\"type\":\"exceed_context_size_error\","
		 "\"n_prompt_tokens\":5000,\"n_ctx\":4096}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{500,
		 "{\"error\":{\"message\":\"the request exceeds the available context size (4096 "
		 "tokens)\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"object\":\"error\",\"message\":\"This model's maximum context length is 4096 "
		 "tokens. However, you requested 5000 tokens\",\"type\":\"BadRequestError\","
		 "\"param\":null,\"code\":400}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"Prompt contains 40000 tokens, too large for model with "
		 "32768 maximum context length\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"Your request exceeded model token limit: 262144 "
		 "(requested: 300000)\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"prompt token count of 9 exceeds the limit of 8\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400, "{\"error\":\"prompt too long; exceeded max context length by 4 tokens\"}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":\"Trying to keep the first 9000 tokens when context overflows: the "
		 "number "
		 "of tokens to keep from the initial prompt is greater than the context length\"}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"code\":400,\"message\":\"Provider returned error\",\"metadata\":{"
		 "\"raw\":\"{\\\"error\\\":{\\\"message\\\":\\\"prompt is too long: 5 tokens > 4 "
		 "maximum\\\"}}\"}}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{413,
		 "{\"type\":\"error\",\"error\":{\"type\":\"request_too_large\",\"message\":"
		 "\"Request "
		 "exceeds the maximum size\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{413, "<html><title>413 Request Entity Too Large</title></html>",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		/* LiteLLM, around the words of whoever it asked, and by itself */
		{400,
		 "{\"error\":{\"message\":\"litellm.BadRequestError: "
		 "litellm.ContextWindowExceededError: AnthropicError - {\\\"type\\\":"
		 "\\\"error\\\",\\\"error\\\":{\\\"type\\\":\\\"invalid_request_error\\\","
		 "\\\"message\\\":\\\"prompt is too long: 200480 tokens > 200000 maximum\\\"}}"
		 "\\nReceived Model Group=x\\nAvailable Model Group Fallbacks=None\",\"type\":null,"
		 "\"param\":null,\"code\":\"400\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"litellm.ContextWindowExceededError: "
		 "litellm.BadRequestError: Context Window exceeded for given call. No models have "
		 "context window large enough for this call.\",\"type\":null,\"param\":null,"
		 "\"code\":\"400\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"error\":{\"message\":\"litellm.ContextWindowExceededError: OpenAIException - "
		 "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted "
		 "in 300012 tokens.\",\"type\":null,\"param\":null,\"code\":\"400\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		/* llama.cpp, before it begins and while it answers; LM Studio says the latter too
		 */
		{400,
		 "{\"error\":{\"code\":400,\"message\":\"request (9412 tokens) exceeds the "
		 "available context size (8192 tokens), try increasing it\",\"type\":"
		 "\"exceed_context_size_error\",\"n_prompt_tokens\":9412,\"n_ctx\":8192}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{500,
		 "{\"error\":{\"code\":500,\"message\":\"Context size has been exceeded.\","
		 "\"type\":\"server_error\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		/* vLLM */
		{400,
		 "{\"object\":\"error\",\"message\":\"The decoder prompt (length 5951) is longer "
		 "than the maximum model length of 4096.\",\"type\":\"BadRequestError\",\"param\":"
		 "null,\"code\":400}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{400,
		 "{\"object\":\"error\",\"message\":\"max_tokens must be at least 1, got -186.\","
		 "\"type\":\"BadRequestError\",\"param\":null,\"code\":400}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
		/* A number that is none says nothing. */
		{400,
		 "{\"error\":{\"message\":\"maximum context length is 99999999999999999999 "
		 "tokens\"}}",
		 RLMD_ERROR_CONTEXT_OVERFLOW, false},
	};

	(void)state;
	CHECK(cases);
}

/* ... but not what only resembles it. */
static void no_overflows(void **state)
{
	static const struct expectation cases[] = {
		{400,
		 "{\"message\":\"ThrottlingException: Too many requests, reduce the length of the "
		 "messages\"}",
		 RLMD_ERROR_THROTTLED, true},
		{503, "Service unavailable: maximum context length", RLMD_ERROR_OVERLOADED, true},
	};

	(void)state;
	CHECK(cases);
}

/* A3: the field that a 400 complains of is the one to do without, in both directions. */
static void rooms(void **state)
{
	struct failure failure;

	(void)state;
	failure_of_status(400,
			  text_of("{\"error\":{\"code\":400,\"message\":\"the request exceeds the "
				  "available context size, try increasing it\",\"type\":"
				  "\"exceed_context_size_error\",\"n_prompt_tokens\":5000,"
				  "\"n_ctx\":4096}}"),
			  &failure);
	assert_int_equal(failure.kind, RLMD_ERROR_CONTEXT_OVERFLOW);
	assert_int_equal(failure.room.window, 4096);
	assert_int_equal(failure.room.prompt, 5000);
	/* Nothing else that has numbers is of the model's size. */
	failure_of_status(500, text_of("{\"error\":\"maximum context length is 4096 crashed\"}"),
			  &failure);
	assert_int_equal(failure.kind, RLMD_ERROR_CONTEXT_OVERFLOW);
	failure_of_status(
		429,
		text_of("{\"error\":{\"message\":\"supports at most 4096 completion tokens\","
			"\"code\":\"rate_limit_exceeded\"}}"),
		&failure);
	assert_int_equal(failure.room.output, 0);
}

static void quirks(void **state)
{
	static const struct {
		int status;
		const char *body;
		unsigned quirk;
	} cases[] = {
		{400,
		 "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported "
		 "with "
		 "this model. Use 'max_completion_tokens' instead.\",\"type\":"
		 "\"invalid_request_error\",\"param\":\"max_tokens\",\"code\":"
		 "\"unsupported_parameter\"}}",
		 QUIRK_NEW_MAX_TOKENS},
		{400,
		 "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported "
		 "with "
		 "this model. Use 'max_completion_tokens' instead.\"}}",
		 QUIRK_NEW_MAX_TOKENS},
		{400,
		 "{\"error\":{\"message\":\"Unrecognized request argument supplied: "
		 "max_completion_tokens\",\"type\":\"invalid_request_error\"}}",
		 QUIRK_OLD_MAX_TOKENS},
		{422,
		 "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\","
		 "\"max_completion_tokens\"],\"msg\":\"Extra inputs are not permitted\"}]}",
		 QUIRK_OLD_MAX_TOKENS},
		{400,
		 "{\"error\":{\"message\":\"Unknown parameter: 'stream_options'.\",\"param\":"
		 "\"stream_options\"}}",
		 QUIRK_NO_STREAM_OPTIONS},
		{422,
		 "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"stream_options\"],"
		 "\"msg\":\"Extra inputs are not permitted\",\"input\":{}}]}",
		 QUIRK_NO_STREAM_OPTIONS},
		{400,
		 "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		 "\"system.0.cache_control: Extra inputs are not permitted\"}}",
		 QUIRK_NO_CACHE_CONTROL},
		{400,
		 "{\"error\":{\"message\":\"Your organization must be verified to stream this "
		 "model.\",\"param\":\"stream\",\"code\":\"unsupported_value\"}}",
		 QUIRK_NO_STREAM},
		{400,
		 "{\"error\":{\"message\":\"Unsupported value: 'stream' does not support true with "
		 "this model.\"}}",
		 QUIRK_NO_STREAM},
		{400, "{\"error\":{\"message\":\"`temperature` is deprecated for this model.\"}}",
		 QUIRK_NO_TEMPERATURE},
		{400,
		 "{\"error\":{\"message\":\"Unsupported value: 'temperature' does not support 0.2 "
		 "with this model. Only the default (1) value is supported.\",\"param\":"
		 "\"temperature\",\"code\":\"unsupported_value\"}}",
		 QUIRK_NO_TEMPERATURE},
		{400,
		 "{\"error\":{\"message\":\"Unsupported parameter: 'stop' is not supported with "
		 "this model.\",\"param\":\"stop\",\"code\":\"unsupported_parameter\"}}",
		 QUIRK_NO_STOP},
		{400,
		 "{\"error\":{\"message\":\"Unsupported value: 'messages[0].role' does not support "
		 "'system' with this model.\",\"type\":\"invalid_request_error\",\"param\":"
		 "\"messages[0].role\",\"code\":\"unsupported_value\"}}",
		 QUIRK_NO_SYSTEM},
		{400,
		 "{\"object\":\"error\",\"message\":\"System role not supported\",\"type\":"
		 "\"BadRequestError\",\"param\":null,\"code\":400}",
		 QUIRK_NO_SYSTEM},
		{500,
		 "{\"error\":{\"code\":500,\"message\":\"System role not supported at row 1, column "
		 "65\",\"type\":\"server_error\"}}",
		 QUIRK_NO_SYSTEM},
		{400,
		 "{\"object\":\"error\",\"message\":\"Conversation roles must alternate "
		 "user/assistant/user/assistant/...\",\"type\":\"BadRequestError\"}",
		 QUIRK_NO_SYSTEM},
		{400,
		 "[{\"error\":{\"code\":400,\"message\":\"Developer instruction is not enabled for "
		 "models/gemma-3-27b-it\",\"status\":\"INVALID_ARGUMENT\"}}]",
		 QUIRK_NO_SYSTEM},
		/* Refused for its value, which is the user's. */
		{400,
		 "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		 "\"temperature: range: 0..1\"}}",
		 QUIRK_NONE},
		{500,
		 "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens'\",\"param\":"
		 "\"max_tokens\"}}",
		 QUIRK_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct failure failure;

		failure_of_status(cases[i].status, text_of(cases[i].body), &failure);
		if (failure.quirk != cases[i].quirk)
			fail_msg("%s: %u", cases[i].body, failure.quirk);
		assert_false(failure.retry && cases[i].status == 400);
		if (failure.quirk)
			assert_int_equal(failure.kind, RLMD_ERROR_BAD_REQUEST);
	}
}

/* Errors that came with status 200: by their code, their number, or as a server that broke. */
static void errors_after_200(void **state)
{
	static const struct expectation cases[] = {
		{0, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
		 RLMD_ERROR_OVERLOADED, true},
		{0, "{\"error\":{\"code\":429,\"message\":\"x\"}}", RLMD_ERROR_THROTTLED, true},
		{0, "{\"error\":{\"code\":401,\"message\":\"x\"}}", RLMD_ERROR_AUTH, false},
		{0, "{\"error\":{\"code\":\"insufficient_quota\"}}", RLMD_ERROR_BILLING, false},
		{0, "{\"error\":{\"code\":7,\"message\":\"x\"}}", RLMD_ERROR_OVERLOADED, true},
		{0, "{\"error\":\"prompt is too long\"}", RLMD_ERROR_CONTEXT_OVERFLOW, false},
		{0, "{\"error\":\"the runner is gone\"}", RLMD_ERROR_OVERLOADED, true},
		{0, "<html>", RLMD_ERROR_BAD_REPLY, true},
		{0, "", RLMD_ERROR_BAD_REPLY, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct failure failure;

		failure_of_body(text_of(cases[i].body), &failure);
		if (failure.kind != cases[i].kind || failure.retry != cases[i].retry)
			fail_msg("%s: %s", cases[i].body, rlmd_error_name(failure.kind));
	}
}

static void no_answer_at_all(void **state)
{
	static const struct expectation cases[] = {
		{204, "", RLMD_ERROR_BAD_REPLY, true},
		{0, "", RLMD_ERROR_BAD_REPLY, true},
		{999, "{}", RLMD_ERROR_BAD_REPLY, true},
		{-1, "[]", RLMD_ERROR_BAD_REPLY, true},
	};

	(void)state;
	CHECK(cases);
}

/* The message is the provider's, harmless to a terminal, and of bounded length. */
static void messages(void **state)
{
	static const char *const cases[][2] = {
		{"{\"error\":{\"message\":\"a\\u001b[31mb\\nc\"}}", "a\\x1b[31mb\\nc"},
		{"{\"error\":\"plain\"}", "plain"},
		{"{\"detail\":\"not here\"}", "not here"},
		{"{\"detail\":[{\"msg\":\"field required\"}]}", "field required"},
		{"{\"message\":\"top\"}", "top"},
		{"[{\"error\":{\"message\":\"in a list\"}}]", "in a list"},
		{"{\"error\":{\"message\":\"outer\",\"metadata\":{\"raw\":\"inner\"}}}", "inner"},
		{"<html><head><TITLE> Bad\ngateway </TITLE></head>", "Bad\\ngateway"},
		{"<html>nothing to say", ""},
		{" no JSON\x01 ", "no JSON\\x01"},
		{"{\"error\":{}}", ""},
		{"{\"error\":7}", ""},
		{"\"text\"", ""},
		{"", ""},
	};
	char *letters = xcalloc(100001, 1);
	struct failure failure;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		failure_of_status(500, text_of(cases[i][0]), &failure);
		if (strcmp(failure.message, cases[i][1]))
			fail_msg("%s: '%s'", cases[i][0], failure.message);
	}
	memset(letters, 'a', 100000);
	failure_of_status(500, text_from(letters, 100000), &failure);
	assert_int_equal(strlen(failure.message), sizeof failure.message - 1);
	free(letters);
}

/* Nesting and odd types are survived. */
static void hostile_bodies(void **state)
{
	static const char *const bodies[] = {
		"{\"error\":{\"message\":{},\"code\":[],\"type\":7,\"param\":{},\"metadata\":7}}",
		"{\"detail\":[[]]}",
		"{\"detail\":[{\"loc\":[],\"msg\":7}]}",
		"{\"choices\":[7],\"error\":null}",
		"[[[]]]",
		"{\"error\":{\"n_ctx\":-5,\"type\":\"exceed_context_size_error\"}}",
		"\xff\xfe\xfd",
	};
	char deep[2000];
	struct failure failure;

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		failure_of_status(400, text_of(bodies[i]), &failure);
		failure_of_body(text_of(bodies[i]), &failure);
		assert_true(failure.kind != RLMD_ERROR_NONE);
	}
	memset(deep, '[', sizeof deep);
	failure_of_status(500, text_from(deep, sizeof deep), &failure);
	assert_int_equal(failure.kind, RLMD_ERROR_OVERLOADED);
}

/* Failures worth minutes of waiting; the same words of what never passes are not.
 */
static void busy_servers(void **state)
{
	static const struct {
		int status;
		const char *body, *busy;
	} cases[] = {
		{503,
		 "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":"
		 "\"unavailable_error\"}}",
		 "it is being loaded"},
		{503, "{\"error\":\"Model org/name is currently loading\",\"estimated_time\":20.0}",
		 "it is being loaded"},
		{500, "{\"error\":\"unexpected server status: llm server loading model\"}",
		 "it is being loaded"},
		{500,
		 "{\"error\":{\"message\":\"litellm.InternalServerError: OpenAIException - Loading "
		 "model\",\"type\":null,\"param\":null,\"code\":\"500\"}}",
		 "it is being loaded"},
		{503, "", "it is overloaded"},
		{529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
		 "it is overloaded"},
		{429, "", "its rate is limited"},
		{503,
		 "{\"error\":\"server busy, please try again.  maximum pending requests "
		 "exceeded\"}",
		 "its rate is limited"},
		{500, "{\"error\":\"error loading model /models/x.gguf\"}", NULL},
		{400, "{\"error\":{\"message\":\"Loading model failed\"}}", NULL},
		{500, "{\"error\":\"model requires more system memory than is available\"}", NULL},
		{429, "{\"error\":{\"code\":\"insufficient_quota\"}}", NULL},
		{500, "", NULL},
		{502, "", NULL},
		{504, "", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct failure failure;

		failure_of_status(cases[i].status, text_of(cases[i].body), &failure);
		if (!cases[i].busy != !failure.busy ||
		    (failure.busy && strcmp(failure.busy, cases[i].busy)))
			fail_msg("%d %s: %s", cases[i].status, cases[i].body,
				 failure.busy ? failure.busy : "nothing");
	}
}

/* 2026-11-21 09:30:00 UTC */
#define NOW INT64_C(1795253400000)

/* A6: the server's word comes first, in whichever of its forms. */
static void delays_that_servers_ask_for(void **state)
{
	static const struct {
		const char *ms, *after;
		int64_t delay;
	} cases[] = {
		{"250", NULL, 250},
		{"250.5", "7", 251},
		{NULL, "2", 2000},
		{NULL, "1.5", 1500},
		{"nonsense", "2", 2000},
		{NULL, "6s", 6000},
		{NULL, "1m0s", 60000},
		{NULL, "20ms", 20},
		{NULL, "1m2.5s", 62500},
		{NULL, "Sat, 21 Nov 2026 09:30:05 GMT", 5000},
		{NULL, "Saturday, 21-Nov-26 09:30:05 GMT", 5000},
		{NULL, "Sat Nov 21 09:30:05 2026", 5000},
		{NULL, "Sat, 21 Nov 2026 10:30:05 +0100", 5000},
		{NULL, "120", 120000},
		{NULL, "6m0s", 360000},
		{NULL, "99999999999999999999999999999999", GATE_TOLD_MAX},
		{NULL, "Sat, 21 Nov 2026 10:30:00 GMT", 3600000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t delay = gate_delay(1, cases[i].ms, cases[i].after, NOW, 0.5);

		if (delay != cases[i].delay)
			fail_msg("%s, %s: %lld", cases[i].ms, cases[i].after, (long long)delay);
	}
}

/* Without a word that makes sense, the official SDKs' back-off holds. */
static void backing_off(void **state)
{
	static const char *const senseless[] = {
		"0",           "-5",  "",    "soon",  "1e3",
		"0x10",        "inf", "nan", "1.2.3", ".",
		"5 s",         "5d",  "5s5", "s",     "Sat, 21 Nov 2026 09:29:00 GMT",
		"Sat, 21 Nov",
	};
	static const int64_t delays[] = {500, 1000, 2000, 4000, 8000, 16000, 30000, 30000};

	(void)state;
	for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++)
		if (gate_delay(1, NULL, senseless[i], NOW, 0) != 500 ||
		    gate_delay(1, senseless[i], NULL, NOW, 0) != 500)
			fail_msg("'%s'", senseless[i]);
	for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
		int attempt = (int)i + 1;

		assert_int_equal(gate_delay(attempt, NULL, NULL, NOW, 0), delays[i]);
		assert_int_equal(gate_delay(attempt, NULL, NULL, NOW, 1), delays[i] * 3 / 4);
	}
	assert_int_equal(gate_delay(1000000, NULL, NULL, NOW, 0), 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_budgets),
		cmocka_unit_test(throttles),
		cmocka_unit_test(too_large_for_any_minute),
		cmocka_unit_test(broken_servers),
		cmocka_unit_test(keys_models_and_requests),
		cmocka_unit_test(refusals),
		cmocka_unit_test(overflows),
		cmocka_unit_test(no_overflows),
		cmocka_unit_test(rooms),
		cmocka_unit_test(quirks),
		cmocka_unit_test(errors_after_200),
		cmocka_unit_test(no_answer_at_all),
		cmocka_unit_test(messages),
		cmocka_unit_test(hostile_bodies),
		cmocka_unit_test(busy_servers),
		cmocka_unit_test(delays_that_servers_ask_for),
		cmocka_unit_test(backing_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
