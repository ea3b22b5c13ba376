/* lister/teller: the packets that a listing is told by, and what comes along with them. */
#include "lister/teller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "source/lister.h"

static int sockets[2];
static struct teller teller;

static int set_up(void **state)
{
	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -1;
	teller = (struct teller){.socket = sockets[0]};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(sockets[0]);
	close(sockets[1]);
	return 0;
}

/* One packet as it came. */
struct heard {
	struct lister_message message;
	char rest[LISTER_MESSAGE_MAX]; /* path, hunks and text */
	int fds[LISTER_FDS];
	size_t fd_count;
};

static struct heard hear(void)
{
	struct heard heard = {0};
	union {
		char room[CMSG_SPACE(sizeof heard.fds)];
		struct cmsghdr align;
	} control;
	struct iovec parts[] = {{&heard.message, sizeof heard.message},
				{heard.rest, sizeof heard.rest}};
	struct msghdr header = {.msg_iov = parts,
				.msg_iovlen = 2,
				.msg_control = control.room,
				.msg_controllen = sizeof control.room};
	ssize_t size = recvmsg(sockets[1], &header, MSG_DONTWAIT);

	assert_true(size >= (ssize_t)sizeof heard.message);
	assert_int_equal(size, sizeof heard.message + heard.message.path_size +
				       heard.message.hunks_size + heard.message.text_size);
	for (struct cmsghdr *at = CMSG_FIRSTHDR(&header); at; at = CMSG_NXTHDR(&header, at)) {
		heard.fd_count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(heard.fds, CMSG_DATA(at), heard.fd_count * sizeof(int));
	}
	return heard;
}

static void assert_file(int fd, const char *bytes, size_t size)
{
	auto_free char *content = xcalloc(size + 2, 1);

	assert_int_equal(pread(fd, content, size + 1, 0), size);
	assert_memory_equal(content, bytes, size);
	close(fd);
}

static void tell(const struct listing_entry *entry)
{
	struct rlmd_error err = {0};

	if (!teller_entry(&teller, entry, &err))
		fail_msg("%s", err.text);
}

static void test_entries(void **state)
{
	const struct listing_entry link = {.kind = LISTING_LINK, .path = "a/b", .fd = -1};
	const struct listing_entry met = {.kind = LISTING_FILE,
					  .path = "c",
					  .fd = -1,
					  .text = text_of("text"),
					  .status = LISTER_ADDED,
					  .met = true,
					  .below = 1};
	struct heard heard;

	(void)state;
	tell(&link);
	heard = hear();
	assert_int_equal(heard.message.said, LISTER_ENTRY);
	assert_int_equal(heard.message.entry, LISTING_LINK);
	assert_int_equal(heard.message.flags, 0);
	assert_string_equal(heard.rest, "a/b");
	tell(&met);
	heard = hear();
	assert_int_equal(heard.message.status, LISTER_ADDED);
	assert_int_equal(heard.message.flags, LISTER_MET);
	assert_int_equal(heard.message.below, 1);
	assert_string_equal(heard.rest, "ctext");
	assert_int_equal(heard.fd_count, 0);
}

/* A descriptor, or a text that is too long for a packet, comes along. */
static void test_files(void **state)
{
	auto_free char *bytes = xcalloc(LISTER_INLINE_MAX + 2, 1);
	char path[] = "/tmp/test_teller-XXXXXX";
	auto_close int fd = mkstemp(path);
	struct listing_entry entry = {.kind = LISTING_FILE, .path = "f", .fd = fd};
	struct heard heard;

	(void)state;
	unlink(path);
	assert_int_equal(write(fd, "file", 4), 4);
	tell(&entry);
	heard = hear();
	assert_int_equal(heard.message.flags, LISTER_HAS_FILE);
	assert_int_equal(heard.fd_count, 1);
	assert_file(heard.fds[0], "file", 4);
	memset(bytes, 'x', LISTER_INLINE_MAX + 1);
	entry.fd = -1;
	entry.text = text_from(bytes, LISTER_INLINE_MAX);
	tell(&entry);
	heard = hear();
	assert_int_equal(heard.message.text_size, LISTER_INLINE_MAX);
	assert_int_equal(heard.fd_count, 0);
	entry.text = text_from(bytes, LISTER_INLINE_MAX + 1);
	tell(&entry);
	heard = hear();
	assert_int_equal(heard.message.text_size, 0);
	assert_int_equal(heard.fd_count, 1);
	assert_file(heard.fds[0], bytes, LISTER_INLINE_MAX + 1);
}

static void test_hunks(void **state)
{
	auto_free char *bytes = xcalloc(LISTER_INLINE_MAX + 1, 1);
	struct listing_entry entry = {.kind = LISTING_FILE, .path = "f", .fd = -1};
	struct heard heard;

	(void)state;
	entry.text = text_of("t");
	entry.hunks = json_array();
	tell(&entry);
	heard = hear();
	assert_int_equal(heard.message.flags, LISTER_HAS_HUNKS);
	assert_string_equal(heard.rest, "f[]t");
	memset(bytes, 'x', LISTER_INLINE_MAX);
	json_array_append_new(entry.hunks, json_string(bytes));
	tell(&entry);
	heard = hear();
	assert_int_equal(heard.message.flags, LISTER_HAS_HUNKS | LISTER_HUNKS_FILE);
	assert_int_equal(heard.fd_count, 1);
	close(heard.fds[0]);
	json_decref(entry.hunks);
}

/* Each note is told once, however often they are shown. */
static void test_words(void **state)
{
	const struct rlmd_error err = {.kind = RLMD_ERROR_INPUT, .text = "no such thing"};
	json_t *notes = json_pack("[s]", "one");
	struct heard heard;

	(void)state;
	teller_notes(&teller, notes);
	json_array_append_new(notes, json_string("two"));
	teller_notes(&teller, notes);
	for (int i = 0; i < 2; i++) {
		heard = hear();
		assert_int_equal(heard.message.said, LISTER_NOTE);
		assert_string_equal(heard.rest, i ? "two" : "one");
	}
	teller_failed(&teller, &err);
	heard = hear();
	assert_int_equal(heard.message.said, LISTER_FAILED);
	assert_int_equal(heard.message.entry, RLMD_ERROR_INPUT);
	assert_string_equal(heard.rest, "no such thing");
	teller_end(&teller);
	heard = hear();
	assert_int_equal(heard.message.said, LISTER_END);
	assert_int_equal(recv(sockets[1], heard.rest, 1, MSG_DONTWAIT), -1);
	json_decref(notes);
}

/* The process ends where nobody listens any more. */
static void test_nobody_listens(void **state)
{
	int status;
	pid_t child;

	(void)state;
	close(sockets[1]);
	sockets[1] = -1;
	fflush(NULL);
	child = fork();
	if (!child) {
		teller_end(&teller);
		_exit(EXIT_SUCCESS);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_entries), TEST(test_files),          TEST(test_hunks),
		TEST(test_words),   TEST(test_nobody_listens),
	};

	alloc_install();
	return cmocka_run_group_tests_name("teller", tests, NULL, NULL);
}
