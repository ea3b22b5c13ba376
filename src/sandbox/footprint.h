/*
 * sandbox/footprint.h - what a process uses, read from its /proc/PID/status.
 *
 * A worker opens that file itself and hands the descriptor over: a /proc mounted with
 * hidepid shows an undumpable process to nobody else, not even to its own user. A read
 * asks nobody again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct footprint {
	int64_t memory; /* bytes that no file stands behind, swapped out or not; 0: it has ended */
	int64_t threads;
};

/* Of an open status file. False and errno where the process is gone, or `status` is -1. */
bool footprint_read(int status, struct footprint *);

/* Of its content. */
struct footprint footprint_parse(const char *content);
