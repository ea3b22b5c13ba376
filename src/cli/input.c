#include "cli/input.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/tell.h"

enum { PATIENCE_MS = 3000 }; /* before it is said that somebody is waited for */

/* Says so when nothing comes: a pipe that nobody writes to looks like a program that hangs. */
static void await_stdin(const char *what)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	if (!poll(&in, 1, PATIENCE_MS))
		tell("waiting for %s on standard input (</dev/null where there is none)", what);
}

char *input_stdin(const char *what, size_t limit, size_t *ret_size, struct error *err)
{
	char *bytes = xcalloc(limit + 2, 1);
	size_t size = 0;

	await_stdin(what);
	while (size <= limit) {
		ssize_t got = read(STDIN_FILENO, bytes + size, limit + 1 - size);

		if (got < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, -1);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0) {
			error_errno(err, ERROR_INPUT, "cannot read standard input");
			free(bytes);
			return NULL;
		}
		if (!got)
			break;
		size += (size_t)got;
	}
	if (size > limit) {
		error_set(err, ERROR_INPUT, "%s is longer than %zu bytes", what, limit);
		free(bytes);
		return NULL;
	}
	*ret_size = size;
	return bytes;
}

bool input_task(struct input *input, const struct config *config, int count, char *const *words,
		struct error *err)
{
	const char *from = config->task_file ? config->task_file : count ? words[0] : NULL;

	if (!from)
		return error_set(err, ERROR_USAGE, "there is no task: what shall be answered?");
	if (config->task_file && count)
		return error_set(err, ERROR_USAGE,
				 "there are two tasks: '%s' and --task-file; give a context with "
				 "-c",
				 words[0]);
	if (count > 1)
		return error_set(err, ERROR_USAGE,
				 "'%s' is one word too many: put the task in quotes, and -c before "
				 "each context",
				 words[1]);
	input->task_is_stdin = !strcmp(from, "-");
	if (input->task_is_stdin)
		input->task = input_stdin("the task", TASK_SIZE_MAX, &input->task_size, err);
	else if (config->task_file)
		input->task = file_read(from, TASK_SIZE_MAX, &input->task_size, err);
	else
		input->task = xstrndup(from, input->task_size = strlen(from));
	if (!input->task)
		return false;
	if (!text_trim(text_from(input->task, input->task_size)).size)
		return error_set(err, ERROR_USAGE, "the task is empty");
	return true;
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

bool input_context(struct input *input, const struct config *config, struct error *err)
{
	static const char *const piped[] = {"-"};
	const struct config_list *given = &config->contexts;

	for (size_t i = 0; i < given->count; i++) {
		if (!names_stdin(given->items[i]))
			continue;
		if (input->task_is_stdin)
			return error_set(err, ERROR_USAGE,
					 "standard input cannot be both the "
					 "task and a context");
		await_stdin("a context");
	}
	if (given->count || input->task_is_stdin || !stdin_holds_input())
		return context_load((const char *const *)given->items, given->count,
				    &input->context, err);
	await_stdin("a context");
	if (!context_load(piped, 1, &input->context, err))
		return false;
	if (memfile_size(input->context.inputs[0].file))
		return true;
	context_done(&input->context);
	return context_load(NULL, 0, &input->context, err);
}

void input_done(struct input *input)
{
	free(input->task);
	context_done(&input->context);
	*input = (struct input){0};
}
