/*
 * review/patch.h - suggested changes, made into patches that `git apply --check` accepts.
 *
 * Of a model's unified diff only the lines are believed: where its old lines stand in the loaded
 * text is searched for, and the patch is written anew from that text, with right numbers and
 * context. A patch that cannot be placed, changes nothing, or touches other than loaded files is
 * dropped.
 */
#pragma once

#include "review/code.h"
#include "review/finding.h"

enum { PATCH_HUNKS_MAX = 200 };

/* Puts the new patch into the finding's place, or drops it and says why in `no_patch`. A patch
 * without a header is one of the finding's own file. */
void patch_check(struct code *, struct finding *);
