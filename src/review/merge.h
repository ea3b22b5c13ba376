/*
 * review/merge.h - findings that say the same thing of the same place become one.
 *
 * They do where the rule and the file are the same, and both begin on the same line, or the lines
 * of one lie within the few of the other; of those that have no lines, where the quote is the same.
 * The worst severity, the highest confidence and the first patch stay, of the most certain one its
 * message.
 */
#pragma once

#include "review/finding.h"

void findings_merge(struct findings *);
