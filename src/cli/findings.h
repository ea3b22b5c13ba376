/*
 * cli/findings.h - what `rlmd doctor` found, as text for a person.
 *
 * The findings are the JSON object that --json prints; docs: rlmd-doctor(1).
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>
#include <stdbool.h>

/* "layers" of the findings, new: each layer of a sandbox_report() with its state. */
json_t *findings_layers(const json_t *report);

/* `short_of_level`: a problem is that --require asks for more, which costs no guarantee. */
void findings_format(const json_t *findings, bool short_of_level, struct evbuffer *out);

/* The table of system calls (rlmd_sandbox_policy()). */
void findings_format_policy(const json_t *policy, struct evbuffer *out);
