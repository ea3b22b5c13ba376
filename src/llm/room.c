#include "llm/room.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

enum {
	LEAST = 256, /* tokens of an answer, and of a window: fewer are of no use, or misread */
	MOST = 100000000,
	SLACK = 16, /* tokens between what fits and the window: some servers want it not reached */
};

/*
 * %w is a window, %o the most output, %x one more than that, %p the prompt, %n another number. A
 * space stands for any number of them. The first row that reads a number has told it.
 */
static const char *const forms[] = {
	/* OpenAI, Azure, vLLM, OpenRouter, DeepSeek: the window; then the prompt, by version */
	"maximum context length is %w",
	"you requested %n tokens (%p in",
	"you requested about %n tokens (%p of text",
	"resulted in %p tokens",
	"your request has %p input tokens",
	"your prompt contains %p input tokens",
	"your prompt contains at least %p input tokens",
	"the prompt contains %p input tokens",
	/* vLLM, by version */
	"you passed %p input tokens",
	"context length is only %w",
	"(length %p) is longer than the maximum model length of %w",
	"cannot be greater than max_model_len=max_total_tokens=%w",
	"cannot be greater than max_model_len=%w",
	/* SGLang */
	"maximum context length of %w",
	"%p tokens from the input messages",
	"the input (%p tokens) is longer than the model's context length (%w tokens)",
	/* Text Generation Inference, Together */
	"`max_new_tokens` must be <= %w. given: %p `inputs`",
	"validation error: `max_new_tokens` must be <= %o",
	/* llama.cpp, LM Studio */
	"request (%p tokens) exceeds the available context size (%w tokens",
	"loaded with context length of only %w tokens",
	"first %p tokens when context",
	/* Mistral, Fireworks, Cerebras, Moonshot */
	"prompt contains %p tokens",
	"too large for model with %w maximum context length",
	"prompt is too long: %p, model maximum context length: %w",
	"current length is %n while limit is %w",
	"exceeded model token limit: %w",
	/* Anthropic */
	"exceed context limit: %p + %n > %w",
	"prompt is too long: %p tokens > %w maximum",
	"max_tokens: %n > %o, which is the maximum",
	/* Gemini */
	"supported range is from %n (inclusive) to %x (exclusive)",
	"supported range is from %n to %x",
	/* OpenAI, Groq and Cohere, DeepSeek, Qwen, Ollama's cloud, Bedrock: the output alone */
	"supports at most %o completion tokens",
	"max_tokens` must be less than or equal to %o",
	"max_completion_tokens` must be less than or equal to %o",
	"max tokens must be less than or equal to %o",
	"range of max_tokens is [%n, %o]",
	"range of max_tokens should be [%n, %o]",
	"range of max_completion_tokens should be [%n, %o]",
	"maximum output tokens (%o)",
	"maximum tokens you requested exceeds the model limit of %o",
	"max_completion_tokens is not valid: expected a value <= %o",
	"max_tokens is not valid: expected a value <= %o",
};

/* A number as people write it, in backticks or not; NULL: there is none. */
static const char *read_number(const char *at, int64_t *ret)
{
	*ret = 0;
	at += *at == '`';
	if (!isdigit((unsigned char)*at))
		return NULL;
	for (; isdigit((unsigned char)*at) ||
	       ((*at == ',' || *at == '_') && isdigit((unsigned char)at[1]));
	     at++)
		if (isdigit((unsigned char)*at) && *ret <= MOST)
			*ret = *ret * 10 + (*at - '0');
	return at + (*at == '`');
}

/* Reads the form's numbers where it stands at that place of the words; else false. */
static bool read_at(const char *words, const char *form, struct room *ret)
{
	while (*form) {
		int64_t number;

		if (*form == ' ') {
			if (!isspace((unsigned char)*words))
				return false;
			words += strspn(words, " \t\r\n");
			form++;
		} else if (*form != '%') {
			if (tolower((unsigned char)*words++) != *form++)
				return false;
		} else {
			words = read_number(words, &number);
			if (!words)
				return false;
			if (form[1] == 'w')
				ret->window = number;
			else if (form[1] == 'p')
				ret->prompt = number;
			else if (form[1] != 'n')
				ret->output = number - (form[1] == 'x');
			form += 2;
		}
	}
	return true;
}

static int64_t believable(int64_t count)
{
	return count >= LEAST && count <= MOST ? count : 0;
}

void room_read(const char *words, struct room *ret)
{
	*ret = (struct room){0};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		for (const char *at = words; *at; at++) {
			struct room found = {0};

			if (!read_at(at, forms[i], &found))
				continue;
			ret->window = ret->window ? ret->window : believable(found.window);
			ret->output = ret->output ? ret->output : believable(found.output);
			ret->prompt = ret->prompt ? ret->prompt : found.prompt;
			break;
		}
}

int64_t room_fit(const struct room *room, int64_t refused, int64_t estimate)
{
	int64_t fits = refused, guess = refused / 2;

	if (room->output)
		fits = int64_min(fits, room->output);
	if (!room->window)
		return fits < refused ? fits : 0;
	/* vLLM stops counting at the first token too many, and tells that. */
	if (room->prompt && room->prompt != room->window - refused + 1)
		guess = room->window - room->prompt - SLACK;
	else if (estimate / 2 > room->window)
		guess = 0;
	else if (room->window - estimate - estimate / 4 >= LEAST)
		guess = int64_min(room->window - estimate - estimate / 4, refused / 4 * 3);
	fits = int64_min(fits, guess);
	return fits >= LEAST && fits < refused ? fits : 0;
}
