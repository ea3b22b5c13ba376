/*
 * cli/tell.h - what the program says on standard error: one line each, of ours and of the log.
 *
 * Everything is escaped on its way, for much of it was written by models and
 * servers. Lines above the level that the user asked for are left out.
 */
#pragma once

#include <rlmd/log.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/log_format.h"

/* Whether standard error is a terminal that can rewrite a line. */
bool tell_can_live(void);

/* Whether to colour standard error; `when` is the value of --color. */
bool tell_can_color(const char *when);

/* Before it: text without colours, and no more than what nobody has to ask for. */
void tell_setup(enum rlmd_log_level most, enum log_format, bool color);

#define tell(...)         tell_event(RLMD_LOG_NOTICE, "notice", NULL, __VA_ARGS__)
#define tell_warning(...) tell_event(RLMD_LOG_WARNING, "warning", NULL, __VA_ARGS__)
#define tell_error(...)   tell_event(RLMD_LOG_ERROR, "error", NULL, __VA_ARGS__)

/* After an error, what the user could do; as it stands. */
void tell_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Of a run, or of none (NULL); its trace calls it `event`. */
void tell_event(enum rlmd_log_level, const char *event, const char *run, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* A record that the user has just asked for, or whose fields are for programs: told at
 * RLMD_LOG_DEFAULT whatever level the user has chosen. */
void tell_record(enum rlmd_log_level, const char *event, const struct rlmd_log_field *,
		 size_t count, const char *message);

/* For struct log. */
void tell_log(void *owner, const struct rlmd_log_record *);

/* Called before a line is written, so that a status line can step aside. NULL: nobody. */
void tell_interlude(void (*before)(void));
