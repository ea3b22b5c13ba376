#include "batch/results_file.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "batch/id_map.h"
#include "batch/line_reader.h"
#include "batch/results_line.h"
#include "batch/results_private.h"
#include "batch/syncer.h"

enum { STEP_US = 2000 };

/* --- what is there already -------------------------------------------------------- */

static bool refuse(const struct results_file *file, struct rlmd_error *err)
{
	return error_context(err, "%s:%" PRIu64, file->path, file->reader.number);
}

static bool other_batch(const struct results_file *file, const char *id, const char *why,
			struct rlmd_error *err)
{
	error_set(err, RLMD_ERROR_INPUT,
		  "has a result of '%.100s', %s: it is the file of another batch; name another "
		  "one with -o, or move it away",
		  id, why);
	return refuse(file, err);
}

static bool check_batch(const struct results_file *file, const char *id, uint64_t mark,
			struct rlmd_error *err)
{
	const uint64_t *known = file->jobs ? id_map_find(file->jobs, id) : NULL;

	if (!file->jobs)
		return true;
	if (!known)
		return other_batch(file, id, "which no job has", err);
	return !mark || mark == *known || other_batch(file, id, "which was another job then", err);
}

static bool note_line(struct results_file *file, const char *id, struct rlmd_error *err)
{
	bool is_new;
	uint64_t *offset = id_map_add(file->ids, id, &is_new);

	if (!is_new) {
		error_set(err, RLMD_ERROR_INPUT,
			  "has '%.100s' a second time; 'rlmd merge -o %s %s' leaves one of two "
			  "that are the same",
			  id, file->path, file->path);
		return refuse(file, err);
	}
	*offset = (uint64_t)file->reader.offset;
	file->lines++;
	return true;
}

/* Takes away the rest of a line that was never whole, and what is behind it. */
static bool cut(struct results_file *file, struct rlmd_error *err)
{
	file->cut = (uint64_t)(file->size - file->reader.offset);
	file->size = file->reader.offset;
	return !ftruncate(file->fd, file->size) ||
	       error_errno(err, RLMD_ERROR_INPUT, "cannot cut the unfinished line off %s",
			   file->path);
}

/* False: `err`, or the line and all behind it is to be cut. */
static bool take_line(struct results_file *file, struct rlmd_text line, bool *ret_rest,
		      struct rlmd_error *err)
{
	auto_free char *id = NULL;
	uint64_t mark;

	if (results_line_read(line, &id, &mark, err))
		return check_batch(file, id, mark, err) && note_line(file, id, err);
	*ret_rest = line.size && memchr(line.bytes, '\0', line.size) && results_line_is_rest(line);
	error_context(err, "no line of results; name another file with -o, or move it away");
	return refuse(file, err);
}

static void take_whole_line(struct results_file *file, struct rlmd_text line)
{
	bool rest = false;

	if (!text_trim(line).size || take_line(file, line, &rest, &file->error))
		return;
	file->opening = false;
	if (rest) {
		file->error.kind = RLMD_ERROR_NONE;
		cut(file, &file->error);
	}
}

static void take_torn_line(struct results_file *file, struct rlmd_text line)
{
	file->opening = false;
	if (results_line_is_rest(line)) {
		cut(file, &file->error);
		return;
	}
	error_set(&file->error, RLMD_ERROR_INPUT,
		  "no line of results; name another file with -o, or move it away");
	refuse(file, &file->error);
}

static void take_long_line(struct results_file *file)
{
	file->opening = false;
	error_set(&file->error, RLMD_ERROR_INPUT, "is longer than any result");
	refuse(file, &file->error);
}

static void read_on(struct results_file *file)
{
	struct rlmd_text line = {0};

	switch (line_reader_next(&file->reader, &line)) {
	case LINE_WHOLE:
		take_whole_line(file, line);
		break;
	case LINE_TORN:
		take_torn_line(file, line);
		break;
	case LINE_TOO_LONG:
		take_long_line(file);
		break;
	case LINE_NOT_YET:
	case LINE_AWAITED:
		break;
	case LINE_END:
		file->opening = false;
		break;
	case LINE_FAILED:
		file->opening = false;
		error_errno(&file->error, RLMD_ERROR_INPUT, "cannot read %s", file->path);
		break;
	}
}

static void sync_more(struct results_file *file)
{
	if (file->syncing || file->kept == file->lines)
		return;
	file->syncing = file->lines;
	syncer_start(file->syncer);
}

static void on_step(evutil_socket_t fd, short what, void *arg)
{
	struct results_file *file = arg;
	int64_t until = clock_us() + STEP_US;

	(void)fd;
	(void)what;
	while (file->opening && clock_us() < until)
		read_on(file);
	if (file->opening) {
		loop_post(file->step);
		return;
	}
	line_reader_done(&file->reader);
	file->jobs = NULL;
	if (!file->error.kind)
		sync_more(file); /* who wrote what is there may have been killed before */
	file->hooks.opened(file->hooks.owner, file->lines, file->cut,
			   file->error.kind ? &file->error : NULL);
}

