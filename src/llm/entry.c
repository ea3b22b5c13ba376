#include "llm/entry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "llm/body.h"
#include "llm/exchange.h"
#include "llm/key.h"
#include "llm/llm.h"

enum { PIECE = 64 << 10 };

/* The members of an object, without its braces; takes the reference. */
static void put_members(struct body *out, json_t *object)
{
	auto_free char *json = json_to_string(object);

	json[strlen(json) - 1] = '\0';
	body_add(out, json + 1);
	json_decref(object);
}

static void put_text(struct body *out, const char *before, struct rlmd_text text)
{
	body_add(out, before);
	body_quote(out, text);
}

/* What was not asked for is no part of it, or older recordings would not be found. */
static void put_request(struct body *out, const struct llm_request *request)
{
	put_text(out, "{\"request\":{\"model\":",
		 text_of(request->named ? request->named : request->model));
	for (size_t i = 0; i < request->message_count; i++) {
		const struct llm_message *message = &request->messages[i];
		bool ends = !i || i + 1 == request->message_count;

		body_printf(out, "%s{\"role\":\"%s\"", i ? "," : ",\"messages\":[",
			    exchange_role(message->role));
		put_text(out, ",\"content\":", message->text);
		/* Of those in between an earlier request has it. */
		if (message->timeless.size && ends)
			put_text(out, ",\"timeless\":", message->timeless);
		body_add(out, "}");
	}
	body_add(out, request->message_count ? "]," : ",\"messages\":[],");
	put_members(out, exchange_asked(request));
	body_add(out, "},");
	put_members(out, json_pack("{s:{s:s, s:i, s:i}, s:i}", "match", "kind",
				   llm_kind_name(request->kind), "depth", request->depth, "turn",
				   request->turn, "index", request->number));
}

static void put_response(struct body *out, const struct llm_response *response)
{
	put_text(out, "\"response\":{\"text\":", response->text);
	put_text(out, ",\"thinking\":", response->thinking);
	body_add(out, ",");
	put_members(out, exchange_facts(response));
	body_add(out, "}");
}

struct body *entry_of_exchange(const struct llm_request *request,
			       const struct llm_response *response, const struct rlmd_error *err,
			       int64_t order)
{
	json_t *more = order < 0 ? json_pack("{s:b}", "cancelled", 1)
				 : json_pack("{s:I}", "order", (json_int_t)order);
	struct body *out = body_new();

	put_request(out, request);
	body_add(out, ",");
	put_response(out, response);
	exchange_add_error(more, err);
	body_add(out, ",");
	put_members(out, more);
	body_add(out, "}\n");
	return out;
}

struct body *entry_of_answer(const struct llm_response *response)
{
	struct body *out = body_new();

	body_add(out, "{");
	put_response(out, response);
	body_add(out, "}\n");
	return out;
}

bool entry_write(struct body *body, const struct keys *keys, int fd, entry_piece_fn *fn,
		 void *owner, struct rlmd_error *err)
{
	size_t open = keys_longest(keys); /* bytes in which a key may have begun */
	auto_free char *room = xreallocarray(NULL, PIECE + open, 1);
	size_t kept = 0, more;

	do {
		size_t size, done;

		more = body_read(body, room + kept, PIECE);
		size = keys_redact_inside(keys, room, kept + more);
		done = more && size > open ? size - open : more ? 0 : size;
		if (!file_write_fd(fd, text_from(room, done), err))
			return false;
		if (fn)
			fn(owner, text_from(room, done));
		kept = size - done;
		memmove(room, room + done, kept);
	} while (more);
	return true;
}
