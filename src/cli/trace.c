/*
 * rlmd trace: the tree of a run, put together again from its trace file.
 */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/tell.h"
#include "engine/tree.h"

static const char usage[] =
	"usage: rlmd trace FILE\n\n"
	"Prints the tree of the run that wrote FILE (rlmd exec --trace FILE) as JSON, also where\n"
	"the run was killed.\n";

int cmd_trace(int argc, char **argv)
{
	struct error err;
	json_t *tree;
	int status;

	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")))
		return print_text(text_of(usage));
	if (argc > 1 && !strcmp(argv[1], "--")) {
		argc--;
		argv++;
	}
	if (argc != 2) {
		tell_error("trace needs one FILE; see 'rlmd trace --help'");
		return error_exit_status(ERROR_USAGE);
	}
	tree = tree_from_file(argv[1], &err);
	if (!tree) {
		tell_error("%s", err.text);
		return error_exit_status(err.kind);
	}
	status = print_json(tree);
	json_decref(tree);
	return status;
}
