/*
 * review/placing.h - each finding of an answer at its lines, with its rule's severity and its
 * patch.
 *
 * There is an end to what is looked for (CODE_WORK_MAX), and whoever wrote the answer or the files
 * may bring it about: what may fail the gate comes first, patches, which fail nothing, come last.
 */
#pragma once

#include "review/code.h"
#include "review/finding.h"
#include "review/ruleset.h"

void findings_place(struct findings *, struct code *, const struct ruleset *, bool only_changed);
