#include "reply/response.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "reply/echo.h"
#include "reply/informal.h"
#include "reply/markdown.h"
#include "reply/marker.h"
#include "reply/shape.h"
#include "reply/thought.h"
#include "reply/toolcall.h"

enum {
	DATA_DEPTH_MAX = 100,
	DECORATION_MAX = 8,
	SPARE = 8, /* for the NULs behind a text of nothing */
};

#define RESPONSE_MAX ((size_t)1 << 30) /* more than any model writes; the rest is not read */

/*
 * Appends to the response's memory, which has room for the text twice, once for what was said. That
 * is enough, for each part stands in it but once, and what marked it off leaves room for a NUL
 * behind it.
 */
struct writer {
	char *at;
};

static struct rlmd_text written(struct writer *writer, size_t size)
{
	struct rlmd_text text = text_from(writer->at, size);

	writer->at[size] = '\0';
	writer->at += size + 1;
	return text;
}

static bool within(struct range inner, struct range outer)
{
	return inner.start >= outer.start && inner.end <= outer.end;
}

static void read_blocks(struct rlmd_text text, const struct markdown *md,
			const struct marker *marker, struct writer *writer, struct response *ret)
{
	size_t count = md->fence_count;

	if (ret->cut_fence)
		count--;
	ret->blocks = xcalloc(count, sizeof *ret->blocks);
	for (size_t i = 0; i < count; i++) {
		const struct fence *fence = &md->fences[i];
		struct rlmd_text code;

		if (fence->language != FENCE_PYTHON || within(fence->whole, marker->whole))
			continue;
		code = text_from(writer->at, fence->is_call ? toolcall_code(text, fence, writer->at)
							    : fence_code(text, fence, writer->at));
		if (text_trim(code).size)
			ret->blocks[ret->block_count++] = written(writer, code.size);
	}
}

/* Takes out the thoughts, and what is left of the text without fences and the marker. */
static void read_thinking(struct rlmd_text text, const struct markdown *md,
			  const struct marker *marker, struct rlmd_text thoughts,
			  struct writer *writer, struct response *ret)
{
	size_t fence = 0, at = 0;
	char *start = writer->at;

	memcpy(writer->at, thoughts.bytes, thoughts.size);
	writer->at += thoughts.size;
	while (at < text.size) {
		struct range next = {text.size, text.size};

		while (fence < md->fence_count && md->fences[fence].whole.start < at)
			fence++;
		if (fence < md->fence_count)
			next = md->fences[fence].whole;
		if (marker->kind && marker->whole.start >= at && marker->whole.start < next.start)
			next = marker->whole;
		memcpy(writer->at, text.bytes + at, next.start - at);
		writer->at += next.start - at;
		/* A fence that stands behind words ends their line. */
		if (fence < md->fence_count && next.start == md->fences[fence].whole.start &&
		    next.start > at && text.bytes[next.start - 1] != '\n')
			*writer->at++ = '\n';
		at = next.end;
	}
	ret->thinking = text_trim(text_from(start, (size_t)(writer->at - start)));
}

/* Python, or what has no language; but data is not code, whatever its fence says. */
static bool is_code(struct rlmd_text text, const struct fence *fence)
{
	struct rlmd_text body = text_slice(text, fence->body.start, fence->body.end);
	json_t *data;

	if (fence->is_call)
		return true;
	data = json_read(text_trim(body), DATA_DEPTH_MAX, NULL);
	json_decref(data);
	return fence->language != FENCE_OTHER && !data;
}

/* Whether all of a text is blocks of code; or statements, without any marks. */
static bool is_all_code(struct rlmd_text text)
{
	struct markdown md;
	size_t at = 0;
	bool all = true;

	markdown_read(text, &md);
	for (size_t i = 0; all && i <= md.fence_count; i++) {
		bool last = i == md.fence_count;
		size_t end = last ? text.size : md.fences[i].whole.start;
		struct range between = {at, end};

		all = markdown_line_start(text, between) == end ||
		      !text_trim(text_slice(text, markdown_line_start(text, between), end)).size;
		if (last)
			break;
		all = all && is_code(text, &md.fences[i]);
		at = md.fences[i].whole.end;
	}
	if (!md.fence_count)
		all = shape_of(text) == SHAPE_STATEMENTS;
	markdown_done(&md);
	return all;
}

/* Writes the text without the marks of a quotation to `out`; 0: not all of it is one. */
static size_t unquoted(struct rlmd_text text, char *out)
{
	size_t used = 0;

	for (size_t at = 0, end; at < text.size; at = end) {
		struct rlmd_text line;

		end = text_line_end(text, at);
		line = text_slice(text, at, end);
		if (line.bytes[0] == '>')
			line = text_slice(line, 1, line.size);
		else if (text_trim(line).size)
			return 0;
		memcpy(out + used, line.bytes, line.size);
		used += line.size;
	}
	return used;
}

/* Whether the reply, or its answer, is nothing but code, quoted or not. */
static bool is_only_code(const struct response *response)
{
	struct rlmd_text text = response->answer ? text_trim(response->value) : response->said;
	auto_free char *plain = NULL;
	size_t size;

	if (response->answer == RLMD_ANSWER_VARIABLE)
		return false;
	if (!text.size || text.bytes[0] != '>')
		return is_all_code(text);
	plain = xcalloc(text.size, 1);
	size = unquoted(text, plain);
	return size && is_all_code(text_from(plain, size));
}

