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

/* One that is read: it stays until serve_blob_unuse(), also where its client frees it. NULL: there
 * is none of that name, or more is to come. */
struct serve_blob *serve_blob_use(const struct serve_client *, const char *name,
				  struct rlmd_error *);
char *serve_blob_path(const struct serve_blob *); /* to its bytes, new */
void serve_blob_unuse(struct serve_blob *);       /* NULL is fine */

void serve_blob_free_all(struct serve_client *); /* nobody uses one */
