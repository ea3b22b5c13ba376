#include <errno.h>
#include <event2/buffer.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "batch/id_map.h"
#include "batch/results_private.h"

enum {
	PIECE = 1 << 16,    /* bytes read at once of a line */
	GATHERED = 1 << 20, /* ... and written at once */
};

struct results_sort {
	const struct results_file *file; /* lent */
	struct id_map *said;             /* owned: no line comes twice */
	struct atomic_file sorted;
	struct evbuffer *out; /* owned */
	uint64_t lines;
	bool open;
};

static bool flush(struct results_sort *sort, struct rlmd_error *err)
{
	while (evbuffer_get_length(sort->out)) {
		int written = evbuffer_write(sort->out, sort->sorted.fd);

		if (written < 0 && errno != EINTR)
			return error_errno(err, RLMD_ERROR_INTERNAL, "cannot write to %s anew",
					   sort->file->path);
	}
	return true;
}

/* One line, from where it begins to its line feed. */
static bool copy_line(struct results_sort *sort, off_t offset, struct rlmd_error *err)
{
	char piece[PIECE];

	for (;;) {
		ssize_t got = pread(sort->file->fd, piece, sizeof piece, offset);
		const char *feed;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return error_set(err, RLMD_ERROR_INTERNAL, "cannot read %s: %s",
					 sort->file->path,
					 got ? strerror(errno) : "it was written to meanwhile");
		feed = memchr(piece, '\n', (size_t)got);
		evbuffer_add(sort->out, piece, feed ? (size_t)(feed + 1 - piece) : (size_t)got);
		if (evbuffer_get_length(sort->out) > GATHERED && !flush(sort, err))
			return false;
		if (feed)
			return true;
		offset += got;
	}
}

struct results_sort *results_sort_new(struct results_file *file, struct rlmd_error *err)
{
	struct results_sort *sort = xcalloc(1, sizeof *sort);
	struct stat st;

	sort->file = file;
	sort->said = id_map_new();
	sort->out = evbuffer_new();
	sort->open = !fstat(file->fd, &st) &&
		     atomic_file_open(&sort->sorted, file->path, st.st_mode & 0777);
	if (sort->open && !fchmod(sort->sorted.fd, st.st_mode & 0777))
		return sort;
	error_errno(err, RLMD_ERROR_INTERNAL, "cannot write %s anew", file->path);
	results_sort_free(sort);
	return NULL;
}

bool results_sort_add(struct results_sort *sort, const char *custom_id, struct rlmd_error *err)
{
	const uint64_t *offset = id_map_find(sort->file->ids, custom_id);
	bool is_new = false;

	if (offset)
		id_map_add(sort->said, custom_id, &is_new);
	sort->lines += is_new;
	return !is_new || copy_line(sort, (off_t)*offset, err);
}

bool results_sort_commit(struct results_sort *sort, bool all, struct rlmd_error *err)
{
	if (all && sort->lines != sort->file->lines)
		return error_set(err, RLMD_ERROR_INTERNAL,
				 "%s has %" PRIu64 " results, of which %" PRIu64
				 " are of jobs; it stays unsorted",
				 sort->file->path, sort->file->lines, sort->lines);
	if (!flush(sort, err))
		return false;
	return atomic_file_commit(&sort->sorted, true) ||
	       error_errno(err, RLMD_ERROR_INTERNAL, "cannot replace %s", sort->file->path);
}

void results_sort_free(struct results_sort *sort)
{
	if (!sort)
		return;
	if (sort->open)
		atomic_file_done(&sort->sorted);
	id_map_free(sort->said);
	evbuffer_free(sort->out);
	free(sort);
}
