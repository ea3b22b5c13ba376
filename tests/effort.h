/*
 * tests/effort.h - how much a test tries.
 *
 * $SLOW_TOOL is set where a tool like valgrind makes everything fifty times slower: it sees as much
 * in some of the cases as in all of them.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

static inline size_t effort(size_t usual, size_t slow)
{
	return getenv("SLOW_TOOL") ? slow : usual;
}
