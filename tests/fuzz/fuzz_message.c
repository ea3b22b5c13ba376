/*
 * Whatever JSON stands in a frame: it is refused with a reason, or it is a message
 * whose every field can be read.
 *
 * The first byte says who speaks, in which state, and how many attachments there
 * are; the JSON follows.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "pool/translate.h"
#include "wire/limit.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 4 };

static void read_it(const struct packet *packet, enum message_type type)
{
	static const char *const functions[] = {"lookup", NULL};
	struct worker_block block = {0};
	struct worker_event event = {0};
	struct translated_call call;
	struct rlmd_error err;

	switch (type) {
	case MESSAGE_LLM_QUERY:
	case MESSAGE_RLM_QUERY:
	case MESSAGE_RUN_PLAN:
	case MESSAGE_BUDGET:
	case MESSAGE_FUNCTION:
		if (translate_call(packet, type, functions, &call, &err))
			translated_call_done(&call);
		break;
	case MESSAGE_DONE:
		if (translate_block(packet, 1, &block, &err))
			assert(!block.final || block.answer.bytes);
		break;
	case MESSAGE_VALUE:
		assert(translate_value(packet, &event, &err));
		break;
	case MESSAGE_READY:
	case MESSAGE_START:
	case MESSAGE_STARTED:
	case MESSAGE_EXEC:
	case MESSAGE_REPLY:
	case MESSAGE_GET:
	case MESSAGE_EXIT:
		break;
	case MESSAGE_TYPES:
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct memfile *files[FILES];
	static const size_t sizes[FILES] = {5, 5, 5, 5};
	static const enum worker_state states[] = {WORKER_STARTING, WORKER_IDLE, WORKER_BUSY,
						   WORKER_ASKED};
	struct packet packet = {.sizes = sizes, .attachments = files};
	struct rlmd_error err = {0};
	enum message_type type;
	enum worker_state state;

	for (int i = 0; i < FILES && !files[i]; i++) {
		files[i] = memfile_new("fuzz");
		memfile_append(files[i], text_of("bytes"), NULL);
		memfile_seal(files[i], NULL);
	}
	if (!size)
		return 0;
	state = data[0] & 0x80 ? WORKER_LOADING : states[data[0] >> 1 & 3];
	packet.attachment_count = data[0] >> 3 & (FILES - 1);
	packet.message = json_read(text_from(data + 1, size - 1), FRAME_DEPTH_MAX, &err);
	if (!json_is_object(packet.message)) {
		json_decref(packet.message);
		return 0;
	}
	if (message_check(&packet, data[0] & 1 ? MESSAGE_FROM_WORKER : MESSAGE_FROM_SUPERVISOR,
			  state, &type, &err) &&
	    limit_check(&packet, type, 100, &err))
		read_it(&packet, type);
	else
		assert(err.kind == RLMD_ERROR_WORKER && err.text[0]);
	json_decref(packet.message);
	return 0;
}
