#include "cli/input.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/wait.h"
#include "cli/job_settings.h"
#include "cli/option.h"
#include "cli/progress.h"
#include "cli/tell.h"

enum {
	LIST_SIZE_MAX = 256 << 20, /* bytes of --files-from */
	PATIENCE_MS = 3000
}; /* before it is said that somebody is waited for */

struct input_time input_time_from(int64_t allowed_ms)
{
	return (struct input_time){.allowed = allowed_ms, .deadline = clock_ms() + allowed_ms};
}

/* Says so when nothing comes: a pipe that nobody writes to looks like a program that hangs. */
static void await_stdin(const char *what, struct input_time time)
{
	int64_t soon = clock_ms() + PATIENCE_MS;
	char allowed[16];

	if (soon > time.deadline || wait_for(STDIN_FILENO, POLLIN, soon, 0) != WAIT_LATE)
		return;
	clock_format(time.allowed, allowed);
	tell("waiting for %s on standard input, for at most %s (--max-time); </dev/null where "
	     "there is none",
	     what, allowed);
}

/* Tells how to go on, where the time was over. */
static bool explain(const char *what, struct input_time time, struct rlmd_error *err)
{
	char allowed[16];

	clock_format(time.allowed, allowed);
	if (err->kind == RLMD_ERROR_BUDGET)
		error_limit(
			err, RLMD_STOP_MAX_TIME,
			"%s on standard input did not end within %s: give </dev/null where there "
			"is none, name a file instead, or allow more with --max-time",
			what, allowed);
	return false;
}

char *input_stdin(const char *what, size_t limit, struct input_time time, size_t *ret_size,
		  struct rlmd_error *err)
{
	auto_free char *bytes = xcalloc(limit + 2, 1);
	size_t size = 0, got;

	await_stdin(what, time);
	do {
		if (!file_take_fd(STDIN_FILENO, bytes + size, limit + 1 - size, time.deadline, &got,
				  err)) {
			error_context(err, "standard input");
			explain(what, time, err);
			return NULL;
		}
		size += got;
	} while (got && size <= limit);
	if (size > limit) {
		error_set(err, RLMD_ERROR_INPUT, "%s is longer than %zu bytes", what, limit);
		return NULL;
	}
	*ret_size = size;
	return take_pointer(&bytes);
}

bool input_check_words(const struct config *config, int count, char *const *words,
		       struct rlmd_error *err)
{
	if (!config->task_file && !count)
		return error_set(err, RLMD_ERROR_USAGE,
				 "there is no task: what shall be answered?");
	if (config->task_file && count)
		return error_set(err, RLMD_ERROR_USAGE,
				 "there are two tasks: '%s' and --task-file; give a context with "
				 "-c",
				 words[0]);
	return count <= 1 ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "'%s' is one word too many: put the task in quotes, and -c before each "
			 "context",
			 words[1]);
}

bool input_task(struct input *input, const struct config *config, const char *word,
		struct input_time time, struct rlmd_error *err)
{
	const char *from = config->task_file ? config->task_file : word;

	input->task_is_stdin = !strcmp(from, "-");
	if (input->task_is_stdin)
		input->task = input_stdin("the task", TASK_SIZE_MAX, time, &input->task_size, err);
	else if (config->task_file)
		input->task = file_read(from, TASK_SIZE_MAX, &input->task_size, err);
	else
		input->task = xstrndup(from, input->task_size = strlen(from));
	if (!input->task)
		return false;
	if (!text_trim(text_from(input->task, input->task_size)).size)
		return error_set(err, RLMD_ERROR_USAGE, "the task is empty");
	return true;
}

static bool is_stdin(const char *path)
{
	return path && !strcmp(path, "-");
}

static bool names_stdin(const char *source)
{
	const char *equals = strchr(source, '=');

	return !strcmp(source, "-") || (equals && !strcmp(equals, "=-"));
}

/* A terminal, /dev/null and the like are no input unless somebody says so. */
static bool stdin_holds_input(void)
{
	struct stat st;

	return !fstat(STDIN_FILENO, &st) &&
	       (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISREG(st.st_mode));
}

/* Bytes wait on standard input now. A pipe whose writer has not written yet has none: waiting for
 * it would hold up every run whose standard input is an idle pipe. */
static bool stdin_has_more(void)
{
	int waiting = 0;
	struct stat st;

	if (!stdin_holds_input() || fstat(STDIN_FILENO, &st))
		return false;
	if (S_ISREG(st.st_mode))
		return lseek(STDIN_FILENO, 0, SEEK_CUR) < st.st_size;
	return !ioctl(STDIN_FILENO, FIONREAD, &waiting) && waiting;
}

void input_imply_directory(struct config *config)
{
	static const enum option_id about[] = {
		OPTION_diff,          OPTION_include,    OPTION_exclude,
		OPTION_untracked,     OPTION_files_from, OPTION_recurse_submodules,
		OPTION_max_file_size,
	};
	const size_t count = sizeof about / sizeof *about;
	struct rlmd_error ignored;
	size_t i = 0;

	/* A setting in a file is for whoever names a directory. */
	while (i < count && config->layers[about[i]] != CONFIG_ARGUMENT)
		i++;
	if (config->contexts.count || i == count)
		return;
	config_set(config, CONFIG_ARGUMENT, OPTION_contexts, ".", &ignored);
	if (!is_stdin(config->files_from) && stdin_has_more())
		tell_warning("standard input is not read: --%s is about files of a directory, by "
			     "default of this one (-c .); -c - is standard input",
			     option_table[about[i]].name);
}

