/*
 * stage.h - a sandbox for tests, with the real template and the real filter. In
 * place of the REPL runs probe_repl.py, which executes what a test sends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/sandbox.h"

#define MEMORY ((size_t)256 << 20) /* of a worker */
#define SOON   600000              /* ms: far beyond what anything here takes */

extern char stage_directory[]; /* the worker's files */

/* The user of the test, and the refusals of its kernel: then this is the mode that stands. */
struct stage_mode {
	const char *name;
	const char *without; /* as of struct sandbox_config */
	enum { AS_ROOT, AS_NOBODY, WITHOUT_ADMIN } who;
	const char *mode, *level; /* that the report must tell; `level` at least */
};

/* All of them, ended by one without a name. */
extern const struct stage_mode stage_modes[];

/* The one that this test runs in; that of the first argument, or the best there is. */
extern const struct stage_mode *stage_mode;

/*
 * Becomes who the mode is for, for good. Where that cannot be, or the mode does not
 * stand on this machine, says so in TAP and ends: with success, for it is a skip.
 */
void stage_enter_mode(const char *name);

/* Whether all mounts that it sees are its own doing: then they can be compared. */
extern bool stage_has_own_mounts;

/* For a forked child: becomes who the mode is for. NULL, or why that cannot be. */
const char *stage_become(const struct stage_mode *);

struct stage {
	struct event_base *base;
	struct rlmd_sandbox *sandbox;
	int fds_before;
};

/* A worker and what was told about it. */
struct cast {
	struct stage *stage;
	struct process *process;
	struct process_exit exit;
	struct rlmd_error error;
	int spawns, exits;
	int to, from;
};

/* cmocka's set-up and teardown: of the group, and of each test. The last fails where a
 * descriptor, a child or a zombie was left. */
int stage_make_directory(void **state);
int stage_remove_directory(void **state);
int stage_open(void **state);
int stage_close(void **state);

struct rlmd_sandbox *stage_sandbox(struct event_base *, const char *const *preload,
				   struct rlmd_error *);

/* With other settings than those of the mode; NULL for `without` means those of the mode. */
void stage_reopen(struct stage *, const char *without, size_t pool_memory);

/* Whether the report names the layer; of the absent ones, the errno, or NULL (lent). */
bool stage_has(const struct stage *, const char *layer);
bool report_has(const json_t *report, const char *layer);
const char *report_lacks(const json_t *report, const char *layer);

/* Asks for a worker; asks and waits until it is there; lets it go. */
struct spawn *begin(struct cast *, struct stage *, const int *files, size_t count, size_t extra);
void enter(struct cast *, struct stage *);
void end(struct cast *);

/* Sends code, and the end of it. */
void tell(struct cast *, const char *code);
/* One line of what it says, or all until it closes the pipe; new. */
char *hear(const struct cast *, bool line);
void expect_line(const struct cast *, const char *expected);
void await_exit(struct cast *);
/* Until a process is over that somebody else reaps. */
void await_death(pid_t);

/* Lets a worker of its own run `code`; what it said, new, and how it ended. */
char *perform(struct stage *, const char *code, struct process_exit *ret_exit);
/* The same where all that matters is what it says. */
void expect(struct stage *, const char *code, const char *expected);

int memory_file(const char *content);
