#include "cli/command.h"

#include <rlmd/price.h>
#include <rlmd/rlmd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/config.h"
#include "cli/option.h"
#include "cli/output.h"
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

int command_print(struct rlmd_text text)
{
	struct rlmd_error err = {0};
	struct output *output = output_new(OUTPUT_ANSWER, NULL, NULL, &err);
	bool ok = output && output_text(output, text, &err);

	if (!ok && !(output && output_reader_gone(output)))
		tell_error("%s", err.text);
	output_free(output);
	return rlmd_error_exit_status(err.kind);
}

int command_print_json(const json_t *value)
{
	auto_free char *dump = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY |
							 JSON_REAL_PRECISION(JSON_DIGITS));
	auto_free char *line = xasprintf("%s\n", dump);

	return command_print(text_of(line));
}

int command_print_version(void)
{
	struct rlmd_price_table *prices = rlmd_price_table_open(NULL, NULL);
	auto_free char *line = xasprintf("rlmd %s (prices of %s)\n", RLMD_VERSION,
					 prices ? rlmd_price_table_date(prices)
						: "no date: none found");

	rlmd_price_table_unref(prices);
	return command_print(text_of(line));
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

static int show_help(enum command_id command, bool all)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	buffer_add_printf(out, "%s", command_table[command].help);
	option_help(out, command, all);
	return command_print(text_in(out));
}

bool command_begin(enum command_id command, struct config *config, int argc, char **argv,
		   int *ret_first, int *ret_status)
{
	struct rlmd_error err;

	config_init(config);
	if (!config_arguments(config, command, argc, argv, ret_first, &err))
		*ret_status = command_refuse(command, &err);
	else if (config->help || config->help_all)
		*ret_status = show_help(command, config->help_all);
	else
		return true;
	return false;
}
