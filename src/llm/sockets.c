#include "llm/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"

enum { LISTS = 1024, NONE = -1 };

struct open_socket {
	int port;     /* 0: not known yet */
	int next;     /* descriptor in the same list, or NONE */
	bool greeted; /* the next look at it is to find nothing */
};

/* A request asks for one of thousands: they are found by their port, and by their descriptor. */
struct sockets {
	struct open_socket *all; /* owned, by descriptor */
	size_t room;
	int by_port[LISTS]; /* heads: of those with that port, modulo */
	int unknown;        /* head: of those without */
};

struct sockets *sockets_new(void)
{
	struct sockets *sockets = xcalloc(1, sizeof *sockets);

	for (size_t i = 0; i < LISTS; i++)
		sockets->by_port[i] = NONE;
	sockets->unknown = NONE;
	return sockets;
}

void sockets_free(struct sockets *sockets)
{
	if (!sockets)
		return;
	free(sockets->all);
	free(sockets);
}

static int *list_of(struct sockets *sockets, int port)
{
	return port ? &sockets->by_port[port % LISTS] : &sockets->unknown;
}

static void put(struct sockets *sockets, int fd, int port)
{
	int *head = list_of(sockets, port);

	sockets->all[fd].port = port;
	sockets->all[fd].next = *head;
	*head = fd;
}

void sockets_add(struct sockets *sockets, int fd)
{
	size_t had = sockets->room, wanted = (size_t)fd + 1;

	if (wanted > had) {
		sockets->room = wanted > 2 * had ? wanted : 2 * had;
		sockets->all = xreallocarray(sockets->all, sockets->room, sizeof *sockets->all);
		memset(&sockets->all[had], 0, (sockets->room - had) * sizeof *sockets->all);
	}
	sockets->all[fd].greeted = false;
	put(sockets, fd, 0);
}

void sockets_remove(struct sockets *sockets, int fd)
{
	int *link;

	if ((size_t)fd >= sockets->room)
		return;
	link = list_of(sockets, sockets->all[fd].port);
	while (*link != fd && *link != NONE)
		link = &sockets->all[*link].next;
	if (*link == fd)
		*link = sockets->all[fd].next;
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

static void learn_ports(struct sockets *sockets)
{
	int *link = &sockets->unknown;

	while (*link != NONE) {
		int fd = *link, port = own_port(fd);

		if (!port) {
			link = &sockets->all[fd].next;
			continue;
		}
		*link = sockets->all[fd].next;
		put(sockets, fd, port);
	}
}

/* The next one behind `fd` with this port; NONE: the first one. NONE where there is no other. */
static int next_at(struct sockets *sockets, int port, int fd)
{
	fd = fd == NONE ? *list_of(sockets, port) : sockets->all[fd].next;
	while (fd != NONE && sockets->all[fd].port != port)
		fd = sockets->all[fd].next;
	return fd;
}

void sockets_greet(struct sockets *sockets, int port)
{
	int fd = NONE;

	learn_ports(sockets);
	while ((fd = next_at(sockets, port, fd)) != NONE)
		sockets->all[fd].greeted = true;
}

bool sockets_unread(struct sockets *sockets, int port)
{
	int fd = NONE;

	learn_ports(sockets);
	while ((fd = next_at(sockets, port, fd)) != NONE) {
		if (sockets->all[fd].greeted ? is_ended(fd) : is_unread(fd))
			return true;
		sockets->all[fd].greeted = false;
	}
	return false;
}
