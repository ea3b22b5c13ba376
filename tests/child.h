/*
 * tests/child.h - how a child that a test forked ends.
 *
 * Without the exit handlers of its parent; but where lines are counted (tools/coverage), those that
 * it ran count too.
 */
#pragma once

#include <unistd.h>

#ifdef RLMD_COUNTED
void __gcov_dump(void); /* gcc's */
#endif

__attribute__((noreturn)) static inline void child_exit(int status)
{
#ifdef RLMD_COUNTED
	__gcov_dump();
#endif
	_exit(status);
}
