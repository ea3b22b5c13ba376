/*
 * cli/command.h - the commands of the program, and how each begins.
 *
 * The table is cli/commands.def. A command gets the words of its command line that are no options,
 * up to a NULL, and returns the exit status; session_command() calls it.
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"

struct config;
struct session;

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
	int (*run)(struct session *, int count, char **words);
};

extern const struct command_row command_table[COMMAND_COUNT];

#define COMMAND(name, ...) int command_##name(struct session *, int count, char **words);
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

/* Print what is no answer: help, documents. To standard output, escaped for a terminal. All return
 * the command's exit status, and have said what went wrong. */
int command_print(struct rlmd_text);
int command_print_json(const json_t *); /* indented */
int command_print_version(void);        /* and which prices it knows */

/* Says what is wrong with the command line or the input; returns the exit status. */
int command_refuse(enum command_id, const struct rlmd_error *);
