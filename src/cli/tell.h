/*
 * cli/tell.h - what the program says on standard error: one line each, of ours and of the log.
 *
 * Everything is escaped on its way, for much of it was written by models and
 * servers. What is above the level that the user asked for is not said.
 */
#pragma once

#include <rlmd/log.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/log_format.h"

/* Before it: text without colours, and no more than what nobody has to ask for. */
void tell_setup(enum rlmd_log_level most, enum log_format, bool color);

void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tell_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tell_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* After an error, what the user could do; as it stands. */
void tell_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Of a run: what its trace calls `event`. */
void tell_event(enum rlmd_log_level, const char *event, const char *run, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* What somebody has just asked for, or of which the fields are for programs, who are told them
 * instead of reading the words: at RLMD_LOG_DEFAULT whatever the user wants to see. */
void tell_record(enum rlmd_log_level, const char *event, const struct rlmd_log_field *,
		 size_t count, const char *message);

/* For struct log. */
void tell_log(void *owner, const struct rlmd_log_record *);

/* Called before a line is written, so that a status line can step aside. NULL: nobody. */
void tell_interlude(void (*before)(void));
