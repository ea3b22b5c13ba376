/*
 * review/fingerprint.h - what a finding is known by in later reviews, wherever its lines have
 * moved.
 *
 * `fingerprint` is of the rule, the path, the lines as they stand in the file (trimmed) and, where
 * several findings have all of that, which of them it is: it survives lines that move within a
 * file. `surroundings` is of the rule and the lines with three lines that are not empty before and
 * after them: it survives a file that is renamed, and code that moves to another file with what is
 * around.
 */
#pragma once

#include "review/finding.h"

/* Of all that are anchored; the list is sorted. */
void fingerprint_all(struct findings *);
