#include "source/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <rlmd/context.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "sandbox/child.h"
#include "sandbox/program.h"
#include "source/lister.h"

struct origin {
	struct origin_options options;
	json_t *notes;  /* lent */
	pid_t program;  /* -1: it is reaped */
	int answers;    /* owned */
	bool over;      /* it said so */
	uint64_t met;   /* entries so far */
	uint64_t paths; /* bytes of theirs */
	size_t notes_taken, missing;

	/* Of the entry at hand. */
	char *packet;  /* owned, LISTER_MESSAGE_MAX bytes */
	char *path;    /* owned */
	int fd;        /* owned, or -1 */
	json_t *hunks; /* owned, or NULL */
};

/* --- the program ------------------------------------------------------------------------- */

static void add_word(struct evbuffer *out, char letter, const char *value)
{
	buffer_add(out, &letter, 1);
	buffer_add(out, value, strlen(value) + 1);
}

static void add_words(struct evbuffer *out, char letter, const char *const *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_word(out, letter, values[i]);
}

char *origin_words(const struct rlmd_context_options *options, size_t *ret_size)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	add_words(out, 'i', options->include, options->include_count);
	add_words(out, 'x', options->exclude, options->exclude_count);
	if (options->files) {
		add_word(out, 'l', "");
		add_words(out, 'f', options->files, options->file_count);
	}
	if (options->diff)
		add_word(out, 'c', options->diff);
	if (options->untracked)
		add_word(out, 'u', "");
	if (options->recurse_submodules)
		add_word(out, 's', "");
	if (options->allow_alternates)
		add_word(out, 'a', "");
	if (options->max_file_size > 0) {
		auto_free char *most = xasprintf("%" PRId64, options->max_file_size);

		add_word(out, 'm', most);
	}
	return text_drain(out, ret_size);
}

/* A memory file with all of it, for LISTER_REQUEST; -1: `err` says why. */
static int write_request(const struct origin_options *options, char letter, const char *what,
			 struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	buffer_add(out, options->words.bytes, options->words.size);
	add_word(out, letter, what);
	if (options->directory)
		add_word(out, 'D', options->directory);
	return file_in_memory("request", text_in(out), err);
}

static const char *const kept[] = {
	"HOME",
	"XDG_CONFIG_HOME",
	"GIT_CONFIG_SYSTEM",
	"GIT_CONFIG_GLOBAL",
	"GIT_CONFIG_NOSYSTEM",
	"SUDO_UID",
#if defined(RLMD_SANITIZED) || defined(RLMD_COUNTED)
	"ASAN_OPTIONS",
	"UBSAN_OPTIONS",
	"LSAN_OPTIONS",
	"GCOV_PREFIX",
	"GCOV_PREFIX_STRIP",
#endif
	NULL,
};

static pid_t start_program(int request, int answers, struct rlmd_error *err)
{
	auto_free char *path = file_shipped("helper", "rlmd-lister");
	auto_close int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_close int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *argv[] = {"rlmd-lister", NULL};
	const char **environment = program_environment(kept);
	pid_t started = -1;
	struct program program = {
		.path = path,
		.argv = argv,
		.envp = environment,
		.fds = {request, answers, nothing, here < 0 ? nothing : here, -1},
	};

#if defined(RLMD_SANITIZED)
	program.fds[LISTER_ERRORS] = STDERR_FILENO;
#endif
	if (nothing < 0)
		error_errno(err, RLMD_ERROR_INPUT, "/dev/null");
	else
		started = program_start(&program, err);
	program_free_environment(environment);
	return started;
}

/* Starts the program with these words and one more, `letter` and its value. `ret_answers` is the
 * end of the socket that it answers by. -1: `err` says why. */
