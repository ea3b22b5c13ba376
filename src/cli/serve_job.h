/*
 * cli/serve_job.h - jobs of a client: started, told of, and ended.
 */
#pragma once

#include "cli/serving.h"

/* The methods; each answers the request, if there is one. */
void serve_job_start(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_job_interrupt(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_job_cancel(struct serve_client *, const json_t *params, struct rpc_request *);
void serve_job_status(struct serve_client *, const json_t *params, struct rpc_request *);

void serve_job_interrupt_all(struct serve_client *);
void serve_job_free_all(struct serve_client *); /* without a word */
