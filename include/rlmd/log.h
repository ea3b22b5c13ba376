/*
 * rlmd/log.h - a log for operators.
 *
 * A worker that dies, a template that is replaced, a provider that makes calls
 * wait: each is one record, with ids. Prompts, answers and code are in the trace,
 * not here. The library writes nothing itself: the host's function gets each
 * record.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rlmd_log_level {
	RLMD_LOG_DEFAULT, /* as RLMD_LOG_WARNING */
	RLMD_LOG_ERROR,   /* for the host; the library returns its errors as results */
	RLMD_LOG_WARNING, /* something failed, and the library recovered */
	RLMD_LOG_NOTICE,  /* for the host */
	RLMD_LOG_INFO,    /* something was less than ideal, and may explain later records */
	RLMD_LOG_DEBUG,   /* normal operation */
};

/*
 * "job", "run" (as in the trace), "pid" of a worker or template, "call" (its index in the trace),
 * "attempt" of it, "provider", "model", and what else is known.
 */
struct rlmd_log_field {
	const char *name;
	const char *text; /* may come from a stranger: escape it; NULL: it is a number */
	int64_t number;
};

/* All of it is lent until the function returns. */
struct rlmd_log_record {
	size_t size; /* of this struct; it may grow */
	enum rlmd_log_level level;
	const char *subject; /* what it is about: "worker"; static */
	const char *event;   /* what happened, by a name that stays: "worker_died"; static */
	const char *message; /* may contain words of a stranger: escape it */
	const struct rlmd_log_field *fields;
	size_t field_count;
};

/* Gets each record as it happens. It may call nothing of the library. */
typedef void rlmd_log_fn(void *owner, const struct rlmd_log_record *);

#ifdef __cplusplus
}
#endif
