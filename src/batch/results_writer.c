#include "batch/results_writer.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "batch/collector.h"
#include "batch/id_map.h"
#include "batch/rerun.h"
#include "batch/results_file.h"
#include "batch/rewriter.h"
#include "batch/traces.h"

struct results_writer {
	struct results_writer_options options;
	struct event_base *base;
	struct id_map *jobs; /* owned, as are the next ones; until the file is open */
	struct traces *traces;
	struct results_file *file;
	struct rerun *rerun;
	struct collector *collector;
	struct rewriter *rewriter;
	struct event *ended;
	bool reran; /* jobs that had failed wait again */
};

static void fail(struct results_writer *writer, const struct rlmd_error *err)
{
	writer->options.end(writer->options.owner, err);
}

/* --- what comes ------------------------------------------------------------------------ */

static void on_collected(void *owner)
{
	struct results_writer *writer = owner;

	writer->options.done(writer->options.owner);
}

static void on_uncollected(void *owner, const struct rlmd_error *err)
{
	fail(owner, err);
}

static void on_kept(void *owner, uint64_t lines, const struct rlmd_error *err)
{
	(void)lines;
	if (err)
		fail(owner, err);
}

void results_writer_look(struct results_writer *writer)
{
	collector_look(writer->collector);
}

void results_writer_sum(const struct results_writer *writer, struct summary *ret)
{
	if (writer->collector)
		collector_sum(writer->collector, ret);
}

/* --- the beginning ------------------------------------------------------------------------ */

static bool open_file(struct results_writer *writer, struct rlmd_error *err);

static void on_rerun(void *owner, int64_t jobs, const struct rlmd_error *err)
{
	struct results_writer *writer = owner;
	struct rlmd_error failure;

	(void)jobs;
	rerun_free(take_pointer(&writer->rerun));
	results_file_free(take_pointer(&writer->file));
	writer->reran = true;
	if (err)
		fail(writer, err);
	else if (!open_file(writer, &failure))
		fail(writer, &failure);
}

static void tell_cut(struct results_writer *writer, uint64_t cut)
{
	const struct results_writer_options *options = &writer->options;
	auto_free char *text = xasprintf("%s: an unfinished line at its end, of %" PRIu64
					 " bytes, was taken away",
					 options->path, cut);

	options->warn(options->owner, text);
}

static void on_opened(void *owner, uint64_t lines, uint64_t cut, const struct rlmd_error *err)
{
	const struct collector_hooks hooks = {on_collected, on_uncollected, owner};
	struct results_writer *writer = owner;
	const struct results_writer_options *options = &writer->options;

	(void)lines;
	if (err) {
		fail(writer, err);
		return;
	}
	if (cut)
		tell_cut(writer, cut);
	if (options->rerun_failed && !writer->reran) {
		writer->rerun = rerun_new(options->store, options->batch, writer->file,
					  writer->traces, on_rerun, writer);
		return;
	}
	id_map_free(take_pointer(&writer->jobs));
	writer->collector = collector_new(options->store, options->batch, writer->file,
					  writer->traces, &hooks);
	collector_look(writer->collector);
}

static bool open_file(struct results_writer *writer, struct rlmd_error *err)
{
	const struct results_file_hooks hooks = {on_opened, on_kept, writer};

	writer->file = results_file_new(writer->base, writer->options.path, writer->jobs, &hooks,
					err);
	return writer->file;
}

/* --- the end ---------------------------------------------------------------------------- */

static void on_ended(evutil_socket_t fd, short what, void *owner)
{
	struct results_writer *writer = owner;

	(void)fd;
	(void)what;
	writer->options.end(writer->options.owner, NULL);
}

static void on_sorted(void *owner, const struct rlmd_error *err)
{
	struct results_writer *writer = owner;

	writer->options.end(writer->options.owner, err);
}

void results_writer_end(struct results_writer *writer)
{
	if (writer->options.sort)
		writer->rewriter = rewriter_new(writer->options.store, writer->options.batch,
						writer->file, writer->traces, REWRITE_SORTED,
						on_sorted, writer);
	else
		loop_post(writer->ended);
}

/* --- its life ----------------------------------------------------------------------------- */

struct results_writer *results_writer_new(struct event_base *base,
					  const struct results_writer_options *options,
					  struct id_map *jobs, struct rlmd_error *err)
{
	struct results_writer *writer = xcalloc(1, sizeof *writer);

	writer->options = *options;
	writer->base = base;
	writer->jobs = jobs;
	writer->traces = traces_new(options->path);
	writer->ended = event_new(base, -1, 0, on_ended, writer);
	if (open_file(writer, err))
		return writer;
	results_writer_free(writer);
	return NULL;
}

void results_writer_free(struct results_writer *writer)
{
	if (!writer)
		return;
	collector_free(writer->collector);
	rerun_free(writer->rerun);
	rewriter_free(writer->rewriter);
	results_file_free(writer->file);
	traces_free(writer->traces);
	id_map_free(writer->jobs);
	event_free(writer->ended);
	free(writer);
}