/* Whether a block counts that says it is Python: one that is not part of the answer. */
static bool has_python(const struct markdown *md, const struct marker *marker)
{
	for (size_t i = 0; i < md->fence_count; i++)
		if (md->fences[i].language == FENCE_PYTHON &&
		    !within(md->fences[i].whole, marker->whole))
			return true;
	return false;
}

/* Blocks without a language are Python where none says so and they read as nothing else; beside
 * an answer calls alone may be what it shows. */
static void name_bare(struct rlmd_text text, struct markdown *md, const struct marker *marker)
{
	enum shape least = marker->kind == RLMD_ANSWER_DIRECT ? SHAPE_STATEMENTS : SHAPE_CALLS;

	if (has_python(md, marker))
		return;
	for (size_t i = 0; i < md->fence_count; i++) {
		struct fence *fence = &md->fences[i];
		struct rlmd_text body = text_slice(text, fence->body.start, fence->body.end);

		if (fence->language != FENCE_BARE || shape_of(body) < least)
			continue;
		fence->language = FENCE_PYTHON;
		fence->body.start = fence->body.end - shape_code(body).size;
	}
}

/* A text without marks of code that is all Python is a block, up to an answer that ends it. */
static void fence_all(struct rlmd_text text, struct markdown *md, struct marker *marker)
{
	size_t start = marker->whole.start, end = text.size;

	if (md->fence_count || text_starts(text_trim(text), "FINAL") ||
	    (marker->kind && !text_trim(text_slice(text, 0, start)).size) ||
	    shape_of(text) != SHAPE_STATEMENTS)
		return;
	if (marker->kind && text.bytes[start - 1] == '\n' &&
	    !text_trim(text_slice(text, marker->whole.end, text.size)).size)
		end = start;
	else
		*marker = (struct marker){0};
	if (shape_of(text_slice(text, 0, end)) != SHAPE_STATEMENTS)
		return;
	md->fences = xcalloc(1, sizeof *md->fences);
	md->fences[md->fence_count++] = (struct fence){
		.whole = {0, end}, .body = {0, end}, .language = FENCE_PYTHON};
}

/* The last line of prose that is FINAL_VAR( ... ) with more than a name in it, whole. */
static struct rlmd_text find_expression(struct rlmd_text text, const struct markdown *md)
{
	struct prose prose = {.text = text, .markdown = md};
	struct rlmd_text found = {0};
	struct range line;

	while (markdown_prose_line(&prose, &line)) {
		size_t start = markdown_line_start(text, line);
		struct rlmd_text words = text_trim(text_slice(text, start, line.end));

		while (words.size && strchr(" *_#>-", words.bytes[0]))
			words = text_slice(words, 1, words.size);
		while (words.size && strchr(" *_.", words.bytes[words.size - 1]))
			words.size--;
		if (text_starts(words, "FINAL_VAR(") && words.bytes[words.size - 1] == ')')
			found = words;
	}
	return found;
}

/* Takes off what is not the reply itself. Returns the size of the thoughts. */
static size_t read_said(struct rlmd_text text, struct writer *writer, char *thoughts, bool *cut,
			struct response *ret)
{
	struct markdown md;
	struct thought thought;
	size_t end;

	thought_split(text, writer->at, thoughts, &thought);
	ret->thought_open = thought.open;
	ret->said = written(writer, thought.said);
	markdown_read(ret->said, &md);
	end = echo_find(ret->said, &md);
	markdown_done(&md);
	ret->invented = end < ret->said.size;
	*cut = *cut && !ret->invented;
	ret->said.size = end;
	return thought.thought;
}

void response_read(struct rlmd_text text, bool cut, struct response *ret)
{
	struct markdown md;
	struct marker marker, form;
	struct writer writer;
	auto_free char *thoughts = NULL;
	size_t thought;

	text = text_clip(text, RESPONSE_MAX);
	*ret = (struct response){.memory = xcalloc(2 * text.size + SPARE, 1)};
	thoughts = xcalloc(text.size + 1, 1);
	writer = (struct writer){ret->memory};
	thought = read_said(text, &writer, thoughts, &cut, ret);

	text = ret->said;
	markdown_read(text, &md);
	marker = marker_find(text, &md, cut, &form);
	if (!cut && !form.kind)
		fence_all(text, &md, &marker);
	name_bare(text, &md, &marker);
	if (!cut && !marker.kind && !form.kind && !has_python(&md, &marker))
		marker = informal_find(text, &md);
	ret->answer = marker.kind;
	ret->cut_fence = cut && md.open;
	if (form.kind && !marker.kind)
		ret->form = text_slice(text, form.whole.start, form.whole.end);
	else if (!marker.kind)
		ret->form = find_expression(text, &md);
	read_blocks(text, &md, &marker, &writer, ret);
	ret->value = written(&writer, marker_value(&marker, writer.at));
	ret->may_compute = marker.kind == RLMD_ANSWER_DIRECT &&
			   ret->value.size == marker.argument.size &&
			   shape_is_expression(ret->value);
	ret->stands_in = ret->may_compute && marker_is_stand_in(ret->value);
	read_thinking(text, &md, &marker, text_from(thoughts, thought), &writer, ret);
	ret->said = text_trim(text);
	ret->only_code = is_only_code(ret);
	markdown_done(&md);
}

bool response_has_words(const struct response *response)
{
	if (response->answer)
		return !response->only_code;
	/* The form may stand in Markdown's decoration. */
	return !response->only_code && response->said.size > 0 &&
	       (!response->form.size || response->said.size > response->form.size + DECORATION_MAX);
}

void response_done(struct response *response)
{
	free(response->blocks);
	free(response->memory);
	*response = (struct response){0};
}
