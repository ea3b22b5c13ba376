#include "llm/failure.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "llm/adapter.h"

enum {
	JSON_DEPTH = 64,
	WORDS_SIZE = 4096, /* of a message: what decides stands in its first sentences */
};

struct verdict {
	const char *sign; /* in any case */
	enum rlmd_error_kind kind;
	bool retry;
};

/* The verdicts that `code` or `type` of an error object give outright. */
static const struct verdict codes[] = {
	{"insufficient_quota", RLMD_ERROR_BILLING, false},
	{"billing_error", RLMD_ERROR_BILLING, false},
	{"billing_not_active", RLMD_ERROR_BILLING, false},
	{"billing_hard_limit_reached", RLMD_ERROR_BILLING, false},
	{"payment_required", RLMD_ERROR_BILLING, false},
	{"context_length_exceeded", RLMD_ERROR_CONTEXT_OVERFLOW, false},
	{"exceed_context_size_error", RLMD_ERROR_CONTEXT_OVERFLOW, false},
	{"model_context_window_exceeded", RLMD_ERROR_CONTEXT_OVERFLOW, false},
	{"request_too_large", RLMD_ERROR_CONTEXT_OVERFLOW, false},
	{"string_above_max_length", RLMD_ERROR_CONTEXT_OVERFLOW, false},
	{"content_filter", RLMD_ERROR_REFUSED, false},
	{"content_policy_violation", RLMD_ERROR_REFUSED, false},
	{"invalid_prompt", RLMD_ERROR_REFUSED, false},
	{"rate_limit_exceeded", RLMD_ERROR_THROTTLED, true},
	{"rate_limit_error", RLMD_ERROR_THROTTLED, true},
	{"resource_exhausted", RLMD_ERROR_THROTTLED, true},
	{"requests", RLMD_ERROR_THROTTLED, true},
	{"tokens", RLMD_ERROR_THROTTLED, true},
	{"overloaded_error", RLMD_ERROR_OVERLOADED, true},
	{"api_error", RLMD_ERROR_OVERLOADED, true},
	{"timeout_error", RLMD_ERROR_OVERLOADED, true},
	{"server_error", RLMD_ERROR_OVERLOADED, true},
	{"invalid_api_key", RLMD_ERROR_AUTH, false},
	{"authentication_error", RLMD_ERROR_AUTH, false},
	{"permission_error", RLMD_ERROR_AUTH, false},
	{"model_not_found", RLMD_ERROR_NOT_FOUND, false},
	{"not_found_error", RLMD_ERROR_NOT_FOUND, false},
};

/* A single request above the allowance of a whole minute: waiting cannot help it. */
static const char too_large_for_minute[] = "request too large for";

/* Prompts beyond the window, as every server words it. */
static const char *const overflows[] = {
	"prompt is too long",
	"prompt too long; exceeded",
	"input is too long for requested model",
	"exceeds the context window",
	"exceed context limit",
	"context window exceeds limit",
	"maximum context length",
	"maximum prompt length is",
	"maximum allowed input length",
	"exceeds the maximum number of tokens",
	"longer than the model's context length",
	"reduce the length of the messages",
	"exceeds the available context size",
	"greater than the context length",
	"exceeded model token limit",
	"prompt token count of",
	"context length exceeded",
	"context_length_exceeded",
	"contextwindowexceedederror", /* LiteLLM's, around whatever the provider said */
	"context window exceeded",
	"context size has been exceeded", /* LM Studio */
	"tokens exceed the configured limit",
	"is longer than the maximum model length", /* vLLM, by version, ... */
	"must be at least 1, got -",               /* ... where nothing is left for the answer */
	"request_too_large",
};

/* ... unless it speaks of something else that is too much. */
static const char *const overflow_guards[] = {
	"rate limit",
	"too many requests",
	"throttling",
	"service unavailable",
};

/* The verdicts that the message gives where the code gives none. Never by the word "quota" alone:
 * some mean the rate by it; nor by "billing" alone: notes on rate limits link to that page. */
