#include "engine/conversation.h"

#include <stdlib.h>

#include "base/alloc.h"

void conversation_add(struct conversation *conversation, enum llm_role role, struct text text,
		      struct text timeless)
{
	if (conversation->count == conversation->room) {
		conversation->room = conversation->room ? conversation->room * 2 : 8;
		conversation->messages = xreallocarray(conversation->messages, conversation->room,
						       sizeof *conversation->messages);
	}
	conversation->messages[conversation->count++] = (struct llm_message){
		.role = role,
		.text = text_from(text_copy(text), text.size),
		.timeless = text_from(text_copy(timeless), timeless.size),
	};
}

void conversation_done(struct conversation *conversation)
{
	for (size_t i = 0; i < conversation->count; i++) {
		free((char *)conversation->messages[i].text.bytes);
		free((char *)conversation->messages[i].timeless.bytes);
	}
	free(conversation->messages);
	*conversation = (struct conversation){0};
}
