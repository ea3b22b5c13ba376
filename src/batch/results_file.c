/*
 *   READ -> REPLACE      end_reading       what was there is in the store
 *   REPLACE -> FORGET    go_on             the file is written anew; jobs are rerun
 *   FORGET -> APPEND     go_on             results are appended as they come
 *   APPEND -> END        results_file_end  perhaps it is written anew once more
 *   REPLACE -> END       replace           it cannot be
 */
#include "batch/results_file.h"

#include <assert.h>
#include <errno.h>
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
#include "base/atomic_file.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/timer.h"
#include "batch/batch_store.h"
#include "batch/line_reader.h"
#include "batch/results_line.h"
#include "batch/retry.h"
#include "batch/summary.h"
#include "batch/traces.h"
#include "store/store.h"

enum {
	STEP_US = 2000,        /* after so long others have their turn */
	AT_ONCE = 64,          /* jobs that the store is asked about at once */
	GATHERED = 1 << 20,    /* bytes that are read or written at once */
	NUMBER_MOST = 1 << 30, /* of a job that is noted as written */
	LOOKS = 3,             /* for the process that holds a lock */
};

enum results_state { RESULTS_READ, RESULTS_REPLACE, RESULTS_FORGET, RESULTS_APPEND, RESULTS_END };

/* A line that was there. */
struct old_line {
	struct rlmd_text text; /* owned */
	struct results_line line;
	uint64_t number;
	struct store_claim claim; /* of a job that the line ends in the store; job 0: of none */
};

struct results_file {
	struct results_file_options options;
	char *path; /* owned, as are the next ones: where links lead */
	struct traces *traces;
	struct timer *step;
	struct query *query; /* lent */
	int fd;              /* owned: locked */
	enum results_state state;
	struct rlmd_error error; /* why it ends badly; told by the next step */

	struct line_reader reader;
	struct old_line old[AT_ONCE]; /* read, and not compared yet */
	size_t count, old_bytes, adopted;
	uint64_t cut;      /* bytes of lines that were not whole */
	int64_t unknown;   /* results that the store did not know */
	int64_t differing; /* lines that said something else than it does */
	bool read_all;

	struct evbuffer *out; /* owned: soon in the file */
	struct atomic_file fresh;
	bool replacing; /* `fresh` is open */
	bool sorted;    /* by the order of the jobs */
	int64_t after;  /* number or rank of the last job that was written */
	off_t size;
	bool again;             /* somebody asked for more meanwhile */
	bool stale;             /* a job that is written has ended once more, elsewhere */
	unsigned char *written; /* owned: a bit for each job's number */
	size_t written_size;
	struct summary sum;
	int kind; /* of the errors whose jobs are rerun next */
};

static void warn(struct results_file *file, char *text)
{
	file->options.warn(file->options.owner, text);
	free(text);
}

/* The file may be gone after this. */
static void end(struct results_file *file, const struct rlmd_error *err)
{
	file->options.end(file->options.owner, err);
}

static bool explain(const struct store_result *result, struct rlmd_error *err)
{
	if (!result->fault)
		return true;
	batch_store_explain(result, err);
	return error_context(err, "results cannot be read from the store");
}

/* --- what the store has --------------------------------------------------------------- */

static bool flush(struct results_file *file, struct rlmd_error *err)
{
	int fd = file->replacing ? file->fresh.fd : file->fd;

	while (evbuffer_get_length(file->out)) {
		int written = evbuffer_write(file->out, fd);

		if (written < 0 && errno != EINTR)
			return error_errno(err, RLMD_ERROR_INTERNAL, "cannot write to %s",
					   file->options.path);
		file->size += written > 0 ? written : 0;
	}
	return true;
}

/* Whether a job was written before. */
static bool note_written(struct results_file *file, int64_t number)
{
	size_t at = (size_t)number / 8, size = file->written_size;
	unsigned char bit = (unsigned char)(1 << number % 8);
	bool was;

	if (number < 0 || number >= NUMBER_MOST)
		return false;
	if (at >= size) {
		file->written_size = 2 * at + GATHERED / 8;
		file->written = xreallocarray(file->written, file->written_size, 1);
		memset(file->written + size, 0, file->written_size - size);
	}
	was = file->written[at] & bit;
	file->written[at] |= bit;
	return was;
}

static bool is_rerun(const struct results_file *file, const struct store_job *job)
{
	const struct results_rerun *rerun = &file->options.rerun;

	return file->state == RESULTS_REPLACE &&
	       (job->state == STORE_JOB_FAILED ? rerun->failed
					       : rerun->degraded && job->error.size);
}

