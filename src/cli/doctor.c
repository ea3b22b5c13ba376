/*
 * rlmd doctor: what this machine can confine, tried for real.
 *
 * Nothing is concluded from what exists: workers are started as those of runs
 * are, attacked from inside, and only then is told which walls stood.
 */
#include <rlmd/provider.h>
#include <rlmd/sandbox.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/attack.h"
#include "cli/command.h"
#include "cli/findings.h"
#include "cli/interrupt.h"
#include "cli/providers.h"
#include "cli/session.h"
#include "cli/subids.h"

enum {
	PROBE_MS = 5000,
	MEMORY_MAX = 128 << 20, /* an attack fills it: enough for a worker, and no burden */
};

struct doctor {
	struct session *session;        /* lent */
	struct attack_series *attacks;  /* owned */
	struct rlmd_provider *provider; /* owned; NULL: there is none of that name */
	struct rlmd_probe *probe;       /* owned */
	int waiting;                    /* for the end of the series, and of the probe */
	json_t *findings;               /* owned: what --json prints */
	bool short_of_level;            /* --require asks for more */
};

/* --- findings ---------------------------------------------------------------------- */

static void on_python(void *owner, struct rlmd_text python)
{
	struct doctor *doctor = owner;

	json_object_set_new(doctor->findings, "python", json_from_text(python));
}

static void on_result(void *owner, const struct attack_result *result)
{
	findings_add_attack(((struct doctor *)owner)->findings, result);
}

static void answered(struct doctor *doctor)
{
	if (!--doctor->waiting)
		session_leave(doctor->session);
}

static void on_attacks_done(void *owner, const struct rlmd_error *err)
{
	struct doctor *doctor = owner;

	if (err)
		findings_add_problem(doctor->findings, "no worker: %s", err->text);
	answered(doctor);
}

static void find_provider(struct doctor *doctor, const struct rlmd_probe_result *result)
{
	findings_set_provider(doctor->findings, doctor->session->config.provider, result);
}

static void on_probe(void *owner, const struct rlmd_probe_result *result)
{
	find_provider(owner, result);
	answered(owner);
}

static void find_isolation(struct doctor *doctor)
{
	auto_free char *text = rlmd_sandbox_report(doctor->session->sandbox);
	json_auto_t *report = session_read(text_of(text));

	doctor->short_of_level = findings_set_sandbox(doctor->findings, report,
						      doctor->session->config.require);
}

/* An ordinary user's workers have none of those ids. */
static void find_clashes(struct doctor *doctor)
{
	uint32_t first, count;

	rlmd_sandbox_uids((uint32_t)doctor->session->config.first_uid, &first, &count);
	if (!geteuid())
		subids_check_all(first, count, json_object_get(doctor->findings, "warnings"));
}

static void find_validator(struct doctor *doctor)
{
	const struct session *session = doctor->session;
	struct rlmd_error err;

	if (!session->signal && !rlmd_engine_validates(session->engine, session->sandbox, &err))
		json_array_append_new(json_object_get(doctor->findings, "warnings"),
				      json_sprintf("--schema cannot be used: %s", err.text));
}

/* --- the examination ----------------------------------------------------------------- */

static void start_attacks(struct doctor *doctor)
{
	static const struct attack_events events = {on_python, on_result, on_attacks_done};
	struct session *session = doctor->session;
	struct rlmd_error err;

	if (!session_open_sandbox(session, true, &err)) {
		if (!session->signal)
			findings_add_problem(doctor->findings, "no worker: %s", err.text);
		return;
	}
	doctor->waiting++;
	doctor->attacks = attack_start(session->engine, session->sandbox,
				       (size_t)session->config.worker_memory, &events, doctor);
}

/* The keys leave the environment with it, as before a run. */
static void start_probe(struct doctor *doctor)
{
	const struct config *config = &doctor->session->config;
	struct rlmd_error err = {0};

	doctor->provider = providers_own(config, &err);
	providers_forget_keys();
	if (doctor->provider && config->replay)
		error_set(&err, RLMD_ERROR_USAGE, "answers come from recordings");
	if (err.kind) {
		find_provider(doctor, &(struct rlmd_probe_result){.error = &err});
		return;
	}
	doctor->waiting++;
	doctor->probe = rlmd_probe_start(doctor->session->base, doctor->provider, PROBE_MS,
					 on_probe, doctor, NULL);
}

static void on_interrupt(void *owner)
{
	struct doctor *doctor = owner;

	session_leave(doctor->session);
}

/* The loop is not so much as entered where a signal came before it. */
static void await_end(struct doctor *doctor)
{
	struct session *session = doctor->session;
	const struct session_work work = {.interrupt = on_interrupt, .owner = doctor};
	struct rlmd_error err;

	if (session_check_signals(session, &err) && doctor->waiting)
		session_wait(session, &work, &err);
	if (session->signal)
		findings_add_problem(doctor->findings,
				     "stopped by SIG%s before everything was tried",
				     sigabbrev_np(session->signal));
}

/* Keys leave the environment first, as before a run; something else is left there to be found. */
static bool examine(struct doctor *doctor)
{
	struct rlmd_error err;

	if (!session_open_engine(doctor->session, &err)) {
		findings_add_problem(doctor->findings, "no worker: %s", err.text);
		return false;
	}
	start_probe(doctor);
	setenv("RLMD_SECRET", "for an attack to find", 1);
	start_attacks(doctor);
	await_end(doctor);
	if (doctor->attacks) {
		find_isolation(doctor);
		find_validator(doctor);
	}
	find_clashes(doctor);
	return findings_conclude(doctor->findings);
}

/* Ends all that was started before anything is printed, as its reader may take long. */
static void stop(struct doctor *doctor)
{
	attack_free(take_pointer(&doctor->attacks));
	rlmd_probe_free(take_pointer(&doctor->probe));
	rlmd_provider_unref(take_pointer(&doctor->provider));
	session_close(doctor->session);
}

static int print_findings(struct doctor *doctor)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	if (doctor->session->config.json)
		return command_print_json(doctor->findings);
	findings_format(doctor->findings, doctor->short_of_level, out);
	return command_print(text_in(out));
}

static int show_policy(const struct doctor *doctor)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *text = rlmd_sandbox_policy();
	json_auto_t *policy = json_loads(text, 0, NULL);

	if (doctor->session->config.json)
		return command_print_json(policy);
	findings_format_policy(policy, out);
	return command_print(text_in(out));
}

/* --- the command line ------------------------------------------------------------------ */

static int run(struct doctor *doctor)
{
	bool fine;
	int status;

	doctor->findings = findings_new();
	fine = examine(doctor);
	stop(doctor);
	status = print_findings(doctor);
	json_decref(doctor->findings);
	if (interrupt_count())
		return 128 + interrupt_signal();
	return fine || status ? status : rlmd_error_exit_status(RLMD_ERROR_SANDBOX);
}

int command_doctor(struct session *session, int count, char **words)
{
	struct config *config = &session->config;
	struct doctor doctor = {.session = session};
	struct rlmd_error err;

	if (count) {
		error_set(&err, RLMD_ERROR_USAGE, "doctor takes no argument: '%s'", words[0]);
		return command_refuse(COMMAND_DOCTOR, &err);
	}
	if (!config->verbose) /* workers are meant to die of attacks */
		session->log_level = RLMD_LOG_ERROR;
	session_note_strays(session);
	if (config->policy)
		return show_policy(&doctor);
	if (config->worker_memory > MEMORY_MAX)
		config->worker_memory = MEMORY_MAX;
	return run(&doctor);
}
