/*
 * base/block.h - eight bytes of a text looked at in one step.
 *
 * Each test answers with a mask that has the high bit of the bytes it means, so that masks can be
 * joined. Below the first byte that is meant all bits are exact; above it some may be wrong, for a
 * subtraction borrows. So: zero says that no byte is meant, block_first() which is the first.
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

/* What a string of JSON has as it is, and is ASCII. */
static inline bool block_is_plain(char c)
{
	unsigned char byte = (unsigned char)c;

	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* What a string of JSON cannot have as it is, or must be looked at for being UTF-8. */
static inline uint64_t block_not_plain(uint64_t block)
{
	return block_beyond_ascii(block) | block_below(block, 0x20) | block_equal(block, '"') |
	       block_equal(block, '\\');
}
