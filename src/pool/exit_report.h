/* pool/exit_report.h - how a process ended, in words for a person and for the model. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "sandbox/sandbox.h"

/* How far it had come. */
enum exit_report_age {
	EXIT_REPORT_UNCONFINED, /* it had not proved its walls; RLMD_ERROR_SANDBOX */
	EXIT_REPORT_LOADING, /* it was loading its inputs; RLMD_ERROR_INPUT, for they did not fit */
	EXIT_REPORT_GROWN,   /* it ran blocks; RLMD_ERROR_WORKER */
};

/* "the worker was killed by signal 9 (SIGKILL); ...", with the usual cause. */
void exit_report_write(const struct process_exit *, enum exit_report_age, struct rlmd_error *);

/* It was given so long, to come further than this age or to end its block, and did not. 0: no time
 * was over, and its user's interrupt did not end the block. */
void exit_report_of_late(enum exit_report_age, int64_t ms, struct rlmd_error *);

/* After a block, what it had left running used up the processor time of one: RLMD_ERROR_WORKER. */
void exit_report_of_remains(int64_t ms, struct rlmd_error *err);

/* Why we ended it: it broke the protocol (RLMD_ERROR_WORKER), or we had no room for what it sent.
 */
void exit_report_of_refused(const struct rlmd_error *cause, struct rlmd_error *);

/* Logs it; an exit that is all zeros is not known. `block` is the last that was begun, or 0. */
void exit_report_log(const struct log *, const struct process_exit *, int64_t block,
		     const struct rlmd_error *);
