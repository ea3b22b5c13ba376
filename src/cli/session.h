/*
 * cli/session.h - what every command that asks models goes through.
 *
 *   begin   the settings
 *   open    output, event loop, model, and where code will run, a sandbox, which is begun before
 *           the input is read: its python3 loads meanwhile
 *   wait    for the work, with a live line, while signals are heard
 *   close   everything that was started is gone
 *   report  the result, a summary, and why it failed
 *
 * What is wrong is found as early as it can be, and a session that got nowhere
 * can be closed and reported all the same.
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
#include "cli/output.h"
#include "cli/status.h"

/* The work that a session waits for. */
struct session_work {
	void (*interrupt)(void *owner); /* the first signal came: the work has to end soon */
	const char *interrupted;        /* static: what the user is told then; NULL: nothing */
	status_source_fn *status;       /* NULL: there is no live line */
	void *owner;                    /* lent */
};

/* Zero before session_begin(); a command reads it, and changes only the settings. */
struct session {
	enum command_id command;
	const struct session_work *work; /* lent while it is waited for, else NULL */
	struct config config;
	struct log log; /* libevent's own words, to standard error */
	enum rlmd_log_level log_level;
	struct input_time time;       /* since session_begin() */
	int64_t max_calls;            /* of models at once, that the work itself asks for; or 0 */
	struct rlmd_limits limits;    /* of its work */
	json_t *strays;               /* owned: what is odd about the environment */
	const char **warnings;        /* owned: the same, up to a NULL */
	json_t *notes;                /* owned: what was warned of before the start */
	struct output *output;        /* owned */
	struct rlmd_engine *engine;   /* owned */
	struct event_base *base;      /* lent: the engine's */
	struct event *interrupted;    /* owned */
	struct rlmd_sandbox *sandbox; /* lent: the engine's */
	bool loads, loaded;           /* the sandbox's python3: it was begun; and it is ready */
	struct status *status;        /* owned */
	int signal;                   /* that ended or shortened the work, or 0 */
	bool over;                    /* the work told its end */
	struct rlmd_error broken;     /* why the output could not be written */
};

/*
 * The settings; `ret_first` is the first argument that is no option. False: there is nothing more
 * to do (help, a version, something wrong), and `ret_status` is the command's exit status.
 */
bool session_begin(struct session *, enum command_id, int argc, char **argv, int *ret_first,
		   int *ret_status);

/* A result that is always an object is no OUTPUT_ANSWER. */
bool session_open_output(struct session *, enum output_form otherwise, struct rlmd_error *);

/* The engine, without anybody to ask; and with all providers. */
bool session_open_engine(struct session *, struct rlmd_error *);
bool session_open(struct session *, struct rlmd_error *);

/* The settings, for a job: whoever starts it adds its work and its hooks. Lent by the session. */
struct rlmd_job_options session_job(const struct session *);

/* Starts what session_open_sandbox() has to wait for. Errors as there. */
bool session_begin_sandbox(struct session *, struct rlmd_error *);

/* RLMD_ERROR_CANCELLED where a signal came meanwhile; RLMD_ERROR_SANDBOX also where it is less than
 * --require asks for, unless `any` will do. */
bool session_open_sandbox(struct session *, bool any, struct rlmd_error *);

/* The input is there: what remains of the time is the work's. RLMD_ERROR_BUDGET where that is none.
 */
bool session_spend_time(struct session *, struct rlmd_error *);

/* RLMD_ERROR_CANCELLED where a signal came before there was any work that could be told of it; in
 * place of what that made fail, if anything. Else true. */
bool session_check_signals(struct session *, struct rlmd_error *);

/* Warns of it, once; it is then in the notes. What is odd about the environment, first of all. */
void session_note(struct session *, const char *warning);
void session_note_strays(struct session *);

/* What there was to warn of before a job began. */
void session_note_job(struct session *, const struct rlmd_job *);

/* Whether a line on standard error may be rewritten (cli/live_line.h). */
bool session_is_live(const struct session *);

/* Until session_leave(). False where that did not come: stopped by a second signal, or because
 * nobody reads the output. */
bool session_wait(struct session *, const struct session_work *, struct rlmd_error *);
void session_leave(struct session *);

/* One event of the work, a line of JSON, to whoever is shown events. */
void session_event(struct session *, struct rlmd_text event);

/* What session_event() needs of them, for struct rlmd_hooks; static. */
const char *const *session_events(const struct session *);

/* Workers, transfers and the live line are gone afterwards; the work must be. */
void session_close(struct session *);

struct session_result {
	json_t *object;          /* lent; NULL: nothing is to be printed */
	struct rlmd_text answer; /* what OUTPUT_ANSWER prints; no bytes (NULL): nothing */
	const char *work; /* "4 turns", for the summary; NULL: nothing was begun, there is none */
	const struct rlmd_error *failure; /* NULL: none */
	int status;                       /* the exit status, signals aside */
	int64_t max_cost;                 /* RLMD_UNLIMITED: none */
};

/* Prints it, and says how it went. Returns the exit status. */
int session_report(struct session *, const struct session_result *);

/* What --dry-run shows: the object with --json or --jsonl, the text else. Returns the exit status.
 */
int session_show(struct session *, const json_t *object, struct rlmd_text);

/* A dry run of that job, likewise; `format` makes it readable. With --strict what does not fit the
 * budget is a failure. */
int session_show_job(struct session *, const struct rlmd_job_options *,
		     void (*format)(const json_t *, struct evbuffer *out));

/* A result object of the library's, new. */
json_t *session_read(struct rlmd_text json);

void session_done(struct session *);
