/*
 * stage.h - a sandbox for tests, with the real template and the real filter. In
 * place of the REPL runs probe_repl.py, which executes what a test sends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/sandbox.h"

#define MEMORY ((size_t)256 << 20) /* of a worker */
#define SOON   20000               /* ms: far beyond what anything here takes */

extern char stage_directory[]; /* the worker's files */

struct stage {
	struct event_base *base;
	struct sandbox *sandbox;
	int fds_before;
};

/* A worker and what was told about it. */
struct cast {
	struct stage *stage;
	struct process *process;
	struct process_exit exit;
	struct error error;
	int spawns, exits;
	int to, from;
};

/* cmocka's set-up and teardown: of the group, and of each test. The last fails where a
 * descriptor, a child or a zombie was left. */
int stage_make_directory(void **state);
int stage_remove_directory(void **state);
int stage_open(void **state);
int stage_close(void **state);

struct sandbox *stage_sandbox(struct event_base *, const char *const *preload, struct error *);

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
