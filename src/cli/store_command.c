#include "cli/store_command.h"

#include <event2/event.h>
#include <string.h>

#include "base/address.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/tell.h"

void store_command_hide(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(argv[i], "postgres"))
			address_hide(argv[i]);
}

static bool check(const struct store_command *command, int words, struct rlmd_error *err)
{
	if (words)
		return error_set(err, RLMD_ERROR_USAGE, "there are %d words too many", words);
	return command->config.store ||
	       error_set(err, RLMD_ERROR_USAGE, "--store says where the jobs are, and is missing");
}

bool store_command_begin(struct store_command *command, enum command_id id, int argc, char **argv,
			 int *ret_status)
{
	struct rlmd_error err;
	int first;

	if (!command_begin(id, &command->config, argc, argv, &first, ret_status))
		return false;
	store_command_hide(argc, argv);
	if (!check(command, argc - first, &err)) {
		*ret_status = command_refuse(id, &err);
		return false;
	}
	command->base = loop_new();
	return true;
}

void store_command_done(struct store_command *command)
{
	if (command->base)
		event_base_free(command->base);
	config_done(&command->config);
}

void store_command_end(struct store_command *command, const struct rlmd_error *err)
{
	if (err)
		command->error = *err;
	command->ended = true;
	event_base_loopbreak(command->base);
}

static void on_signal(evutil_socket_t fd, short what, void *owner)
{
	struct store_command *command = owner;

	(void)fd;
	(void)what;
	event_base_loopbreak(command->base);
}

int store_command_wait(struct store_command *command)
{
	struct event *signals = event_new(command->base, interrupt_fd(), EV_READ, on_signal,
					  command);

	event_add(signals, NULL);
	event_base_dispatch(command->base);
	event_free(signals);
	if (!command->ended)
		return 128 + interrupt_signal();
	if (!command->error.kind)
		return 0;
	tell_error("%s", command->error.text);
	return rlmd_error_exit_status(command->error.kind);
}
