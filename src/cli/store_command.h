/*
 * cli/store_command.h - what commands that only look into a store go through: an event loop, until
 * they are done or a signal comes.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/config.h"

struct event_base;

/* Zero before its begin. */
struct store_command {
	struct config config;
	struct event_base *base; /* owned */
	bool ended;              /* its work said so */
	struct rlmd_error error; /* why it failed */
};

/* The settings of the command, which wants a store and no words. False: nothing is to be done, and
 * `ret_status` is the exit status. */
bool store_command_begin(struct store_command *, enum command_id, int argc, char **argv,
			 int *ret_status);
void store_command_done(struct store_command *);

/* It is over, as it should be or not. */
void store_command_end(struct store_command *, const struct rlmd_error *);

/* Waits for that. Returns the exit status: 0, that of the error, which is told, or of a signal. */
int store_command_wait(struct store_command *);

/* The password in the address of a store is not shown to who lists processes. */
void store_command_hide(int argc, char **argv);
