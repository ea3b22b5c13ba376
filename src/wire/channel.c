/*
 * The side that sends is trusted with nothing: a size is compared with its
 * limit before anything is made for it, and one turn of the event loop takes at
 * most READ_MAX bytes and STEPS_MAX frames or attachments from it.
 *
 * struct event and not bufferevent, for a bufferevent goes on reading while
 * nobody takes what it read.
 */
#include "wire/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/timer.h"

enum {
	READ_MAX = 64 << 10,
	STEPS_MAX = 64,
	FRAME_MS = 30000,      /* a frame that was begun must be whole by then */
	BYTES_PER_MS = 1000,   /* or so much later for its attachments */
	CROWDED = 8 << 20,     /* unsent bytes at which it must read before we do */
	UNREAD_MAX = 64 << 20, /* and the largest frame: at so many no further one is sent */
};

struct channel {
	int in, out;             /* owned */
	struct event *readable;  /* owned */
	struct event *writable;  /* owned; pending while `output` holds something */
	struct timer *late;      /* owned; pending while a frame is half read */
	struct timer *again;     /* owned; pending where the next turn must look at `input` */
	struct evbuffer *input;  /* owned: less than one frame, and one read */
	struct evbuffer *output; /* owned */

	struct packet packet; /* owned: the frame whose attachments are coming, if `announced` */
	bool announced;
	size_t filled;           /* attachments that are whole */
	size_t missing;          /* bytes of the attachment that is being filled */
	struct memfile *filling; /* owned, or NULL between two */
	size_t largest;          /* bytes of the largest frame sent */
	size_t allowance;        /* what attachments may weigh */
	bool allowed;            /* those of this frame may come */

	bool paused;
	bool crowded;      /* it sent a frame and had CROWDED bytes to read: it reads first */
	bool ended;        /* end of file was seen */
	bool deaf;         /* the other side closed its end: nothing can be sent */
	bool delivering;   /* a callback is on the stack, so the struct must last */
	bool freed;        /* it was freed in that callback */
	bool failed;       /* `error` is to be told at the next occasion */
	bool end_reported; /* everything rests */
	struct rlmd_error error;

	channel_admit_fn *admit; /* or NULL */
	channel_packet_fn *on_packet;
	channel_over_fn *on_over;
	void *owner; /* lent */
};

static void on_readable(evutil_socket_t, short, void *);
static void on_writable(evutil_socket_t, short, void *);
static void on_late(void *);
static void on_again(void *);

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

struct channel *channel_new(struct event_base *base, int in, int out, channel_packet_fn *on_packet,
			    channel_over_fn *on_over, void *owner)
{
	struct channel *channel = xcalloc(1, sizeof *channel);

	set_nonblocking(in);
	set_nonblocking(out);
	channel->in = in;
	channel->out = out;
	channel->readable = loop_event(base, in, EV_READ | EV_PERSIST, on_readable, channel);
	channel->writable = loop_event(base, out, EV_WRITE, on_writable, channel);
	channel->late = timer_new(base, on_late, channel);
	channel->again = timer_new(base, on_again, channel);
	channel->input = buffer_new();
	channel->output = buffer_new();
	channel->allowance = ATTACHED_MAX;
	channel->on_packet = on_packet;
	channel->on_over = on_over;
	channel->owner = owner;
	loop_add(channel->readable, NULL);
	return channel;
}

void channel_on_announce(struct channel *channel, channel_admit_fn *admit)
{
	channel->admit = admit;
}

static void forget_packet(struct channel *channel)
{
	packet_done(&channel->packet);
	channel->announced = false;
	channel->filled = 0;
}

void channel_free(struct channel *channel)
{
	if (!channel)
		return;
	event_free(channel->readable);
	event_free(channel->writable);
	timer_free(channel->late);
	timer_free(channel->again);
	evbuffer_free(channel->input);
	evbuffer_free(channel->output);
	memfile_unref(channel->filling);
	close(channel->in);
	close(channel->out);
	if (channel->delivering) {
		channel->freed = true; /* the packet is lent to the callback that we are in */
		return;
	}
	forget_packet(channel);
	free(channel);
}

bool channel_ended(const struct channel *channel)
{
	return channel->ended;
}

