/*
 * cli/command.h - the commands of the program, and how each begins.
 *
 * The table is cli/commands.def; a command has a file of its own. It gets its own
 * name as argv[0] and returns the exit status.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct config;

enum command_id {
#define COMMAND(name, id, ...) COMMAND_##id,
#include "cli/commands.def"
#undef COMMAND
	COMMAND_COUNT,
	COMMAND_ANY = COMMAND_COUNT, /* where any will do */
};

struct command_row {
	const char *name;      /* "exec" */
	const char *arguments; /* "[OPTIONS] TASK" */
	const char *summary;   /* in a line of `rlmd --help` */
	const char *help;      /* stands above its options in --help */
	int (*run)(int argc, char **argv);
};

extern const struct command_row command_table[COMMAND_COUNT];

#define COMMAND(name, ...) int command_##name(int argc, char **argv);
#include "cli/commands.def"
#undef COMMAND

/* The command of that name, or COMMAND_COUNT. */
enum command_id command_find(const char *name);

/* The name that is most like `name`, or NULL where none is near; static. */
const char *command_nearest(const char *name);

/*
 * Takes the arguments into `config`, which it makes; `ret_first` is the first one that is no
 * option. False: there is nothing more to do (help, a version, something wrong), and `ret_status`
 * is the command's exit status.
 */
bool command_begin(enum command_id, struct config *, int argc, char **argv, int *ret_first,
		   int *ret_status);

/* Says what is wrong with the command line or the input; returns the exit status. */
int command_refuse(enum command_id, const struct rlmd_error *);
