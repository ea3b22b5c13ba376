#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/sink.h"
#include "cli/tell.h"

enum {
	TRACE_MODE = 0600,   /* a trace holds all that the model was shown */
	PATIENCE_MS = 30000, /* with a reader who takes nothing while the run goes on */
};

struct output {
	enum output_form form;
	struct sink *sink; /* owned */
	char *trace_path;  /* owned */
	int trace;         /* owned, -1: none */
	bool result_told;
};

/* As a terminal may see it; `safe` holds it where `fd` is one. */
static struct rlmd_text presentable(int fd, struct rlmd_text text, struct evbuffer *safe)
{
	if (!isatty(fd))
		return text;
	text_escape_lines(text, safe);
	return text_in(safe);
}

/* JSON says the same with it, and a log of a pipeline has no command in it. */
static struct rlmd_text disarmed(struct rlmd_text json, struct evbuffer *safe)
{
	text_disarm(json, "\\u005b", safe);
	return text_in(safe);
}

static void write_trace(struct output *output, struct rlmd_text line)
{
	auto_evbuffer struct evbuffer *safe = buffer_new();
	struct rlmd_error err;

	if (output->trace < 0 ||
	    file_feed_fd(output->trace, presentable(output->trace, line, safe), PATIENCE_MS, &err))
		return;
	tell_warning("the trace %s is cut short: %s", output->trace_path, err.text);
	close(output->trace);
	output->trace = -1;
}

