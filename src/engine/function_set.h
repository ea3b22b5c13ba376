/*
 * engine/function_set.h - the functions of the host's that a job's code may call: rlmd/function.h.
 */
#pragma once

#include <jansson.h>
#include <rlmd/function.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

struct context;
struct function_set;

struct function {
	struct rlmd_function spec; /* copied, with all strings */
	json_t *schema;            /* owned: an object */
	int64_t calls;             /* so far */
	bool *telling;             /* lent: set while the host is told to cancel; or NULL */
};

/* Copies all. RLMD_ERROR_USAGE for a function that makes no sense, or has a name that another one
 * or an input (of the context, or NULL) has. Of none there is a set, too. */
struct function_set *function_set_new(const struct rlmd_function *, size_t count,
				      const struct context *, struct rlmd_error *);
void function_set_free(struct function_set *); /* NULL is fine */

/* A function of ours beside the host's, which the worker alone is told of and function_set_find()
 * does not know. The name is lent as long as the set lives. */
void function_set_add_own(struct function_set *, const char *name);

/* Lends what is true while the host is told to cancel a call: then its job is not to be freed. */
void function_set_guard(struct function_set *, bool *telling); /* NULL is fine */

struct function *function_set_find(struct function_set *, const char *name); /* lent; or NULL */

/* All lent: what a worker is told of them, empty where there are none; and their names. */
struct rlmd_text function_set_json(const struct function_set *);
const char *const *function_set_names(const struct function_set *);

/* A line for each, for a model: its call and what it does. Lent. */
struct rlmd_text function_set_described(const struct function_set *);

/* Whether the arguments, a JSON object, suit the schema; RLMD_ERROR_INPUT. */
bool function_set_accepts(const struct function *, const json_t *arguments, struct rlmd_error *);