static pid_t start(const struct origin_options *options, char letter, const char *what,
		   int *ret_answers, struct rlmd_error *err)
{
	auto_close int request = write_request(options, letter, what, err);
	auto_close int ours = -1, theirs = -1;
	const int room = LISTER_SENDING;
	int ends[2];
	pid_t started;

	if (request < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		error_errno(err, RLMD_ERROR_INPUT, "socketpair");
		return -1;
	}
	ours = ends[0];
	theirs = ends[1];
	setsockopt(theirs, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	started = start_program(request, theirs, err);
	if (started > 0)
		*ret_answers = take_fd(&ours);
	return started;
}

struct origin *origin_of_answers(int answers, const struct origin_options *options, json_t *notes)
{
	struct origin *origin = xcalloc(1, sizeof *origin);

	origin->options = *options;
	origin->notes = notes;
	origin->program = -1;
	origin->answers = answers;
	origin->fd = -1;
	origin->packet = xcalloc(LISTER_MESSAGE_MAX, 1);
	return origin;
}

static struct origin *origin_new(char letter, const char *what,
				 const struct origin_options *options, json_t *notes,
				 struct rlmd_error *err)
{
	struct origin *origin = origin_of_answers(-1, options, notes);

	origin->program = start(options, letter, what, &origin->answers, err);
	if (origin->program > 0)
		return origin;
	origin_free(origin);
	return NULL;
}

struct origin *origin_directory(const char *path, const struct origin_options *options,
				json_t *notes, struct rlmd_error *err)
{
	return origin_new('d', path, options, notes, err);
}

struct origin *origin_revision(const char *revision, const struct origin_options *options,
			       json_t *notes, struct rlmd_error *err)
{
	return origin_new('r', revision, options, notes, err);
}

/* Kills it, where it still is; how it ended. */
static int end_program(struct origin *origin)
{
	int status = CHILD_STATUS_UNKNOWN;

	if (origin->program > 0)
		child_end(origin->program, clock_ms() + CHILD_END_MS, &status);
	origin->program = -1;
	return status;
}

static void forget(struct origin *origin)
{
	if (origin->fd >= 0)
		close(take_fd(&origin->fd));
	json_decref(take_pointer(&origin->hunks));
	free(take_pointer(&origin->path));
}

void origin_free(struct origin *origin)
{
	if (!origin)
		return;
	forget(origin);
	end_program(origin);
	if (origin->answers >= 0)
		close(origin->answers);
	free(origin->packet);
	free(origin);
}

int origin_fd(const struct origin *origin)
{
	return origin->answers;
}

/* --- what it says -------------------------------------------------------------------------- */

/* A packet, and the descriptors that came with it. */
struct arrival {
	struct lister_message message;
	const char *path, *hunks, *text; /* lent */
	int fds[LISTER_FDS];             /* owned, or -1 */
};

static void arrival_done(struct arrival *arrival)
{
	for (size_t i = 0; i < LISTER_FDS; i++)
		if (arrival->fds[i] >= 0)
			close(arrival->fds[i]);
}

static size_t take_descriptors(struct msghdr *header, int fds[LISTER_FDS])
{
	size_t count = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		size_t size = part->cmsg_len - CMSG_LEN(0);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		count = size / sizeof *fds;
		memcpy(fds, CMSG_DATA(part), size);
	}
	return count;
}

/* Whether it holds what it says that it holds. */
static bool is_sound(const struct arrival *arrival, size_t size, size_t fd_count)
{
	const struct lister_message *message = &arrival->message;
	bool file = message->flags & LISTER_HAS_FILE, hunks = message->flags & LISTER_HUNKS_FILE;

	if ((uint64_t)message->path_size + message->hunks_size + message->text_size !=
		    size - sizeof *message ||
	    fd_count != (size_t)file + hunks || message->said > LISTER_END)
		return false;
	if (message->said != LISTER_ENTRY)
		return true;
	return message->entry < LISTING_KINDS && message->status <= LISTER_UNTRACKED &&
	       message->path_size && message->below <= message->path_size &&
	       !memchr(arrival->path, '\0', message->path_size) && (!file || !message->text_size) &&
	       (!hunks || !message->hunks_size);
}

/* Descriptors that came along are left out where we may have no more of them. */
static bool lacks_descriptors(const struct origin *origin)
{
	auto_close int spare = fcntl(origin->answers, F_DUPFD_CLOEXEC, 0);

	return spare < 0 && errno == EMFILE;
}

