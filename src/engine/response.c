#include "engine/response.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engine/markdown.h"
#include "engine/marker.h"

enum { DATA_DEPTH_MAX = 100 };

#define RESPONSE_MAX ((size_t)1 << 30) /* more than any model writes; the rest is not read */

/*
 * Appends to the response's memory, which has room for all of the text: that is enough, for each
 * part stands in it but once, and what marked it off leaves room for a NUL behind it.
 */
struct writer {
	char *at;
};

static struct text written(struct writer *writer, size_t size)
{
	struct text text = text_from(writer->at, size);

	writer->at[size] = '\0';
	writer->at += size + 1;
	return text;
}

static bool within(struct range inner, struct range outer)
{
	return inner.start >= outer.start && inner.end <= outer.end;
}

static void read_blocks(struct text text, const struct markdown *md, const struct marker *marker,
			struct writer *writer, struct response *ret)
{
	size_t count = md->fence_count;

	if (ret->cut_fence)
		count--;
	ret->blocks = xcalloc(count, sizeof *ret->blocks);
	for (size_t i = 0; i < count; i++) {
		const struct fence *fence = &md->fences[i];
		struct text code;

		if (fence->language != FENCE_PYTHON || within(fence->whole, marker->whole))
			continue;
		code = text_from(writer->at, fence_code(text, fence, writer->at));
		if (text_trim(code).size)
			ret->blocks[ret->block_count++] = written(writer, code.size);
	}
}

/* What is left of the text without fences and the marker. */
static void read_thinking(struct text text, const struct markdown *md, const struct marker *marker,
			  struct writer *writer, struct response *ret)
{
	size_t fence = 0, at = 0;
	char *start = writer->at;

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
static bool is_code(struct text text, const struct fence *fence)
{
	struct text body = text_slice(text, fence->body.start, fence->body.end);
	json_t *data = json_read(text_trim(body), DATA_DEPTH_MAX, NULL);

	json_decref(data);
	return fence->language != FENCE_OTHER && !data;
}

static bool is_only_code(struct text text, const struct markdown *md,
			 const struct response *response)
{
	if (response->answer || response->thinking.size || !md->fence_count)
		return false;
	for (size_t i = 0; i < md->fence_count; i++)
		if (!is_code(text, &md->fences[i]))
			return false;
	return true;
}

void response_read(struct text text, bool cut, struct response *ret)
{
	struct markdown md;
	struct marker marker;
	struct writer writer;

	text = text_clip(text, RESPONSE_MAX);
	markdown_read(text, &md);
	marker = marker_find(text, &md, cut);

	*ret = (struct response){
		.memory = xcalloc(text.size + 1, 1),
		.answer = marker.kind,
		.cut_fence = cut && md.open,
	};
	writer = (struct writer){ret->memory};
	read_blocks(text, &md, &marker, &writer, ret);
	ret->value = written(&writer, marker_value(&marker, writer.at));
	read_thinking(text, &md, &marker, &writer, ret);
	ret->only_code = is_only_code(text, &md, ret);
	markdown_done(&md);
}

void response_done(struct response *response)
{
	free(response->blocks);
	free(response->memory);
	*response = (struct response){0};
}