static bool put_trace(struct results_file *file, const struct store_job *job,
		      struct rlmd_error *err)
{
	auto_free char *id = text_copy(job->custom_id);

	return traces_put(file->traces, id, job->trace, err);
}

static bool add(struct results_file *file, const struct store_job *job, struct rlmd_error *err)
{
	const struct results_line line = results_line_of(job);

	file->after = file->sorted ? job->number : job->rank;
	if (is_rerun(file, job)) {
		auto_free char *id = text_copy(job->custom_id);

		traces_remove(file->traces, id);
		return true;
	}
	if (note_written(file, job->number)) {
		file->stale = true;
		return true;
	}
	summary_add_job(&file->sum, job);
	return (!job->trace.size || file->state == RESULTS_END || put_trace(file, job, err)) &&
	       results_line_write(&line, file->out, err) &&
	       (evbuffer_get_length(file->out) < GATHERED || flush(file, err));
}

static bool add_all(struct results_file *file, const struct store_result *result,
		    struct rlmd_error *err)
{
	if (!explain(result, err))
		return false;
	for (size_t i = 0; i < result->count; i++)
		if (!add(file, &result->jobs[i], err))
			return false;
	return flush(file, err);
}

static bool put_in_place(struct results_file *file, struct rlmd_error *err);
static void go_on(struct results_file *file);

static void ask(struct results_file *file);

static void on_results(void *owner, const struct store_result *result)
{
	struct results_file *file = owner;
	struct rlmd_error err;

	file->query = NULL;
	if (!add_all(file, result, &err) ||
	    (!result->count && file->replacing && !put_in_place(file, &err)))
		end(file, &err);
	else if (result->count || file->again)
		ask(file);
	else
		go_on(file);
}

static void ask(struct results_file *file)
{
	file->again = false;
	file->query = store_results(file->options.store, file->options.batch, file->after, AT_ONCE,
				    file->sorted, on_results, file);
}

void results_file_look(struct results_file *file)
{
	if (file->query)
		file->again = true;
	else
		ask(file);
}

void results_file_sum(const struct results_file *file, struct summary *ret)
{
	summary_add(ret, &file->sum);
}

/* --- written anew ----------------------------------------------------------------------- */

static void replace(struct results_file *file, bool sorted)
{
	struct stat st;

	file->replacing = !fstat(file->fd, &st) &&
			  atomic_file_open(&file->fresh, file->path, st.st_mode & 0777);
	if (!file->replacing || fchmod(file->fresh.fd, st.st_mode & 0777)) {
		error_errno(&file->error, RLMD_ERROR_INTERNAL, "cannot write %s anew",
			    file->options.path);
		file->state = RESULTS_END;
		timer_post(file->step);
		return;
	}
	file->sorted = sorted;
	file->stale = false;
	file->after = file->size = 0;
	file->sum = (struct summary){0};
	if (file->written)
		memset(file->written, 0, file->written_size);
	ask(file);
}

/* It is locked before it has its name, so that no other batch gets in between. */
static bool put_in_place(struct results_file *file, struct rlmd_error *err)
{
	int fd = fcntl(file->fresh.fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || fcntl(fd, F_SETFL, O_APPEND) ||
	    !atomic_file_commit(&file->fresh, true)) {
		error_errno(err, RLMD_ERROR_INTERNAL, "cannot replace %s", file->options.path);
		if (fd >= 0)
			close(fd);
		return false;
	}
	atomic_file_done(&file->fresh);
	file->replacing = false;
	close(file->fd);
	file->fd = fd;
	return true;
}

/* --- jobs that wait again --------------------------------------------------------------- */

/* Their lines left the file before: should the process end here, the next start writes them. Those
 * that failed with what models had answered are asked anew, kind by kind; at last come all others,
 * which pay from where they were. */
static void rerun_on(struct results_file *file);

static void on_rerun(void *owner, const struct store_result *result)
{
	struct results_file *file = owner;
	struct rlmd_error err;

	file->query = NULL;
	if (!result->fault) {
		rerun_on(file);
		return;
	}
	batch_store_explain(result, &err);
	end(file, &err);
}

