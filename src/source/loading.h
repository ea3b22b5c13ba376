/*
 * source/loading.h - the way from named sources to a context, in steps that never wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "source/context.h"
#include "source/loader.h"

struct loading;

/* All is copied. NULL: what is wrong with it. */
struct loading *loading_new(const char *const *sources, size_t count,
			    const struct rlmd_context_options *, struct rlmd_error *);
void loading_free(struct loading *); /* NULL is fine */

/* As loader_step(), of all variables; after LOADER_DONE loading_take() is what is left to do. */
enum loader_end loading_step(struct loading *, struct rlmd_error *);
void loading_take(struct loading *, struct context *ret);

/* Puts the source at hand before what is said of it. False. */
bool loading_blame(const struct loading *, struct rlmd_error *);

int loading_fd(const struct loading *);       /* LOADER_WAITS: for this one, to be readable */
size_t loading_bytes(const struct loading *); /* of the variable at hand */
size_t loading_files(const struct loading *);
