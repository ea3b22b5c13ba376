/*
 * wire/channel.h - frames and their attachments over two pipes.
 *
 * A frame is a 4-byte big-endian length and that many bytes of JSON, one
 * object. Its member "attachments", where present, is an array of sizes: so
 * many raw bytes follow the frame, one attachment after the other. Nothing is
 * allocated before its announced size passed a limit; attachments are moved in
 * bounded steps, so that no frame of any size holds up the event loop. A frame
 * that was begun must be whole within a time that its size gives it.
 * docs/protocol.md has the whole format. Knows no processes.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "wire/frame.h"
#include "wire/packet.h"

struct channel;

/* A frame that arrived. The packet is lent to the callback; to keep an attachment, reference it. */
typedef void channel_packet_fn(void *owner, const struct packet *);
/* Whether a frame may go on: its JSON is read, its attachments are only announced by their
 * sizes. A frame that is refused with `err` ends the stream. May not free the channel. */
typedef bool channel_admit_fn(void *owner, const struct packet *announced, struct rlmd_error *err);
/* The stream is over: err->kind is RLMD_ERROR_NONE at an orderly end of file, RLMD_ERROR_WORKER
 * with the reason after a violation, another kind where we ourselves had no room for
 * what came. Comes once; nothing comes after it. */
typedef void channel_over_fn(void *owner, const struct rlmd_error *err);

/* Whether the other side closed its end: then its death, not a lie, is what ended the stream. */
bool channel_ended(const struct channel *);

/* Takes both descriptors and makes them non-blocking. Callbacks come from the loop. */
struct channel *channel_new(struct event_base *, int in, int out, channel_packet_fn *,
			    channel_over_fn *, void *owner);
void channel_on_announce(struct channel *, channel_admit_fn *); /* without it: all are admitted */
void channel_free(struct channel *); /* closes both; may be called from a callback */

/* Takes the frame. While much of what was sent is unread, no more than one further frame
 * is taken from the other side; beyond a bound channel_over_fn comes with RLMD_ERROR_WORKER, for
 * it does not read at all. Where it closed its end frames vanish: what it said before is
 * still read, then its end comes. */
void channel_send(struct channel *, struct frame *);

/* Stops and resumes reading: back-pressure on a side that asks faster than it is served. */
void channel_pause(struct channel *, bool paused);

/* How much the attachments of a frame may weigh now (ATTACHED_MAX at first, and again at some
 * time). A frame with more waits until it may; that is the same back-pressure. */
void channel_allow(struct channel *, size_t weight);
