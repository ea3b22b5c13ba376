#include "reply/toolcall.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "reply/prose.h"
#include "reply/shape.h"

enum {
	DEPTH_MAX = 32,
	TRIES_MAX = 8, /* tags and objects that were no call, so that no text takes longer */
};

/* What interpreters are called, as tools. */
static const char *const tools[] = {
	"python",
	"python3",
	"repl",
	"ipython",
	"python_repl", /* LangChain, rlm-cli */
	"python_interpreter",
	"code_interpreter",
	"interpreter", /* smolagents, OpenAI, Qwen-Agent */
	"execute",
	"execute_code",
	"execute_python",
	"run_code", /* CodeAct, MCP servers */
	"run_python",
	"python_exec",
	"exec_python",
	"exec",
	"run_python_code",
};

/* Members of a call in JSON: its name, its arguments, and the code in these. */
static const char *const name_keys[] = {"name", "tool", "tool_name", "function"};
static const char *const argument_keys[] = {"arguments", "parameters", "args", "input"};
static const char *const code_keys[] = {"code", "source", "python_code", "script", "command"};

/* What stands between tags that lead a line. */
enum content {
	CALL,   /* JSON, or Qwen3-Coder's <function=NAME><parameter=NAME> */
	CODE,   /* whatever it looks like, where the tags have lines of their own */
	PYTHON, /* what has the shape of Python: the tags are HTML's too */
	EITHER, /* JSON, or code up to the end */
};

static const struct tags {
	const char *open, *close;
	enum content content;
} tags[] = {
	{"<tool_call>", "</tool_call>", CALL},         /* Hermes, Qwen */
	{"<function_call>", "</function_call>", CALL}, /* Functionary and others */
	{"[TOOL_CALLS]", "</s>", CALL},                /* Mistral */
	{"<|python_tag|>", "<|eom_id|>", EITHER},      /* Llama 3.1 */
	{"<tool_code>", "</tool_code>", CODE},         /* Gemma, Gemini */
	{"<execute>", "</execute>", CODE},             /* CodeAct */
	{"<python>", "</python>", CODE},
	{"<repl>", "</repl>", CODE},
	{"<code>", "</code>", PYTHON}, /* smolagents */
};

struct search {
	struct rlmd_text text;
	struct markdown *markdown;
	struct fence *found; /* owned */
	size_t count, tries, fence;
	bool open;
};

static bool is_tool(const char *name)
{
	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
		if (name && !strcasecmp(name, tools[i]))
			return true;
	return false;
}

static json_t *member(const json_t *object, const char *const *keys, size_t count)
{
	json_t *found = NULL;

	for (size_t i = 0; i < count && !found; i++)
		found = json_object_get(object, keys[i]);
	return found;
}

#define MEMBER(object, keys) member(object, keys, sizeof(keys) / sizeof *(keys))

/* Appends the code that arguments hold, as one object or string. */
static void add_code(const json_t *arguments, struct evbuffer *out)
{
	json_auto_t *parsed = NULL;
	const json_t *code;

	if (json_is_string(arguments)) {
		struct rlmd_text text = text_from(json_string_value(arguments),
						  json_string_length(arguments));

		parsed = json_read(text_trim(text), DEPTH_MAX, NULL);
		code = json_is_object(parsed) ? MEMBER(parsed, code_keys) : arguments;
	} else {
		code = MEMBER(arguments, code_keys);
	}
	if (!json_string_length(code))
		return;
	if (evbuffer_get_length(out))
		evbuffer_add(out, "\n", 1);
	evbuffer_add(out, json_string_value(code), json_string_length(code));
}

/* One call: false where it is none, or none of an interpreter. */
static bool read_call(const json_t *call, struct evbuffer *out)
{
	const json_t *name = MEMBER(call, name_keys);

	if (json_is_object(name)) { /* OpenAI: {"function": {"name": ..., "arguments": ...}} */
		call = name;
		name = json_object_get(call, "name");
	}
	if (!is_tool(json_string_value(name)))
		return false;
	add_code(MEMBER(call, argument_keys), out);
	return true;
}

/* All calls of a text that is nothing but calls of an interpreter, with some code in them. */
static bool read_calls(struct rlmd_text text, struct evbuffer *out)
{
	json_auto_t *json = NULL;
	bool calls = true;
	size_t i;
	json_t *call;

	text = text_trim(text);
	if (!text.size || (text.bytes[0] != '{' && text.bytes[0] != '['))
		return false;
	json = json_read(text, DEPTH_MAX, NULL);
	if (json_is_array(json))
		json_array_foreach (json, i, call)
			calls = calls && read_call(call, out);
	else
		calls = json && read_call(json, out);
	return calls && evbuffer_get_length(out);
}

static bool holds_calls(struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *code = evbuffer_new();

	return read_calls(text, code);
}

size_t toolcall_code(struct rlmd_text text, const struct fence *fence, char *out)
{
	auto_evbuffer struct evbuffer *code = evbuffer_new();
	size_t size;

	read_calls(text_slice(text, fence->body.start, fence->body.end), code);
	size = evbuffer_get_length(code);
	evbuffer_remove(code, out, size);
	return size;
}

/* Skips blanks, and one line end behind them. `ret_alone`: nothing else stood on the line. */
static size_t skip_line_end(struct rlmd_text text, size_t at, bool *ret_alone)
{
	size_t end = text_line_end(text, at);

	*ret_alone = !text_trim(text_slice(text, at, end)).size;
	return *ret_alone ? end : at;
}

