/*
 * pool/ranges.h - which files of its context a worker hands on to a sub-run.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "pool/worker.h"

/* JSON [input, first, count, ...], whose runs ascend; whether there are such files is not looked
 * at. `ret->ranges` is the caller's to free, also where it fails, with RLMD_ERROR_WORKER. */
bool ranges_read(struct rlmd_text json, struct worker_subset *ret, struct rlmd_error *);
