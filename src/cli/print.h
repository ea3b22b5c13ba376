/*
 * cli/print.h - what a command prints besides answers: help, versions, documents.
 */
#pragma once

#include <jansson.h>

#include "base/text.h"

/* To standard output, escaped for a terminal. Both return the command's exit status, and have
 * said what went wrong. */
int print_text(struct rlmd_text);
int print_json(const json_t *); /* indented */

/* The version, and which prices it knows. */
int print_version(void);
