#include "cli/review_reports.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "cli/sink.h"
#include "cli/tell.h"

enum { FILES = 5, SUMMARY_MODE = 0600 };

struct review_reports {
	struct sink *files[FILES]; /* owned; NULL: not asked for */
	bool summary;              /* the step summary, where GitHub says its file */
};

/* The options that name files, and the format that goes there. */
static const struct {
	const char *name;
	size_t path; /* where its member stands in the settings */
	enum rlmd_review_format format;
} files[FILES] = {
	{"--sarif", offsetof(struct config, sarif), RLMD_REVIEW_SARIF},
	{"--junit", offsetof(struct config, junit), RLMD_REVIEW_JUNIT},
	{"--gitlab", offsetof(struct config, gitlab), RLMD_REVIEW_GITLAB},
	{"--rdjson", offsetof(struct config, rdjson), RLMD_REVIEW_RDJSON},
	{"--markdown", offsetof(struct config, markdown), RLMD_REVIEW_MARKDOWN},
};

static const char *path_of(const struct config *config, size_t i)
{
	return *(char *const *)((const char *)config + files[i].path);
}

static bool is_one_file(const char *path, const char *other)
{
	auto_free char *one = file_real_path(path), *two = file_real_path(other);

	return !strcmp(one, two);
}

/* An earlier report that this one would write over. */
static bool is_named_before(const struct config *config, size_t i, const char *path)
{
	for (size_t k = 0; k < i; k++)
		if (path_of(config, k) && is_one_file(path_of(config, k), path))
			return true;
	return config->output && is_one_file(config->output, path);
}

static bool open_file(struct review_reports *reports, const struct config *config, size_t i,
		      struct rlmd_error *err)
{
	const char *path = path_of(config, i);

	if (!path)
		return true;
	if (!strcmp(path, "-"))
		return error_set(err, RLMD_ERROR_USAGE,
				 "%s names a file: standard output has the findings",
				 files[i].name);
	if (is_named_before(config, i, path))
		return error_set(err, RLMD_ERROR_USAGE, "%s: %s is the file of another report, too",
				 files[i].name, path);
	reports->files[i] = sink_new(path, false, err);
	return reports->files[i] || error_context(err, "%s", files[i].name);
}

struct review_reports *review_reports_new(const struct config *config, struct rlmd_error *err)
{
	struct review_reports *reports = xcalloc(1, sizeof *reports);

	reports->summary = config->github;
	for (size_t i = 0; i < FILES; i++)
		if (!open_file(reports, config, i, err)) {
			review_reports_free(reports);
			return NULL;
		}
	return reports;
}

void review_reports_free(struct review_reports *reports)
{
	for (size_t i = 0; reports && i < FILES; i++)
		sink_free(reports->files[i]);
	free(reports);
}

static bool write_report(struct sink *sink, const struct rlmd_review *review,
			 enum rlmd_review_format format, struct rlmd_error *err)
{
	size_t size;
	auto_free char *text = rlmd_review_report(review, format, &size);

	return sink_write(sink, (struct rlmd_text){text, size}, err);
}

/* It is the job's file, which its steps add to. */
static bool add_summary(const char *path, struct rlmd_text text, struct rlmd_error *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (!file_may_write(path, &st, RLMD_ERROR_USAGE, err))
		return false;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		  SUMMARY_MODE);
	if (fd < 0)
		return error_errno(err, RLMD_ERROR_USAGE, "%s", path);
	return file_write_fd(fd, text, err);
}

static void write_summary(const struct rlmd_review *review)
{
	const char *path = getenv("GITHUB_STEP_SUMMARY");
	struct rlmd_error err;
	auto_free char *text = NULL;
	size_t size;

	if (!path || !*path)
		return;
	text = rlmd_review_report(review, RLMD_REVIEW_SUMMARY, &size);
	if (!add_summary(path, (struct rlmd_text){text, size}, &err))
		tell_warning("there is no step summary (GITHUB_STEP_SUMMARY): %s", err.text);
}

bool review_reports_write(struct review_reports *reports, const struct rlmd_review *review,
			  struct rlmd_error *err)
{
	for (size_t i = 0; i < FILES; i++)
		if (reports->files[i] &&
		    !write_report(reports->files[i], review, files[i].format, err))
			return error_context(err, "%s", files[i].name);
	for (size_t i = 0; i < FILES; i++)
		if (reports->files[i] && !sink_commit(reports->files[i], true, err))
			return error_context(err, "%s", files[i].name);
	if (reports->summary)
		write_summary(review);
	return true;
}
