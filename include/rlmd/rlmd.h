/*
 * rlmd/rlmd.h - what all headers of the library share: its version, and texts.
 */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RLMD_VERSION_MAJOR 0
#define RLMD_VERSION_MINOR 1
#define RLMD_VERSION_PATCH 0
#define RLMD_VERSION       "0.1.0"

/* Bytes with a length. Lends: it never owns them, and they need not end in NUL. */
struct rlmd_text {
	const char *bytes;
	size_t size;
};

#ifdef __cplusplus
}
#endif
