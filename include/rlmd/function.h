/*
 * rlmd/function.h - functions of the host's that the model's Python may call.
 *
 * The host is the program that uses this library. The model is told the name of
 * the function, its purpose and its arguments. Code calls it like any other
 * function: from several threads, with await, and in sub-runs. A call counts as a
 * model call and is refused beyond the job's limit of calls.
 *
 * The code is written by a model that reads foreign texts, so such a text can
 * choose the arguments. They are a JSON object of at most 1 MiB, 32 deep. Members
 * that the schema does not have, missing required members and wrong types are
 * refused; nothing else of the schema is checked. docs/security.md in the source
 * lists the attacks that this leaves open.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_function_call;

enum { RLMD_FUNCTIONS_MAX = 64 }; /* of one job */

struct rlmd_function {
	size_t size;      /* sizeof(struct rlmd_function) */
	const char *name; /* a name in Python that is not taken */
	const char *doc;  /* what it does and what it returns, for the model: a line or several */
	/* JSON Schema of the arguments: an object with "properties", each an argument, and
	 * "required". NULL: there are none. */
	const char *schema;

	/*
	 * Either: a function of this process, with all rights of the process. It is called from the
	 * loop. Answer once, now or later, with rlmd_function_reply() or rlmd_function_fail().
	 * `arguments` are JSON, lent until it returns.
	 */
	void (*call)(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments);

	/* The answer is not needed any more: the call's time or its run is over. The call is freed
	 * when this returns. If it is NULL, the call must still be answered, and the answer is
	 * dropped. A job that is freed from inside of this is freed by the loop, later. */
	void (*cancel)(void *owner, struct rlmd_function_call *call);
	void *owner; /* lent: of both */

	/*
	 * Or: the absolute path of a program and its arguments, ended by NULL. It is started for
	 * each call as the user of this process, in a session of its own, in "/", with PATH, HOME,
	 * USER, LANG, TZ, TMPDIR and the like in its environment, and no keys. It reads the
	 * arguments of the call as JSON from standard input and writes its answer as JSON to
	 * standard output. An exit status other than 0 is a failure, with the text of standard
	 * error.
	 */
	const char *const *argv;

	int64_t timeout_ms; /* of one call; 0: 30,000; negative: none but the job's */
	int64_t max_calls;  /* of one job; 0: none but the job's limit of calls */

	/* For first_code of the host's: the model is not told of it, `doc` may be NULL, and its
	 * calls are not counted, traced or recorded. The model's code could call it, too. */
	bool untold;
};

#define RLMD_FUNCTION_INIT RLMD_INIT(struct rlmd_function)

/* The call returns this JSON value in Python, of at most 16 MiB. The call is freed. */
RLMD_API void rlmd_function_reply(struct rlmd_function_call *, struct rlmd_text json);

/* The call raises RuntimeError in Python with this message. The call is freed. */
RLMD_API void rlmd_function_fail(struct rlmd_function_call *, const char *message);

#ifdef __cplusplus
}
#endif
