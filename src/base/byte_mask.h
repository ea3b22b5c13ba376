/*
 * base/byte_mask.h - 64 bytes of a text as masks, a bit for each byte, the first one's the lowest.
 *
 * What they are is told of 16 at a time, which every processor we know takes at once: a comparison
 * of vectors has all bits of a byte set or none. What stands behind what is then a shift, how many
 * there are a popcount, and how long a run is a count of zeros.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/block.h"

enum { BYTE_MASK_SIZE = 64, BYTE_VECTOR_SIZE = 16 };

typedef signed char byte_vector __attribute__((vector_size(BYTE_VECTOR_SIZE)));
typedef uint64_t byte_words __attribute__((vector_size(BYTE_VECTOR_SIZE)));

static inline byte_vector byte_vector_load(const char *at)
{
	byte_vector vector;

	memcpy(&vector, at, sizeof vector);
	return vector;
}

/* A bit of each byte, all of whose bits are the same. */
static inline uint64_t byte_mask_gather(byte_vector all)
{
	static const byte_vector places = {1, 2, 4, 8, 16, 32, 64, -128,
					   1, 2, 4, 8, 16, 32, 64, -128};
	byte_words bits = (byte_words)(all & places);

	return bits[0] * BLOCK_EACH >> 56 | bits[1] * BLOCK_EACH >> 56 << 8;
}

/* Whether all 64 are ASCII. */
static inline bool byte_mask_is_ascii(const char *at)
{
	byte_words all = (byte_words)(byte_vector_load(at) | byte_vector_load(at + 16) |
				      byte_vector_load(at + 32) | byte_vector_load(at + 48));

	return !block_beyond_ascii(all[0] | all[1]);
}
