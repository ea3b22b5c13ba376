/*
 * trace/otlp.h - a trace as OpenTelemetry's spans, by the conventions for generative AI.
 *
 * Sources: opentelemetry-proto 1.x, "JSON Protobuf Encoding"; semantic-conventions, docs/gen-ai.
 * The latter may still change: all of their names stand in otlp.c.
 */
#pragma once

#include <event2/buffer.h>
#include <rlmd/trace.h>

#include "trace/spans.h"

/* Appends one object with spans from the place `first` on, so many as fit into `most` bytes, one at
 * least; returns the place behind them. */
size_t otlp_write(const struct spans *, const struct rlmd_otlp_options *, size_t first, size_t most,
		  struct evbuffer *out);

/* The next "name=value" of a list with commas, as in OTEL_RESOURCE_ATTRIBUTES: percent-decoded,
 * new; both NULL where it is none. Moves `list` on; false: there is nothing more. */
bool otlp_take_pair(const char **list, char **ret_name, char **ret_value);

/* Copies the options of a host, which may be NULL. RLMD_ERROR_USAGE for an unknown size. */
bool otlp_take_options(const struct rlmd_otlp_options *given, struct rlmd_otlp_options *ret,
		       struct rlmd_error *);