static void fail(struct channel *channel, const struct rlmd_error *err)
{
	if (channel->failed)
		return;
	channel->failed = true;
	channel->error = *err;
}

static void over(struct channel *channel, const struct rlmd_error *err)
{
	struct rlmd_error copy = *err; /* the callback may free the channel */

	event_del(channel->readable);
	event_del(channel->writable);
	timer_stop(channel->late);
	timer_stop(channel->again);
	channel->end_reported = true;
	channel->on_over(channel->owner, &copy);
}

static void deliver(struct channel *channel)
{
	timer_stop(channel->late);
	channel->allowed = false;
	channel->crowded = evbuffer_get_length(channel->output) > CROWDED;
	channel->on_packet(channel->owner, &channel->packet);
	forget_packet(channel);
}

/* Takes the JSON of a frame; `packet` is what it announces. */
static bool read_frame(struct channel *channel, struct rlmd_text text, struct rlmd_error *err)
{
	struct packet *packet = &channel->packet;

	channel->announced = true;
	return packet_read(packet, text, err) &&
	       (!channel->admit || channel->admit(channel->owner, packet, err));
}

/* A step says whether there may be another. */
static bool step_frame(struct channel *channel)
{
	size_t available = evbuffer_get_length(channel->input);
	struct rlmd_error err = {0};
	uint32_t length;
	const char *bytes;

	if (available < sizeof length)
		return false;
	evbuffer_copyout(channel->input, &length, sizeof length);
	length = ntohl(length);
	if (length > FRAME_MAX) {
		error_set(&err, RLMD_ERROR_WORKER, "a frame of %u bytes; at most %d are allowed",
			  length, FRAME_MAX);
		fail(channel, &err);
		return false;
	}
	if (available < sizeof length + length)
		return false;
	bytes = (const char *)buffer_pullup(channel->input, (ev_ssize_t)(sizeof length + length));
	if (!read_frame(channel, text_from(bytes + sizeof length, length), &err)) {
		fail(channel, &err);
		return false;
	}
	evbuffer_drain(channel->input, sizeof length + length);
	if (!channel->packet.attachment_count)
		deliver(channel);
	return true;
}

/* Moves what has arrived of the attachment into its memory file. */
static bool fill(struct channel *channel, struct rlmd_error *err)
{
	struct evbuffer_iovec piece;

	while (channel->missing && evbuffer_get_length(channel->input)) {
		size_t size;

		evbuffer_peek(channel->input, 1, NULL, &piece, 1);
		size = piece.iov_len < channel->missing ? piece.iov_len : channel->missing;
		if (!memfile_append(channel->filling, text_from(piece.iov_base, size), err))
			return false;
		channel->missing -= size;
		evbuffer_drain(channel->input, size);
	}
	return channel->missing || memfile_seal(channel->filling, err);
}

static bool step_attachment(struct channel *channel)
{
	struct packet *packet = &channel->packet;
	struct rlmd_error err = {0};

	if (channel->filled == packet->attachment_count) {
		deliver(channel);
		return true;
	}
	if (!channel->filling) {
		channel->missing = packet->sizes[channel->filled];
		channel->filling = memfile_new_private("rlmd-attachment");
	}
	if (!fill(channel, &err)) {
		fail(channel, &err);
		return false;
	}
	if (channel->missing)
		return false;
	packet->attachments[channel->filled++] = take_pointer(&channel->filling);
	return true;
}

/* Its attachments weigh more than they may now. */
static bool held_back(const struct channel *channel)
{
	return channel->announced && !channel->allowed &&
	       channel->packet.weight > channel->allowance;
}

static void set_time(struct channel *channel)
{
	size_t bytes = channel->allowed ? channel->packet.weight : 0;

	timer_start(channel->late, FRAME_MS + (int64_t)(bytes / BYTES_PER_MS));
}

static bool step(struct channel *channel)
{
	if (!channel->announced)
		return step_frame(channel);
	if (held_back(channel))
		return false;
	if (!channel->allowed) {
		channel->allowed = true;
		set_time(channel);
	}
	return step_attachment(channel);
}

static bool half_read(const struct channel *channel)
{
	return channel->announced || evbuffer_get_length(channel->input);
}

static void on_end(struct channel *channel)
{
	struct rlmd_error err = {0};

	if (half_read(channel))
		error_set(&err, RLMD_ERROR_WORKER, "the stream ended in the middle of a frame");
	over(channel, &err);
}

