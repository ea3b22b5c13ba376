/*
 * cli/serve_blob.h - texts that a client sends in pieces, each in a memory file.
 */
#pragma once

#include "cli/serving.h"

/* The methods; each answers the request, if there is one. */
void serve_blob_begin(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_blob_append(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_blob_end(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_blob_free(struct serve_client *, const json_t *params, struct rpc_request *);

/* A path to its bytes, new, which is good while the blob is there; NULL: there is none of that
 * name, or more is to come. */
char *serve_blob_path(const struct serve_client *, const char *name, struct rlmd_error *);

void serve_blob_free_all(struct serve_client *);
