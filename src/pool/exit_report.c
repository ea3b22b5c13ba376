#include "pool/exit_report.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"

static const char *usual_cause(int signal)
{
	switch (signal) {
	case SIGKILL:
		return "; it probably needed more memory than it may use";
	case SIGSEGV:
	case SIGBUS:
		return "; it probably ran out of memory, recursed too deep in C code, or called "
		       "abort()";
	case SIGABRT:
		return "; the interpreter or an extension gave up, as it does without memory";
	case SIGXCPU:
		return "; it used up its processor time";
	default:
		return "";
	}
}

static void write_exit(const struct process_exit *exit, enum rlmd_error_kind kind,
		       struct rlmd_error *err)
{
	const char *name;

	if (exit->unknown && !*exit->reason) {
		error_set(
			err, kind,
			"the worker has ended, and how is not known: this program ignores SIGCHLD, "
			"or waits for children that it has not started");
		return;
	}
	if (!exit->signaled && !exit->unknown) {
		error_set(err, kind, "the worker ended itself (exit status %d)", exit->status);
		return;
	}
	if (*exit->reason) {
		error_set(err, kind, "the worker was killed: %s", exit->reason);
		return;
	}
	if (exit->status == SIGSYS) {
		error_set(err, kind,
			  "the worker was killed, for it made a system call that the sandbox "
			  "forbids (SIGSYS)");
		return;
	}
	name = sigabbrev_np(exit->status);
	error_set(err, kind, "the worker was killed by signal %d (%s%s)%s", exit->status,
		  name ? "SIG" : "", name ? name : "real-time", usual_cause(exit->status));
}

void exit_report_write(const struct process_exit *exit, enum exit_report_age age,
		       struct rlmd_error *err)
{
	const char *wall = process_exit_wall(exit);

	switch (age) {
	case EXIT_REPORT_UNCONFINED:
		if (wall) {
			error_set(err, RLMD_ERROR_SANDBOX, "a wall does not stand: %s", wall);
			return;
		}
		write_exit(exit, RLMD_ERROR_SANDBOX, err);
		error_context(err, "before its walls stood");
		return;
	case EXIT_REPORT_LOADING:
		write_exit(exit, RLMD_ERROR_INPUT, err);
		error_context(err, "while the inputs were loaded");
		return;
	case EXIT_REPORT_GROWN:
		write_exit(exit, RLMD_ERROR_WORKER, err);
		return;
	}
}

void exit_report_of_late(enum exit_report_age age, int64_t ms, struct rlmd_error *err)
{
	char time[16];

	clock_format(ms, time);
	switch (age) {
	case EXIT_REPORT_UNCONFINED:
		error_set(err, RLMD_ERROR_SANDBOX, "no worker stood after %s", time);
		return;
	case EXIT_REPORT_LOADING:
		error_set(err, RLMD_ERROR_INPUT, "the inputs were not loaded after %s", time);
		return;
	case EXIT_REPORT_GROWN:
		error_set(err, RLMD_ERROR_WORKER, "no interrupt ended the code%s%s",
			  ms ? " after " : "", ms ? time : "");
		return;
	}
}

void exit_report_of_remains(int64_t ms, struct rlmd_error *err)
{
	char time[16];

	clock_format(ms, time);
	error_set(
		err, RLMD_ERROR_WORKER,
		"the worker was killed: threads that a block had left running used more processor "
		"time than the %s that a block may use; join or stop threads before a block ends",
		time);
}

void exit_report_of_refused(const struct rlmd_error *cause, struct rlmd_error *err)
{
	bool its_fault = cause->kind == RLMD_ERROR_WORKER;

	*err = *cause;
	error_context(err, its_fault ? "the worker broke the protocol" : "the worker was ended");
	err->kind = RLMD_ERROR_WORKER;
}

void exit_report_log(const struct log *log, const struct process_exit *exit, int64_t block,
		     const struct rlmd_error *err)
{
	struct rlmd_log_field fields[] = {
		LOG_TEXT("error", rlmd_error_name(err->kind)),
		LOG_NUMBER("block", block),
		LOG_NUMBER(exit->signaled ? "signal" : "status", exit->status),
		LOG_NUMBER("cpu_ms", exit->cpu_ms),
		{.name = NULL},
	};

	if (exit->unknown || (!exit->status && !exit->cpu_ms))
		fields[2].name = NULL;
	log_write(log, LOG_WORKER_DIED, fields, "%s", err->text);
}
