#include "batch/results_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/wait.h"
#include "batch/id_map.h"
#include "batch/line_reader.h"
#include "batch/results_line.h"

enum {
	OFFSET_BITS = 48, /* of a line's position: the offset, and above it which file it is */
	GATHERED = 1 << 20,
	PIECE = 1 << 16, /* bytes that are read at once */
	MODE = 0666,
};

struct merge {
	const char *const *paths; /* lent */
	int *files;               /* owned, -1: not open yet */
	size_t count;
	struct id_map *positions; /* owned: where the line of each id is */
	struct atomic_file out;
	struct evbuffer *written; /* owned: soon */
	struct results_merge_summary summary;
	bool open;
};

static bool flush(struct merge *merge, struct rlmd_error *err)
{
	while (evbuffer_get_length(merge->written))
		if (evbuffer_write(merge->written, merge->out.fd) < 0 && errno != EINTR)
			return error_errno(err, RLMD_ERROR_INTERNAL, "cannot write %s",
					   merge->out.path);
	return file_may_go_on(WAIT_FOREVER, err);
}

/* --- two lines of one id ------------------------------------------------------------- */

/* Which line of the file begins there, from 1. */
static uint64_t number_at(int file, off_t offset)
{
	char piece[PIECE];
	uint64_t number = 1;
	off_t at = 0;

	while (at < offset) {
		ssize_t got = pread(file, piece, sizeof piece, at);

		if (got <= 0)
			break;
		for (ssize_t i = 0; i < got && at + i < offset; i++)
			number += piece[i] == '\n';
		at += got;
	}
	return number;
}

static bool same_json(struct rlmd_text a, struct rlmd_text b)
{
	json_auto_t *one = json_read(a, RESULTS_DEPTH_MAX, NULL);
	json_auto_t *other = json_read(b, RESULTS_DEPTH_MAX, NULL);

	return one && other && json_equal(one, other);
}

/* The same bytes, or else the same values. */
static bool is_same(struct merge *merge, uint64_t position, struct rlmd_text line, const char *here,
		    const char *id, struct rlmd_error *err)
{
	size_t file = position >> OFFSET_BITS, size = 0;
	off_t offset = (off_t)(position & ((UINT64_C(1) << OFFSET_BITS) - 1));
	auto_free char *bytes = line_reader_at(merge->files[file], offset, &size);
	struct rlmd_text first = text_from(bytes, size);

	if (bytes && first.size == line.size && !memcmp(first.bytes, line.bytes, line.size))
		return true;
	if (bytes && same_json(first, line))
		return true;
	return error_set(err, RLMD_ERROR_INPUT,
			 "%s:%" PRIu64
			 " and %s have different results of '%.100s'; remove one of the "
			 "lines",
			 merge->paths[file], number_at(merge->files[file], offset), here, id);
}

/* --- one file after the other ---------------------------------------------------------- */

static bool take_line(struct merge *merge, size_t file, const struct line_reader *reader,
		      struct rlmd_text line, struct rlmd_error *err)
{
	auto_free char *here = xasprintf("%s:%" PRIu64, merge->paths[file], reader->number);
	struct results_line read;
	auto_free char *id = NULL;
	uint64_t *position;
	bool is_new;

	if (!text_trim(line).size)
		return true;
	if (!results_line_read(line, &read, err))
		return error_context(err, "%s is no line of results", here);
	id = text_copy(read.custom_id);
	results_line_done(&read);
	position = id_map_add(merge->positions, id, &is_new);
	if (!is_new) {
		merge->summary.again++;
		return is_same(merge, *position, line, here, id, err);
	}
	*position = (uint64_t)file << OFFSET_BITS | (uint64_t)reader->offset;
	merge->summary.lines++;
	buffer_add(merge->written, line.bytes, line.size);
	buffer_add(merge->written, "\n", 1);
	return evbuffer_get_length(merge->written) < GATHERED || flush(merge, err);
}

static bool not_whole(const struct merge *merge, size_t file, uint64_t number,
		      struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_INPUT,
			 "%s:%" PRIu64
			 " is not whole: its batch was killed, or still runs; start it "
			 "again first, which mends the file",
			 merge->paths[file], number);
}

