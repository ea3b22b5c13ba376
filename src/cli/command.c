#include "cli/command.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/config.h"
#include "cli/option.h"
#include "cli/print.h"
#include "cli/tell.h"

const struct command_row command_table[COMMAND_COUNT] = {
#define COMMAND(word, id, takes, what, head)                                                       \
	[COMMAND_##id] = {.name = #word,                                                           \
			  .arguments = takes,                                                      \
			  .summary = what,                                                         \
			  .help = head,                                                            \
			  .run = command_##word},
#include "cli/commands.def"
#undef COMMAND
};

enum command_id command_find(const char *name)
{
	enum command_id id = 0;

	while (id < COMMAND_COUNT && strcmp(command_table[id].name, name))
		id++;
	return id;
}

const char *command_nearest(const char *name)
{
	const char *names[COMMAND_COUNT];

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		names[i] = command_table[i].name;
	return option_nearest(name, names, COMMAND_COUNT);
}

int command_refuse(enum command_id command, const struct rlmd_error *err)
{
	const struct command_row *row = &command_table[command];

	tell_error("%s", err->text);
	if (err->kind == RLMD_ERROR_USAGE)
		tell_hint("usage: rlmd %s %s; 'rlmd %s --help' lists the options", row->name,
			  row->arguments, row->name);
	return rlmd_error_exit_status(err->kind);
}

static int show_help(enum command_id command)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	evbuffer_add_printf(out, "%s", command_table[command].help);
	option_help(out, command);
	return print_text(text_in(out));
}

bool command_begin(enum command_id command, struct config *config, int argc, char **argv,
		   int *ret_first, int *ret_status)
{
	struct rlmd_error err;

	config_init(config);
	if (!config_arguments(config, command, argc, argv, ret_first, &err))
		*ret_status = command_refuse(command, &err);
	else if (config->help)
		*ret_status = show_help(command);
	else if (config->version)
		*ret_status = print_version();
	else
		return true;
	return false;
}
