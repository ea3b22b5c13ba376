/*
 * rlmd trace: the tree of a run, put together again from its trace file.
 */
#include <event2/buffer.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/tell.h"
#include "cli/trace_view.h"
#include "engine/tree.h"

static const char usage[] =
	"usage: rlmd trace [OPTIONS] FILE\n\n"
	"Shows the run that wrote FILE (rlmd exec --trace FILE), also where it was killed.\n"
	"FILE '-' is standard input. Of several runs in one file it shows the last.\n\n"
	"  -j, --json     its tree as JSON: what a pipe or a file gets by default\n"
	"  -t, --text     turns, code, calls, costs and times as text: what a terminal gets\n"
	"  -v, --verbose  whole texts, where --text shows the first lines\n"
	"  -h, --help     show this\n";

enum form { FORM_BY_OUTPUT, FORM_JSON, FORM_TEXT, FORM_HELP };

struct options {
	enum form form;
	bool whole;
	const char *path; /* lent by the arguments */
};

/* `options` is zero before it. */
static bool read_options(int argc, char **argv, struct options *options, struct rlmd_error *err)
{
	static const struct option names[] = {{"json", no_argument, NULL, 'j'},
					      {"text", no_argument, NULL, 't'},
					      {"verbose", no_argument, NULL, 'v'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	int code;

	opterr = 0;
	optind = 0; /* start anew, with glibc's own state too */
	while ((code = getopt_long(argc, argv, "jtvh", names, NULL)) != -1)
		switch (code) {
		case 'j':
			options->form = FORM_JSON;
			break;
		case 't':
			options->form = FORM_TEXT;
			break;
		case 'v':
			options->whole = true;
			break;
		case 'h':
			options->form = FORM_HELP;
			return true;
		default:
			return error_set(err, RLMD_ERROR_USAGE, "trace has no option '%s'",
					 argv[optind - 1]);
		}
	if (argc - optind != 1)
		return error_set(err, RLMD_ERROR_USAGE, "trace needs one FILE");
	options->path = argv[optind];
	return true;
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
	} while (got && evbuffer_get_length(lines) <= TREE_TRACE_MAX);
	if (!got)
		return tree_from_lines(text_in(lines), "standard input", err);
	error_set(err, RLMD_ERROR_INPUT, "the trace is larger than %zu bytes", TREE_TRACE_MAX);
	return NULL;
}

static int show(const json_t *tree, const struct options *options)
{
	auto_evbuffer struct evbuffer *out = NULL;

	if (options->form == FORM_JSON ||
	    (options->form == FORM_BY_OUTPUT && !isatty(STDOUT_FILENO)))
		return print_json(tree);
	out = evbuffer_new();
	trace_view_write(tree, options->whole, out);
	return print_text(text_in(out));
}

int cmd_trace(int argc, char **argv)
{
	struct options options = {0};
	json_auto_t *tree = NULL;
	struct rlmd_error err;

	if (!read_options(argc, argv, &options, &err)) {
		tell_error("%s; see 'rlmd help trace'", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	if (options.form == FORM_HELP)
		return print_text(text_of(usage));
	tree = strcmp(options.path, "-") ? tree_from_file(options.path, &err)
					 : tree_from_stdin(&err);
	if (!tree) {
		tell_error("%s", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	return show(tree, &options);
}
