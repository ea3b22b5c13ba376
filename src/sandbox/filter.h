/*
 * sandbox/filter.h - the sealed filter, from the table of seccomp/worker.def to
 * the kernel's bytecode.
 *
 * Built once, before any worker: between a fork and the first foreign byte
 * there is no place for libseccomp, which allocates.
 */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "sandbox/launch.h"

/* Whose calls the policy is about; a test defines another one than the compiler's. */
#if !defined(FILTER_ARCH) && defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif !defined(FILTER_ARCH) && defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#endif

struct filter {
	struct sock_filter code[FILTER_CODE_MAX];
	size_t size; /* instructions */
};

bool filter_build(struct filter *ret_filter, struct error *);

/* The bytecode in a sealed memory file, for the template to read; -1 where it failed. */
int filter_memfd(const struct filter *, struct error *);