static const struct verdict phrases[] = {
	{"credit balance is too low", RLMD_ERROR_BILLING, false},
	{"check your plan and billing", RLMD_ERROR_BILLING, false},
	{"insufficient credit", RLMD_ERROR_BILLING, false},
	{"insufficient balance", RLMD_ERROR_BILLING, false},
	{"requires more credits", RLMD_ERROR_BILLING, false},
	{"out of credits", RLMD_ERROR_BILLING, false},
	{"maximum pending requests exceeded", RLMD_ERROR_THROTTLED, true},
	{"too many requests", RLMD_ERROR_THROTTLED, true},
	{"rate limit reached", RLMD_ERROR_THROTTLED, true},
	{"rate limit exceeded", RLMD_ERROR_THROTTLED, true},
	{"content management policy", RLMD_ERROR_REFUSED, false},
	{"content filtering policy", RLMD_ERROR_REFUSED, false},
	{"input was flagged", RLMD_ERROR_REFUSED, false},
	{"requires moderation", RLMD_ERROR_REFUSED, false},
	{"api key not valid", RLMD_ERROR_AUTH, false},
	{"not a valid model", RLMD_ERROR_NOT_FOUND, false},
	{"invalid model name", RLMD_ERROR_NOT_FOUND, false}, /* LiteLLM, with status 400 */
	{"no models loaded", RLMD_ERROR_NOT_FOUND, false},   /* LM Studio, likewise */
	{"requires more system memory", RLMD_ERROR_OVERLOADED, false},
};

static const struct {
	int first, last;
	enum rlmd_error_kind kind;
	bool retry;
} statuses[] = {
	{300, 399, RLMD_ERROR_NOT_FOUND, false}, /* a redirect: the base URL is not quite right */
	{401, 401, RLMD_ERROR_AUTH, false},      {402, 402, RLMD_ERROR_BILLING, false},
	{403, 403, RLMD_ERROR_AUTH, false},      {404, 404, RLMD_ERROR_NOT_FOUND, false},
	{407, 407, RLMD_ERROR_AUTH, false}, /* by a proxy */
	{408, 409, RLMD_ERROR_OVERLOADED, true}, {413, 413, RLMD_ERROR_CONTEXT_OVERFLOW, false},
	{429, 429, RLMD_ERROR_THROTTLED, true},  {400, 499, RLMD_ERROR_BAD_REQUEST, false},
	{500, 599, RLMD_ERROR_OVERLOADED, true},
};

/* Fields that some models and servers refuse, and what to do without them. */
static const struct {
	const char *field, *mention; /* as a parameter's name; within a sentence */
	unsigned quirk;
} adaptations[] = {
	{"max_tokens", "max_tokens", QUIRK_NEW_MAX_TOKENS},
	{"max_completion_tokens", "max_completion_tokens", QUIRK_OLD_MAX_TOKENS},
	{"stream_options", "stream_options", QUIRK_NO_STREAM_OPTIONS},
	{"cache_control", "cache_control", QUIRK_NO_CACHE_CONTROL},
	{"stream", "'stream'", QUIRK_NO_STREAM},
	{"temperature", "temperature", QUIRK_NO_TEMPERATURE},
	{"stop", "'stop'", QUIRK_NO_STOP},
	{"stop_sequences", "stop_sequences", QUIRK_NO_STOP},
};

/* How a schema of the reply is sent: where that is complained of, for whatever reason, the request
 * does without, for the answer is held to it afterwards. */
static const char *const schema_fields[] = {
	"response_format", "json_schema", "output_config",
	"invalid schema",  "'format'",    "invalid format",
};

/* That there may be no system prompt: OpenAI's o1, the templates of Gemma, Mistral and Llama 2
 * (which complain of the order of roles), Gemini. llama.cpp says it with status 500. */
static const char *const system_refusals[] = {
	"does not support 'system'",         "system role not supported",
	"system role is not supported",      "only user and assistant roles are supported",
	"conversation roles must alternate", "developer instruction is not enabled",
};

