/*
 * base/log.h - one record for each thing that happens to the machinery, with its ids.
 *
 * A struct log is where to write, and the ids of whoever writes: an engine's, a
 * job's, a run's, a worker's each have the one above as parent, and add their own.
 * Only a root knows who listens, which the host says; with nobody, nothing is even
 * formatted. The table of all that is logged is base/log.def. The events of a run (prompts, code,
 * outputs, charges) are not logged but traced: trace/trace.h.
 */
#pragma once

#include <rlmd/log.h>
#include <stdbool.h>

enum log_event {
#define LOG_EVENT(id, ...) LOG_##id,
#include "base/log.def"
#undef LOG_EVENT
	LOG_EVENT_COUNT
};

enum { LOG_OWN_MAX = 3 };

/* Plain data, to be embedded; all zero is one that nobody hears. */
struct log {
	const struct log *parent; /* lent; NULL: a root */
	rlmd_log_fn *fn;          /* of a root: who listens; NULL: nobody */
	void *owner;              /* lent */
	enum rlmd_log_level level;
	struct rlmd_log_field fields[LOG_OWN_MAX]; /* lent names and texts */
	size_t count;
};

struct log log_root(enum rlmd_log_level, rlmd_log_fn *, void *owner);
struct log log_child(const struct log *parent); /* lent; NULL: nobody hears */

/* Adds a field to all later records of this log. The strings are lent as long as it writes. */
void log_add_text(struct log *, const char *name, const char *text);
void log_add_number(struct log *, const char *name, int64_t number);

/* The fields of one record, up to one without a name. */
#define LOG_FIELDS(...) ((const struct rlmd_log_field[]){__VA_ARGS__, {.name = NULL}})
#define LOG_TEXT(title, string)                                                                    \
	{                                                                                          \
		.name = (title), .text = (string)                                                  \
	}
#define LOG_NUMBER(title, amount)                                                                  \
	{                                                                                          \
		.name = (title), .number = (amount)                                                \
	}

/* `log` NULL: nobody hears. A field whose text is empty is left out. */
void log_write(const struct log *, enum log_event, const struct rlmd_log_field *fields,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* "warning" */
const char *log_level_name(enum rlmd_log_level);

/* Libevent has one log for the whole process: where a host wants it, it joins this one, lent until
 * somebody else's takes its place; NULL: libevent's own again. */
void log_take_libevent(const struct log *);