/* --- what is added ------------------------------------------------------------------- */

static void on_synced(void *owner, int error)
{
	struct results_file *file = owner;
	struct rlmd_error err;

	if (!error)
		file->kept = file->syncing;
	file->syncing = 0;
	errno = error;
	if (error) /* the next line tries again */
		error_errno(&err, RLMD_ERROR_INTERNAL, "cannot bring %s to the disk", file->path);
	else
		sync_more(file);
	file->hooks.kept(file->hooks.owner, file->kept, error ? &err : NULL);
}

/* What a full disk let in of a line is taken away, now or before the next one. */
static bool restore_end(struct results_file *file, struct rlmd_error *err)
{
	if (file->whole)
		return true;
	file->whole = !ftruncate(file->fd, file->size);
	return file->whole || error_errno(err, RLMD_ERROR_INTERNAL,
					  "cannot cut an unfinished line off %s", file->path);
}

static bool append(struct results_file *file, struct rlmd_text line, struct rlmd_error *err)
{
	struct rlmd_error ignored;
	ssize_t written;

	if (!restore_end(file, err))
		return false;
	do
		written = write(file->fd, line.bytes, line.size);
	while (written < 0 && errno == EINTR);
	if (written == (ssize_t)line.size) {
		file->size += written;
		return true;
	}
	if (written >= 0)
		errno = ENOSPC;
	error_errno(err, RLMD_ERROR_INTERNAL, "cannot write to %s", file->path);
	file->whole = false;
	restore_end(file, &ignored);
	return false;
}

bool results_file_add(struct results_file *file, const struct results_line *line,
		      struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = NULL;
	off_t offset = file->size;

	assert(!file->opening && !file->error.kind);
	if (results_file_has(file, line->custom_id))
		return true;
	out = evbuffer_new();
	if (!results_line_write(line, out, err) || !append(file, text_in(out), err))
		return false;
	*id_map_add(file->ids, line->custom_id, NULL) = (uint64_t)offset;
	file->lines++;
	sync_more(file);
	return true;
}

bool results_file_has(const struct results_file *file, const char *custom_id)
{
	return id_map_find(file->ids, custom_id);
}

uint64_t results_file_lines(const struct results_file *file)
{
	return file->lines;
}

/* --- from nothing ---------------------------------------------------------------------- */

/* Its name outlives the machine, too. */
static void sync_directory(const char *path)
{
	auto_free char *copy = xstrdup(path);
	auto_close int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		fsync(fd);
}

static bool open_file(struct results_file *file, struct rlmd_error *err)
{
	struct stat st;

	if (!file_may_write(file->path, &st, RLMD_ERROR_USAGE, err))
		return error_context(err, "cannot write results");
	file->fd = open(file->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			0666);
	if (file->fd < 0 || fstat(file->fd, &st))
		return error_errno(err, RLMD_ERROR_USAGE, "cannot write results to %s", file->path);
	if (!S_ISREG(st.st_mode))
		return error_set(
			err, RLMD_ERROR_USAGE,
			"cannot write results to %s: it is no regular file, of which a batch "
			"could see what it has done",
			file->path);
	file->size = st.st_size;
	if (!flock(file->fd, LOCK_EX | LOCK_NB))
		return true;
	if (errno == EWOULDBLOCK)
		return error_set(
			err, RLMD_ERROR_USAGE,
			"another rlmd writes to %s; wait for its end, or name another file "
			"with -o",
			file->path);
	return error_errno(err, RLMD_ERROR_USAGE, "cannot lock %s", file->path);
}

struct results_file *results_file_new(struct event_base *base, const char *path,
				      const struct id_map *jobs,
				      const struct results_file_hooks *hooks,
				      struct rlmd_error *err)
{
	struct results_file *file = xcalloc(1, sizeof *file);

	*file = (struct results_file){
		.hooks = *hooks,
		.path = xstrdup(path),
		.jobs = jobs,
		.ids = id_map_new(),
		.fd = -1,
		.opening = true,
		.whole = true,
	};
	if (open_file(file, err))
		file->syncer = syncer_new(base, file->fd, on_synced, file, err);
	if (!file->syncer) {
		results_file_free(file);
		return NULL;
	}
	sync_directory(path);
	file->reader = (struct line_reader){.fd = file->fd, .limit = RESULTS_LINE_MAX};
	file->step = event_new(base, -1, 0, on_step, file);
	loop_post(file->step);
	return file;
}

void results_file_free(struct results_file *file)
{
	if (!file)
		return;
	if (file->step)
		event_free(file->step);
	syncer_free(file->syncer);
	line_reader_done(&file->reader);
	id_map_free(file->ids);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}
