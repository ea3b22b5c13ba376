/*
 * cli/findings.h - what `rlmd doctor` found, as text for a person.
 *
 * The findings are the JSON object that --json prints; docs: rlmd(1), DOCTOR.
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>

/* "layers" of the findings, new: each layer of a sandbox_report() with its state. */
json_t *findings_layers(const json_t *report);

void findings_format(const json_t *findings, struct evbuffer *out);

/* The table of system calls: as text, and as JSON, new. */
void findings_format_policy(struct evbuffer *out);
json_t *findings_policy(void);