static bool take_file(struct merge *merge, size_t file, struct rlmd_error *err)
{
	struct line_reader reader = {.fd = merge->files[file], .limit = RESULTS_LINE_MAX};
	struct rlmd_text line = {0};
	bool good = true, ended = false;

	while (good && !ended)
		switch (line_reader_next(&reader, &line)) {
		case LINE_WHOLE:
			good = take_line(merge, file, &reader, line, err);
			break;
		case LINE_TORN:
			good = not_whole(merge, file, reader.number, err);
			break;
		case LINE_TOO_LONG:
			good = error_set(err, RLMD_ERROR_INPUT,
					 "%s:%" PRIu64 " is longer than any result",
					 merge->paths[file], reader.number);
			break;
		case LINE_NOT_YET:
		case LINE_AWAITED:
			break;
		case LINE_END:
			ended = true;
			break;
		case LINE_FAILED:
			good = error_errno(err, RLMD_ERROR_INPUT, "cannot read %s",
					   merge->paths[file]);
			break;
		}
	line_reader_done(&reader);
	return good;
}

/* All are looked at before anything is written: positions in them are read again. */
static bool open_files(struct merge *merge, struct rlmd_error *err)
{
	for (size_t i = 0; i < merge->count; i++) {
		const char *path = merge->paths[i];
		struct stat st;

		merge->files[i] = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (merge->files[i] < 0 || fstat(merge->files[i], &st))
			return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", path);
		if (!S_ISREG(st.st_mode))
			return error_set(err, RLMD_ERROR_INPUT,
					 "cannot read %s: it is no regular file", path);
	}
	return true;
}

/* Only a file with results is replaced, or one of the merged files: a typing error must not cost a
 * file of jobs. */
static bool is_of_results(const struct merge *merge, const char *path, const struct stat *st,
			  struct rlmd_error *err)
{
	auto_close int fd = st->st_size ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
	auto_free char *line = NULL;
	struct results_line read;
	struct rlmd_error ignored;
	struct stat other;
	size_t size = 0;

	for (size_t i = 0; i < merge->count; i++)
		if (!fstat(merge->files[i], &other) && other.st_dev == st->st_dev &&
		    other.st_ino == st->st_ino)
			return true;
	if (!st->st_size)
		return true;
	line = fd < 0 ? NULL : line_reader_at(fd, 0, &size);
	if (line && results_line_read(text_from(line, size), &read, &ignored)) {
		results_line_done(&read);
		return true;
	}
	return error_set(err, RLMD_ERROR_USAGE,
			 "%s is there and has no results: name another file with -o, or move it "
			 "away",
			 path);
}

static bool open_out(struct merge *merge, const char *path, struct rlmd_error *err)
{
	struct stat st;

	if (!file_may_write(path, &st, RLMD_ERROR_USAGE, err))
		return false;
	if (st.st_mode && !S_ISREG(st.st_mode))
		return error_set(err, RLMD_ERROR_USAGE, "cannot write %s: %s, and no regular file",
				 path, file_kind(&st));
	if (!is_of_results(merge, path, &st, err))
		return false;
	merge->open = atomic_file_open(&merge->out, path, st.st_mode ? st.st_mode & 0777 : MODE);
	/* One that takes an older one's place is for whom that was, whatever the umask is. */
	return (merge->open && (!st.st_mode || !fchmod(merge->out.fd, st.st_mode & 0777))) ||
	       error_errno(err, RLMD_ERROR_USAGE, "cannot write %s", path);
}

static bool carry_out(struct merge *merge, const char *out, struct rlmd_error *err)
{
	if (!open_files(merge, err) || !open_out(merge, out, err))
		return false;
	for (size_t i = 0; i < merge->count; i++)
		if (!take_file(merge, i, err))
			return false;
	return flush(merge, err) && (atomic_file_commit(&merge->out, true) ||
				     error_errno(err, RLMD_ERROR_INTERNAL, "cannot write %s", out));
}

bool results_merge(const char *out, const char *const *in, size_t count,
		   struct results_merge_summary *ret, struct rlmd_error *err)
{
	struct merge merge = {.paths = in, .count = count};
	bool good;

	if (count > RESULTS_MERGE_FILES_MAX)
		return error_set(err, RLMD_ERROR_USAGE, "at most %d files can be merged at once",
				 RESULTS_MERGE_FILES_MAX);
	merge.files = xcalloc(count + 1, sizeof *merge.files);
	for (size_t i = 0; i < count; i++)
		merge.files[i] = -1;
	merge.positions = id_map_new();
	merge.written = buffer_new();
	good = carry_out(&merge, out, err);
	*ret = merge.summary;
	for (size_t i = 0; i < count; i++)
		if (merge.files[i] >= 0)
			close(merge.files[i]);
	if (merge.open)
		atomic_file_done(&merge.out);
	free(merge.files);
	id_map_free(merge.positions);
	evbuffer_free(merge.written);
	return good;
}
