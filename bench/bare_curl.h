/*
 * bench/bare_curl.h - model calls by libcurl alone, with nothing around it that reads the answers.
 *
 * The least that a client of libcurl does: the connection and the handle are kept, the body is
 * ready, and of an answer the bytes are counted.
 */
#pragma once

/* CPU of this process in microseconds, a call: `calls` POSTs of `body` to `url`, one after the
 * other. */
double bare_curl_cost(const char *url, const char *body, int calls);
