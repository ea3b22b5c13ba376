/*
 * A call is one of these, on a line of its own:
 *
 * 1. One of the forms in reply/forms.def.
 * 2. JSON with a tool's name and its arguments, in a fence, or all of the rest.
 * 3. A fence with the arguments of a tool that the line before it names.
 *
 * Tags around several calls are passed over.
 */
#include "reply/toolcall.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "reply/shape.h"

enum {
	DEPTH_MAX = 32,
	TRIES_MAX = 8, /* forms and objects that were no call, so that no text takes longer */
	NAME_MAX = 96, /* bytes of a tool's name, with what stands around it */
};

/* Names of tools that are interpreters. */
static const char *const tools[] = {
	"python",
	"python3",
	"repl",
	"ipython",
	"python_repl", /* LangChain, rlm-cli */
	"python_interpreter",
	"code_interpreter",
	"interpreter", /* smolagents, OpenAI, Qwen-Agent */
	"jupyter",
	"pyodide",
	"execute",
	"execute_code",
	"execute_python",
	"run_code", /* CodeAct, MCP servers */
	"run_python",
	"python_exec",
	"exec_python",
	"exec",
	"run_python_code",
	"execute_ipython_cell", /* OpenHands */
	"python_repl_ast",      /* LangChain */
	"execute_python_code",
};

/* Members of a call in JSON: its name, its arguments, and the code in these. */
static const char *const name_keys[] = {"name", "tool", "tool_name", "function", "action"};
static const char *const argument_keys[] = {"arguments",   "parameters", "args",
					    "input",       "tool_input", /* LangChain */
					    "action_input"};
static const char *const code_keys[] = {"code", "source", "python_code", "script", "command"};

/* As reply/forms.def has them. */
enum content { CALLS, ARGUMENTS, SOURCE, LITERAL, CODE, PYTHON, EITHER };
enum { IN_LINE = 1, FENCED = 2, KEPT = 4 };

/* DeepSeek's marks have wide bars, and blocks for blanks. */
#define BAR "\xef\xbd\x9c"
#define LOW "\xe2\x96\x81"

#define DEEPSEEK(words) "<" BAR words BAR ">"
#define CALL_BEGIN      DEEPSEEK("tool" LOW "call" LOW "begin")
#define CALL_END        DEEPSEEK("tool" LOW "call" LOW "end")
#define SEP             DEEPSEEK("tool" LOW "sep")

static const struct form {
	const char *open, *separator, *close;
	enum content content;
	int flags;
} forms[] = {
#define FORM(maker, open, separator, close, content, flags)                                        \
	{open, separator, close, content, flags},
#include "reply/forms.def"
#undef FORM
};

/* OPEN key SEPARATOR value CLOSE, among arguments. */
static const struct parameter {
	const char *open, *separator, *close;
} parameters[] = {
	/* clang-format off */
	{"<parameter name=\"", "\">",         "</parameter>"},
	{"<parameter=",        ">",           "</parameter>"},
	{"<arg_key>",          "<arg_value>", "</arg_value>"},
	{"<" BAR "DSML" BAR "parameter name=\"", ">", "</" BAR "DSML" BAR "parameter>"},
	/* clang-format on */
};

