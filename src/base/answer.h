/* base/answer.h - where the answer of a run came from. */
#pragma once

/* The names are those of the trace (`answerSource`). */
#define ANSWER_SOURCES(X)                                                                          \
	X(MISSING, "error")             /* there is none: the run ended with an error */           \
	X(FINAL_DIRECT, "final_direct") /* the model, or its code, said it */                      \
	X(FINAL_VAR, "final_var")       /* it is in a variable that they named */                  \
	X(FORCED, "forced")             /* it was asked for before the run was done */

enum answer_source {
#define X(source, name) ANSWER_##source,
	ANSWER_SOURCES(X)
#undef X
};

const char *answer_source_name(enum answer_source);
