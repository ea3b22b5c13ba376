/*
 * batch/job_fields.h - the members of an object of a jobs file, and none that nobody knows.
 *
 * Errors are RLMD_ERROR_INPUT, and name the member as it is written in the line: "budget.maxCost".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json_view.h"

enum { JOB_FIELDS_MAX = 32 };

/* The members that the object may have. */
struct job_fields {
	const char *what;         /* "a job", for errors */
	const char *prefix;       /* "budget.", in front of its members */
	const char *const *names; /* of `count`, at most JOB_FIELDS_MAX */
	size_t count;
};

/* A view of each in its place in `ret`; one that is null counts as not there. The text is checked
 * as a whole: it is JSON, within the bounds of a line, and an object. */
bool job_fields_read(const struct job_fields *, struct rlmd_text object, struct json_view *ret,
		     struct rlmd_error *);

/* The value is of that kind; one that is not there passes. `name` is that of errors. */
bool job_fields_is(const struct json_view *, enum json_view_kind, const char *name,
		   struct rlmd_error *);

/* A new string of at most `limit` bytes, not empty and without NUL; NULL, and true, where there is
 * none. */
bool job_fields_string(const struct json_view *, const char *name, size_t limit, char **ret,
		       struct rlmd_error *);

/* A whole number from `min` to `max`, also written as 1e6; not changed where there is none. */
bool job_fields_count(const struct json_view *, const char *name, int64_t min, int64_t max,
		      int64_t *ret, struct rlmd_error *);
