/*
 * cli/serve_session.h - sessions of a client: living workers (rlmd/repl.h).
 */
#pragma once

#include "cli/serving.h"

/* The methods; each answers the request, if there is one. */
void serve_session_open(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_session_execute(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_session_get(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_session_set(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_session_status(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_session_interrupt(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_session_close(struct serve_client *, const json_t *params, struct rpc_request *);

void serve_session_free_all(struct serve_client *); /* without a word */
