/*
 * wire/packet.h - a frame that was read: the members of its object, and its attachments.
 *
 * No message has more than scalars and arrays of scalars in its members, so that is all that
 * a packet keeps: what nests deeper is checked as JSON and kept as a value of no use. One pass over
 * the frame, no tree: what jansson took for a call of 200 bytes was more than all else that is done
 * with it here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json_view.h"
#include "base/memfile.h"
#include "base/text.h"

enum {
	PACKET_DEPTH_MAX = 8,
	PACKET_MEMBERS_MAX = 16, /* no message has so many */
};

/* A member's value, or an element of one that is an array. */
struct packet_value {
	enum json_view_kind kind;
	union {
		int64_t integer;       /* INTEGER */
		struct rlmd_text text; /* STRING, a NUL behind it */
		struct {
			size_t first, count; /* ARRAY: for packet_element() */
		};
	};
};

struct packet_member {
	struct rlmd_text name;
	struct packet_value value;
};

struct packet {
	struct packet_member members[PACKET_MEMBERS_MAX]; /* without "attachments" */
	size_t member_count;
	struct packet_value *elements; /* owned: of all arrays */
	size_t element_count, element_room;
	char *strings; /* owned: the texts of all members */
	size_t string_size;

	size_t *sizes;                /* owned: of the attachments, in bytes */
	struct memfile **attachments; /* owned, sealed: NULL where one has not come yet */
	size_t attachment_count;
	size_t weight; /* of the attachments, see wire/bounds.h */
};

/* Reads the JSON of a frame, and what it announces; `packet` is zero. False and RLMD_ERROR_WORKER
 * where it is no JSON object within its limits. packet_done() has to come in any case. */
bool packet_read(struct packet *, struct rlmd_text json, struct rlmd_error *);
void packet_done(struct packet *); /* it is zero again */

/* The member of that name, lent; NULL where there is none. */
const struct packet_value *packet_field(const struct packet *, const char *name);
const struct packet_value *packet_element(const struct packet *, const struct packet_value *array,
					  size_t index);

/* The value of a field that message_check() has accepted; 0, NULL or false if it is null. */
int64_t packet_integer(const struct packet *, const char *name);
const char *packet_string(const struct packet *, const char *name); /* lent */
bool packet_is_null(const struct packet *, const char *name);

/* The text that a TEXT means; empty for null. `file` (may be NULL) gets the attachment
 * that holds it, lent, or NULL where the text stood in the frame. */
struct rlmd_text packet_text(const struct packet *, const struct packet_value *,
			     struct memfile **ret_file);
