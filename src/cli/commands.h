/*
 * cli/commands.h - the commands of the program, one file each.
 *
 * A command gets its own name as argv[0] and returns the exit status.
 */
#pragma once

int cmd_doctor(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_trace(int argc, char **argv);
