#include "net/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/file.h"

struct open_socket {
	bool is_open;
	bool greeted; /* the next look at it is to find nothing */
	int port;     /* 0: not known yet */
};

/* By descriptor. A request goes through all of them, which of thousands takes microseconds. */
struct sockets {
	struct open_socket *all; /* owned */
	size_t room;
};

struct sockets *sockets_new(void)
{
	return xcalloc(1, sizeof(struct sockets));
}

void sockets_free(struct sockets *sockets)
{
	if (!sockets)
		return;
	free(sockets->all);
	free(sockets);
}

void sockets_remove(struct sockets *sockets, int fd)
{
	if ((size_t)fd < sockets->room)
		sockets->all[fd].is_open = false;
}

void sockets_add(struct sockets *sockets, int fd)
{
	size_t had = sockets->room, wanted = (size_t)fd + 1;

	if (wanted > had) {
		sockets->room = wanted > 2 * had ? wanted : 2 * had;
		sockets->all = xreallocarray(sockets->all, sockets->room, sizeof *sockets->all);
		memset(&sockets->all[had], 0, (sockets->room - had) * sizeof *sockets->all);
	}
	/* libcurl 7.88 to 8.1 closes a socket without a word if its transfer is cancelled before it
	 * is connected (curl issue 11439): its number may come again. */
	sockets->all[fd] = (struct open_socket){.is_open = true};
}

void sockets_cut(struct sockets *sockets)
{
	for (size_t fd = 0; fd < sockets->room; fd++)
		if (sockets->all[fd].is_open)
			file_cut_forked((int)fd);
}

static int own_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} address;
	socklen_t size = sizeof address;

	if (getsockname(fd, &address.any, &size))
		return 0;
	return address.any.sa_family == AF_INET    ? ntohs(address.four.sin_port)
	       : address.any.sa_family == AF_INET6 ? ntohs(address.six.sin6_port)
						   : 0;
}

static bool is_unread(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Also where something is to be read before. */
static bool is_ended(int fd)
{
	struct pollfd socket = {.fd = fd, .events = POLLRDHUP};

	return poll(&socket, 1, 0) > 0;
}

/* The next open one from `fd` on with this port, or the end. */
static size_t find(struct sockets *sockets, size_t fd, int port)
{
	for (; fd < sockets->room; fd++) {
		struct open_socket *each = &sockets->all[fd];

		if (!each->is_open)
			continue;
		if (!each->port)
			each->port = own_port((int)fd);
		if (each->port == port)
			break;
	}
	return fd;
}

void sockets_greet(struct sockets *sockets, int port)
{
	for (size_t fd = find(sockets, 0, port); fd < sockets->room;
	     fd = find(sockets, fd + 1, port))
		sockets->all[fd].greeted = true;
}

bool sockets_unread(struct sockets *sockets, int port)
{
	for (size_t fd = find(sockets, 0, port); fd < sockets->room;
	     fd = find(sockets, fd + 1, port)) {
		struct open_socket *each = &sockets->all[fd];

		if (each->greeted ? is_ended((int)fd) : is_unread((int)fd))
			return true;
		each->greeted = false;
	}
	return false;
}
