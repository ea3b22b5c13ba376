#include "cli/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

enum { FIRST_SOCKET = 3 }; /* SD_LISTEN_FDS_START */

/* --- sockets that it has opened ---------------------------------------------------------- */

static int64_t count_sockets(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	int64_t number, owner;

	if (!pid || !count || !number_parse(pid, "", 1, &owner) || owner != getpid() ||
	    !number_parse(count, "", 1, &number))
		return 0;
	return number;
}

static bool has_option(int fd, int option, int wanted)
{
	socklen_t size = sizeof wanted;
	int value;

	return !getsockopt(fd, SOL_SOCKET, option, &value, &size) && value == wanted;
}

static bool listens_at(int fd, const char *path)
{
	struct sockaddr_un address = {0};
	socklen_t size = sizeof address - 1; /* a path may have no end of its own, unix(7) */

	return !getsockname(fd, (struct sockaddr *)&address, &size) &&
	       address.sun_family == AF_UNIX && has_option(fd, SO_TYPE, SOCK_STREAM) &&
	       has_option(fd, SO_ACCEPTCONN, 1) && !strcmp(address.sun_path, path);
}

int service_take_socket(const char *path, struct rlmd_error *err)
{
	int64_t count = count_sockets();
	int found = -1;

	*err = (struct rlmd_error){0};
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (int fd = FIRST_SOCKET; fd < FIRST_SOCKET + count; fd++) {
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		if (found < 0 && listens_at(fd, path))
			found = fd;
	}
	if (count && found < 0)
		error_set(err, RLMD_ERROR_USAGE,
			  "the service manager has opened no socket at %s: ListenStream= and "
			  "--listen name the same path",
			  path);
	return found;
}

/* --- what it is told --------------------------------------------------------------------- */

void service_notify(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t size = path ? strlen(path) : 0;
	auto_close int fd = -1;

	if (!size || size >= sizeof address.sun_path)
		return;
	memcpy(address.sun_path, path, size);
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
}
