/* batch/results_private.h - a results file, for what is done with it as a whole. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "batch/line_reader.h"
#include "batch/results_file.h"

struct event;
struct syncer;

struct results_file {
	struct results_file_hooks hooks;
	char *path;                /* owned */
	const struct id_map *jobs; /* lent until it is open; NULL: any may be there */
	struct id_map *ids;        /* owned: where each line begins */
	struct line_reader reader; /* until it is open */
	struct event *step;        /* owned: likewise */
	struct syncer *syncer;     /* owned */
	struct rlmd_error error;   /* why it is not open */
	off_t size;                /* of what is whole */
	uint64_t lines, cut;
	uint64_t kept;    /* lines that are on the disk */
	uint64_t syncing; /* that are, when the sync under way has ended; 0: none is */
	int fd;           /* owned */
	bool opening;
	bool whole; /* false: behind `size` is the rest of a line */
};
