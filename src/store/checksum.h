/*
 * store/checksum.h - what tells that a row of a store is no more as it was written.
 *
 * Disks turn bits, and people edit. A sum is 63 bits of a SHA-256 and stands in the row itself, so
 * that it shows accidents, and not those who count it anew. It is never 0: rows of versions that
 * had no sums have that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/values.h"

int64_t checksum_of_name(const struct store_job *); /* number, custom_id, tenant, digest */
int64_t checksum_of_line(const struct store_job *); /* number, custom_id, tenant, line */

/* How the job of this id ended. */
int64_t checksum_of_end(int64_t job, enum store_state, const struct store_outcome *);

int64_t checksum_of_exchange(int64_t job, const struct store_exchange *);

/* Whether a row has its sum, or none. */
bool checksum_is(int64_t kept, int64_t sum);
