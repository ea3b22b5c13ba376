#include "batch/jobs_file.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "batch/job_line.h"
#include "batch/line_reader.h"

enum { STEP_US = 2000 }; /* after so long others have their turn */

struct jobs_file {
	struct jobs_file_hooks hooks;
	struct jobs_file_shard shard;
	struct jobs_file_summary summary;
	struct line_reader reader;
	struct digest *digest; /* owned; NULL: it is told */
	struct event *step;    /* owned: there is more to read */
	char *name;            /* owned: for errors */
	struct stat before;
	int fd; /* owned */
	bool paused, stopped;
};

bool jobs_file_parse_shard(const char *string, struct jobs_file_shard *ret, struct rlmd_error *err)
{
	struct jobs_file_shard shard;
	int size = 0;

	if (strspn(string, "0123456789/") == strlen(string) && strlen(string) < 32 &&
	    sscanf(string, "%" SCNu64 "/%" SCNu64 "%n", &shard.index, &shard.count, &size) == 2 &&
	    !string[size] && shard.index >= 1 && shard.index <= shard.count &&
	    shard.count <= JOBS_FILE_SHARDS_MAX) {
		*ret = shard;
		return true;
	}
	return error_set(err, RLMD_ERROR_USAGE,
			 "'%s' is no shard: write I/N, as 1/4 for the first of four, with I from 1 "
			 "to N and N to %d",
			 string, JOBS_FILE_SHARDS_MAX);
}

/* --- lines ------------------------------------------------------------------------ */

static void tell_bad(struct jobs_file *file, struct rlmd_error *err)
{
	uint64_t number = file->reader.number;

	error_context(err, "%s:%" PRIu64, file->name, number);
	if (++file->summary.bad <= JOBS_FILE_BAD_TOLD)
		file->hooks.bad(file->hooks.owner, number, err);
}

/* Names the form of a whole file that does not consist of lines. */
static bool check_form(struct rlmd_text line, struct rlmd_error *err)
{
	if (text_starts(line, "\xff\xfe") || text_starts(line, "\xfe\xff"))
		return error_set(err, RLMD_ERROR_INPUT,
				 "is UTF-16; write the file anew in UTF-8, as with iconv(1)");
	if (text_starts(text_trim(line), "["))
		return error_set(err, RLMD_ERROR_INPUT,
				 "begins an array; a jobs file has one object a line, as "
				 "`jq -c '.[]'` writes them");
	if (text_equal(text_trim(line), "{"))
		return error_set(err, RLMD_ERROR_INPUT,
				 "an object over several lines; a jobs file has each in one line, "
				 "as `jq -c .` writes them");
	return true;
}

static bool is_ours(const struct jobs_file *file, const struct job_line *job)
{
	return !file->shard.count ||
	       job_line_hash(job->custom_id) % file->shard.count == file->shard.index - 1;
}

static void note_ignored(struct jobs_file *file, const struct job_line *job)
{
	struct jobs_file_summary *summary = &file->summary;

	if (!job->ignored)
		return;
	if (!summary->ignored_lines++) {
		summary->ignored = job->ignored;
		summary->ignored_line = file->reader.number;
	}
}

static void tell_job(struct jobs_file *file, const struct job_line *job, struct rlmd_text line)
{
	if (!is_ours(file, job)) {
		file->summary.others++;
		return;
	}
	file->summary.jobs++;
	note_ignored(file, job);
	digest_add(file->digest, text_of(job->digest));
	file->paused = !file->hooks.job(file->hooks.owner, file->reader.number, job, line);
}

static void take_line(struct jobs_file *file, struct rlmd_text line)
{
	struct rlmd_error err;
	struct job_line job;

	if (file->reader.number == 1 && text_starts(line, "\xef\xbb\xbf"))
		line = text_slice(line, 3, line.size);
	if (!text_trim(line).size)
		return;
	if ((file->reader.number == 1 && !check_form(line, &err)) ||
	    !job_line_read(line, &job, &err)) {
		tell_bad(file, &err);
		return;
	}
	if (file->hooks.check && !file->hooks.check(file->hooks.owner, &job, &err))
		tell_bad(file, &err);
	else
		tell_job(file, &job, line);
	job_line_done(&job);
}

static void take_long_line(struct jobs_file *file)
{
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_INPUT,
		  "is longer than %d MiB; give what is long as context_file",
		  JOBS_FILE_LINE_MAX >> 20);
	tell_bad(file, &err);
}

/* --- the end ------------------------------------------------------------------------ */

