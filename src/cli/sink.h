/*
 * cli/sink.h - where output goes: standard output, or a file that appears only when it is whole.
 *
 * A file is written without a name where the file system can do that, so that
 * nothing is left of it after any end of the program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct sink;

/*
 * `path` NULL or "-": standard output. RLMD_ERROR_USAGE where the file could not be written, or is
 * another user's (file_may_write()). A device and a FIFO are written in place, and never replaced.
 * A new file is for its owner only if it is `confidential`; one that takes an older one's place is
 * for nobody who could not read that.
 */
struct sink *sink_new(const char *path, bool confidential, struct rlmd_error *);
void sink_free(struct sink *); /* what was not committed is gone; NULL is fine */

bool sink_write(struct sink *, struct rlmd_text, struct rlmd_error *);
/* The same while a run goes on, which must not wait for long: see file_feed_fd(). */
bool sink_feed(struct sink *, struct rlmd_text, int64_t patience_ms, struct rlmd_error *);
/* Once, at the end: the file gets its name, `durable` where a machine that fails must not lose it.
 */
bool sink_commit(struct sink *, bool durable, struct rlmd_error *);

int sink_fd(const struct sink *);           /* lent: what is written to */
bool sink_reader_gone(const struct sink *); /* after a write failed: nobody reads the pipe */
