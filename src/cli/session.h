/*
 * cli/session.h - what every command that asks models goes through.
 *
 *   command the settings, and then the command itself
 *   open    output, event loop, model, and where code will run, a sandbox, which is begun before
 *           the input is read: its python3 loads meanwhile
 *   run     a job, with its progress, while signals are heard; or wait for other work
 *   close   everything that was started is gone
 *   report  the result, a summary, and why it failed
 *
 * Errors are found as early as they can be, and a session that got nowhere can be closed and
 * reported all the same.
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/input.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/span_log.h"

/* The work that a session waits for. */
struct session_work {
	void (*interrupt)(void *owner); /* the first signal came: the work has to end soon */
	const char *interrupted;        /* static: what the user is told then; NULL: nothing */
	void *owner;                    /* lent */
};

/* A job that a session runs. */
struct session_job {
	const char *interrupted; /* static: what the user is told after a first signal */
	bool result_later;       /* its last event is not told: the result will have more */
	/* Says where the work is: "turn 3 | depth 1". */
	void (*progress)(const struct rlmd_job_status *,
			 char progress[static JOB_VIEW_PROGRESS_MAX]);
	/* As in struct rlmd_hooks; NULL: every answer will do. */
	void (*check)(void *owner, struct rlmd_job *, struct rlmd_text answer, struct rlmd_check *);
	/* The end; session->result and session->failure are there. */
	void (*take)(void *owner, const struct rlmd_result *);
	void *owner; /* lent */
};

/* A command reads it, and changes only the settings. */
struct session {
	enum command_id command;
	const struct session_work *work; /* lent while it is waited for, else NULL */
	struct config config;
	struct log log; /* libevent's own words, to standard error */
	enum rlmd_log_level log_level;
	struct input_time time;       /* since the command began */
	int64_t max_calls;            /* of models at once, that the work itself asks for; or 0 */
	struct rlmd_limits limits;    /* of its work */
	json_t *strays;               /* owned: what is odd about environment and arguments */
	const char **warnings;        /* owned: the same, up to a NULL */
	json_t *notes;                /* owned: what was warned of before the start */
	struct output *output;        /* owned */
	struct span_log *spans;       /* owned: for a collector; NULL: none is named */
	struct rlmd_engine *engine;   /* owned */
	struct event_base *base;      /* lent: the engine's */
	struct event *interrupted;    /* owned */
	struct rlmd_sandbox *sandbox; /* lent: the engine's */
	bool loads, loaded;           /* the sandbox's python3: it was begun; and it is ready */
	struct job_view view;
	const struct session_job *kind; /* lent: of the job */
	struct rlmd_job *job;           /* owned */
	json_t *result;                 /* owned: of the job; NULL until it has ended */
	struct rlmd_error failure;      /* why that is none, or none that counts */
	struct rlmd_job_status last;    /* how the job stood in the end */
	int signal;                     /* that ended or shortened the work, or 0 */
	bool over;                      /* the work told its end */
	struct rlmd_error broken;       /* why the output could not be written */
};

/* Carries out a command of cli/commands.def, with its settings, if it has any; argv[0] is its name.
 * Returns the exit status. */
int session_command(enum command_id, int argc, char **argv);

/* A result that is always an object is no OUTPUT_ANSWER. */
bool session_open_output(struct session *, enum output_form otherwise, struct rlmd_error *);

/* The engine, without anybody to ask; and with all providers. */
bool session_open_engine(struct session *, struct rlmd_error *);
bool session_open(struct session *, struct rlmd_error *);

/* The settings, for a job: whoever starts it adds its work. Lent by the session. */
struct rlmd_job_options session_options(const struct session *);

/* Starts what session_open_sandbox() has to wait for. Errors as there. */
bool session_begin_sandbox(struct session *, struct rlmd_error *);

/* RLMD_ERROR_CANCELLED where a signal came meanwhile; RLMD_ERROR_SANDBOX also where it is less than
 * --require asks for, unless `any` will do. */
bool session_open_sandbox(struct session *, bool any, struct rlmd_error *);

/* Of the work that these options are: rlmd_job_check_schemas(), which a signal ends. */
bool session_check_schemas(struct session *, const struct rlmd_job_options *, struct rlmd_error *);

/* The input is there: what remains of the time is the work's. RLMD_ERROR_BUDGET where that is none.
 */
bool session_spend_time(struct session *, struct rlmd_error *);

/* RLMD_ERROR_CANCELLED where a signal came before there was any work that could be told of it; in
 * place of what that made fail, if anything. Else true. */
bool session_check_signals(struct session *, struct rlmd_error *);

/* Warns of it, once; it is then in the notes. The first note is about odd settings of the
 * environment. */
void session_note(struct session *, const char *warning);
void session_note_strays(struct session *);

/* Until session_leave(). False where that did not come: stopped by a second signal, or because
 * nobody reads the output. */
bool session_wait(struct session *, const struct session_work *, struct rlmd_error *);
void session_leave(struct session *);

/* Runs a job to its end; false as from session_wait(). One that is stopped has a result all the
 * same, with the usage until then. */
bool session_run(struct session *, const struct session_job *, struct rlmd_job_options,
		 struct rlmd_error *);

/* The job, workers and transfers are gone afterwards; other work must be. */
void session_close(struct session *);

struct session_result {
	json_t *object;          /* lent; NULL: nothing is to be printed */
	struct rlmd_text answer; /* what OUTPUT_ANSWER prints; no bytes (NULL): nothing */
	const char *work; /* "4 turns", for the summary; NULL: nothing was begun, there is none */
	const struct rlmd_error *failure; /* NULL: none */
	int status;                       /* the exit status, signals aside */
};

/* Prints it, and says how it went. Returns the exit status. */
int session_report(struct session *, const struct session_result *);

/* Prints the result of a dry run of that job: the object with --json or --jsonl, else the text that
 * `format` makes of it. With --strict it is a failure if it does not fit the budget. Returns the
 * exit status. */
int session_show_job(struct session *, const struct rlmd_job_options *,
		     void (*format)(const json_t *, struct evbuffer *out));

/* A result object of the library's, new. */
json_t *session_read(struct rlmd_text json);

/* The result object where no run began, new. Nothing was used; `err` is why nothing began; NULL:
 * nothing had to. */
json_t *session_no_result(const struct session *, const struct rlmd_error *err);
