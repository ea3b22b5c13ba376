/*
 * base/digest.h - what identifies bytes: their SHA-256.
 */
#pragma once

#include "base/text.h"

enum {
	DIGEST_BYTES = 32,
	DIGEST_SIZE = 2 * DIGEST_BYTES + 1, /* in hexadecimal, with the NUL */
};

/* Of several texts: each counts with its length, so that no other division of the same bytes has
 * the same digest. */
void digest_texts(const struct rlmd_text *texts, size_t count, char ret[static DIGEST_SIZE]);

/* Of the bytes of one text, and nothing else: what sha256sum(1) shows. */
void digest_bytes(struct rlmd_text, unsigned char ret[static DIGEST_BYTES]);

/* The same as digest_texts(), of texts that come one after the other. */
struct digest;

struct digest *digest_new(void);
void digest_add(struct digest *, struct rlmd_text);
void digest_end(struct digest *, char ret[static DIGEST_SIZE]); /* frees it */
void digest_free(struct digest *);                              /* NULL is fine */
