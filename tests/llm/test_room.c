/* The numbers in complaints that a request is too large, in the words of the servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/room.h"

static const struct {
	const char *words;
	struct room room; /* window, output, prompt */
} complaints[] = {
	/* clang-format off */
	/* OpenAI; vLLM up to 0.9 */
	{"This model's maximum context length is 8192 tokens. However, you requested 8204 tokens (12 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
	 {8192, 0, 12}},
	{"This model's maximum context length is 4097 tokens, however you requested 4197 tokens (97 in your prompt; 4100 for the completion).",
	 {4097, 0, 97}},
	{"This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens.",
	 {128000, 0, 130512}},
	{"max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.",
	 {0, 4096, 0}},
	/* vLLM from 0.10 on */
	{"'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is      64001 tokens and your request has 24235 input tokens (64000 > 64001 - 24235). None",
	 {64001, 0, 24235}},
	{"You passed 7681 input tokens and requested 512 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7680 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=7681)",
	 {8192, 0, 7681}},
	{"This model's maximum context length is 8192 tokens. However, you requested 64 output tokens and your prompt contains 10000 input tokens, for a total of 10064 tokens.",
	 {8192, 0, 10000}},
	{"This model's maximum context length is 32768 tokens. However, you requested 8192 output tokens and your prompt contains at least 24577 input tokens, for a total of at least 32769 tokens.",
	 {32768, 0, 24577}},
	{"max_completion_tokens=131072 cannot be greater than max_model_len=max_total_tokens=65536",
	 {65536, 0, 0}},
	/* SGLang */
	{"Requested token count exceeds the model's maximum context length of 64000 tokens. You requested a total of 71897 tokens: 7897 tokens from the input messages and 64000 tokens for the completion.",
	 {64000, 0, 7897}},
	{"The input (10009 tokens) is longer than the model's context length (8192 tokens).",
	 {8192, 0, 10009}},
	/* OpenRouter */
	{"This endpoint's maximum context length is 32768 tokens. However, you requested about 50000 tokens (41808 of text input, 8192 in the output).",
	 {32768, 0, 41808}},
	/* Text Generation Inference */
	{"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1000 `inputs` tokens and 8192 `max_new_tokens`",
	 {4096, 0, 1000}},
	{"Input validation error: `max_new_tokens` must be <= 4096. Given: 20000", {0, 4096, 0}},
	/* llama.cpp, LM Studio */
	{"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
	 {4096, 0, 5000}},
	{"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
	 {4096, 0, 5000}},
	/* Mistral, Cerebras, Moonshot, xAI says no more than this */
	{"Prompt contains 300000 tokens, too large for model with 131072 maximum context length",
	 {131072, 0, 300000}},
	{"Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
	 {8192, 0, 0}},
	{"Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
	 {262144, 0, 0}},
	/* Anthropic */
	{"max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307",
	 {0, 4096, 0}},
	{"input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000, decrease input length or `max_tokens` and try again",
	 {200000, 0, 195000}},
	{"prompt is too long: 208310 tokens > 200000 maximum", {200000, 0, 208310}},
	/* Gemini */
	{"Unable to submit request because it has a maxOutputTokens value of 32768 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.",
	 {0, 8192, 0}},
	/* Groq, DeepSeek, Qwen, Ollama's cloud, Bedrock */
	{"`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less than the `context_window` for this model",
	 {0, 4096, 0}},
	{"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", {0, 8192, 0}},
	{"<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 2000]",
	 {0, 2000, 0}},
	{"max_tokens (65536) exceeds model's maximum output tokens (32,768) for model kimi-k3",
	 {0, 32768, 0}},
	{"The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.",
	 {0, 4096, 0}},
	{"max_completion_tokens is not valid: expected a value <= 8192, but got 32000 instead",
	 {0, 8192, 0}},
	/* nothing of that kind, or nothing to be believed */
	{"Rate limit reached for gpt-test on tokens per min (TPM): Limit 30000, Used 3, Requested 1.", {0}},
	{"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 32000.", {0}},
	{"Unsupported parameter: 'max_tokens' is not supported with this model.", {0}},
	{"This model's maximum context length is 3 tokens.", {0}},
	{"This model's maximum context length is 99999999999999999999999 tokens.", {0}},
	{"This model's maximum context length is", {0}},
	{"", {0}},
	/* clang-format on */
};

static void test_complaints(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof complaints / sizeof *complaints; i++) {
		const struct room *expected = &complaints[i].room;
		struct room room;

		room_read(complaints[i].words, &room);
		if (room.window != expected->window || room.output != expected->output ||
		    room.prompt != expected->prompt)
			fail_msg("%s: %ld, %ld, %ld", complaints[i].words, (long)room.window,
				 (long)room.output, (long)room.prompt);
	}
}

static void test_fit(void **state)
{
	static const struct {
		struct room room;
		int64_t refused, estimate, fits;
	} rows[] = {
		{{0, 4096, 0}, 8192, 1000, 4096},
		{{8192, 0, 1200}, 8192, 1000, 8192 - 1200 - 16},
		{{8192, 2048, 1200}, 8192, 1000, 2048},
		/* the prompt alone is too long, or leaves too little */
		{{8192, 0, 9000}, 8192, 1000, 0},
		{{8192, 0, 8000}, 8192, 1000, 0},
		{{8192, 0, 0}, 8192, 20000, 0},
		/* what would fit is what was refused: it was not for that */
		{{0, 8192, 0}, 8192, 1000, 0},
		{{32768, 0, 1000}, 8192, 1000, 0},
		/* the prompt was not counted to its end: by our estimate, or half */
		{{8192, 0, 1}, 8192, 2000, 8192 - 2500},
		{{8192, 0, 8192 - 4000 + 1}, 4000, 2000, 3000},
		{{8192, 0, 0}, 4096, 7000, 2048},
		{{0}, 8192, 1000, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t fits = room_fit(&rows[i].room, rows[i].refused, rows[i].estimate);

		if (fits != rows[i].fits)
			fail_msg("row %zu: %ld", i, (long)fits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complaints),
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
