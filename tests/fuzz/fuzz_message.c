/*
 * Whatever JSON stands in a frame: it is refused with a reason, or it is a message
 * whose every field can be read. What the packet takes for JSON, and what it reads there,
 * is what jansson takes and reads.
 *
 * The first byte says who speaks, in which state, and how many attachments there
 * are; the JSON follows.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
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
			translate_call_done(&call);
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

static void compare_value(const struct packet *packet, const struct packet_value *value,
			  const json_t *meant)
{
	switch (json_typeof(meant)) {
	case JSON_STRING:
		assert(value->kind == JSON_VIEW_STRING);
		assert(value->text.size == json_string_length(meant));
		assert(!memcmp(value->text.bytes, json_string_value(meant), value->text.size + 1));
		break;
	case JSON_INTEGER:
		assert(value->kind == JSON_VIEW_INTEGER);
		assert(value->integer == json_integer_value(meant));
		break;
	case JSON_ARRAY:
		assert(value->kind == JSON_VIEW_ARRAY && value->count == json_array_size(meant));
		for (size_t i = 0; i < value->count; i++) {
			const json_t *element = json_array_get(meant, i);

			if (!json_is_array(element))
				compare_value(packet, packet_element(packet, value, i), element);
		}
		break;
	case JSON_OBJECT:
		assert(value->kind == JSON_VIEW_OBJECT);
		break;
	case JSON_REAL:
		assert(value->kind == JSON_VIEW_REAL);
		break;
	case JSON_TRUE:
		assert(value->kind == JSON_VIEW_TRUE);
		break;
	case JSON_FALSE:
		assert(value->kind == JSON_VIEW_FALSE);
		break;
	case JSON_NULL:
		assert(value->kind == JSON_VIEW_NULL);
		break;
	}
}

static void compare(const struct packet *packet, json_t *meant)
{
	const char *key;
	json_t *member;

	assert(json_is_object(meant));
	json_object_del(meant, "attachments");
	assert(json_object_size(meant) == packet->member_count);
	json_object_foreach (meant, key, member)
		compare_value(packet, packet_field(packet, key), member);
}

/* Whether it says more than any frame may, or is none. jansson goes over a NUL behind a number. */
static bool refusable(struct rlmd_text json, const json_t *meant)
{
	return !json_is_object(meant) || json_object_size(meant) > PACKET_MEMBERS_MAX ||
	       json_object_get(meant, "attachments") || memchr(json.bytes, '\0', json.size);
}

static bool read_packet(struct packet *packet, struct rlmd_text json)
{
	struct rlmd_error err = {0};
	json_t *meant = json_read(json, PACKET_DEPTH_MAX, NULL);
	bool good = packet_read(packet, json, &err);

	if (good)
		compare(packet, meant);
	else
		assert(err.kind == RLMD_ERROR_WORKER && err.text[0] && refusable(json, meant));
	json_decref(meant);
	return good;
}

/* As if those that it announced had come, and no others. */
static void attach(struct packet *packet, size_t count, struct memfile *const *files)
{
	free(packet->sizes);
	free(packet->attachments);
	packet->sizes = xcalloc(FILES, sizeof *packet->sizes);
	packet->attachments = xcalloc(FILES, sizeof(struct memfile *));
	packet->attachment_count = count;
	for (size_t i = 0; i < count; i++) {
		packet->sizes[i] = memfile_size(files[i]);
		packet->attachments[i] = memfile_ref(files[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct memfile *files[FILES];
	static const enum worker_state states[] = {WORKER_STARTING, WORKER_IDLE, WORKER_BUSY,
						   WORKER_ASKED};
	struct packet packet = {0};
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
	if (!read_packet(&packet, text_from(data + 1, size - 1))) {
		packet_done(&packet);
		return 0;
	}
	attach(&packet, data[0] >> 3 & (FILES - 1), files);
	if (message_check(&packet, data[0] & 1 ? MESSAGE_FROM_WORKER : MESSAGE_FROM_SUPERVISOR,
			  state, &type, &err) &&
	    limit_check(&packet, type, 100, &err))
		read_it(&packet, type);
	else
		assert(err.kind == RLMD_ERROR_WORKER && err.text[0]);
	packet_done(&packet);
	return 0;
}
