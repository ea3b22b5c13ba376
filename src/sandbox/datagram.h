/*
 * sandbox/datagram.h - what goes over the template's control socket, one message at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "sandbox/launch.h"

/* Milliseconds until it is worth a try to send descriptors again. */
#define DATAGRAM_AGAIN_MS 5

/* With the descriptors that came along, or -1. */
struct datagram {
	union {
		char text[LAUNCH_TEXT_MAX];
		struct launch_reply reply;
	};
	ssize_t size; /* 0 at the end; -1 and errno */
	int pidfd;    /* owned, like that of `status` */
	int status;
};

/* Closes what nobody took. */
void datagram_drop(struct datagram *);

/* The next one, where there is one. */
void datagram_receive(int control, struct datagram *);

/* Waits for one, or the end. False where none came before the deadline, and errno; ECANCELED where
 * the program is asked to end. */
bool datagram_await(int control, int64_t deadline, struct datagram *);

/* Whether one is there that nobody has received. */
bool datagram_is_there(int control);

/*
 * False and errno; EAGAIN where there is no room; ETOOMANYREFS where processes of this user have
 * too many descriptors on their way to each other, unix(7), which they soon take.
 */
bool datagram_send(int control, const struct launch_request *, const int *fds, size_t fd_count);

/* The same, but waits for others' descriptors; ETOOMANYREFS where they are not taken before the
 * deadline. */
bool datagram_send_by(int control, int64_t deadline, const struct launch_request *, const int *fds,
		      size_t fd_count);

/* Where a request cannot be sent, as errno says. False. */
bool datagram_refused(struct rlmd_error *);
