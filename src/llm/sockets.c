#include "llm/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/alloc.h"

struct open_socket {
	int fd;
	int port;     /* 0: not known yet */
	bool greeted; /* the next look at it is to find nothing */
};

struct sockets {
	struct open_socket *all; /* owned */
	size_t count, room;
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

void sockets_add(struct sockets *sockets, int fd)
{
	if (sockets->count == sockets->room) {
		sockets->room = sockets->room ? 2 * sockets->room : 16;
		sockets->all = xreallocarray(sockets->all, sockets->room, sizeof *sockets->all);
	}
	sockets->all[sockets->count++] = (struct open_socket){.fd = fd};
}

void sockets_remove(struct sockets *sockets, int fd)
{
	for (size_t i = 0; i < sockets->count; i++)
		if (sockets->all[i].fd == fd) {
			sockets->all[i] = sockets->all[--sockets->count];
			return;
		}
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

static bool is_at(struct open_socket *each, int port)
{
	if (!each->port)
		each->port = own_port(each->fd);
	return each->port == port;
}

void sockets_greet(struct sockets *sockets, int port)
{
	for (size_t i = 0; i < sockets->count; i++)
		if (is_at(&sockets->all[i], port))
			sockets->all[i].greeted = true;
}

bool sockets_unread(struct sockets *sockets, int port)
{
	for (size_t i = 0; i < sockets->count; i++) {
		struct open_socket *each = &sockets->all[i];

		if (!is_at(each, port))
			continue;
		if (each->greeted ? is_ended(each->fd) : is_unread(each->fd))
			return true;
		each->greeted = false;
	}
	return false;
}
