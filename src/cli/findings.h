/*
 * cli/findings.h - what `rlmd doctor` found: one object, and the text of it for a person.
 *
 * The findings are the JSON object that --json prints; docs: rlmd-doctor(1).
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>
#include <rlmd/provider.h>
#include <stdbool.h>

#include "cli/attack.h"

/* This machine, and nothing found yet; new. */
json_t *findings_new(void);

/* A sentence about a guarantee that cannot be kept, or that nothing could be said of. */
void findings_add_problem(json_t *findings, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* One that was not refused is a problem, too. */
void findings_add_attack(json_t *findings, const struct attack_result *);

/* Level, mode, and each layer of a rlmd_sandbox_report() with its state. True, and a problem: that
 * is less than --require asks for (NULL: nothing). */
bool findings_set_sandbox(json_t *findings, const json_t *report, const char *require);

void findings_set_provider(json_t *findings, const char *name, const struct rlmd_probe_result *);

/* Nothing is found any more. Whether there was no problem. */
bool findings_conclude(json_t *findings);

/* `short_of_level`: a problem is that --require asks for more, which costs no guarantee. */
void findings_format(const json_t *findings, bool short_of_level, struct evbuffer *out);

/* The table of system calls (rlmd_sandbox_policy()). */
void findings_format_policy(const json_t *policy, struct evbuffer *out);
