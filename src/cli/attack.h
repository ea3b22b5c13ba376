/*
 * cli/attack.h - tries to break out of real workers, and tells how far it got.
 *
 * The attacks are the table cli/attacks.def. One runs at a time, in a worker of
 * its own that is started and ended as those of runs are.
 */
#pragma once

#include <rlmd/repl.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

enum attack_verdict {
	ATTACK_REFUSED,
	ATTACK_UNTRIED, /* this Python has no ctypes, which the attack needs */
	ATTACK_GOT_THROUGH,
};

struct attack_result {
	const char *name, *guarantee, *what; /* static */
	enum attack_verdict verdict;
	char detail[256]; /* what was told of it, escaped */
};

struct attack_series;

struct attack_events {
	/* First of all: version and path of the interpreter that workers are. */
	void (*on_python)(void *owner, struct rlmd_text);
	/* Once for each attack, in order. */
	void (*on_result)(void *owner, const struct attack_result *);
	/* The end; `err` is NULL where all were tried, and else why there was no worker. */
	void (*on_done)(void *owner, const struct rlmd_error *err);
};

/* `memory` is the limit of the sandbox's workers, `events` is lent for good. Never calls back
 * before it returns. */
struct attack_series *attack_start(struct rlmd_engine *, struct rlmd_sandbox *, size_t memory,
				   const struct attack_events *events, void *owner);
void attack_free(struct attack_series *); /* not in on_python and on_result; NULL is fine */
