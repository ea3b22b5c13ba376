/*
 * batch/contexts.h - what jobs are about, held once for all that work on it at a time.
 *
 * A context that was loaded stays as long as one holds it; who asks for the same source meanwhile
 * gets the same one. A request after that reads it again.
 */
#pragma once

#include <rlmd/context.h>

struct contexts;
struct contexts_hold;

/* `context` is lent as long as it is held; NULL: `err` says why. */
typedef void contexts_fn(void *owner, struct rlmd_context *context, const struct rlmd_error *err);

/* `directory` is lent: git:REV is of the repository that it is in. */
struct contexts *contexts_new(struct event_base *, const char *directory);
void contexts_free(struct contexts *); /* after all who hold one; NULL is fine */

/* The context of a source, as rlmd_context_load() has it: told once, never before this returns. */
struct contexts_hold *contexts_hold(struct contexts *, const char *source, contexts_fn *,
				    void *owner);

/* It may go; nothing is told any more. NULL is fine. */
void contexts_release(struct contexts_hold *);
