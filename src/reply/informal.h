/*
 * reply/informal.h - answers that are clear, though no marker leads a line.
 *
 * Of a reply without code: the marker in a code span or a fence that stands alone, \boxed{...} at
 * the end, or what stands behind the words "Final answer". informal.c has the rules.
 */
#pragma once

#include "base/text.h"
#include "reply/markdown.h"
#include "reply/marker.h"

/* As marker_find(), of a text in which that found none. Linear in the size of the text. */
struct marker informal_find(struct rlmd_text, const struct markdown *);
