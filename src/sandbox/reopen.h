/*
 * sandbox/reopen.h - the inputs of a worker, opened for it alone.
 */
#pragma once

/*
 * A description of its own of a sealed memory file, read-only: workers that share an input
 * must not share its position and flags. -1 and errno.
 */
int reopen(int file);
