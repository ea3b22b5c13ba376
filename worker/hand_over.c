#include "hand_over.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "sandbox/launch.h"

enum { AGAIN_MS = 5, TRIES = 2000 };

bool hand_over(int socket, const void *bytes, size_t size, const int *fds, size_t fd_count)
{
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(LAUNCH_REPLY_FDS * sizeof(int))] = {0};
	struct iovec part = {(void *)bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int tries = TRIES;

	if (fd_count) {
		struct cmsghdr *header;

		message.msg_control = space;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof *fds);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(fd_count * sizeof *fds);
		memcpy(CMSG_DATA(header), fds, fd_count * sizeof *fds);
	}
	while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
		if (errno == ETOOMANYREFS && tries--)
			poll(NULL, 0, AGAIN_MS);
		else if (errno != EINTR)
			return false;
	}
	return true;
}