/* As it does where the run before was killed while it wrote. */
static bool ends_within_line(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char last;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	       pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

/* A link may lead to a device; to a file it may have been laid by somebody else. */
static bool open_trace_file(struct output *output, struct rlmd_error *err)
{
	const char *path = output->trace_path;
	int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
	struct stat seen, st;
	bool link;

	if (!file_may_write(path, &seen, RLMD_ERROR_USAGE, err))
		return error_context(err, "cannot write the trace");
	output->trace = open(path, flags | O_CREAT | O_NOFOLLOW, TRACE_MODE);
	link = output->trace < 0 && errno == ELOOP;
	if (link)
		output->trace = open(path, flags);
	if (output->trace < 0 || fstat(output->trace, &st))
		return error_errno(err, RLMD_ERROR_USAGE, "cannot write the trace to %s", path);
	if (file_descriptor_of(path) >= 0)
		return true;
	if (!S_ISREG(st.st_mode))
		return (seen.st_dev == st.st_dev && seen.st_ino == st.st_ino) ||
		       error_set(err, RLMD_ERROR_USAGE,
				 "cannot write the trace to %s: it was changed meanwhile", path);
	if (link)
		return error_set(
			err, RLMD_ERROR_USAGE,
			"cannot write the trace to %s: it is a symbolic link; name the file "
			"itself",
			path);
	return file_is_ours(output->trace, path, RLMD_ERROR_USAGE, err) ||
	       error_context(err, "cannot write the trace");
}

static bool open_trace(struct output *output, struct rlmd_error *err)
{
	bool cut = ends_within_line(output->trace_path);

	if (!open_trace_file(output, err))
		return false;
	if (cut)
		write_trace(output, text_of("\n"));
	return true;
}

struct output *output_new(enum output_form form, const char *path, const char *trace,
			  struct rlmd_error *err)
{
	struct output *output = xcalloc(1, sizeof *output);

	output->form = form;
	output->trace = -1;
	output->trace_path = xstrdup(trace);
	if ((trace && !open_trace(output, err)) ||
	    !(output->sink = sink_new(path, form == OUTPUT_JSON || form == OUTPUT_JSONL, err))) {
		output_free(output);
		return NULL;
	}
	return output;
}

void output_free(struct output *output)
{
	if (!output)
		return;
	if (output->trace >= 0)
		close(output->trace);
	sink_free(output->sink);
	free(output->trace_path);
	free(output);
}

/*
 * A job's log, of which a CI service takes lines for commands: GitHub's runner (and Gitea's,
 * Forgejo's) obeys "::add-mask::" and the like at the beginning of a line; it, Azure's and
 * TeamCity's obey "##[group]", "##vso[...]", "##teamcity[...]" anywhere. They read what a step
 * prints, and tell of themselves in its environment; nothing of a file is read.
 */
static bool is_job_log(int fd)
{
	static const char *const services[] = {"GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"};
	struct stat st;
	bool service = false;

	for (size_t i = 0; i < sizeof services / sizeof *services; i++)
		service = service || (getenv(services[i]) && *getenv(services[i]));
	return service && !fstat(fd, &st) && !S_ISREG(st.st_mode);
}

static bool is_visible_ascii(char c)
{
	return c > ' ' && c <= '~';
}

/* A carriage return ends a line, too, and white space before a command is any that Unicode has: all
 * beyond ASCII counts as such. */
static void disarm_lines(struct rlmd_text text, struct evbuffer *out)
{
	bool begins = true;
	size_t done = 0;

	for (size_t i = 0; i < text.size; i++) {
		char c = text.bytes[i];

		if (begins && c == ':' && i + 1 < text.size && text.bytes[i + 1] == ':') {
			buffer_add(out, text.bytes + done, i - done);
			buffer_add_printf(out, "\\x3a");
			done = i + 1;
		}
		begins = c == '\n' || c == '\r' || (begins && !is_visible_ascii(c));
	}
	buffer_add(out, text.bytes + done, text.size - done);
}

static void disarm_commands(struct rlmd_text text, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *lines = buffer_new();

	disarm_lines(text, lines);
	text_disarm(text_in(lines), "\\x5b", out);
}

static bool write_text(struct output *output, struct rlmd_text text, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *safe = buffer_new();

	return sink_write(output->sink, presentable(sink_fd(output->sink), text, safe), err);
}

bool output_text(struct output *output, struct rlmd_text text, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *safe = NULL;

	if (!is_job_log(sink_fd(output->sink)))
		return write_text(output, text, err);
	safe = buffer_new();
	disarm_commands(text, safe);
	if (evbuffer_get_length(safe) != text.size)
		tell_warning("what a CI service would take for commands is escaped on standard "
			     "output, with \\x3a and \\x5b; -o FILE gets it as it is");
	return write_text(output, text_in(safe), err);
}

bool output_is_result(struct rlmd_text event)
{
	return text_starts(event, "{\"event\":\"result\"");
}

bool output_has_events(const struct output *output)
{
	return output->trace >= 0 || output->form == OUTPUT_JSONL;
}

bool output_event(struct output *output, struct rlmd_text event, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *line = NULL, *safe = NULL, *plain = NULL;

	output->result_told |= output_is_result(event);
	if (!output_has_events(output))
		return true;
	line = buffer_new();
	safe = buffer_new();
	buffer_add(line, event.bytes, event.size);
	buffer_add(line, "\n", 1);
	write_trace(output, text_in(line));
	if (output->form != OUTPUT_JSONL)
		return true;
	plain = buffer_new();
	return sink_feed(output->sink,
			 presentable(sink_fd(output->sink), disarmed(text_in(line), plain), safe),
			 PATIENCE_MS, err);
}

static bool write_object(struct output *output, json_t *object, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *line = buffer_new(), *plain = buffer_new();
	json_auto_t *copy = json_copy(object);

	json_object_del(copy, "event");
	json_write_line(copy, line);
	return output_text(output, disarmed(text_in(line), plain), err);
}

static bool write_answer(struct output *output, struct rlmd_text answer, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *line = buffer_new();

	buffer_add(line, answer.bytes, answer.size);
	buffer_add(line, "\n", 1);
	return output->form == OUTPUT_REPORT ? write_text(output, text_in(line), err)
					     : output_text(output, text_in(line), err);
}

bool output_result(struct output *output, json_t *object, struct rlmd_text answer,
		   struct rlmd_error *err)
{
	if (!output->result_told && output_has_events(output)) {
		json_auto_t *event = json_pack("{s:s}", "event", "result");
		auto_free char *line = NULL;

		json_object_update(event, object);
		line = json_to_string(event);
		if (!output_event(output, text_of(line), err))
			return false;
	}
	switch (output->form) {
	case OUTPUT_ANSWER:
	case OUTPUT_REPORT:
		if (!answer.bytes)
			return true; /* not even an empty file */
		if (!write_answer(output, answer, err))
			return false;
		break;
	case OUTPUT_JSON:
		if (!write_object(output, object, err))
			return false;
		break;
	case OUTPUT_JSONL:
		break;
	}
	return output_commit(output, err);
}

bool output_commit(struct output *output, struct rlmd_error *err)
{
	return sink_commit(output->sink, true, err);
}

bool output_reader_gone(const struct output *output)
{
	return sink_reader_gone(output->sink);
}
