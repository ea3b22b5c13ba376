/*
 * engine/posts.h - functions that other threads have the loop call.
 */
#pragma once

#include <event2/event.h>
#include <rlmd/engine.h>

struct posts;

/* The loop waits for them from now on: it has an event as long as they live. NULL where the system
 * has no descriptor left. */
struct posts *posts_new(struct event_base *, struct rlmd_error *);

/* Functions that were not called yet are not called. NULL is fine. */
void posts_free(struct posts *);

/* From any thread. The functions are called in the order in which they came. */
void posts_add(struct posts *, rlmd_post_fn *, void *arg);

/* The loop's own descriptor, lent, as loop_fd() finds it where it is first asked for; or -1. */
int posts_loop_fd(struct posts *);
