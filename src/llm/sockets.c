#include "llm/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/alloc.h"

struct open_socket {
	int fd;
	int port; /* 0: not known yet */
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

bool sockets_unread(struct sockets *sockets, int port)
{
	for (size_t i = 0; i < sockets->count; i++) {
		struct open_socket *each = &sockets->all[i];

		if (!each->port)
			each->port = own_port(each->fd);
		if (each->port == port && is_unread(each->fd))
			return true;
	}
	return false;
}
