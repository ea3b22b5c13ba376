/*
 * sandbox/launch.h - what the supervisor and the template say to each other.
 *
 * With sandbox/steps.h all that worker/ shares with the supervisor. The control
 * socket is of SOCK_SEQPACKET, one message a datagram:
 *
 *   template    {"hello": version}                   it is a Python that will do
 *   supervisor  struct launch_terms
 *   template    {"ready": modules, "mode": number, "layers": bits, "maps": whether its workers
 *               can map texts, "failures": [...]}
 *               or {"failed": failures} where it is stuck in a mode that does not stand,
 *               or {"error": text, "kind": name}
 *   supervisor  struct launch_request and the descriptors: null, in, out, files...
 *   template    struct launch_reply and two descriptors, once for each request, in order:
 *               the pidfd, and the worker's /proc/PID/status where it got as far as to open it
 *
 * A failure is [mode, step, errno]. A trial is a worker that runs nothing: it
 * raises its walls, writes a struct launch_trial to its `out` and ends.
 */
#pragma once

#include <stdint.h>

enum {
	LAUNCH_CONTROL = 3, /* descriptors of a template that was just started */
	LAUNCH_FILTER = 4,
	LAUNCH_LIFE = 5,    /* a pipe that nobody writes to; hung up when the supervisor is gone */
	LAUNCH_STORE = 6,   /* an empty memory file, for modules that are not in the archive */
	LAUNCH_ARCHIVE = 7, /* where there is one: a file of modules (sandbox/archive.h) */
	LAUNCH_REPLY_FDS = 2,  /* of a reply: pidfd, status */
	LAUNCH_FILES_MAX = 96, /* 48 inputs, and the index of each */
	LAUNCH_OWN_FDS = 3,    /* descriptors before the files: null, in, out */
	LAUNCH_FDS_MAX = LAUNCH_OWN_FDS + LAUNCH_FILES_MAX,
	LAUNCH_TEXT_MAX = 4096,        /* bytes of a JSON message */
	LAUNCH_FAILURES_MAX = 24,      /* in one message */
	LAUNCH_THREADS = 256,          /* of a worker */
	LAUNCH_THREADS_OF_ALL = 16384, /* of all workers together */
	LAUNCH_ID_INSIDE = 65534,      /* uid and gid in a user namespace: nobody's */
};

/* A layer's row in layers.def; its bit in sets of them. */
enum layer {
#define LAYER(name, shown, meaning) LAYER_##name,
#include "sandbox/layers.def"
#undef LAYER
	LAYER_COUNT,
	LAYER_none = LAYER_COUNT,
	LAYER_whole_mode, /* of a step: all layers of the mode */
	LAYER_everything, /* of a step: without it there is no worker */
};
#define BIT(layer) (1U << LAYER_##layer)
#define NAMESPACES (BIT(mount) | BIT(pid) | BIT(net) | BIT(ipc) | BIT(uts) | BIT(cgroup))

/* Those that the supervisor keeps up, and a worker knows nothing of. */
#define SUPERVISED                                                                                 \
	(BIT(memory_group) | BIT(pids_group) | BIT(cpu_group) | BIT(uid_lock) | BIT(watch))

enum mode {
#define MODE(name, layers, meaning) MODE_##name,
#include "sandbox/modes.def"
#undef MODE
	MODE_COUNT
};

enum step {
#define STEP(name, loss, call, error, remedy) STEP_##name,
#include "sandbox/steps.def"
#undef STEP
	STEP_COUNT
};

/* A wall's row in walls.def, and the exit status of a worker where it does not stand. */
enum wall {
#define WALL(name, layer, meaning) WALL_##name,
#include "sandbox/walls.def"
#undef WALL
	WALL_COUNT
};
#define WALL_EXIT 100

struct launch_failure {
	uint16_t mode; /* that was tried */
	uint16_t step;
	int32_t error; /* errno */
};

/* The use that a template makes of LAUNCH_ARCHIVE. */
enum {
	LAUNCH_ARCHIVE_NONE,   /* nothing */
	LAUNCH_ARCHIVE_WANTED, /* nothing, but it makes an archive of what is in LAUNCH_STORE */
	LAUNCH_ARCHIVE_GIVEN,  /* it is sound, and to be used */
};

#define LAUNCH_ARCHIVE_MAGIC "rlmdlib1" /* without the NUL */

/* How an archive begins; each part ends where the next begins (worker/library.py). */
struct launch_archive {
	char magic[8];
	uint64_t size; /* of all of it, the checksum that stands behind it aside */
	uint64_t index, stamps;
};

struct launch_terms {
	uint64_t without; /* steps that are to fail, a bit each */
	uint32_t modes;   /* that may be tried, a bit each */
	uint32_t uid;     /* one of the supervisor's range, or 0 */
	uint32_t archive; /* LAUNCH_ARCHIVE_* */
	uint32_t unused;
};

struct launch_request {
	uint64_t sequence;
	uint64_t data_limit;    /* bytes: RLIMIT_DATA */
	uint64_t address_limit; /* bytes: RLIMIT_AS */
	uint32_t layers;        /* that must stand, a bit each */
	uint32_t uid;           /* of its own, or 0 */
	uint32_t threads;       /* RLIMIT_NPROC, or 0 */
	uint32_t cpu_seconds;   /* RLIMIT_CPU */
	int32_t parent;         /* its getppid() */
	uint32_t trial;         /* 1: it is one */
	uint32_t file_count;
};

struct launch_reply {
	uint64_t sequence;
	int32_t pid;
	int32_t error; /* errno; then there are no descriptors */
};

struct launch_trial {
	uint32_t layers; /* that stand, a bit each; the template's too */
	int32_t fallen;  /* the wall that does not stand though it must, or -1 */
	uint32_t failure_count;
	struct launch_failure failures[LAUNCH_FAILURES_MAX];
};

/*
 * Stands in the filter where the worker's own pid belongs; no pid is that
 * large. The worker replaces it, because its pid is known only after the fork.
 */
#define FILTER_OWN_PID  0x7a11c0deU
#define FILTER_CODE_MAX 1024 /* instructions */

/* The whole environment of a template, and so of a worker. */
#define LAUNCH_ENVIRONMENT                                                                         \
	"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "OPENBLAS_NUM_THREADS=1",          \
		"OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
