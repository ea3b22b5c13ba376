/*
 * review/anchor.h - where a finding belongs to: the lines that its quote stands on.
 *
 * A quote matches whole lines, or, where it matches none, a part of a line that no word is cut by.
 * White space at both ends of a line and the way it ends make no difference; everything else does.
 * Of several places those in changed lines come first, where it is known what was changed; then the
 * line that the model named chooses.
 *
 * A path that is none of the context's may be one written otherwise: "a/src/x.c", "/src/x.c",
 * "src\x.c", from another directory on. Of the files whose path ends as it does, or that are its
 * end, the one that has the quote is meant.
 */
#pragma once

#include "review/code.h"
#include "review/finding.h"
#include "review/ruleset.h"

/* Sets the anchoring, file, lines and number of occurrences of a finding. */
void anchor_find(struct code *, struct finding *);

/*
 * Each finding of an answer at its lines, with its rule's severity and its patch.
 *
 * There is an end to what is looked for (CODE_WORK_MAX), and whoever wrote the answer or the files
 * may bring it about: what may fail the gate comes first, patches, which fail nothing, come last.
 */
void anchor_all(struct findings *, struct code *, const struct ruleset *, bool only_changed);
