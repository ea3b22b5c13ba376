#include "llm/delta.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "llm/key.h"

void delta_tell(struct delta *delta, struct evbuffer *reply, bool whole)
{
	size_t size = evbuffer_get_length(reply), fresh, done;
	auto_evbuffer struct evbuffer *out = NULL;
	auto_free char *bytes = NULL;
	struct evbuffer_ptr place;

	if (!delta->fn || size <= delta->told)
		return;
	out = evbuffer_new();
	fresh = size - delta->told;
	bytes = xcalloc(fresh, 1);
	evbuffer_ptr_set(reply, &place, delta->told, EVBUFFER_PTR_SET);
	evbuffer_copyout_from(reply, &place, bytes, fresh);
	done = key_redact_piece(delta->key, text_from(bytes, fresh), whole, out);
	delta->told += done;
	if (evbuffer_get_length(out))
		delta->fn(delta->owner, text_in(out));
}

void delta_again(struct delta *delta)
{
	if (delta->fn && delta->told)
		delta->fn(delta->owner, (struct rlmd_text){0});
	delta->told = 0;
}
