#include "lister/teller.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "source/lister.h"

enum { AGAIN_MS = 5 };

/* The parts of one message. */
struct parcel {
	struct lister_message message;
	struct rlmd_text path, hunks, text;
	int fds[LISTER_FDS];
	size_t fd_count;
};

static struct rlmd_text clip(struct rlmd_text text, size_t size)
{
	return text.size > size ? text_from(text.bytes, size) : text;
}

/* Descriptors that processes of this user send to each other are counted together, unix(7): who
 * meets their end tries again, for they are taken soon. */
static void send_parcel(const struct teller *teller, struct parcel *parcel)
{
	union {
		char room[CMSG_SPACE(sizeof parcel->fds)];
		struct cmsghdr align;
	} control = {.room = {0}};
	struct iovec parts[] = {
		{&parcel->message, sizeof parcel->message},
		{(void *)parcel->path.bytes, parcel->path.size},
		{(void *)parcel->hunks.bytes, parcel->hunks.size},
		{(void *)parcel->text.bytes, parcel->text.size},
	};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = sizeof parts / sizeof *parts};
	size_t size = parcel->fd_count * sizeof *parcel->fds;

	parcel->message.path_size = (uint32_t)parcel->path.size;
	parcel->message.hunks_size = (uint32_t)parcel->hunks.size;
	parcel->message.text_size = (uint32_t)parcel->text.size;
	if (size) {
		header.msg_control = control.room;
		header.msg_controllen = CMSG_SPACE(size);
		CMSG_FIRSTHDR(&header)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&header)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&header)->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&header)), parcel->fds, size);
	}
	while (sendmsg(teller->socket, &header, MSG_NOSIGNAL) < 0) {
		if (errno == ETOOMANYREFS || errno == ENOBUFS)
			poll(NULL, 0, AGAIN_MS);
		else if (errno != EINTR)
			_exit(EXIT_FAILURE);
	}
}

/* Its contents, where it is a file; `made` is a descriptor of ours. */
static bool add_text(struct parcel *parcel, const struct listing_entry *entry, int *made,
		     struct rlmd_error *err)
{
	int fd = entry->fd;

	if (entry->kind != LISTING_FILE)
		return true;
	if (fd < 0 && entry->text.size <= LISTER_INLINE_MAX) {
		parcel->text = entry->text;
		return true;
	}
	if (fd < 0)
		fd = *made = file_in_memory("text", entry->text, err);
	parcel->message.flags |= LISTER_HAS_FILE;
	parcel->fds[parcel->fd_count++] = fd;
	return fd >= 0;
}

static bool add_hunks(struct parcel *parcel, struct rlmd_text hunks, int *made,
		      struct rlmd_error *err)
{
	parcel->message.flags |= LISTER_HAS_HUNKS;
	if (hunks.size <= LISTER_INLINE_MAX) {
		parcel->hunks = hunks;
		return true;
	}
	if (hunks.size > LISTER_HUNKS_MAX)
		return error_set(err, RLMD_ERROR_INPUT,
				 "the changes of %.*s are more than %d MiB: a lower "
				 "max-file-size leaves them out",
				 (int)clip(parcel->path, 100).size, parcel->path.bytes,
				 LISTER_HUNKS_MAX >> 20);
	*made = file_in_memory("text", hunks, err);
	parcel->message.flags |= LISTER_HUNKS_FILE;
	parcel->fds[parcel->fd_count++] = *made;
	return *made >= 0;
}

bool teller_entry(const struct teller *teller, const struct listing_entry *entry,
		  struct rlmd_error *err)
{
	auto_free char *hunks = entry->hunks ? json_to_string(entry->hunks) : NULL;
	auto_close int text_file = -1, hunks_file = -1;
	struct parcel parcel = {
		.message =
			{
				.said = LISTER_ENTRY,
				.entry = entry->kind,
				.status = entry->status,
				.flags = entry->met ? LISTER_MET : 0,
				.below = (uint32_t)entry->below,
			},
		.path = clip(text_of(entry->path), LISTER_PATH_MAX),
	};

	if (!add_text(&parcel, entry, &text_file, err) ||
	    (hunks && !add_hunks(&parcel, text_of(hunks), &hunks_file, err)))
		return false;
	send_parcel(teller, &parcel);
	return true;
}

static void tell(const struct teller *teller, enum lister_said said, uint32_t kind,
		 const char *text)
{
	struct parcel parcel = {
		.message = {.said = said, .entry = kind},
		.text = clip(text_of(text), LISTER_INLINE_MAX),
	};

	send_parcel(teller, &parcel);
}

void teller_notes(struct teller *teller, const json_t *notes)
{
	while (teller->notes < json_array_size(notes))
		tell(teller, LISTER_NOTE, 0,
		     json_string_value(json_array_get(notes, teller->notes++)));
}

void teller_failed(const struct teller *teller, const struct rlmd_error *err)
{
	tell(teller, LISTER_FAILED, err->kind, err->text);
}

void teller_end(const struct teller *teller)
{
	tell(teller, LISTER_END, 0, "");
}
