/* Whatever bytes a worker writes: packets within their limits, then one end, and no crash. */
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct ear {
	int packets, overs;
};

static void on_packet(void *owner, const struct packet *packet)
{
	struct ear *ear = owner;

	assert(!ear->overs);
	ear->packets++;
	assert(packet->member_count <= PACKET_MEMBERS_MAX);
	assert(!packet_field(packet, "attachments"));
	assert(packet->attachment_count <= ATTACHMENTS_MAX);
	for (size_t i = 0; i < packet->attachment_count; i++)
		assert(pwrite(memfile_fd(packet->attachments[i], NULL), "x", 1, 0) < 0 &&
		       errno == EPERM);
}

static void on_over(void *owner, const struct rlmd_error *err)
{
	struct ear *ear = owner;

	assert(err->kind == RLMD_ERROR_NONE || err->kind == RLMD_ERROR_WORKER);
	ear->overs++;
}

static void feed(struct event_base *base, int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written > 0) {
			data += written;
			size -= (size_t)written;
		} else if (errno != EAGAIN) {
			return;
		}
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_base *base;
	struct ear ear = {0};
	struct channel *channel;
	int in[2], out[2];

	signal(SIGPIPE, SIG_IGN);
	if (!base)
		base = event_base_new();
	if (pipe2(in, O_CLOEXEC | O_NONBLOCK) || pipe2(out, O_CLOEXEC))
		abort();
	channel = channel_new(base, in[0], out[1], on_packet, on_over, &ear);
	/* In two pieces, cut where the first byte says. */
	if (size && data[0] < size) {
		feed(base, in[1], data + 1, data[0]);
		feed(base, in[1], data + 1 + data[0], size - 1 - data[0]);
	}
	close(in[1]);
	while (!ear.overs)
		event_base_loop(base, EVLOOP_ONCE);
	assert(ear.overs == 1);
	channel_free(channel);
	close(out[0]);
	return 0;
}
