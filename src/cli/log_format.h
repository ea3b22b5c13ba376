/*
 * cli/log_format.h - one line of standard error: for a person, for a program, for journald.
 *
 * Much of a record was written by models and servers: in each format it is
 * escaped, and stays in its line.
 */
#pragma once

#include <event2/buffer.h>
#include <rlmd/log.h>
#include <stdbool.h>

enum log_format {
	LOG_FORMAT_TEXT,     /* "rlmd: warning: [1f2e3d4c] what happened (pid=47)" */
	LOG_FORMAT_JSON,     /* an object with all there is, in ASCII */
	LOG_FORMAT_JOURNALD, /* "<4>[1f2e3d4c] what happened (pid=47)", as sd-daemon(3) has it */
};

/* Of the words of --log-format. */
enum log_format log_format_of(const char *word);

/* `color` is for text only. */
void log_format_write(enum log_format, const struct rlmd_log_record *, bool color,
		      struct evbuffer *out);
