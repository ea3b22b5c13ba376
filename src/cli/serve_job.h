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
void serve_job_activity(struct serve_client *, const json_t *params, struct rpc_request *);

/* As members of `object`: what is left to the job, and what it is doing. NULL: it has not begun, or
 * has ended. */
void serve_job_show(const struct rlmd_job *, json_t *object);

/* Those that there is room for, of the jobs of all clients that wait. */
void serve_job_call_next(struct serve *);

void serve_job_interrupt_all(struct serve_client *);
void serve_job_free_all(struct serve_client *); /* without a word */