/* The place of `words` from `at` up to `end`; `end`: none. */
static size_t place_of(struct rlmd_text text, size_t at, size_t end, const char *words)
{
	struct rlmd_text rest = text_slice(text, at, end);
	const char *found = text_find(rest, words);

	return found ? (size_t)(found - text.bytes) : end;
}

/* <function=NAME> <parameter=NAME> code </parameter>: narrows the body to the code. */
static bool read_parameter(struct rlmd_text text, struct range *body)
{
	struct rlmd_text inner = text_trim(text_slice(text, body->start, body->end));
	size_t at = (size_t)(inner.bytes - text.bytes), end;
	char name[32];
	bool alone;

	if (!text_starts(inner, "<function="))
		return false;
	at += strlen("<function=");
	end = place_of(text, at, body->end, ">");
	if (end - at >= sizeof name)
		return false;
	memcpy(name, text.bytes + at, end - at);
	name[end - at] = '\0';
	at = place_of(text, end, body->end, "<parameter=");
	at = place_of(text, at, body->end, ">");
	if (!is_tool(name) || at == body->end)
		return false;
	body->start = skip_line_end(text, at + 1, &alone);
	body->end = place_of(text, body->start, body->end, "</parameter>");
	return true;
}

/* Whether what stands between the tags is code; narrows the body to it. */
static bool holds_code(struct rlmd_text text, const struct tags *tag, bool alone, bool closed,
		       struct fence *fence)
{
	struct rlmd_text body = text_slice(text, fence->body.start, fence->body.end);

	switch (tag->content) {
	case CALL:
		fence->is_call = holds_calls(body);
		return fence->is_call || read_parameter(text, &fence->body);
	case CODE:
		return (alone && closed) || shape_of(body);
	case PYTHON:
		return alone && closed && shape_of(body);
	case EITHER:
		fence->is_call = holds_calls(body);
		return true;
	}
	return false;
}

/* Whether a fenced block begins between the two. */
static bool holds_fence(struct search *search, struct range range)
{
	const struct markdown *md = search->markdown;

	while (search->fence < md->fence_count &&
	       md->fences[search->fence].whole.end <= range.start)
		search->fence++;
	return search->fence < md->fence_count && md->fences[search->fence].whole.start < range.end;
}

static void add_fence(struct search *search, const struct fence *fence)
{
	search->found = xreallocarray(search->found, search->count + 1, sizeof *search->found);
	search->found[search->count++] = *fence;
}

/* Code between tags, of which the first stands at `at`, at the start of a line. */
static bool read_tags(struct search *search, const struct tags *tag, size_t line, size_t at)
{
	struct rlmd_text text = search->text;
	struct fence fence = {.language = FENCE_PYTHON};
	bool alone, closed;
	size_t end;

	fence.body.start = skip_line_end(text, at + strlen(tag->open), &alone);
	fence.body.end = place_of(text, fence.body.start, text.size, tag->close);
	closed = fence.body.end < text.size;
	end = fence.body.end + (closed ? strlen(tag->close) : 0);
	fence.whole = (struct range){line, end};
	if (holds_fence(search, fence.whole) || !holds_code(text, tag, alone, closed, &fence))
		return false;
	fence.whole.end = skip_line_end(text, end, &alone);
	search->open = !closed && tag->content != CALL;
	add_fence(search, &fence);
	return true;
}

/* A call in JSON without tags, which all of the rest is. */
static bool read_rest(struct search *search, size_t line)
{
	struct range rest = {line, search->text.size};

	if (holds_fence(search, rest) ||
	    !holds_calls(text_slice(search->text, rest.start, rest.end)))
		return false;
	add_fence(search,
		  &(struct fence){
			  .whole = rest, .body = rest, .language = FENCE_PYTHON, .is_call = true});
	return true;
}

static bool read_line(struct search *search, struct range line)
{
	size_t at = prose_start(search->text, line);
	struct rlmd_text words = text_slice(search->text, at, line.end);

	if (text_starts(words, "{") || text_starts(words, "[{"))
		return read_rest(search, line.start) || !++search->tries;
	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
		if (text_starts(words, tags[i].open))
			return read_tags(search, &tags[i], line.start, at) || !++search->tries;
	return false;
}

/* Puts what was found among the fences. */
static void merge(struct search *search)
{
	struct markdown *md = search->markdown;
	struct fence *all = xcalloc(md->fence_count + search->count, sizeof *all);
	size_t i = 0, j = 0, count = 0;

	while (i < md->fence_count || j < search->count) {
		bool fenced = j == search->count ||
			      (i < md->fence_count &&
			       md->fences[i].whole.start < search->found[j].whole.start);

		all[count++] = fenced ? md->fences[i++] : search->found[j++];
	}
	free(md->fences);
	md->fences = all;
	md->fence_count = count;
}

void toolcalls_read(struct rlmd_text text, struct markdown *md)
{
	struct search search = {.text = text, .markdown = md};
	struct prose prose = {.text = text, .markdown = md};
	struct range line;

	for (size_t i = 0; i < md->fence_count; i++) {
		struct fence *fence = &md->fences[i];

		if (fence->language == FENCE_PYTHON ||
		    !holds_calls(text_slice(text, fence->body.start, fence->body.end)))
			continue;
		fence->language = FENCE_PYTHON;
		fence->is_call = true;
	}
	while (search.tries < TRIES_MAX && prose_line(&prose, &line))
		if (read_line(&search, line))
			prose.at = search.found[search.count - 1].whole.end;
	if (search.count)
		merge(&search);
	md->open |= search.open;
	free(search.found);
}