/* Callbacks free the file: it is the last that is done. */
static void end(struct jobs_file *file, const struct rlmd_error *err)
{
	file->summary.lines = file->reader.number;
	file->summary.bytes = (uint64_t)file->reader.read;
	digest_end(take_pointer(&file->digest), file->summary.digest);
	event_del(file->step);
	file->hooks.end(file->hooks.owner, &file->summary, err);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Whether nobody wrote to the file while it was read: then it may be half of what it is to be. */
static bool check_unchanged(const struct jobs_file *file, struct rlmd_error *err)
{
	const struct stat *before = &file->before;
	struct stat after;

	if (!S_ISREG(before->st_mode))
		return true;
	if (fstat(file->fd, &after))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", file->name);
	if (after.st_size == before->st_size && same_time(after.st_mtim, before->st_mtim))
		return true;
	return error_set(err, RLMD_ERROR_INPUT,
			 "%s was written to while it was read (%jd bytes, then %jd); start again "
			 "when it is whole",
			 file->name, (intmax_t)before->st_size, (intmax_t)after.st_size);
}

static void end_well(struct jobs_file *file)
{
	struct rlmd_error err;
	bool good = check_unchanged(file, &err);

	end(file, good ? NULL : &err);
}

static void end_stopped(struct jobs_file *file)
{
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_CANCELLED,
		  "stopped while jobs were loaded: none was begun; the same command loads them");
	end(file, &err);
}

static void end_badly(struct jobs_file *file)
{
	struct rlmd_error err;

	error_errno(&err, RLMD_ERROR_INPUT, "cannot read %s", file->name);
	end(file, &err);
}

/* --- steps -------------------------------------------------------------------------- */

static void await_more(struct jobs_file *file)
{
	if (event_add(file->step, NULL))
		end_badly(file);
}

/* One line, or some of one. False: no more of this now. */
static bool step(struct jobs_file *file)
{
	struct rlmd_text line = {0};

	switch (line_reader_next(&file->reader, &line)) {
	case LINE_WHOLE:
	case LINE_TORN:
		take_line(file, line);
		break;
	case LINE_TOO_LONG:
		take_long_line(file);
		break;
	case LINE_NOT_YET:
		break;
	case LINE_AWAITED:
		await_more(file);
		return false;
	case LINE_END:
		end_well(file);
		return false;
	case LINE_FAILED:
		end_badly(file);
		return false;
	}
	return !file->paused;
}

static void on_step(evutil_socket_t fd, short what, void *arg)
{
	struct jobs_file *file = arg;
	int64_t until = clock_us() + STEP_US;

	(void)fd;
	(void)what;
	if (file->stopped) {
		end_stopped(file);
		return;
	}
	while (step(file))
		if (clock_us() >= until) {
			loop_post(file->step);
			return;
		}
}

void jobs_file_stop(struct jobs_file *file)
{
	file->stopped = true;
	if (file->digest)
		loop_post(file->step);
}

void jobs_file_resume(struct jobs_file *file)
{
	if (!file->paused)
		return;
	file->paused = false;
	loop_post(file->step);
}

/* --- from nothing --------------------------------------------------------------------- */

/* Standard input may be anybody's: it is read as it is. A FIFO is not waited for until somebody
 * writes to it. */
static bool open_file(struct jobs_file *file, const char *path, struct rlmd_error *err)
{
	bool standard = !strcmp(path, "-");

	file->name = xstrdup(standard ? "standard input" : path);
	file->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
			    : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (file->fd < 0 || fstat(file->fd, &file->before))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", file->name);
	return !S_ISDIR(file->before.st_mode) ||
	       error_set(err, RLMD_ERROR_INPUT,
			 "cannot read %s: it is a directory; name the jobs file", file->name);
}

static void begin(struct jobs_file *file, struct event_base *base)
{
	mode_t mode = file->before.st_mode;
	bool waits = S_ISFIFO(mode) || S_ISSOCK(mode) || isatty(file->fd);

	file->digest = digest_new();
	file->reader = (struct line_reader){
		.fd = file->fd, .limit = JOBS_FILE_LINE_MAX, .may_block = waits};
	/* One that grows all the time has an end, too. */
	if (S_ISREG(mode) && !lseek(file->fd, 0, SEEK_CUR))
		file->reader.size = file->before.st_size + 1;
	file->step = loop_event(base, file->fd, waits ? EV_READ : 0, on_step, file);
	loop_post(file->step);
}

struct jobs_file *jobs_file_new(struct event_base *base, const char *path,
				struct jobs_file_shard shard, const struct jobs_file_hooks *hooks,
				struct rlmd_error *err)
{
	struct jobs_file *file = xcalloc(1, sizeof *file);

	file->hooks = *hooks;
	file->shard = shard;
	if (!open_file(file, path, err)) {
		jobs_file_free(file);
		return NULL;
	}
	begin(file, base);
	return file;
}

void jobs_file_free(struct jobs_file *file)
{
	if (!file)
		return;
	if (file->step)
		event_free(file->step);
	line_reader_done(&file->reader);
	digest_free(file->digest);
	if (file->fd >= 0)
		close(file->fd);
	free(file->name);
	free(file);
}