/* Before the first of several calls, and behind the last. */
static const char *const openers[] = {
	"<function_calls>",
	"<" BAR "DSML" BAR "function_calls>",
	"<tool_calls>",
	"<tool_call>",
	"<minimax:tool_call>",
	"<seed:tool_call>",
	"<|tool_call_start|>", /* LFM2 */
	"<|tool_calls_section_begin|>",
	"<|python_start|>",
	DEEPSEEK("tool" LOW "calls" LOW "begin"),
};
static const char *const closers[] = {
	"</function_calls>",
	"</" BAR "DSML" BAR "function_calls>",
	CALL_END,
	DEEPSEEK("tool" LOW "calls" LOW "end"),
	DEEPSEEK("end" LOW "of" LOW "sentence"),
	"</tool_calls>",
	"</tool_call>",
	"</minimax:tool_call>",
	"</seed:tool_call>",
	"<|tool_call_end|>",
	"<|tool_calls_section_end|>",
	"<|python_end|>",
	"</s>",
	"<|eot|>",
	"<|eot_id|>",
	"<|im_end|>",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct search {
	struct rlmd_text text;
	struct markdown *markdown;
	struct fence *found; /* owned */
	size_t count, tries, fence;
	bool open;
};

/* "functions.python:0" is Kimi's, "functions.python" harmony's. */
static bool is_tool(struct rlmd_text name)
{
	static const char prefix[] = "functions.";

	name = text_trim(name);
	if (text_starts(name, prefix))
		name = text_slice(name, strlen(prefix), name.size);
	for (size_t end = 0; end < name.size; end++)
		if (strchr(":[\"", name.bytes[end]))
			name.size = end;
	return array_has(tools, COUNT(tools), name);
}

static json_t *member(const json_t *object, const char *const *keys, size_t count)
{
	json_t *found = NULL;

	for (size_t i = 0; i < count && !found; i++)
		found = json_object_get(object, keys[i]);
	return found;
}

#define MEMBER(object, keys) member(object, keys, COUNT(keys))

/* With the line feeds escaped that some write into strings: Qwen 2.5. */
static json_t *read_json_of_lines(struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *repaired = buffer_new();
	bool quoted = false;

	for (size_t at = 0; at < text.size; at++) {
		char c = text.bytes[at];

		if (quoted && (c == '\n' || c == '\t')) {
			buffer_add(repaired, c == '\n' ? "\\n" : "\\t", 2);
			continue;
		}
		quoted ^= c == '"';
		buffer_add(repaired, &c, 1);
		if (quoted && c == '\\' && at + 1 < text.size)
			buffer_add(repaired, &text.bytes[++at], 1);
	}
	return json_read(text_in(repaired), DEPTH_MAX, NULL);
}

static json_t *read_json(struct rlmd_text text)
{
	json_t *json;

	text = text_trim(text);
	json = json_read(text, DEPTH_MAX, NULL);
	return json || !text.size || !memchr(text.bytes, '\n', text.size)
		       ? json
		       : read_json_of_lines(text);
}

/* Appends the code that arguments hold, as one object or string. */
static void add_code(const json_t *arguments, struct evbuffer *out)
{
	json_auto_t *parsed = NULL;
	const json_t *code;

	if (json_is_string(arguments)) {
		struct rlmd_text text = text_from(json_string_value(arguments),
						  json_string_length(arguments));

		parsed = read_json(text);
		code = json_is_object(parsed) ? MEMBER(parsed, code_keys) : arguments;
	} else {
		code = MEMBER(arguments, code_keys);
	}
	if (!json_string_length(code))
		return;
	if (evbuffer_get_length(out))
		buffer_add(out, "\n", 1);
	buffer_add(out, json_string_value(code), json_string_length(code));
}

/* One call: false where it is none, or none of an interpreter. */
static bool read_call(const json_t *call, struct evbuffer *out)
{
	const json_t *name = MEMBER(call, name_keys);

	if (json_is_object(name)) { /* OpenAI: {"function": {"name": ..., "arguments": ...}} */
		call = name;
		name = json_object_get(call, "name");
	}
	if (!is_tool(json_text(name)))
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
	json = read_json(text);
	if (json_is_array(json))
		json_array_foreach (json, i, call)
			calls = calls && read_call(call, out);
	else
		calls = json && read_call(json, out);
	return calls && evbuffer_get_length(out);
}

static bool holds_calls(struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *code = buffer_new();

	return read_calls(text, code);
}

static bool is_named(struct rlmd_text text)
{
	json_auto_t *json = NULL;

	text = text_trim(text);
	if (!text_starts(text, "{"))
		return false;
	json = read_json(text);
	return MEMBER(json, name_keys) && MEMBER(json, argument_keys);
}

bool toolcall_begins(struct rlmd_text text, struct range line)
{
	struct rlmd_text words = text_slice(text, line.start, line.end);
	size_t more = text.size - line.start < 2 * NAME_MAX ? text.size : line.start + 2 * NAME_MAX;

	for (const struct form *form = forms; form < forms + COUNT(forms); form++)
		if (text_starts(words, form->open) &&
		    (form->separator ? form->content != LITERAL &&
					       text_find(text_slice(text, line.start, more),
							 form->separator)
				     : form->content == CALLS))
			return true;
	return is_named(words);
}

/* An object of arguments, without a name. */
static bool read_arguments(struct rlmd_text text, struct evbuffer *out)
{
	json_auto_t *json = NULL;

	text = text_trim(text);
	if (!text_starts(text, "{"))
		return false;
	json = read_json(text);
	if (json_is_object(json))
		add_code(json, out);
	return evbuffer_get_length(out);
}

static bool holds_arguments(struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *code = buffer_new();

	return read_arguments(text, code);
}

/* The value of a string of Python, which may go over lines. */
static void read_literal(struct rlmd_text text, struct evbuffer *out)
{
	static const char escapes[] = "n\nt\tr\r\\\\''\"\"";

	for (size_t at = 1; at + 1 < text.size; at++) {
		const char *escape = NULL;

		if (text.bytes[at] == '\\')
			for (const char *e = escapes; *e && !escape; e += 2)
				escape = *e == text.bytes[at + 1] ? e : NULL;
		buffer_add(out, escape ? escape + 1 : &text.bytes[at], 1);
		at += escape != NULL;
	}
}

size_t toolcall_code(struct rlmd_text text, const struct fence *fence, char *out)
{
	auto_evbuffer struct evbuffer *code = buffer_new();
	struct rlmd_text body = text_slice(text, fence->body.start, fence->body.end);
	size_t size;

	if (text_starts(body, "'") || text_starts(body, "\""))
		read_literal(body, code);
	else if (!read_calls(body, code))
		read_arguments(body, code);
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

/* The offset of `words` from `at` up to `end`; `end`: none. */
static size_t offset_of(struct rlmd_text text, size_t at, size_t end, const char *words)
{
	struct rlmd_text rest = text_slice(text, at, end);
	const char *found = text_find(rest, words);

	return found ? (size_t)(found - text.bytes) : end;
}

/* Of several parameters the first that is called as code is. Narrows the body to it. */
static bool read_parameters(struct rlmd_text text, const struct parameter *form, struct range *body)
{
	size_t at = body->start, end;
	bool alone;

	while ((at = offset_of(text, at, body->end, form->open)) < body->end) {
		size_t name = at + strlen(form->open), behind;
		struct rlmd_text key;

		behind = offset_of(text, name, body->end, form->separator);
		if (behind == body->end)
			return false;
		end = offset_of(text, name, behind, "\"");
		key = text_slice(text, name, offset_of(text, name, end, "<"));
		at = behind + strlen(form->separator);
		end = offset_of(text, at, body->end, form->close);
		if (array_has(code_keys, COUNT(code_keys), key)) {
			*body = (struct range){skip_line_end(text, at, &alone), end};
			return true;
		}
		at = end;
	}
	return false;
}

/* Whether arguments hold code; narrows the body to the code itself, where it is no JSON. */
static bool read_arguments_of(struct rlmd_text text, bool source, struct fence *fence)
{
	struct rlmd_text body = text_slice(text, fence->body.start, fence->body.end);

	fence->is_call = holds_arguments(body);
	if (fence->is_call)
		return true;
	for (size_t i = 0; i < COUNT(parameters); i++)
		if (read_parameters(text, &parameters[i], &fence->body))
			return true;
	body = text_trim(body);
	fence->body.start = (size_t)(body.bytes - text.bytes);
	return !text_starts(body, "{") && !text_starts(body, "[") && (source || shape_of(body));
}

/* Whether the content is code; narrows the body to it. `alone`: the tags have lines of their own.
 */
static bool read_content(struct rlmd_text text, enum content content, bool alone,
			 struct fence *fence)
{
	struct rlmd_text body = text_slice(text, fence->body.start, fence->body.end);

	switch (content) {
	case CALLS:
	case EITHER:
		fence->is_call = holds_calls(body);
		return fence->is_call || content == EITHER;
	case ARGUMENTS:
	case SOURCE:
		return read_arguments_of(text, content == SOURCE, fence);
	case LITERAL:
		fence->is_call = true;
		return true;
	case CODE:
		return alone || shape_of(body);
	case PYTHON:
		return alone && shape_of(body);
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
	search->found = array_grow(search->found, search->count, sizeof *search->found);
	search->found[search->count++] = *fence;
}

/* Behind as many of these as stand at `at`, with blanks between them. */
static size_t skip_tags(struct rlmd_text text, size_t at, const char *const *skipped, size_t count)
{
	size_t next = at, i;

	do {
		for (next = at; next < text.size && text_is_space(text.bytes[next]);)
			next++;
		for (i = 0; i < count; i++)
			if (text_starts(text_slice(text, next, text.size), skipped[i]))
				break;
		if (i < count)
			at = next + strlen(skipped[i]);
	} while (i < count);
	return at;
}

/* Takes off what ends several calls, where nothing else ends the last one. */
static size_t without_closers(struct rlmd_text text, size_t start, size_t end)
{
	size_t at = end;

	for (size_t i = 0; i < COUNT(closers);) {
		size_t size = strlen(closers[i]);

		while (at > start && text_is_space(text.bytes[at - 1]))
			at--;
		if (at - start >= size && !memcmp(text.bytes + at - size, closers[i], size)) {
			end = at -= size;
			i = 0;
		} else {
			i++;
		}
	}
	return end;
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

/* Whether the name at `*at` is that of a tool; moves on to behind its separator. */
static bool read_name(struct rlmd_text text, const struct form *form, size_t *at)
{
	size_t limit = *at + NAME_MAX < text.size ? *at + NAME_MAX : text.size;
	size_t behind = offset_of(text, *at, limit, form->separator), end = behind;

	if (form->flags & IN_LINE)
		for (end = *at; end < behind && !strchr(" <", text.bytes[end]);)
			end++;
	if (behind == limit || !is_tool(text_slice(text, *at, end)))
		return false;
	*at = behind + (form->flags & KEPT ? 0 : strlen(form->separator));
	return true;
}

/* The first string of Python from the start of the body on, which that becomes. Returns where the
 * call ends behind it; 0: it does not. */
static size_t find_literal(struct rlmd_text text, struct range *body)
{
	size_t start = body->start, end;
	size_t limit = start + NAME_MAX < text.size ? start + NAME_MAX : text.size;

	while (start < limit && !strchr("'\"", text.bytes[start]))
		start++;
	for (end = start + 1; end < text.size && text.bytes[end] != text.bytes[start]; end++)
		end += text.bytes[end] == '\\';
	if (start == limit || end >= text.size)
		return 0;
	*body = (struct range){start, ++end};
	while (end < text.size && text.bytes[end] && strchr(") \t", text.bytes[end]))
		end++;
	return end < text.size && text.bytes[end] == ']' ? end + 1 : 0;
}

/* A call of this form that begins at `at`, in the line from `line` on. */
static bool read_form(struct search *search, const struct form *form, size_t line, size_t at)
{
	struct rlmd_text text = search->text;
	struct fence fence = {.language = FENCE_PYTHON};
	size_t end;
	bool alone, closed;

	at += strlen(form->open);
	if (form->separator && !read_name(text, form, &at))
		return false;
	fence.body.start = skip_line_end(text, at, &alone);
	end = form->content == LITERAL ? find_literal(text, &fence.body)
				       : offset_of(text, fence.body.start, text.size, form->close);
	closed = end < text.size;
	if (form->content != LITERAL) {
		fence.body.end = without_closers(text, fence.body.start, end);
		/* The beginning of the next call ends this one too. */
		end += closed && form->close[0] == '<' ? strlen(form->close) : 0;
	}
	fence.whole = (struct range){line, end};
	if (!end || holds_fence(search, fence.whole) ||
	    !read_content(text, form->content, alone && closed, &fence))
		return !++search->tries;
	/* JSON that could be read is whole, and so is a parameter that was closed. */
	search->open = fence.body.end == text.size && !fence.is_call;
	end = skip_tags(text, end, closers, COUNT(closers));
	fence.whole.end = skip_line_end(text, end, &alone);
	add_fence(search, &fence);
	return true;
}

static bool read_forms(struct search *search, size_t line, size_t at)
{
	struct rlmd_text text = search->text;
	size_t end = text_line_end(text, at);

	for (const struct form *form = forms; form < forms + COUNT(forms); form++) {
		size_t open = at;

		if (form->flags & IN_LINE)
			open = offset_of(text, at, offset_of(text, at, end, form->separator),
					 form->open);
		if (text_starts(text_slice(text, open, text.size), form->open) &&
		    read_form(search, form, line, open))
			return true;
	}
	return false;
}

static bool read_line(struct search *search, struct range line)
{
	struct rlmd_text text = search->text;
	size_t at = markdown_line_start(text, line), first = at;
	struct rlmd_text words = text_slice(text, at, line.end);

	if (text_starts(words, "{") || text_starts(words, "[{"))
		return read_rest(search, line.start) || !++search->tries;
	if (text_starts(words, "<"))
		first = skip_tags(text, at, openers, COUNT(openers));
	while (first > at && first < text.size && text_is_space(text.bytes[first]))
		first++;
	if (first > at && (read_forms(search, line.start, first) || !++search->tries))
		return true;
	return read_forms(search, line.start, at);
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

/* Where a line in front of a fence names the tool whose arguments the fence holds; the fence's own
 * place where none does. */
static size_t announced(struct rlmd_text text, size_t from, size_t start)
{
	from = start - from > 2 * NAME_MAX ? start - 2 * NAME_MAX : from;
	for (const struct form *form = forms; form < forms + COUNT(forms); form++) {
		size_t at = offset_of(text, from, start, form->open);
		size_t name = at + strlen(form->open);

		if (form->flags & FENCED && at < start &&
		    is_tool(text_slice(text, name, offset_of(text, name, start, form->separator))))
			return at;
	}
	return start;
}

/* Fences of another language that hold a call, or the arguments of one. */
static void read_fences(struct rlmd_text text, struct markdown *md)
{
	for (size_t i = 0, from = 0; i < md->fence_count; from = md->fences[i++].whole.end) {
		struct fence *fence = &md->fences[i];
		struct rlmd_text body = text_slice(text, fence->body.start, fence->body.end);
		size_t start = fence->whole.start;

		if (fence->language == FENCE_PYTHON)
			continue;
		fence->is_call = holds_calls(body);
		if (!fence->is_call) {
			start = announced(text, from, start);
			fence->is_call = start < fence->whole.start && holds_arguments(body);
			while (start > from && text.bytes[start - 1] != '\n')
				start--;
		}
		if (!fence->is_call)
			continue;
		fence->language = FENCE_PYTHON;
		fence->whole.start = start;
	}
}

void toolcalls_read(struct rlmd_text text, struct markdown *md)
{
	struct search search = {.text = text, .markdown = md};
	struct prose prose = {.text = text, .markdown = md};
	struct range line;

	read_fences(text, md);
	while (search.tries < TRIES_MAX && markdown_prose_line(&prose, &line))
		if (read_line(&search, line))
			prose.at = search.found[search.count - 1].whole.end;
	if (search.count)
		merge(&search);
	md->open |= search.open;
	free(search.found);
}
