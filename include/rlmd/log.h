/*
 * rlmd/log.h - what happens to the machinery, for whoever looks after it.
 *
 * Workers that die, a template that is replaced, providers that make calls wait:
 * each is one record, with the ids of what it happened to. What models were told,
 * answered and executed is not in it: that is the trace. Nothing is written
 * anywhere but by the host's own function.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rlmd_log_level {
	RLMD_LOG_DEFAULT, /* as RLMD_LOG_WARNING */
	RLMD_LOG_ERROR,   /* the host's own; of the library these are results */
	RLMD_LOG_WARNING, /* something went wrong, and was got over */
	RLMD_LOG_NOTICE,  /* the host's own */
	RLMD_LOG_INFO,    /* something was other than the best, and may explain what follows */
	RLMD_LOG_DEBUG,   /* as it should be */
};

/*
 * "job", "run" (as in the trace), "pid" of a worker or template, "call" (its index in the trace),
 * "attempt" of it, "provider", "model", and what else is known.
 */
struct rlmd_log_field {
	const char *name;
	const char *text; /* may be anything that a stranger wrote; NULL: it is a number */
	int64_t number;
};

/* All of it is lent until the function returns. */
struct rlmd_log_record {
	size_t size; /* of this struct; it may grow */
	enum rlmd_log_level level;
	const char *subject; /* what it is about: "worker"; static */
	const char *event;   /* what happened, by a name that stays: "worker_died"; static */
	const char *message; /* in words; foreign ones may be among them */
	const struct rlmd_log_field *fields;
	size_t field_count;
};

/* Gets each record as it happens. It may call nothing of the library. */
typedef void rlmd_log_fn(void *owner, const struct rlmd_log_record *);

#ifdef __cplusplus
}
#endif
