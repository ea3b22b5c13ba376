/*
 * Answers of the program that lists files, once it is a stranger's: packets, each behind a byte,
 * the number of its descriptors, and two, its size.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "source/lister.h"
#include "source/origin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FDS_MAX = LISTER_FDS + 1, PACKETS_MAX = 8, DESCRIPTORS = 64 };

static void send_packet(int socket, const uint8_t *data, size_t size, size_t fd_count)
{
	union {
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {.room = {0}};
	struct iovec part = {(void *)data, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	auto_close int file = memfd_create("fuzz", MFD_CLOEXEC);
	int fds[FDS_MAX] = {file, file, file};

	assert(write(file, data, size) == (ssize_t)size);
	if (fd_count) {
		header.msg_control = control.room;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		CMSG_FIRSTHDR(&header)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&header)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&header)->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&header)), fds, fd_count * sizeof(int));
	}
	(void)!sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_all(int socket, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < PACKETS_MAX && size >= 3; i++) {
		size_t length = data[1] | (size_t)data[2] << 8;

		if (length > size - 3)
			length = size - 3;
		send_packet(socket, data + 3, length, data[0] % (FDS_MAX + 1));
		data += 3 + length;
		size -= 3 + length;
	}
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct selection *selection = selection_new(&(struct selection_options){0}, NULL);
	struct origin_options options = {.selection = selection};
	json_auto_t *notes = json_make_array();
	struct origin_entry entry;
	struct rlmd_error err;
	struct origin *origin;
	enum origin_end end;
	int ends[2], open = count_descriptors();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return 0;
	send_all(ends[1], data, size);
	close(ends[1]);
	origin = origin_of_answers(ends[0], &options, notes);
	do {
		end = origin_next(origin, &entry, &err);
		assert(end != ORIGIN_WAITS);
		assert(end != ORIGIN_ENTRY || (*entry.path && (int)entry.kind < LISTING_KINDS));
	} while (end == ORIGIN_ENTRY || end == ORIGIN_PASSED);
	origin_free(origin);
	selection_free(selection);
	assert(count_descriptors() == open);
	return 0;
}
