/*
 * rlmd/sandbox.h - where code runs: python3 workers behind walls of the kernel.
 *
 * A sandbox starts workers of one interpreter, with one set of modules that are
 * loaded beforehand and one limit of memory. An engine keeps them (rlmd/engine.h),
 * the same one for the same options, and its jobs share them. docs/security.md in
 * the source tells what the walls are.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_sandbox;

/* What was waited for to start one is there, or has failed; from the loop. */
typedef void rlmd_sandbox_ready_fn(void *owner);

struct rlmd_sandbox_options {
	size_t size;
	const char *python;         /* a path, or a name in PATH; NULL: "python3" */
	const char *const *preload; /* modules, up to a NULL; or NULL: none */
	size_t worker_memory;       /* bytes of one worker, beside its inputs; 0: 1 GiB */
	size_t pool_memory;  /* bytes of all workers together; 0: half of what there is for us */
	uint32_t first_uid;  /* of those for workers, where we are root; 0: 2,100,000,000 */
	const char *require; /* "L1".."L4": less is refused; NULL: whatever the kernel gives */
	unsigned pool_parts; /* where pool_memory is 0: of that half one of so many parts, for
				sandboxes that share it; 0: all of it */
};

/*
 * The `sandbox` of results: {"level", "mode", "layers": [name...], "absent": [{"layer", "call",
 * "errno", "remedy"}...]}, as one line of JSON. The caller frees it.
 */
RLMD_API char *rlmd_sandbox_report(const struct rlmd_sandbox *);

/* "L1": sealed; "L2": with namespaces or Landlock; "L3": with both; "L4": with cgroups too.
 * Static. */
RLMD_API const char *rlmd_sandbox_level(const struct rlmd_sandbox *);

/* What a layer of the report is good for, as a clause; NULL: there is none of that name. Static. */
RLMD_API const char *rlmd_sandbox_meaning(const char *layer);

/*
 * The uids that workers get where we are root, of a sandbox with that `first_uid`: so many from
 * that one on, which begins a block of 64. Nobody else should have any of them.
 */
RLMD_API void rlmd_sandbox_uids(uint32_t first_uid, uint32_t *ret_first, uint32_t *ret_count);

/* What a worker may ask of the kernel, and why: one line of JSON. The caller frees it. */
RLMD_API char *rlmd_sandbox_policy(void);

#ifdef __cplusplus
}
#endif