/* That a field is refused as such, and not for its value. */
static const char *const rejections[] = {
	"unsupported",
	"not supported",
	"does not support",
	"unrecognized",
	"unknown",
	"unexpected",
	"not permitted",
	"extra_forbidden",
	"additional properties",
	"must be verified",
	"is deprecated for this model",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The texts of an error body, wherever its provider puts them. */
struct complaint {
	json_t *root; /* owned; NULL where the body is no JSON */
	int status;
	struct rlmd_text code, type, param; /* lent by `root` */
	char words[WORDS_SIZE];             /* escaped */
	int64_t window, prompt;             /* as fields, which llama.cpp has; or 0 */
};

/* FastAPI's list of what is wrong with a request: the first of it. */
static struct rlmd_text take_detail(const json_t *detail, struct complaint *complaint)
{
	const json_t *first = json_array_get(detail, 0);
	const json_t *location = json_object_get(first, "loc");

	if (!first)
		return json_text(detail);
	complaint->param = json_text(json_array_get(location, json_array_size(location) - 1));
	complaint->code = json_get_text(first, "type");
	return json_get_text(first, "msg");
}

static struct rlmd_text first_of(struct rlmd_text a, struct rlmd_text b)
{
	return a.size ? a : b;
}

/* LiteLLM's message is now and then an object, with the words in it. */
static struct rlmd_text message_of(const json_t *source)
{
	const json_t *message = json_object_get(source, "message");

	return json_is_object(message) ? json_get_text(message, "error") : json_text(message);
}

static void read_json(const json_t *root, struct complaint *complaint)
{
	const json_t *first = json_is_array(root) ? json_array_get(root, 0) : root;
	const json_t *choice = json_array_get(json_object_get(first, "choices"), 0);
	const json_t *error = json_object_get(json_object_get(choice, "error") ? choice : first,
					      "error");
	const json_t *source = json_is_object(error) ? error : first;
	/* The words of a router's back end, often JSON themselves. */
	struct rlmd_text raw = json_get_text(json_object_get(source, "metadata"), "raw");
	int64_t status = json_get_integer(source, "code", 0);
	struct rlmd_text words;

	words = first_of(raw, message_of(source));
	words = first_of(words, json_text(error));
	words = first_of(words, take_detail(json_object_get(first, "detail"), complaint));
	text_escape(words, complaint->words, sizeof complaint->words);
	complaint->code = first_of(json_get_text(source, "code"), complaint->code);
	complaint->type = first_of(json_get_text(source, "type"), json_get_text(source, "status"));
	complaint->param = first_of(json_get_text(source, "param"), complaint->param);
	complaint->window = json_get_integer(source, "n_ctx", 0);
	complaint->prompt = json_get_integer(source, "n_prompt_tokens", 0);
	if (complaint->status == 200 && status >= 400 && status <= 599)
		complaint->status = (int)status;
}

/* Pages of proxies have nothing to say but their title. */
static void read_html(struct rlmd_text body, struct complaint *complaint)
{
	char page[WORDS_SIZE];
	const char *title, *end;

	text_escape(body, page, sizeof page);
	title = strcasestr(page, "<title>");
	end = title ? strcasestr(title, "</title>") : NULL;
	if (!end)
		return;
	title += strlen("<title>");
	text_escape(text_trim(text_from(title, (size_t)(end - title))), complaint->words,
		    sizeof complaint->words);
}

static void read_body(struct rlmd_text body, struct complaint *complaint)
{
	body = text_trim(body);
	complaint->root = json_read(body, JSON_DEPTH, NULL);
	if (complaint->root)
		read_json(complaint->root, complaint);
	else if (text_starts(body, "<"))
		read_html(body, complaint);
	else
		text_escape(body, complaint->words, sizeof complaint->words);
}

static bool mentions(const char *words, const char *const *signs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasestr(words, signs[i]))
			return true;
	return false;
}

/* The quirk of the field that the complaint is about: its parameter, or the first one named. */
static unsigned find_quirk(const struct complaint *complaint)
{
	const char *first = NULL;
	unsigned quirk = QUIRK_NONE;
	char code[64];

	if (complaint->status != 400 && complaint->status != 422 && complaint->status != 500)
		return QUIRK_NONE;
	if (mentions(complaint->words, system_refusals, COUNT(system_refusals)))
		return QUIRK_NO_SYSTEM;
	if (complaint->status == 500)
		return QUIRK_NONE;
	if (mentions(complaint->words, schema_fields, COUNT(schema_fields)))
		return QUIRK_NO_SCHEMA;
	text_escape(complaint->code, code, sizeof code);
	if (!mentions(complaint->words, rejections, COUNT(rejections)) &&
	    !mentions(code, rejections, COUNT(rejections)))
		return QUIRK_NONE;
	for (size_t i = 0; i < COUNT(adaptations); i++) {
		const char *at = strcasestr(complaint->words, adaptations[i].mention);

		if (text_equal(complaint->param, adaptations[i].field))
			return adaptations[i].quirk;
		if (at && (!first || at < first)) {
			first = at;
			quirk = adaptations[i].quirk;
		}
	}
	return quirk;
}

static bool is_overflow(const struct complaint *complaint)
{
	if (strcasestr(complaint->words, too_large_for_minute))
		return true;
	return complaint->status != 429 &&
	       !mentions(complaint->words, overflow_guards, COUNT(overflow_guards)) &&
	       mentions(complaint->words, overflows, COUNT(overflows));
}

