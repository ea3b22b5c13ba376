/*
 * rlmd/rlmd.h - common to all of librlmd: version, texts, errors.
 *
 * The library answers questions about inputs of any size. A model writes Python
 * that reads the inputs; the Python runs behind kernel walls and may call models
 * and further runs (Recursive Language Models; Zhang, Kraska, Khattab 2025).
 * docs/library.md in the source is the guide.
 *
 * Threads: one thread at a time may use an engine and everything that belongs to
 * it; any thread may call rlmd_engine_post(). Several threads may use several engines.
 *
 * Manners: the library installs no signal handler, changes no signal disposition,
 * never exits, prints nothing and does not change the environment. A program may
 * ignore SIGCHLD or reap children that it did not start; then the error for a
 * worker that died by itself cannot say how it died.
 *
 * Errors: bad arguments are refused with RLMD_ERROR_USAGE. If a small allocation
 * or a buffer gets no memory, the process writes "rlmd: out of memory" to standard
 * error and aborts, as GLib does. Inputs and replies, whose size a stranger
 * chooses, are limited and refused instead.
 *
 * fork(): a process may fork while it has engines. In the child, the thread that
 * forked may free an inherited engine, its jobs and its sessions, and nothing
 * else: all other functions refuse them with RLMD_ERROR_USAGE. Freeing returns
 * memory and the child's copies of descriptors, logs nothing, and touches nothing
 * that the parent uses; an event base that was lent to the engine is made anew in
 * the child (event_reinit()). The child may make an engine of its own if no other
 * thread was inside the library at the time of the fork. It may also leave the
 * inherited ones alone and call execve() or _exit().
 *
 * ABI: a struct that begins with `size` may grow. Set all of it to zero and `size`
 * to its sizeof; members that an older caller does not know have their defaults.
 * A member of zero means its default everywhere. Enums may grow at their end.
 * Unless a comment says otherwise, arguments are copied, results are lent, and
 * strings are UTF-8.
 */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every function that the library exports bears it. */
#define RLMD_API __attribute__((visibility("default")))

#define RLMD_VERSION_MAJOR 0
#define RLMD_VERSION_MINOR 1
#define RLMD_VERSION_PATCH 0
#define RLMD_VERSION       "0.1.0"

/* The version of the loaded library, which may be newer than this header: "0.1.0". Static. */
RLMD_API const char *rlmd_version(void);

/*
 * Structs of the library that may grow begin with their size, by which the library knows the
 * version that a host was compiled with. Each has a macro that sets it, and zero for the rest:
 * `struct rlmd_limits limits = RLMD_LIMITS_INIT;`
 */
#ifdef __cplusplus
#define RLMD_INIT(type)                                                                            \
	[] {                                                                                       \
		type init = {};                                                                    \
		init.size = sizeof init;                                                           \
		return init;                                                                       \
	}()
#else
#define RLMD_INIT(type)                                                                            \
	{                                                                                          \
		.size = sizeof(type)                                                               \
	}
#endif

/* Bytes with a length. It never owns the bytes, and they need not end in NUL. */
struct rlmd_text {
	const char *bytes;
	size_t size; /* bytes */
};

/* The text of a string, without its NUL; NULL gives the empty text. */
RLMD_API struct rlmd_text rlmd_text_of(const char *string);

/*
 * For a host that counts signals in a handler of its own. `count` returns that count. Once it is
 * not 0, the library stops waiting for a python3 to start and for an input that is a pipe, with
 * RLMD_ERROR_CANCELLED or the error that follows from it. `signals`, ended by a 0, are blocked
 * except during these waits, so that none is missed just before one. The setting holds for the
 * whole process: call it before anything else. `count` is NULL: no signals are counted, the
 * default. Jobs and the event loop are left to the host.
 */
RLMD_API void rlmd_heed_signals(int (*count)(void), const int *signals);

