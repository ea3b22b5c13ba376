/*
 * base/abi.h - structs of the library that may grow: the caller's version of them, and ours.
 *
 * Such a struct begins with its size. An older struct than ours lacks members at the end, which
 * then are zero; a newer one may have more of them if these are zero: then the caller asks for
 * nothing that we do not know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * Fills `ours`, of so many bytes, with what the caller gave; NULL gives zeros. `least` is the size
 * that the first version had. RLMD_ERROR_USAGE, naming it as `what`, where the size is none.
 */
bool abi_copy_in(void *ours, size_t our_size, const void *theirs, size_t least, const char *what,
		 struct rlmd_error *);

/* Fills what the caller gave, as far as that goes; its size is set, and stays. False: it is none.
 */
bool abi_copy_out(void *theirs, const void *ours, size_t our_size, size_t least);