static void rerun_on(struct results_file *file)
{
	const struct results_file_options *options = &file->options;
	struct results_rerun *rerun = &file->options.rerun;
	bool all;

	while (file->kind < SUMMARY_KINDS && !retry_asks_anew((enum rlmd_error_kind)file->kind))
		file->kind++;
	all = file->kind == SUMMARY_KINDS;
	if (rerun->degraded) {
		rerun->degraded = false;
		file->query = store_rerun_degraded(options->store, options->batch, on_rerun, file);
	} else if (rerun->failed) {
		const struct rlmd_text kind = text_of(
			all ? "" : rlmd_error_name((enum rlmd_error_kind)file->kind));

		rerun->failed = !all;
		file->query = store_rerun(options->store, options->batch, all ? NULL : &kind, !all,
					  on_rerun, file);
		file->kind++;
	} else {
		go_on(file);
	}
}

/* --- what is there already -------------------------------------------------------------- */

static bool refuse(const struct results_file *file, uint64_t number, struct rlmd_error *err)
{
	return error_context(err, "%s:%" PRIu64, file->options.path, number);
}

static bool other_batch(const struct results_file *file, const struct old_line *old,
			const char *why, struct rlmd_error *err)
{
	error_set(err, RLMD_ERROR_INPUT,
		  "has a result of '%.*s', %s: it is the file of another batch; name another "
		  "one with -o, or move it away",
		  (int)text_clip(old->line.custom_id, 100).size, old->line.custom_id.bytes, why);
	return refuse(file, old->number, err);
}

static bool says_the_same(const struct old_line *old, const struct results_line *line)
{
	auto_evbuffer struct evbuffer *wanted = buffer_new();
	struct rlmd_error ignored;
	struct rlmd_text text;

	if (!results_line_write(line, wanted, &ignored))
		return false;
	text = text_trim(text_in(wanted));
	return text.size == old->text.size && !memcmp(text.bytes, old->text.bytes, text.size);
}

/* Compares a line with the store. In a shared store another machine may have put the job back, to
 * be tried again. */
static bool compare(struct results_file *file, struct old_line *old, const struct store_job *job,
		    struct rlmd_error *err)
{
	const struct results_line line = results_line_of(job);

	if (!job->id)
		return other_batch(file, old, "which no job has", err);
	if (strcmp(line.job, old->line.job))
		return other_batch(file, old, "which was another job then", err);
	if (job->state > STORE_JOB_RUNNING) {
		file->differing += !says_the_same(old, &line);
		return true;
	}
	if (file->options.shared && (!old->line.success || job->state == STORE_JOB_RUNNING))
		return true;
	file->unknown++;
	old->claim = (struct store_claim){job->id, job->token};
	old->line.attempts -= job->attempts;
	return true;
}

static void empty(struct results_file *file)
{
	for (size_t i = 0; i < file->count; i++) {
		results_line_done(&file->old[i].line);
		free((char *)file->old[i].text.bytes);
	}
	file->count = file->old_bytes = file->adopted = 0;
}

static void adopt(struct results_file *file);

/* REFUSED: somebody works on the job since it was looked at. */
static void on_adopted(void *owner, const struct store_result *result)
{
	struct results_file *file = owner;
	struct rlmd_error err;

	file->query = NULL;
	if (result->fault && result->fault != STORE_REFUSED) {
		batch_store_explain(result, &err);
		end(file, &err);
		return;
	}
	file->adopted++;
	adopt(file);
}

/* Ends jobs in the store as the lines say, one after the other. Reruns would lose what was paid for
 * them. */
static void adopt(struct results_file *file)
{
	bool none = file->options.rerun.failed || file->options.rerun.degraded;
	struct store_outcome outcome;
	auto_free char *result = NULL;
	struct rlmd_error err;
	struct old_line *old;

	while (file->adopted < file->count && (none || !file->old[file->adopted].claim.job))
		file->adopted++;
	if (file->adopted == file->count) {
		empty(file);
		timer_post(file->step);
		return;
	}
	old = &file->old[file->adopted];
	if (results_line_outcome(old->text, &old->line, &outcome, &result, &err)) {
		file->query = store_finish(file->options.store, &old->claim, &outcome, on_adopted,
					   file);
		return;
	}
	refuse(file, old->number, &err);
	end(file, &err);
}

static void on_jobs(void *owner, const struct store_result *result)
{
	struct results_file *file = owner;
	struct rlmd_error err;
	bool good = explain(result, &err);

	file->query = NULL;
	for (size_t i = 0; good && i < result->count; i++)
		good = compare(file, &file->old[i], &result->jobs[i], &err);
	if (good)
		adopt(file);
	else
		end(file, &err);
}

