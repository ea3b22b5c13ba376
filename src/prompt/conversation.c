#include "prompt/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

struct rlmd_text conversation_counted(const struct llm_message *message)
{
	return message->timeless.size ? message->timeless : message->text;
}

struct text_scan conversation_scan(const struct llm_message *message)
{
	struct text_scan scan = {0};

	if (message->scan)
		return *message->scan;
	text_scan_feed(&scan, conversation_counted(message));
	text_scan_end(&scan);
	return scan;
}

static struct llm_message message_of(enum llm_role role, struct rlmd_text text,
				     struct rlmd_text without_time)
{
	struct llm_message message = {
		.role = role,
		.text = text_from(text_copy(text), text.size),
		.timeless = text_from(text_copy(without_time), without_time.size),
	};
	struct text_scan *scan = xcalloc(1, sizeof *scan);

	*scan = conversation_scan(&message);
	message.scan = scan;
	return message;
}

static void message_done(struct llm_message *message)
{
	free((char *)message->text.bytes);
	free((char *)message->timeless.bytes);
	free((struct text_scan *)message->scan);
}

void conversation_add(struct conversation *conversation, enum llm_role role, struct rlmd_text text,
		      struct rlmd_text without_time)
{
	conversation->messages = array_grow(conversation->messages, conversation->count,
					    sizeof *conversation->messages);
	conversation->messages[conversation->count++] = message_of(role, text, without_time);
}

void conversation_replace(struct conversation *conversation, size_t first, size_t count,
			  enum llm_role role, struct rlmd_text text)
{
	struct llm_message *at = conversation->messages + first;
	struct llm_message message = message_of(role, text, (struct rlmd_text){0});
	size_t after = conversation->count - first - count;

	for (size_t i = 0; i < count; i++)
		message_done(&at[i]);
	memmove(at + 1, at + count, after * sizeof *at);
	*at = message;
	conversation->count -= count - 1;
}

void conversation_drop_last(struct conversation *conversation)
{
	message_done(&conversation->messages[--conversation->count]);
}

void conversation_done(struct conversation *conversation)
{
	while (conversation->count)
		conversation_drop_last(conversation);
	free(conversation->messages);
	*conversation = (struct conversation){0};
}
