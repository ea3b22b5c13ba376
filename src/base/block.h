/*
 * base/block.h - the bytes of a text looked at 8 or 64 at a time, and its characters.
 *
 * For the loops that every text goes through. Of 8 bytes each test answers with a mask that has the
 * high bit of the bytes it means, so that masks can be joined. Below the first byte that is meant
 * all bits are exact; above it some may be wrong, for a subtraction borrows. So: zero says that no
 * byte is meant, block_first() which is the first.
 */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = sizeof(uint64_t) };

#define BLOCK_EACH UINT64_C(0x0101010101010101) /* times a byte: that byte in all places */
#define BLOCK_HIGH UINT64_C(0x8080808080808080)

static inline uint64_t block_load(const char *at)
{
	uint64_t block;

	memcpy(&block, at, sizeof block);
	return le64toh(block);
}

/* Bytes that are not ASCII. */
static inline uint64_t block_beyond_ascii(uint64_t block)
{
	return block & BLOCK_HIGH;
}

/* Bytes below `bound`, which is at most 128. */
static inline uint64_t block_below(uint64_t block, unsigned char bound)
{
	return (block - BLOCK_EACH * bound) & ~block & BLOCK_HIGH;
}

static inline uint64_t block_equal(uint64_t block, char c)
{
	return block_below(block ^ BLOCK_EACH * (unsigned char)c, 1);
}

/* Bytes before the first that the mask means, which is one at least. */
static inline size_t block_first(uint64_t mask)
{
	return (size_t)__builtin_ctzll(mask) / 8;
}

/* An ASCII character that stands in a JSON string without an escape. */
static inline bool block_is_plain(char c)
{
	unsigned char byte = (unsigned char)c;

	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Bytes that need an escape in a JSON string, or that may not be UTF-8. */
static inline uint64_t block_not_plain(uint64_t block)
{
	return block_beyond_ascii(block) | block_below(block, 0x20) | block_equal(block, '"') |
	       block_equal(block, '\\');
}

/*
 * 64 bytes as masks, a bit for each byte, the first one's the lowest. Kinds of bytes are told of 16
 * at a time, which every processor we know takes at once: a comparison of vectors has all bits of a
 * byte set or none. A neighbour is then a shift, a number a popcount, a run a count of zeros.
 */
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
	static const byte_vector bits_of_bytes = {1, 2, 4, 8, 16, 32, 64, -128,
						  1, 2, 4, 8, 16, 32, 64, -128};
	byte_words bits = (byte_words)(all & bits_of_bytes);

	return bits[0] * BLOCK_EACH >> 56 | bits[1] * BLOCK_EACH >> 56 << 8;
}

/* Whether all 64 are ASCII. */
static inline bool byte_mask_is_ascii(const char *at)
{
	byte_words all = (byte_words)(byte_vector_load(at) | byte_vector_load(at + 16) |
				      byte_vector_load(at + 32) | byte_vector_load(at + 48));

	return !block_beyond_ascii(all[0] | all[1]);
}

static inline int utf8_goes_on(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* The bytes of the valid sequence of several bytes at `s`, of which `left` are there; else 0. */
static inline size_t utf8_sequence(const char *at, size_t left)
{
	const unsigned char *s = (const unsigned char *)at;

	if (s[0] < 0xe0)
		return s[0] >= 0xc2 && left >= 2 && utf8_goes_on(s[1]) ? 2 : 0;
	if (s[0] < 0xf0) { /* no longer than need be, and no surrogate */
		if (left < 3 || !utf8_goes_on(s[1]) || !utf8_goes_on(s[2]))
			return 0;
		return (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ? 0 : 3;
	}
	if (s[0] > 0xf4 || left < 4 || !utf8_goes_on(s[1]) || !utf8_goes_on(s[2]) ||
	    !utf8_goes_on(s[3]))
		return 0;
	return (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ? 0 : 4;
}

/* The code point of a valid sequence of so many bytes, 1 to 4. */
static inline uint32_t utf8_point(const char *at, size_t size)
{
	uint32_t point = (unsigned char)*at & (size == 1 ? 0x7f : 0x7f >> size);

	for (size_t i = 1; i < size; i++)
		point = point << 6 | ((unsigned char)at[i] & 0x3f);
	return point;
}
