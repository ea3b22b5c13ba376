/*
 * sandbox/launch.h - what the supervisor and the template say to each other.
 *
 * The only header that worker/_rlmd.c shares with the supervisor. The control
 * socket is of SOCK_SEQPACKET, one message a datagram:
 *
 *   template    {"hello": version}                   it is a Python that will do
 *   template    {"ready": modules} or {"error": text, "kind": name}
 *   supervisor  struct launch_request and the descriptors: in, out, files...
 *   template    struct launch_reply and a pidfd, once for each request, in order
 */
#pragma once

#include <stdint.h>

enum {
	LAUNCH_CONTROL = 3, /* descriptors of a template that was just started */
	LAUNCH_FILTER = 4,
	LAUNCH_FILES_MAX = 64,
	LAUNCH_TEXT_MAX = 4096, /* bytes of a JSON message */
};

struct launch_request {
	uint64_t sequence;
	uint64_t data_limit;    /* bytes: RLIMIT_DATA */
	uint64_t address_limit; /* bytes: RLIMIT_AS */
	int32_t supervisor;     /* the parent that the worker must have */
	uint32_t file_count;
};

struct launch_reply {
	uint64_t sequence;
	int32_t pid;
	int32_t error; /* errno; then there is no pidfd */
};

/*
 * Stands in the filter where the worker's own pid belongs; no pid is that
 * large. The worker replaces it, because its pid is known only after the fork.
 */
#define FILTER_OWN_PID  0x7a11c0deU
#define FILTER_CODE_MAX 1024 /* instructions */

/* A wall's place in walls.def, and the exit status of a worker where it does not stand. */
enum wall {
#define WALL(name, layer, meaning) WALL_##name,
#include "sandbox/walls.def"
#undef WALL
	WALL_COUNT
};
#define WALL_EXIT 100

/* The whole environment of a template, and so of a worker. */
#define LAUNCH_ENVIRONMENT                                                                         \
	"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "OPENBLAS_NUM_THREADS=1",          \
		"OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