enum rlmd_error_kind {
	RLMD_ERROR_NONE,
	RLMD_ERROR_INTERNAL,    /* an error of our own */
	RLMD_ERROR_USAGE,       /* the command line, the configuration or an argument is wrong */
	RLMD_ERROR_NOT_FOUND,   /* the provider does not know the model or the path */
	RLMD_ERROR_AUTH,        /* the provider refused the key, or the key may not do this */
	RLMD_ERROR_BILLING,     /* the provider wants money before it answers */
	RLMD_ERROR_THROTTLED,   /* the provider limits the rate, also after retries */
	RLMD_ERROR_OVERLOADED,  /* the provider failed or was overloaded, also after retries */
	RLMD_ERROR_NETWORK,     /* the provider could not be reached, or the connection broke */
	RLMD_ERROR_TIMEOUT,     /* the time for one call was over before its answer came */
	RLMD_ERROR_BAD_REPLY,   /* the provider's answer made no sense */
	RLMD_ERROR_BAD_REQUEST, /* the provider refused the request as malformed */
	RLMD_ERROR_BUDGET,      /* a limit of the budget was reached */
	RLMD_ERROR_NO_ANSWER,   /* the model gave no answer, also when it was asked for one */
	RLMD_ERROR_SANDBOX,     /* the walls could not be raised, or were broken against */
	RLMD_ERROR_WORKER,      /* a worker died or broke the protocol */
	RLMD_ERROR_INPUT,       /* the input is missing, unreadable or too large */
	RLMD_ERROR_CONTEXT_OVERFLOW, /* a prompt is longer than the model's window */
	RLMD_ERROR_REFUSED,          /* the model or a content filter refused */
	RLMD_ERROR_REPLAY,           /* no recorded exchange matches the request */
	RLMD_ERROR_CANCELLED,        /* cancelled from outside */
	RLMD_ERROR_FUNCTION,         /* a function of the host's failed */
	RLMD_ERROR_SCHEMA,           /* no answer had the form that was asked for */
	RLMD_ERROR_MACHINE,          /* no descriptor, memory or process was left for it */
};

/* Why a run stopped, or may not go on. base/errors.def in the source maps errors to these. */
enum rlmd_stop {
	RLMD_STOP_NONE,           /* in an error: no limit was reached */
	RLMD_STOP_FINAL,          /* the model gave its answer */
	RLMD_STOP_MAX_ITERATIONS, /* MAX_*: that limit was reached */
	RLMD_STOP_MAX_COST,
	RLMD_STOP_MAX_TOKENS,
	RLMD_STOP_MAX_TIME,
	RLMD_STOP_MAX_CALLS,
	RLMD_STOP_NO_CODE, /* three turns in a row had neither code nor an answer */
	RLMD_STOP_INTERRUPTED,
	RLMD_STOP_PROVIDER_ERROR,
	RLMD_STOP_SANDBOX_ERROR,
	RLMD_STOP_REFUSED,
	RLMD_STOP_SCHEMA,      /* no answer had the form that was asked for */
	RLMD_STOP_MAX_DEPTH,   /* why no sub-run was begun; no run stops for it */
	RLMD_STOP_MAX_SUBRUNS, /* why no sub-run was begun; no run stops for it */
};

/* The name in the result object: "max_cost"; NULL for RLMD_STOP_NONE. Static. */
RLMD_API const char *rlmd_stop_name(enum rlmd_stop);

/*
 * An error by value: it lives on the caller's stack or inside a result and needs
 * no freeing. A function that takes one as its last argument fills it when it
 * fails and leaves it alone when it succeeds. NULL is allowed. This struct will
 * not grow.
 */
struct rlmd_error {
	enum rlmd_error_kind kind;
	int http_status;     /* of the provider's answer; 0 where there was none */
	char text[512];      /* UTF-8, control characters escaped, no newline at the end */
	enum rlmd_stop stop; /* RLMD_ERROR_BUDGET: which limit was reached; else mostly NONE */
};

/* The name in the result object: "budget"; "none" for RLMD_ERROR_NONE. Static. */
RLMD_API const char *rlmd_error_name(enum rlmd_error_kind);

/* The meaning of a kind, as one clause without a full stop. Static. */
RLMD_API const char *rlmd_error_meaning(enum rlmd_error_kind);

/* The exit status of a command that ends with this kind; 0 for RLMD_ERROR_NONE. */
RLMD_API int rlmd_error_exit_status(enum rlmd_error_kind);

#ifdef __cplusplus
}
#endif
