/*
 * review/anchor.h - where a finding belongs to: the lines that its quote stands on.
 *
 * A quote matches whole lines, or, where it matches none, a part of a line that no word is cut by.
 * White space at both ends of a line and the way it ends make no difference; everything else does.
 * The line that the model named only chooses between several places.
 */
#pragma once

#include "review/code.h"
#include "review/finding.h"

/* Sets the place, file, lines and number of occurrences of a finding. */
void anchor_find(struct code *, struct finding *);
