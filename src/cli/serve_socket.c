#include "cli/serve_socket.h"

#include <errno.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "cli/service.h"

#define SCHEME "unix:"

struct serve_socket {
	struct evconnlistener *listener; /* owned, with its descriptor */
	char *path;                      /* owned: of the file; NULL: it is not ours */
	struct stat file;                /* as it was made */
	serve_socket_fn *accepted;
	void *owner; /* lent */
};

/* --- the file ---------------------------------------------------------------------------- */

static bool set_address(struct sockaddr_un *address, const char *path, struct rlmd_error *err)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof address->sun_path)
		return error_set(err, RLMD_ERROR_USAGE,
				 "the path of a socket has at most %zu bytes, unix(7)",
				 sizeof address->sun_path - 1);
	memcpy(address->sun_path, path, strlen(path));
	return true;
}

/* A server that did not end by itself has left it. A living one's is not touched. */
static bool remove_old(const struct sockaddr_un *address, struct rlmd_error *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const char *path = address->sun_path;
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT || error_errno(err, RLMD_ERROR_USAGE, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, RLMD_ERROR_USAGE, "%s is there already, and no socket", path);
	if (fd >= 0 && (!connect(fd, (const struct sockaddr *)address, sizeof *address) ||
			errno != ECONNREFUSED))
		return error_set(err, RLMD_ERROR_USAGE, "another server listens at %s", path);
	return !unlink(path) || error_errno(err, RLMD_ERROR_USAGE, "%s", path);
}

/* A socket that is bound there; -1: there is none. */
static int make(const struct sockaddr_un *address, struct stat *ret_file, struct rlmd_error *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t others = umask(S_IXUSR | S_IRWXG | S_IRWXO);
	bool bound = fd >= 0 && !bind(fd, (const struct sockaddr *)address, sizeof *address) &&
		     !lstat(address->sun_path, ret_file);

	umask(others);
	if (bound)
		return take_fd(&fd);
	error_errno(err, RLMD_ERROR_USAGE, "%s", address->sun_path);
	return -1;
}

static void remove_file(const struct serve_socket *server)
{
	struct stat now;

	if (server->path && !lstat(server->path, &now) && now.st_dev == server->file.st_dev &&
	    now.st_ino == server->file.st_ino)
		unlink(server->path);
}

/* --- connections ------------------------------------------------------------------------- */

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
			  struct sockaddr *address, int size, void *owner)
{
	const struct serve_socket *server = owner;
	struct ucred peer;
	socklen_t room = sizeof peer;

	(void)listener;
	(void)address;
	(void)size;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &room))
		close(fd);
	else
		server->accepted(server->owner, fd, peer.uid);
}

/* No descriptor is left: a client's end gives one back, and has it accept again. */
static void on_failure(struct evconnlistener *listener, void *owner)
{
	(void)owner;
	evconnlistener_disable(listener);
}

static int open_socket(struct serve_socket *server, const char *path, struct rlmd_error *err)
{
	int fd = service_take_socket(path, err);
	struct sockaddr_un address;

	if (fd >= 0) {
		evutil_make_socket_nonblocking(fd);
		return fd;
	}
	if (err->kind || !set_address(&address, path, err) || !remove_old(&address, err))
		return -1;
	fd = make(&address, &server->file, err);
	if (fd >= 0)
		server->path = xstrdup(path);
	return fd;
}

struct serve_socket *serve_socket_open(struct event_base *base, const char *address,
				       serve_socket_fn *accepted, void *owner,
				       struct rlmd_error *err)
{
	struct serve_socket *server;
	int fd;

	if (strncmp(address, SCHEME, strlen(SCHEME)) != 0 || !address[strlen(SCHEME)]) {
		error_set(err, RLMD_ERROR_USAGE, "--listen takes unix:PATH, not '%.200s'", address);
		return NULL;
	}
	server = xcalloc(1, sizeof *server);
	server->accepted = accepted;
	server->owner = owner;
	fd = open_socket(server, address + strlen(SCHEME), err);
	if (fd >= 0)
		server->listener = evconnlistener_new(base, on_connection, server,
						      LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
						      SOMAXCONN, fd);
	if (server->listener) {
		evconnlistener_set_error_cb(server->listener, on_failure);
		return server;
	}
	if (fd >= 0) {
		error_errno(err, RLMD_ERROR_USAGE, "%s", address);
		close(fd);
	}
	serve_socket_free(server);
	return NULL;
}

void serve_socket_accept(struct serve_socket *server, bool accepts)
{
	if (accepts)
		evconnlistener_enable(server->listener);
	else
		evconnlistener_disable(server->listener);
}

void serve_socket_free(struct serve_socket *server)
{
	if (!server)
		return;
	remove_file(server);
	if (server->listener)
		evconnlistener_free(server->listener);
	free(server->path);
	free(server);
}