static const struct verdict *find_verdict(const struct complaint *complaint)
{
	for (size_t i = 0; i < COUNT(codes); i++)
		if (text_equal_caseless(complaint->code, codes[i].sign) ||
		    text_equal_caseless(complaint->type, codes[i].sign))
			return &codes[i];
	for (size_t i = 0; i < COUNT(phrases); i++)
		if (strcasestr(complaint->words, phrases[i].sign))
			return &phrases[i];
	return NULL;
}

static void judge_status(int status, struct failure *ret)
{
	ret->kind = RLMD_ERROR_BAD_REPLY;
	ret->retry = true;
	for (size_t i = 0; i < COUNT(statuses); i++)
		if (status >= statuses[i].first && status <= statuses[i].last) {
			ret->kind = statuses[i].kind;
			ret->retry = statuses[i].retry;
			return;
		}
}

/* While it loads a model: llama.cpp's whole message, and what others say. */
static bool is_loading(const char *words)
{
	static const char *const loading[] = {
		"currently loading",
		"model is loading",
		"still loading",
		"llm server loading model",
	};

	return !strncasecmp(words, "loading model", strlen("loading model")) ||
	       strcasestr(words, "- loading model") || mentions(words, loading, COUNT(loading));
}

const char *failure_busy(enum rlmd_error_kind kind, int status)
{
	if (kind == RLMD_ERROR_THROTTLED)
		return "its rate is limited";
	if (kind == RLMD_ERROR_OVERLOADED && (status == 503 || status == 529))
		return "it is overloaded";
	return NULL;
}

static const char *busy_with(const struct complaint *complaint, const struct failure *failure)
{
	if (!failure->retry)
		return NULL;
	if (failure->kind == RLMD_ERROR_OVERLOADED && complaint->status >= 500 &&
	    is_loading(complaint->words))
		return "it is being loaded";
	return failure_busy(failure->kind, complaint->status);
}

/* The sizes, where the complaint is of them: others name numbers, too. */
static void read_room(const struct complaint *complaint, struct failure *ret)
{
	if (ret->kind != RLMD_ERROR_CONTEXT_OVERFLOW && ret->kind != RLMD_ERROR_BAD_REQUEST)
		return;
	room_read(complaint->words, &ret->room);
	if (complaint->window > 0 && !ret->room.window)
		ret->room = (struct room){complaint->window, ret->room.output, complaint->prompt};
	if (ret->room.window || ret->room.output)
		ret->quirk = QUIRK_NONE;
}

static void judge(const struct complaint *complaint, struct failure *ret)
{
	const struct verdict *verdict = find_verdict(complaint);

	*ret = (struct failure){0};
	ret->quirk = find_quirk(complaint);
	if (ret->quirk) {
		ret->kind = RLMD_ERROR_BAD_REQUEST;
	} else if (is_overflow(complaint)) {
		ret->kind = RLMD_ERROR_CONTEXT_OVERFLOW;
	} else if (verdict) {
		ret->kind = verdict->kind;
		ret->retry = verdict->retry;
	} else {
		judge_status(complaint->status, ret);
	}
	read_room(complaint, ret);
}

static void conclude(struct complaint *complaint, struct failure *ret)
{
	judge(complaint, ret);
	ret->busy = busy_with(complaint, ret);
	text_escape(text_of(complaint->words), ret->message, sizeof ret->message);
	json_decref(complaint->root);
}

void failure_of_status(int status, struct rlmd_text body, struct failure *ret)
{
	struct complaint complaint = {.status = status};

	read_body(body, &complaint);
	conclude(&complaint, ret);
}

void failure_of_body(struct rlmd_text body, struct failure *ret)
{
	struct complaint complaint = {.status = 200};

	read_body(body, &complaint);
	/* An error that names no status is a server that broke down after it had said 200. */
	if (complaint.root && complaint.status == 200)
		complaint.status = 500;
	conclude(&complaint, ret);
}

bool failure_passes(enum rlmd_error_kind kind)
{
	return kind == RLMD_ERROR_THROTTLED || kind == RLMD_ERROR_OVERLOADED ||
	       kind == RLMD_ERROR_NETWORK || kind == RLMD_ERROR_TIMEOUT ||
	       kind == RLMD_ERROR_BAD_REPLY || kind == RLMD_ERROR_MACHINE;
}

const char *failure_advice(enum rlmd_error_kind kind)
{
	if (kind == RLMD_ERROR_AUTH)
		return "; check the key and what it may do";
	if (kind == RLMD_ERROR_BILLING)
		return "; check the account's balance and limits";
	if (kind == RLMD_ERROR_NOT_FOUND)
		return "; check the model's name and the base URL";
	return "";
}
