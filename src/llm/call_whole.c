/*
 * An answer that comes as a whole: one of megabytes is gone over while it comes, and its texts are
 * taken a part in each turn of the loop, so that it holds up nobody else.
 */
#include "base/loop.h"
#include "llm/adapter.h"
#include "llm/call_private.h"
#include "llm/provider.h"

enum {
	FAILURE_MAX = 64 << 10, /* bytes looked at where the status is not 200 */
	AT_ONCE = 128 << 10,    /* bytes of a text: less than a millisecond */
};

void call_keep(struct call *call, struct evbuffer *data)
{
	size_t limit = call->status == 200 ? REPLY_WHOLE_MAX : FAILURE_MAX;

	bytes_move(&call->body, data, limit - call->body.size);
	if (call->status == 200)
		json_ahead_feed(&call->ahead, bytes_text(&call->body));
}

void call_take_whole(struct call *call)
{
	struct rlmd_error error = {0};
	bool fine = reply_go_on(&call->reply, AT_ONCE, &error);

	delta_tell(&call->delta, bytes_text(&call->reply.text.bytes), false);
	if (fine && reply_waits(&call->reply))
		loop_post(call->timer);
	else
		call_judge(call, &error, NULL);
}

void call_read_whole(struct call *call)
{
	struct rlmd_error error = {0};

	call->reply.ahead = &call->ahead;
	call->reply.at_once = AT_ONCE;
	if (call->provider->adapter->whole(&call->reply, bytes_text(&call->body), &error))
		call_take_whole(call);
	else
		call_judge(call, &error, NULL);
}

void call_drop_whole(struct call *call)
{
	bytes_done(&call->body);
	json_ahead_done(&call->ahead);
}
