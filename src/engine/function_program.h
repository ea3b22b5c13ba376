/*
 * engine/function_program.h - a program that serves one call of a function.
 *
 * A process of its own, in a session of its own, without the keys that stand in our
 * environment: its input is the arguments, its output the answer.
 */
#pragma once

#include <event2/event.h>

#include "base/error.h"
#include "base/text.h"

struct function_program;

/* Once. `output` is lent; `err` is RLMD_ERROR_FUNCTION where the program failed. */
typedef void function_program_fn(void *owner, struct rlmd_text output,
				 const struct rlmd_error *err);

/* Its arguments are lent; the input is copied. NULL: it could not be started. Never calls back
 * before it returns. */
struct function_program *function_program_start(struct event_base *, const char *const *argv,
						struct rlmd_text input, function_program_fn *,
						void *owner, struct rlmd_error *);
void function_program_free(struct function_program *); /* kills it and its session; NULL is fine */
