/*
 * rlmd/sandbox.h - python3 workers behind walls of the kernel, in which code runs.
 *
 * A sandbox starts workers of one interpreter, with one set of preloaded modules
 * and one limit of memory. Sandboxes belong to an engine (rlmd/engine.h), which
 * has one for the same options; its jobs share them. docs/security.md in the
 * source describes the walls.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_sandbox;

/* The sandbox is ready, or has failed to start. Called from the loop. */
typedef void rlmd_sandbox_ready_fn(void *owner);

struct rlmd_sandbox_options {
	size_t size;
	const char *python;         /* a path, or a name in PATH; NULL: "python3" */
	const char *const *preload; /* modules, up to a NULL; or NULL: none */
	size_t worker_memory;       /* bytes of one worker without its inputs; 0: 1 GiB */
	size_t pool_memory;  /* bytes of all workers together; 0: half of this process's limit */
	uint32_t first_uid;  /* of workers, if this process is root; 0: 2,100,000,000 */
	const char *require; /* "L1".."L4": a lower level is an error; NULL: any level */
	unsigned pool_parts; /* if pool_memory is 0: the number of sandboxes that share that half;
				0: one */
};

#define RLMD_SANDBOX_OPTIONS_INIT RLMD_INIT(struct rlmd_sandbox_options)

/*
 * The `sandbox` of results: {"level", "mode", "layers": [name...], "absent": [{"layer", "call",
 * "errno", "remedy"}...]}, as one line of JSON. The caller frees it.
 */
RLMD_API char *rlmd_sandbox_report(const struct rlmd_sandbox *);

/* "L1": sealed; "L2": with namespaces or Landlock; "L3": with both; "L4": with cgroups too.
 * Static. */
RLMD_API const char *rlmd_sandbox_level(const struct rlmd_sandbox *);

/* The purpose of a layer of the report, as a clause; NULL: there is no such layer. Static. */
RLMD_API const char *rlmd_sandbox_meaning(const char *layer);

/*
 * The range of uids for workers of a sandbox with that `first_uid`, if this process is root. It
 * begins at a multiple of 64. No user of the system should have one of them.
 */
RLMD_API void rlmd_sandbox_uids(uint32_t first_uid, uint32_t *ret_first, uint32_t *ret_count);

/* The system calls that a worker may make, and why, as one line of JSON. The caller frees it. */
RLMD_API char *rlmd_sandbox_policy(void);

#ifdef __cplusplus
}
#endif
