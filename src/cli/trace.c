/*
 * rlmd trace: the tree of a run, put together again from its trace file.
 */
#include <event2/buffer.h>
#include <rlmd/trace.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/wait.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/print.h"
#include "cli/tell.h"
#include "cli/trace_view.h"

#define TRACE_MAX ((size_t)2 << 30) /* bytes of a trace */

static json_t *tree_of(struct rlmd_text lines, const char *name, struct rlmd_error *err)
{
	auto_free char *tree = rlmd_trace_tree(lines, name, err);

	return tree ? json_loads(tree, JSON_ALLOW_NUL, NULL) : NULL;
}

static json_t *tree_from_file(const char *path, struct rlmd_error *err)
{
	size_t size;
	auto_free char *bytes = file_read(path, TRACE_MAX, &size, err);

	return bytes ? tree_of(text_from(bytes, size), path, err) : NULL;
}

static json_t *tree_from_stdin(struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *lines = evbuffer_new();
	char piece[1 << 16];
	size_t got;

	do {
		if (!file_take_fd(STDIN_FILENO, piece, sizeof piece, WAIT_FOREVER, &got, err)) {
			error_context(err, "standard input");
			return NULL;
		}
		evbuffer_add(lines, piece, got);
	} while (got && evbuffer_get_length(lines) <= TRACE_MAX);
	if (!got)
		return tree_of(text_in(lines), "standard input", err);
	error_set(err, RLMD_ERROR_INPUT, "the trace is larger than %zu bytes", TRACE_MAX);
	return NULL;
}

static int show(const json_t *tree, const struct config *config)
{
	auto_evbuffer struct evbuffer *out = NULL;

	if (config->tree_json || (!config->tree_text && !isatty(STDOUT_FILENO)))
		return print_json(tree);
	out = evbuffer_new();
	trace_view_write(tree, config->tree_whole, out);
	return print_text(text_in(out));
}

static bool check(const struct config *config, int words, struct rlmd_error *err)
{
	if (config->tree_json && config->tree_text)
		return error_set(err, RLMD_ERROR_USAGE, "--json and --text exclude each other");
	return words == 1 || error_set(err, RLMD_ERROR_USAGE, "trace needs one FILE");
}

/* No settings are read: what was traced can be looked at whatever they are. */
static int run(struct config *config, int argc, char **argv)
{
	json_auto_t *tree = NULL;
	struct rlmd_error err;
	int first, status;

	if (!command_begin(COMMAND_TRACE, config, argc, argv, &first, &status))
		return status;
	if (!check(config, argc - first, &err))
		return command_refuse(COMMAND_TRACE, &err);
	tree = strcmp(argv[first], "-") ? tree_from_file(argv[first], &err) : tree_from_stdin(&err);
	if (tree)
		return show(tree, config);
	tell_error("%s", err.text);
	return rlmd_error_exit_status(err.kind);
}

int command_trace(int argc, char **argv)
{
	struct config config;
	int status = run(&config, argc, argv);

	config_done(&config);
	return status;
}
