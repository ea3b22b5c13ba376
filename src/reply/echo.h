/*
 * reply/echo.h - where a model goes on with our side of the conversation.
 *
 * A model that is not stopped writes what it expects to be told next: the output of its code, our
 * headings, another turn. All that follows is invented, so the reply ends there. echo.c has the
 * words.
 */
#pragma once

#include "base/text.h"
#include "reply/markdown.h"

/* Where the reply ends; the text's size where it has no such thing. */
size_t echo_find(struct rlmd_text, const struct markdown *);
