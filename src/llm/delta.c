#include "llm/delta.h"

#include <event2/buffer.h>

#include "base/cleanup.h"
#include "llm/key.h"

void delta_tell(struct delta *delta, struct rlmd_text reply, bool whole)
{
	auto_evbuffer struct evbuffer *out = NULL;

	if (!delta->fn || reply.size <= delta->told)
		return;
	out = evbuffer_new();
	delta->told += key_redact_piece(delta->key, text_slice(reply, delta->told, reply.size),
					whole, out);
	if (evbuffer_get_length(out))
		delta->fn(delta->owner, text_in(out));
}

void delta_again(struct delta *delta)
{
	if (delta->fn && delta->told)
		delta->fn(delta->owner, (struct rlmd_text){0});
	delta->told = 0;
}
