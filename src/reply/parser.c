/*
 * rlmd/parser.h: a response on the heap.
 */
#include <rlmd/parser.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "reply/response.h"

struct rlmd_reply {
	struct response response;
};

struct rlmd_reply *rlmd_reply_parse(struct rlmd_text text, bool cut)
{
	struct rlmd_reply *reply = xcalloc(1, sizeof *reply);

	response_read(text.bytes ? text : text_of(""), cut, &reply->response);
	return reply;
}

void rlmd_reply_free(struct rlmd_reply *reply)
{
	if (!reply)
		return;
	response_done(&reply->response);
	free(reply);
}

size_t rlmd_reply_block_count(const struct rlmd_reply *reply)
{
	return reply ? reply->response.block_count : 0;
}

struct rlmd_text rlmd_reply_block(const struct rlmd_reply *reply, size_t index)
{
	return index < rlmd_reply_block_count(reply) ? reply->response.blocks[index] : text_of("");
}

bool rlmd_reply_cut_code(const struct rlmd_reply *reply)
{
	return reply && reply->response.cut_fence;
}

enum rlmd_answer_kind rlmd_reply_answer(const struct rlmd_reply *reply)
{
	return reply ? reply->response.answer : RLMD_ANSWER_NONE;
}

struct rlmd_text rlmd_reply_answer_text(const struct rlmd_reply *reply)
{
	return rlmd_reply_answer(reply) == RLMD_ANSWER_NONE ? text_of("") : reply->response.value;
}

struct rlmd_text rlmd_reply_thinking(const struct rlmd_reply *reply)
{
	return reply ? reply->response.thinking : text_of("");
}

bool rlmd_reply_invented(const struct rlmd_reply *reply)
{
	return reply && reply->response.invented;
}
