/*
 * batch/collector.h - results, from the store into the results file, as they come.
 *
 * The store is the truth: each result that it has is added to the file, from the first on, and the
 * file passes over those that it has already; so is the trace of each that failed. So a file that
 * was cut, or taken away, is whole again, and no job has two lines.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdint.h>

#include "batch/summary.h"

struct collector;
struct results_file;
struct store;
struct traces;

struct collector_hooks {
	/* All results that there were when collector_look() was called last are in the file. */
	void (*done)(void *owner);
	/* RLMD_ERROR_INTERNAL: the file cannot be written, or the store be read. Nothing more is
	 * told. */
	void (*failed)(void *owner, const struct rlmd_error *);
	void *owner;
};

/* The store, the file, which is open, and the traces are lent. */
struct collector *collector_new(struct store *, int64_t batch, struct results_file *,
				struct traces *, const struct collector_hooks *);
void collector_free(struct collector *); /* nothing is told any more; NULL is fine */

/* There may be more of them. The collector must not be freed from inside done(). */
void collector_look(struct collector *);

/* Adds what the results say that were collected so far. */
void collector_sum(const struct collector *, struct summary *);
