/*
 * base/digest.h - what identifies bytes: their SHA-256, in hexadecimal.
 */
#pragma once

#include "base/text.h"

enum { DIGEST_SIZE = 65 }; /* with the NUL */

/* Of several texts: each counts with its length, so that no other division of the same bytes has
 * the same digest. */
void digest_texts(const struct rlmd_text *texts, size_t count, char ret[static DIGEST_SIZE]);
