/*
 * read.h - reads replies, and compares what is found in them.
 *
 * docs/replies.md has the rules. In the tables of the tests, replies as models and libraries have
 * written them stand before their twins: texts that look like them and are something else.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "reply/response.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

void assert_text(struct rlmd_text, const char *expected, const char *input);

/* Reads `input` and compares its blocks, joined by a line "--". */
void assert_code(const char *input, bool cut, const char *expected);

void assert_answer(const char *input, bool cut, enum rlmd_answer_kind, const char *expected);

struct row {
	const char *input, *expected;
};

/* A reply; its blocks, joined by a line "--"; its answer; its thinking. NULL: not looked at. */
struct reading {
	const char *input, *code, *answer, *thinking;
};

void assert_reading(const struct reading *);

#define ASSERT_READINGS(rows)                                                                      \
	for (size_t i = 0; i < COUNT(rows); i++)                                                   \
	assert_reading(&(rows)[i])
