#include "sandbox/datagram.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait.h"

void datagram_drop(struct datagram *datagram)
{
	if (datagram->pidfd >= 0)
		close(datagram->pidfd);
	if (datagram->status >= 0)
		close(datagram->status);
	datagram->pidfd = datagram->status = -1;
}

static void take_descriptors(struct msghdr *message, struct datagram *datagram)
{
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t i, count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
			if (datagram->pidfd < 0)
				datagram->pidfd = fd;
			else if (datagram->status < 0)
				datagram->status = fd;
			else
				close(fd);
		}
	}
}

void datagram_receive(int control, struct datagram *datagram)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(LAUNCH_REPLY_FDS * sizeof(int))];
	struct iovec bytes = {datagram->text, sizeof datagram->text};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof space,
	};

	datagram->pidfd = datagram->status = -1;
	/* What it did not read before its end is told first, once; then comes what it said. */
	do
		datagram->size = recvmsg(control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (datagram->size < 0 && errno == ECONNRESET);
	if (datagram->size >= 0)
		take_descriptors(&message, datagram);
}

bool datagram_is_there(int control)
{
	return wait_for(control, POLLIN, 0, INT_MAX) == WAIT_READY;
}

bool datagram_await(int control, int64_t deadline, struct datagram *datagram)
{
	for (;;) {
		switch (wait_for(control, POLLIN, deadline, 0)) {
		case WAIT_READY:
			break;
		case WAIT_LATE:
			errno = ETIMEDOUT;
			return false;
		case WAIT_INTERRUPTED:
			errno = ECANCELED;
			return false;
		case WAIT_FAILED:
			return false;
		}
		datagram_receive(control, datagram);
		if (datagram->size >= 0)
			return true;
		if (errno != EAGAIN && errno != EINTR)
			return false;
	}
}

bool datagram_send(int control, const struct launch_request *request, const int *fds,
		   size_t fd_count)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(LAUNCH_FDS_MAX * sizeof(int))] = {0};
	struct iovec bytes = {(void *)request, sizeof *request};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = CMSG_SPACE(fd_count * sizeof *fds),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(fd_count * sizeof *fds);
	memcpy(CMSG_DATA(header), fds, fd_count * sizeof *fds);
	return sendmsg(control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

bool datagram_send_by(int control, int64_t deadline, const struct launch_request *request,
		      const int *fds, size_t fd_count)
{
	while (!datagram_send(control, request, fds, fd_count)) {
		if (errno != EINTR && (errno != ETOOMANYREFS || clock_ms() >= deadline))
			return false;
		poll(NULL, 0, DATAGRAM_AGAIN_MS);
	}
	return true;
}

bool datagram_refused(struct rlmd_error *err)
{
	if (errno == ETOOMANYREFS)
		return error_set(err, RLMD_ERROR_SANDBOX,
				 "cannot ask for a worker: processes of this user keep more "
				 "descriptors on their way to each other than one of them may "
				 "have open; end them, or raise the limit: ulimit -n");
	return error_errno(err, RLMD_ERROR_SANDBOX, "cannot ask for a worker");
}