/* Whether a source is standard input, which must not be the task too. */
static bool find_stdin(const struct input *input, const struct config *config, bool *ret,
		       struct rlmd_error *err)
{
	const struct config_list *given = &config->contexts;

	*ret = false;
	for (size_t i = 0; i < given->count; i++)
		*ret |= names_stdin(given->items[i]);
	if (*ret && is_stdin(config->files_from))
		return error_set(err, RLMD_ERROR_USAGE,
				 "standard input cannot be both --files-from and a context");
	return !*ret || !input->task_is_stdin ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "standard input cannot be both the task and a context");
}

/* Names one a line, or with NULs between where there are any; cut in place. */
static void cut_list(struct input *input, size_t size)
{
	char *bytes = input->list, end = memchr(bytes, '\0', size) ? '\0' : '\n';

	input->files = xcalloc(size + 1, sizeof *input->files);
	for (size_t at = 0; at < size;) {
		char *stop = memchr(bytes + at, end, size - at);
		size_t next = stop ? (size_t)(stop - bytes) : size;

		bytes[next] = '\0';
		if (next > at)
			input->files[input->file_count++] = bytes + at;
		at = next + 1;
	}
}

static bool read_list(struct input *input, const struct config *config, struct input_time time,
		      struct rlmd_error *err)
{
	bool standard = is_stdin(config->files_from);
	size_t size;

	if (!config->files_from)
		return true;
	if (standard && input->task_is_stdin)
		return error_set(err, RLMD_ERROR_USAGE,
				 "standard input cannot be both the task and --files-from");
	input->list = standard ? input_stdin("--files-from", LIST_SIZE_MAX, time, &size, err)
			       : file_read(config->files_from, LIST_SIZE_MAX, &size, err);
	if (!input->list)
		return false;
	cut_list(input, size);
	return true;
}

static struct rlmd_context_options options_of(const struct input *input,
					      const struct config *config, struct input_time time)
{
	int64_t left = time.deadline - clock_ms();
	struct rlmd_context_options options = job_settings_context(config, left > 0 ? left : 1);

	options.progress = progress_loading;
	options.files = input->files;
	options.file_count = input->file_count;
	return options;
}

static bool load(struct input *input, const struct config *config, const char *const *sources,
		 size_t count, bool from_stdin, struct input_time time, struct rlmd_error *err)
{
	const struct rlmd_context_options options = options_of(input, config, time);
	char allowed[16];

	rlmd_context_unref(input->context);
	input->context = rlmd_context_load(sources, count, &options, err);
	progress_end();
	if (input->context)
		return true;
	if (from_stdin)
		return explain("a context", time, err);
	clock_format(time.allowed, allowed);
	if (err->kind == RLMD_ERROR_BUDGET)
		error_context(err, "the contexts, within %s (--max-time)", allowed);
	return false;
}

static bool is_there(const char *source)
{
	const char *equals = strchr(source, '=');

	return names_stdin(source) || !access(source, F_OK) ||
	       (equals && !access(equals + 1, F_OK));
}

bool input_seems_there(const struct config *config)
{
	const struct config_list *given = &config->contexts;
	size_t i = 0;

	while (i < given->count && is_there(given->items[i]))
		i++;
	return i == given->count;
}

/* Of the only one, which came from standard input. */
static bool is_empty(const struct input *input)
{
	struct rlmd_context_input read = {.size = sizeof read};

	return !rlmd_context_get_input(input->context, 0, &read) || !read.content.size;
}

static bool load_named(struct input *input, const struct config *config, bool from_stdin,
		       struct input_time time, struct rlmd_error *err)
{
	const struct config_list *given = &config->contexts;

	if (!load(input, config, (const char *const *)given->items, given->count, from_stdin, time,
		  err))
		return false;
	if (from_stdin && given->count == 1 && is_empty(input))
		tell_warning("standard input is empty, and so is the context");
	return true;
}

bool input_context(struct input *input, const struct config *config, struct input_time time,
		   struct rlmd_error *err)
{
	static const char *const piped[] = {"-"};
	bool from_stdin;

	if (!find_stdin(input, config, &from_stdin, err) || !read_list(input, config, time, err))
		return false;
	if (from_stdin)
		await_stdin("a context", time);
	if (config->contexts.count || input->task_is_stdin || is_stdin(config->files_from) ||
	    !stdin_holds_input())
		return load_named(input, config, from_stdin, time, err);
	await_stdin("a context", time);
	if (!load(input, config, piped, 1, true, time, err))
		return false;
	if (!is_empty(input))
		return true;
	tell_warning("standard input is empty: the task is asked without a context");
	return load(input, config, NULL, 0, false, time, err);
}

bool input_schema(struct input *input, const struct config *config, struct rlmd_error *err)
{
	if (!config->schema)
		return true;
	input->schema = file_read(config->schema, SCHEMA_SIZE_MAX, &input->schema_size, err);
	if (!input->schema) {
		err->kind = RLMD_ERROR_USAGE;
		return error_context(err, "--schema");
	}
	return text_trim(text_from(input->schema, input->schema_size)).size ||
	       error_set(err, RLMD_ERROR_USAGE, "--schema: %s is empty", config->schema);
}

void input_done(struct input *input)
{
	free(input->task);
	free(input->list);
	free(input->files);
	free(input->schema);
	rlmd_context_unref(input->context);
	*input = (struct input){0};
}
