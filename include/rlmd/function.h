/*
 * rlmd/function.h - functions of the host's that the model's Python may call.
 *
 * The host is the program that uses this library. A function is told to the
 * model with its name, what it does and its arguments, and code calls it like
 * any other: also from several threads, awaited, and in sub-runs. A call is
 * counted as a call of a model is, and refused beyond the job's limit of calls.
 *
 * Who writes that code is a model that reads foreign texts: a function is asked
 * whatever such a text can bring it to ask. Arguments are a JSON object of at most
 * 1 MiB, 32 deep, with no member that the schema does not have, all that it
 * requires, and values of the types that it says; nothing else of the schema is
 * checked. docs/security.md in the source tells what that does not keep out.
 */
#pragma once

#include <rlmd/rlmd.h>
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
	 * Either: it is served in this process, with all that the process may do. To set it is the
	 * host's word that the code of a model may have it called. Comes from the loop; answer with
	 * rlmd_function_reply() or rlmd_function_fail(), now or later, once. `arguments` are JSON,
	 * lent until it returns.
	 */
	void (*call)(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments);

	/* An answer is not wanted any more: its time is over, or its run is. The call is gone when
	 * this returns. NULL: an answer is still to be given, which nobody gets. A job that is
	 * freed inside of this goes when the loop turns. */
	void (*cancel)(void *owner, struct rlmd_function_call *call);
	void *owner; /* lent: of both */

	/*
	 * Or: a program that is started for each call, by its absolute path and with its arguments,
	 * up to a NULL. In a session of its own, in "/", with PATH, HOME, USER, LANG, TZ, TMPDIR
	 * and the like in its environment and no keys; as the user that this process is. The
	 * arguments of the call come as JSON on its standard input, its answer as JSON on its
	 * standard output; where its exit status is not 0 the call has failed, with what stands on
	 * its standard error.
	 */
	const char *const *argv;

	int64_t timeout_ms; /* of one call; 0: 30,000; negative: none but the job's */
	int64_t max_calls;  /* of one job; 0: none but the job's limit of calls */
};

/* Any JSON value, at most 16 MiB: what the call returns in Python. The call is gone. */
RLMD_API void rlmd_function_reply(struct rlmd_function_call *, struct rlmd_text json);

/* It raises RuntimeError there, with this message, which the model sees. The call is gone. */
RLMD_API void rlmd_function_fail(struct rlmd_function_call *, const char *message);

#ifdef __cplusplus
}
#endif