static bool resting(const struct channel *channel)
{
	return channel->paused || channel->crowded;
}

/* Sees to it that the loop comes back for the rest. */
static void rest(struct channel *channel, bool more)
{
	bool waits = resting(channel) || held_back(channel);

	if (waits || !half_read(channel))
		timer_stop(channel->late);
	else if (!timer_waits(channel->late))
		set_time(channel);
	if (waits || more) {
		event_del(channel->readable);
		if (!waits)
			timer_start(channel->again, 0);
	} else if (channel->ended) {
		on_end(channel);
	} else {
		loop_add(channel->readable, NULL);
	}
}

/* Delivers what is whole. */
static void digest(struct channel *channel)
{
	int steps = 0;

	channel->delivering = true;
	while (!channel->freed && !resting(channel) && !channel->failed && steps < STEPS_MAX &&
	       step(channel))
		steps++;
	channel->delivering = false;
	if (channel->freed)
		free(channel);
	else if (channel->failed)
		over(channel, &channel->error);
	else
		rest(channel, steps == STEPS_MAX);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;
	struct evbuffer_iovec room;
	struct rlmd_error err;
	ssize_t size;

	(void)what;
	room = buffer_reserve(channel->input, READ_MAX);
	size = read(fd, room.iov_base, READ_MAX);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size < 0) {
		error_errno(&err, RLMD_ERROR_WORKER, "cannot read");
		fail(channel, &err);
	} else {
		room.iov_len = (size_t)size;
		evbuffer_commit_space(channel->input, &room, 1);
		channel->ended = !size;
	}
	digest(channel);
}

static void on_again(void *arg)
{
	digest(arg);
}

static void on_late(void *arg)
{
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_WORKER, "a frame was begun and not ended in its time");
	over(arg, &err);
}

void channel_pause(struct channel *channel, bool paused)
{
	if (channel->paused == paused || channel->end_reported)
		return;
	channel->paused = paused;
	if (paused) {
		event_del(channel->readable);
		timer_stop(channel->late);
	} else {
		timer_start(channel->again, 0);
	}
}

void channel_allow(struct channel *channel, size_t weight)
{
	bool waited = held_back(channel);

	channel->allowance = weight;
	if (waited && !held_back(channel) && !channel->paused && !channel->end_reported)
		timer_start(channel->again, 0);
}

/* A host need not ignore SIGPIPE, which the pipe of a dead worker raises in this thread: the signal
 * is blocked meanwhile and taken back, as signal(7) and sigtimedwait(2) allow. */
static int write_without_sigpipe(struct evbuffer *output, int fd)
{
	const struct timespec now = {0};
	sigset_t pipe, before;
	int written, error;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	written = evbuffer_write(output, fd);
	error = errno;
	if (written < 0 && error == EPIPE && !sigismember(&before, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
			continue;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return written;
}

/*
 * Where the other side closed its end, that side's death is under way and what
 * it said before is still to be read: so nobody is told from here.
 */
static void write_some(struct channel *channel)
{
	if (write_without_sigpipe(channel->output, channel->out) < 0 && errno != EAGAIN &&
	    errno != EINTR) {
		channel->deaf = true;
		evbuffer_drain(channel->output, evbuffer_get_length(channel->output));
	}
	if (evbuffer_get_length(channel->output))
		loop_add(channel->writable, NULL);
	if (channel->crowded && evbuffer_get_length(channel->output) <= CROWDED) {
		channel->crowded = false;
		timer_start(channel->again, 0);
	}
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	write_some(arg);
}

void channel_send(struct channel *channel, struct frame *frame)
{
	size_t unread = evbuffer_get_length(channel->output);
	size_t size;
	struct rlmd_error err;

	if (unread > UNREAD_MAX + channel->largest && !channel->end_reported) {
		error_set(&err, RLMD_ERROR_WORKER, "it does not read what it is sent");
		fail(channel, &err);
		timer_start(channel->again, 0);
	} else if (!channel->deaf && !channel->end_reported) {
		frame_encode(frame, channel->output);
		size = evbuffer_get_length(channel->output) - unread;
		if (size > channel->largest)
			channel->largest = size;
		if (!unread)
			write_some(channel);
	}
	frame_free(frame);
}