static void ask_about_lines(struct results_file *file)
{
	struct rlmd_text ids[AT_ONCE];

	for (size_t i = 0; i < file->count; i++)
		ids[i] = file->old[i].line.custom_id;
	file->query = store_jobs(file->options.store, file->options.batch, ids, file->count,
				 on_jobs, file);
}

/* A part of a line needs no repair: the store has it whole. */
static bool take_line(struct results_file *file, struct rlmd_text text, bool torn,
		      struct rlmd_error *err)
{
	struct old_line *old = &file->old[file->count];
	bool is_rest;

	if (!text_trim(text).size)
		return true;
	text = text_from(xstrndup(text.bytes, text.size), text.size);
	*old = (struct old_line){.text = text, .number = file->reader.number};
	if (results_line_read(text, &old->line, err)) {
		file->count++;
		file->old_bytes += text.size;
		return true;
	}
	is_rest = (torn || memchr(text.bytes, '\0', text.size)) && results_line_is_rest(text);
	file->cut += is_rest ? text.size : 0;
	free((char *)text.bytes);
	error_context(err, "no line of results; name another file with -o, or move it away");
	return is_rest || refuse(file, file->reader.number, err);
}

static bool read_on(struct results_file *file, struct rlmd_error *err)
{
	struct rlmd_text text = {0};
	enum line_status status = line_reader_next(&file->reader, &text);

	switch (status) {
	case LINE_WHOLE:
	case LINE_TORN:
		return take_line(file, text, status == LINE_TORN, err);
	case LINE_TOO_LONG:
		error_set(err, RLMD_ERROR_INPUT, "is longer than any result");
		return refuse(file, file->reader.number, err);
	case LINE_NOT_YET:
	case LINE_AWAITED:
		break;
	case LINE_END:
		file->read_all = true;
		break;
	case LINE_FAILED:
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", file->options.path);
	}
	return true;
}

static bool check_unknown(struct results_file *file, struct rlmd_error *err)
{
	const struct results_file_options *options = &file->options;

	if (!file->unknown)
		return true;
	if (options->rerun.failed || options->rerun.degraded)
		return error_set(err, RLMD_ERROR_USAGE,
				 "the results file has results of %" PRId64
				 " jobs that are not over in the store: start once without "
				 "--rerun-failed and --rerun-degraded, which takes them as done",
				 file->unknown);
	warn(file, xasprintf("%s has %" PRId64
			     " results that the store does not know, as when it was lost: these "
			     "jobs are taken as done, and not paid again; their cost counts at no "
			     "limit",
			     options->path, file->unknown));
	return true;
}

static void end_reading(struct results_file *file)
{
	struct rlmd_error err;

	line_reader_done(&file->reader);
	if (!check_unknown(file, &err)) {
		end(file, &err);
		return;
	}
	if (file->cut)
		warn(file, xasprintf("%s: an unfinished line at its end, of %" PRIu64
				     " bytes, was taken away",
				     file->options.path, file->cut));
	if (file->differing)
		warn(file, xasprintf("%s: %" PRId64
				     " of its lines said something else than the store has, and it "
				     "is written anew",
				     file->options.path, file->differing));
	file->state = RESULTS_REPLACE;
	replace(file, false);
}

/* Its name outlives the machine, too. */
static bool sync_all(const struct results_file *file)
{
	auto_free char *copy = xstrdup(file->path);
	auto_close int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return !fdatasync(file->fd) && (fd < 0 || !fsync(fd));
}

static void on_step(void *owner)
{
	struct results_file *file = owner;
	int64_t until = clock_us() + STEP_US;
	struct rlmd_error err;

	if (file->state == RESULTS_END) {
		if (!file->error.kind && !sync_all(file))
			error_errno(&file->error, RLMD_ERROR_INTERNAL,
				    "cannot bring %s to the disk", file->options.path);
		end(file, file->error.kind ? &file->error : NULL);
		return;
	}
	while (!file->read_all && file->count < AT_ONCE && file->old_bytes < GATHERED &&
	       clock_us() < until)
		if (!read_on(file, &err)) {
			end(file, &err);
			return;
		}
	if (file->count)
		ask_about_lines(file);
	else if (file->read_all)
		end_reading(file);
	else
		timer_post(file->step);
}

