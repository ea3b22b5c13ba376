/*
 * rlmd/rlmd.h - what all of librlmd has in common: its version, texts, errors.
 *
 * The library answers questions about inputs of any size: a model writes Python
 * that looks at them, which runs behind kernel walls and may call models and
 * further runs (Recursive Language Models; Zhang, Kraska, Khattab 2025).
 * docs/library.md in the source is the guide.
 *
 * One thread at a time may use an engine and all that belongs to it; several
 * engines may be used by several threads. The library installs no signal
 * handler and changes no disposition, never exits, prints nothing, and changes
 * nothing of the environment. Where the program ignores SIGCHLD, or waits for
 * children that it has not started, all works but one thing: of a worker that
 * dies by itself nobody knows how, and its error says so.
 * Bad arguments are refused with RLMD_ERROR_USAGE. Where there is no memory for
 * a small allocation the process is aborted, as GLib does; what a stranger can
 * size (inputs, replies) is limited and refused instead.
 *
 * The ABI: a struct that begins with `size` may grow. Set all of it to zero and
 * `size` to its sizeof; what an older caller does not know of has its default.
 * Zero of a member is its default everywhere. Enums may grow at their end.
 * Where nothing else is said, what is handed over is copied, what is returned
 * is lent, and strings are UTF-8.
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

/* Of the library that runs, which may be newer than the header: "0.1.0". Static. */
RLMD_API const char *rlmd_version(void);

/* Bytes with a length. Lends: it never owns them, and they need not end in NUL. */
struct rlmd_text {
	const char *bytes;
	size_t size; /* bytes */
};

/* All of a string but its NUL; NULL gives the empty text. */
RLMD_API struct rlmd_text rlmd_text_of(const char *string);

/*
 * For a host whose user may end it by signals: `count` says how many a handler of its own has
 * counted; from the first one on, nothing in the library waits any longer for a python3 to start or
 * for an input that is a pipe (RLMD_ERROR_CANCELLED, or what failed for it). `signals`, up to a 0,
 * are blocked but for the waits themselves, so that none is missed just before. For the whole
 * process, before anything else; NULL `count`: nobody counts, as by default. Jobs and the loop are
 * left to the host.
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
};

/* Why a run stopped, or may not go on. Which kind of error is which to a run stands in the source,
 * base/errors.def. */
enum rlmd_stop {
	RLMD_STOP_NONE,           /* of an error: the kind says it all */
	RLMD_STOP_FINAL,          /* the model gave its answer */
	RLMD_STOP_MAX_ITERATIONS, /* this and the next ones: that limit was reached */
	RLMD_STOP_MAX_COST,
	RLMD_STOP_MAX_TOKENS,
	RLMD_STOP_MAX_TIME,
	RLMD_STOP_MAX_CALLS,
	RLMD_STOP_NO_CODE, /* three turns in a row had neither code nor an answer */
	RLMD_STOP_INTERRUPTED,
	RLMD_STOP_PROVIDER_ERROR,
	RLMD_STOP_SANDBOX_ERROR,
	RLMD_STOP_REFUSED,
	RLMD_STOP_SCHEMA,    /* no answer had the form that was asked for */
	RLMD_STOP_MAX_DEPTH, /* why no sub-run was begun, as is the next; no run stops for them */
	RLMD_STOP_MAX_SUBRUNS,
};

/* The name in the result object: "max_cost"; NULL for RLMD_STOP_NONE. Static. */
RLMD_API const char *rlmd_stop_name(enum rlmd_stop);

/*
 * Lives on the caller's stack or inside a result, and needs no freeing. A
 * function that takes one as its last argument fills it when it fails and
 * leaves it alone when it succeeds. NULL is allowed: nobody wants to know.
 * It will not grow.
 */
struct rlmd_error {
	enum rlmd_error_kind kind;
	int http_status;     /* of the provider's answer; 0 where there was none */
	char text[512];      /* UTF-8, control characters escaped, no newline at the end */
	enum rlmd_stop stop; /* RLMD_ERROR_BUDGET: which limit was reached; else mostly NONE */
};

/* The name in the result object: "budget"; "none" for RLMD_ERROR_NONE. Static, as is the next. */
RLMD_API const char *rlmd_error_name(enum rlmd_error_kind);

/* What the kind means, as one clause without a full stop. */
RLMD_API const char *rlmd_error_meaning(enum rlmd_error_kind);

/* The exit status of a command that ends with this kind; 0 for RLMD_ERROR_NONE. */
RLMD_API int rlmd_error_exit_status(enum rlmd_error_kind);

#ifdef __cplusplus
}
#endif
