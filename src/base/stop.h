/*
 * base/stop.h - why a run stopped, and what is said about it.
 *
 * One row a reason: the name that results show, and the sentence that the model and the user are
 * told where an answer is forced for it; of the budget's limits that is the budget's own (LIB-24).
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define STOP_REASONS(X)                                                                            \
	X(FINAL, "final", NULL)                                                                    \
	X(MAX_ITERATIONS, "max_iterations", "Max iterations reached")                              \
	X(MAX_COST, "max_cost", "Cost budget exhausted")                                           \
	X(MAX_TOKENS, "max_tokens", "Token budget exhausted")                                      \
	X(MAX_TIME, "max_time", "Time budget exhausted")                                           \
	X(MAX_CALLS, "max_calls", "Max calls reached")                                             \
	X(NO_CODE, "no_code", "three turns in a row had neither code nor an answer")               \
	X(INTERRUPTED, "interrupted", "Interrupted")                                               \
	X(PROVIDER_ERROR, "provider_error", NULL)                                                  \
	X(SANDBOX_ERROR, "sandbox_error", NULL)                                                    \
	X(REFUSED, "refused", NULL)

enum stop_reason {
#define X(reason, name, words) STOP_##reason,
	STOP_REASONS(X)
#undef X
};

const char *stop_name(enum stop_reason);
const char *stop_words(enum stop_reason); /* static; NULL: no answer is forced for it */

/* The reason with these words; STOP_FINAL where there is none. */
enum stop_reason stop_with_words(const char *words);

/* The reason of a run that ended with an error of this kind. */
enum stop_reason stop_of_error(enum rlmd_error_kind);

/* What is warned of where an answer was forced (ENG-20), and the kind of error where none was. */
const char *stop_warning(enum stop_reason);
enum rlmd_error_kind stop_error(enum stop_reason);