/* The next one: 1; 0 at the end of what it says, -1 and errno, EBADMSG for what makes no sense. */
static int receive(struct origin *origin, struct arrival *ret)
{
	union {
		char room[CMSG_SPACE(sizeof ret->fds)];
		struct cmsghdr align;
	} control;
	struct iovec part = {origin->packet, LISTER_MESSAGE_MAX};
	struct msghdr header = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof control.room,
	};
	const struct lister_message *message = &ret->message;
	ssize_t got = recvmsg(origin->answers, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t count;

	if (got < 0)
		return -1;
	count = take_descriptors(&header, ret->fds);
	if (!got) /* the end, or a packet of descriptors alone, after which nothing is heard */
		return 0;
	if (header.msg_flags & MSG_CTRUNC && lacks_descriptors(origin)) {
		errno = EMFILE;
		return -1;
	}
	errno = EBADMSG;
	if ((size_t)got < sizeof ret->message || header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -1;
	memcpy(&ret->message, origin->packet, sizeof ret->message);
	ret->path = origin->packet + sizeof ret->message;
	ret->hunks = ret->path + message->path_size;
	ret->text = ret->hunks + message->hunks_size;
	return is_sound(ret, (size_t)got, count) ? 1 : -1;
}

static enum origin_end fail_by(struct rlmd_error *err, const char *why, const char *cause)
{
	error_set(err, RLMD_ERROR_INPUT,
		  "the program that reads directories and repositories for us, rlmd-lister, %s: %s",
		  why, cause);
	return ORIGIN_FAILED;
}

static enum origin_end fail(struct rlmd_error *err, const char *why)
{
	return fail_by(err, why,
		       "a repository in there may be damaged, or made to do that (git fsck tells)");
}

/* It ended without a word. */
static enum origin_end fail_dead(struct origin *origin, struct rlmd_error *err)
{
	int status = end_program(origin);
	char words[CHILD_WORDS];
	auto_free char *why = NULL;

	if (status != CHILD_STATUS_UNKNOWN && WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
		return fail(err, "took too much time over one file or directory");
	why = xasprintf("has died: %s", child_status_words(status, words));
	if (status != CHILD_STATUS_UNKNOWN && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return fail_by(err, why,
			       "the kernel ends programs so where memory is used up. Allow more, "
			       "or take less with include and exclude");
	return fail(err, why);
}

static enum origin_end fail_as_told(const struct arrival *arrival, struct rlmd_error *err)
{
	struct rlmd_text text = text_from(arrival->text, arrival->message.text_size);
	enum rlmd_error_kind kind = (enum rlmd_error_kind)arrival->message.entry;
	char safe[sizeof err->text];

	text_escape(text, safe, sizeof safe);
	error_set(err,
		  kind == RLMD_ERROR_SANDBOX || kind == RLMD_ERROR_MACHINE ? kind
									   : RLMD_ERROR_INPUT,
		  "%s", safe);
	return ORIGIN_FAILED;
}

static enum origin_end take_note(struct origin *origin, const struct arrival *arrival)
{
	struct rlmd_text text = text_from(arrival->text, arrival->message.text_size);
	size_t room = text.size * 6 + 1; /* the longest escape of a byte or character */
	auto_free char *safe = xcalloc(room, 1);

	text_escape(text, safe, room);
	if (origin->notes_taken++ < LISTER_NOTES_MAX)
		json_append(origin->notes, json_from_text(text_of(safe)));
	return ORIGIN_PASSED;
}

/* --- entries --------------------------------------------------------------------------------- */

static bool is_hunk(const json_t *hunk)
{
	const json_t *changed = json_object_get(hunk, "changed"), *pair;
	size_t i;

	if (!json_is_integer(json_object_get(hunk, "start")) ||
	    !json_is_integer(json_object_get(hunk, "end")) ||
	    !json_is_string(json_object_get(hunk, "text")) || !json_is_array(changed))
		return false;
	json_array_foreach (changed, i, pair)
		if (json_array_size(pair) != 2 || !json_is_integer(json_array_get(pair, 0)) ||
		    !json_is_integer(json_array_get(pair, 1)))
			return false;
	return true;
}

static bool are_hunks(const json_t *hunks)
{
	const json_t *hunk;
	size_t i;

	if (!json_is_array(hunks))
		return false;
	json_array_foreach (hunks, i, hunk)
		if (!is_hunk(hunk))
			return false;
	return true;
}

/* All of a memory file; new, NULL: it is none, or is too large. */
static char *read_whole(int fd, size_t limit, size_t *ret_size)
{
	auto_free char *bytes = NULL;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size > limit)
		return NULL;
	bytes = xcalloc((size_t)st.st_size + 1, 1);
	*ret_size = (size_t)st.st_size;
	return pread(fd, bytes, *ret_size, 0) == st.st_size ? take_pointer(&bytes) : NULL;
}

static bool take_hunks(struct origin *origin, const struct arrival *arrival)
{
	struct rlmd_text text = text_from(arrival->hunks, arrival->message.hunks_size);
	bool file = arrival->message.flags & LISTER_HUNKS_FILE;
	auto_free char *bytes = NULL;
	size_t size;

	if (!(arrival->message.flags & LISTER_HAS_HUNKS))
		return !file && !text.size;
	if (file) {
		bytes = read_whole(arrival->fds[!!(arrival->message.flags & LISTER_HAS_FILE)],
				   LISTER_HUNKS_MAX, &size);
		if (!bytes)
			return false;
		text = text_from(bytes, size);
	}
	origin->hunks = json_read(text, LISTER_HUNKS_DEPTH, NULL);
	return are_hunks(origin->hunks);
}

/* Only of a regular file: nobody waits for one. */
static bool take_file(struct origin *origin, struct arrival *arrival)
{
	struct stat st;

	if (!(arrival->message.flags & LISTER_HAS_FILE))
		return true;
	origin->fd = take_fd(&arrival->fds[0]);
	return !fstat(origin->fd, &st) && S_ISREG(st.st_mode);
}

static bool count(struct origin *origin, const struct lister_message *message)
{
	origin->paths += message->path_size;
	return ++origin->met <= 2 * (uint64_t)LISTER_ENTRIES_MAX &&
	       origin->paths <= 2 * (uint64_t)LISTER_PATHS_MAX;
}

static enum origin_end take_entry(struct origin *origin, struct arrival *arrival,
				  struct origin_entry *ret, struct rlmd_error *err)
{
	static const char *const statuses[] = {NULL, "modified", "added", "deleted", "untracked"};
	const struct lister_message *message = &arrival->message;

	if (!count(origin, message) || !take_file(origin, arrival) || !take_hunks(origin, arrival))
		return fail(err, "made no sense");
	origin->path = xstrndup(arrival->path, message->path_size);
	if (message->flags & LISTER_MET)
		selection_meet(origin->options.selection, origin->path + message->below);
	*ret = (struct origin_entry){
		.kind = message->entry,
		.path = origin->path,
		.fd = origin->fd,
		.text = text_from(arrival->text, message->text_size),
		.status = statuses[message->status],
		.hunks = origin->hunks,
	};
	return message->entry == LISTING_PASSED ? ORIGIN_PASSED : ORIGIN_ENTRY;
}

static enum origin_end take(struct origin *origin, struct arrival *arrival,
			    struct origin_entry *ret, struct rlmd_error *err)
{
	switch ((enum lister_said)arrival->message.said) {
	case LISTER_ENTRY:
		return take_entry(origin, arrival, ret, err);
	case LISTER_NOTE:
		return take_note(origin, arrival);
	case LISTER_FAILED:
		return fail_as_told(arrival, err);
	case LISTER_END:
		origin->over = true;
		return ORIGIN_OVER;
	}
	return fail(err, "made no sense");
}

enum origin_end origin_next(struct origin *origin, struct origin_entry *ret, struct rlmd_error *err)
{
	struct arrival arrival = {.fds = {-1, -1}};
	enum origin_end end;
	int got;

	forget(origin);
	if (origin->over)
		return ORIGIN_OVER;
	got = receive(origin, &arrival);
	if (got > 0)
		end = take(origin, &arrival, ret, err);
	else if (got < 0 && (errno == EAGAIN || errno == EINTR))
		end = ORIGIN_WAITS;
	else if (got < 0 && errno == EBADMSG)
		end = fail(err, "made no sense");
	else if (got < 0 && errno == EMFILE) {
		error_errno(err, RLMD_ERROR_INPUT, "no descriptor for the next file");
		end = ORIGIN_FAILED;
	} else
		end = fail_dead(origin, err);
	arrival_done(&arrival);
	return end;
}

const char *origin_missing(struct origin *origin)
{
	return selection_missing(origin->options.selection, &origin->missing);
}