/* All that the store has is in the file. */
static void go_on(struct results_file *file)
{
	switch (file->state) {
	case RESULTS_READ:
		break;
	case RESULTS_REPLACE:
		file->state = RESULTS_FORGET;
		rerun_on(file);
		break;
	case RESULTS_FORGET:
		file->state = RESULTS_APPEND;
		file->options.done(file->options.owner);
		break;
	case RESULTS_APPEND:
		file->options.done(file->options.owner);
		break;
	case RESULTS_END:
		timer_post(file->step);
		break;
	}
}

/* --- the end ---------------------------------------------------------------------------- */

void results_file_end(struct results_file *file)
{
	struct stat ours, there;
	bool is_there = !stat(file->path, &there), is_whole;

	assert(file->state == RESULTS_APPEND && !file->query);
	file->state = RESULTS_END;
	if (fstat(file->fd, &ours) ||
	    (is_there && (ours.st_dev != there.st_dev || ours.st_ino != there.st_ino))) {
		error_set(&file->error, RLMD_ERROR_INTERNAL,
			  "%s is another file by now than the one that results were written to: "
			  "move it away, and the same command writes them anew",
			  file->options.path);
		timer_post(file->step);
		return;
	}
	is_whole = is_there && there.st_size == file->size;
	if (!is_whole)
		warn(file, xasprintf("%s was %s by somebody else meanwhile, and is written anew",
				     file->options.path, is_there ? "changed" : "taken away"));
	if (file->options.sort || file->stale || !is_whole)
		replace(file, file->options.sort);
	else
		timer_post(file->step);
}

/* --- from nothing ------------------------------------------------------------------------- */

static bool refuse_kind(const struct results_file *file, const struct stat *st,
			struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_USAGE,
			 "cannot write results to %s: %s, and no regular file, in which a batch "
			 "could see what it has done",
			 file->options.path, file_kind(st));
}

/* The process that holds the lock of the file at that path; 0: nobody knows. A batch that begins
 * may put another file there, with its lock, at any moment. */
static long holder_of(const char *path)
{
	long pid = 0;

	for (int i = 0; i < LOOKS && !pid; i++) {
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

		pid = fd < 0 ? 0 : file_lock_holder(fd);
	}
	return pid;
}

static bool refuse_locked(const struct results_file *file, struct rlmd_error *err)
{
	long pid = holder_of(file->options.path);
	char who[40] = "another rlmd";

	if (pid)
		snprintf(who, sizeof who, "another rlmd, process %ld,", pid);
	return error_set(err, RLMD_ERROR_USAGE,
			 "%s writes to %s; wait for its end, or name another file with -o", who,
			 file->options.path);
}

static bool open_file(struct results_file *file, struct rlmd_error *err)
{
	const char *path = file->options.path;
	struct stat st, there;

	if (!file_may_write(path, &st, RLMD_ERROR_USAGE, err))
		return error_context(err, "cannot write results");
	if (st.st_mode && !S_ISREG(st.st_mode))
		return refuse_kind(file, &st, err);
	file->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
	if (file->fd < 0 || fstat(file->fd, &st))
		return error_errno(err, RLMD_ERROR_USAGE, "cannot write results to %s", path);
	if (!S_ISREG(st.st_mode))
		return refuse_kind(file, &st, err);
	if (flock(file->fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK
			       ? refuse_locked(file, err)
			       : error_errno(err, RLMD_ERROR_USAGE, "cannot lock %s", path);
	file->path = realpath(path, NULL);
	/* Another batch may have replaced it since it was opened. */
	if (file->path && !stat(file->path, &there) && st.st_dev == there.st_dev &&
	    st.st_ino == there.st_ino)
		return true;
	return refuse_locked(file, err);
}

struct results_file *results_file_new(struct event_base *base,
				      const struct results_file_options *options,
				      struct rlmd_error *err)
{
	struct results_file *file = xcalloc(1, sizeof *file);

	file->options = *options;
	file->fd = -1;
	file->traces = traces_new(options->path);
	file->out = buffer_new();
	if (!open_file(file, err)) {
		results_file_free(file);
		return NULL;
	}
	file->reader = (struct line_reader){.fd = file->fd, .limit = RESULTS_LINE_MAX};
	file->step = timer_new(base, on_step, file);
	timer_post(file->step);
	return file;
}

void results_file_free(struct results_file *file)
{
	if (!file)
		return;
	store_forget(file->query);
	timer_free(file->step);
	line_reader_done(&file->reader);
	empty(file);
	if (file->replacing)
		atomic_file_done(&file->fresh);
	evbuffer_free(file->out);
	traces_free(file->traces);
	if (file->fd >= 0)
		close(file->fd);
	free(file->written);
	free(file->path);
	free(file);
}
