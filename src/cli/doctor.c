/*
 * rlmd doctor: what this machine can confine, tried for real.
 *
 * Nothing is concluded from what exists: workers are started as those of runs
 * are, attacked from inside, and only then is told which walls stood.
 */
#include <event2/event.h>
#include <rlmd/rlmd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/loop.h"
#include "cli/attack.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/findings.h"
#include "cli/isolation.h"
#include "cli/print.h"
#include "cli/subids.h"
#include "cli/tell.h"
#include "llm/probe.h"
#include "sandbox/uids.h"

enum {
	PROBE_MS = 5000,
	MEMORY_MAX = 128 << 20, /* an attack fills it: enough for a worker, and no burden */
};

struct doctor {
	struct config config;
	struct event_base *base;   /* owned */
	struct sandbox *sandbox;   /* owned; NULL: there can be none */
	struct assault *assault;   /* owned */
	struct probe *probe;       /* owned */
	struct event *interrupted; /* owned */
	int waiting;               /* for the end of the assault, and of the probe */
	json_t *findings;          /* owned: what --json prints */
	bool short_of_level;       /* --require asks for more */
};

static const char usage[] =
	"usage: rlmd doctor [OPTIONS]\n\n"
	"Raises every wall that runs will have, attacks it from inside, and tells what stood,\n"
	"what this machine lacks, and whether the provider answers. Exit status 0: every\n"
	"guarantee can be kept; 7: not so.\n\n"
	"  --json            the findings as one JSON object\n"
	"  --policy          show what a worker may ask of the kernel, and why; try nothing\n"
	"  --require LEVEL   find fault with less than L1, L2, L3 or L4\n"
	"  --python, --preload, --worker-memory, --first-uid\n"
	"  --provider, --model, --base-url, --key-file, --replay, --config\n"
	"                    as in 'rlmd exec'\n";

/* --- findings ---------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void find_problem(struct doctor *doctor,
							       const char *fmt, ...)
{
	json_t *problems = json_object_get(doctor->findings, "problems");
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	json_array_append_new(problems, json_from_text(text_of(text)));
}

static void begin_findings(struct doctor *doctor)
{
	struct utsname name;

	uname(&name);
	doctor->findings = json_pack("{s:s, s:s, s:s, s:[], s:[], s:[], s:[]}", "version",
				     RLMD_VERSION, "kernel", name.release, "machine", name.machine,
				     "layers", "attacks", "warnings", "problems");
}

static void on_python(void *owner, struct rlmd_text python)
{
	struct doctor *doctor = owner;

	json_object_set_new(doctor->findings, "python", json_from_text(python));
}

static const char *verdict_name(enum attack_verdict verdict)
{
	switch (verdict) {
	case ATTACK_REFUSED:
		return "refused";
	case ATTACK_UNTRIED:
		return "untried";
	case ATTACK_GOT_THROUGH:
		return "got through";
	}
	return "unknown";
}

static void on_result(void *owner, const struct attack_result *result)
{
	struct doctor *doctor = owner;

	json_array_append_new(json_object_get(doctor->findings, "attacks"),
			      json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", result->name,
					"guarantee", result->guarantee, "what", result->what,
					"verdict", verdict_name(result->verdict), "detail",
					json_from_text(text_of(result->detail))));
	if (result->verdict == ATTACK_UNTRIED)
		find_problem(doctor,
			     "an attack could not be tried, for this Python lacks ctypes: "
			     "%s (%s)",
			     result->name, result->guarantee);
	if (result->verdict == ATTACK_GOT_THROUGH)
		find_problem(doctor, "an attack got through: %s (%s)", result->name,
			     result->guarantee);
}

static void answered(struct doctor *doctor)
{
	if (!--doctor->waiting)
		event_base_loopbreak(doctor->base);
}

static void on_assault_done(void *owner, const struct rlmd_error *err)
{
	struct doctor *doctor = owner;

	if (err)
		find_problem(doctor, "no worker: %s", err->text);
	answered(doctor);
}

static void on_probe(void *owner, const struct probe_result *result)
{
	struct doctor *doctor = owner;
	const char *what = !result->asked                    ? "not asked:"
			   : result->error && result->status ? "refuses:"
			   : result->error                   ? "does not answer:"
							     : "answers at";
	auto_free char *message = xasprintf("%s %s", what,
					    result->error ? result->error->text : result->url);

	json_object_set_new(doctor->findings, "provider",
			    json_pack("{s:s, s:s?, s:b, s:b, s:i, s:o}", "name",
				      doctor->config.provider, "url", result->url, "asked",
				      result->asked, "answers", !result->error, "status",
				      result->status, "message", json_from_text(text_of(message))));
	answered(doctor);
}

static void find_isolation(struct doctor *doctor)
{
	json_auto_t *report = sandbox_report(doctor->sandbox);
	struct rlmd_error err;

	json_object_set(doctor->findings, "level", json_object_get(report, "level"));
	json_object_set(doctor->findings, "mode", json_object_get(report, "mode"));
	json_object_set_new(doctor->findings, "layers", findings_layers(report));
	doctor->short_of_level = !isolation_suffices(report, doctor->config.require, &err);
	if (doctor->short_of_level)
		find_problem(doctor, "%s", err.text);
}

/* An ordinary user's workers have none of those ids. */
static void find_clashes(struct doctor *doctor)
{
	struct uids uids = {0};

	uids_begin(&uids, (uint32_t)doctor->config.first_uid);
	if (!geteuid())
		subids_check_all(uids.first, UIDS_COUNT,
				 json_object_get(doctor->findings, "warnings"));
}

/* --- the examination ----------------------------------------------------------------- */

static void start_assault(struct doctor *doctor)
{
	static const struct assault_events events = {on_python, on_result, on_assault_done};
	struct rlmd_error err;

	doctor->sandbox = isolation_open(doctor->base, &doctor->config, &err);
	if (!doctor->sandbox && interrupt_count())
		return; /* which is why */
	if (!doctor->sandbox) {
		find_problem(doctor, "no worker: %s", err.text);
		return;
	}
	doctor->waiting++;
	doctor->assault = assault_start(doctor->base, doctor->sandbox,
					(size_t)doctor->config.worker_memory, &events, doctor);
}

static void start_probe(struct doctor *doctor)
{
	struct llm_config config = {
		.provider = doctor->config.provider,
		.model = doctor->config.model,
		.base_url = doctor->config.base_url,
		.key_file = doctor->config.key_file,
		.replay_dir = doctor->config.replay,
	};

	doctor->waiting++;
	doctor->probe = probe_start(doctor->base, &config, PROBE_MS, on_probe, doctor);
}

static void on_signal(evutil_socket_t fd, short what, void *owner)
{
	struct doctor *doctor = owner;

	(void)fd;
	(void)what;
	event_base_loopbreak(doctor->base);
}

/* The loop is not so much as entered where a signal came before it. */
static void await_end(struct doctor *doctor)
{
	doctor->interrupted = event_new(doctor->base, interrupt_fd(), EV_READ, on_signal, doctor);
	event_add(doctor->interrupted, NULL);
	if (!interrupt_count())
		event_base_dispatch(doctor->base);
	if (interrupt_count())
		find_problem(doctor, "stopped by SIG%s before everything was tried",
			     sigabbrev_np(interrupt_signal()));
}

/* Keys leave the environment first, as before a run; something else is left there to be found. */
static bool examine(struct doctor *doctor)
{
	bool fine;

	doctor->base = loop_new();
	if (!doctor->base) {
		find_problem(doctor, "no worker: cannot make an event loop");
		return false;
	}
	start_probe(doctor);
	setenv("RLMD_SECRET", "for an attack to find", 1);
	start_assault(doctor);
	await_end(doctor);
	if (doctor->assault)
		find_isolation(doctor);
	find_clashes(doctor);
	fine = !json_array_size(json_object_get(doctor->findings, "problems"));
	json_object_set_new(doctor->findings, "ok", json_boolean(fine));
	return fine;
}

/* What was started is gone before anything is printed, which may take as long as its reader likes.
 */
static void close_all(struct doctor *doctor)
{
	assault_free(take_pointer(&doctor->assault));
	probe_free(take_pointer(&doctor->probe));
	sandbox_free(take_pointer(&doctor->sandbox));
	if (doctor->interrupted)
		event_free(take_pointer(&doctor->interrupted));
	if (doctor->base)
		event_base_free(take_pointer(&doctor->base));
}

static void stop(struct doctor *doctor)
{
	close_all(doctor);
	json_decref(doctor->findings);
	config_done(&doctor->config);
}

static int print_findings(struct doctor *doctor)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	if (doctor->config.json)
		return print_json(doctor->findings);
	findings_format(doctor->findings, doctor->short_of_level, out);
	return print_text(text_in(out));
}

static int show_policy(const struct doctor *doctor)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	json_auto_t *policy = doctor->config.json ? findings_policy() : NULL;

	if (policy)
		return print_json(policy);
	findings_format_policy(out);
	return print_text(text_in(out));
}

/* --- the command line ------------------------------------------------------------------ */

/* The one option that no other command has. */
static bool take_policy(int *argc, char **argv)
{
	int kept = 1;

	for (int i = 1; i < *argc; i++)
		if (strcmp(argv[i], "--policy") != 0)
			argv[kept++] = argv[i];
	if (kept == *argc)
		return false;
	argv[kept] = NULL;
	*argc = kept;
	return true;
}

static bool check_options(const struct config *config, struct rlmd_error *err)
{
	static const enum option_id known[] = {
		OPTION_provider,  OPTION_model,   OPTION_base_url,      OPTION_key_file,
		OPTION_python,    OPTION_preload, OPTION_worker_memory, OPTION_require,
		OPTION_json,      OPTION_config,  OPTION_replay,        OPTION_help,
		OPTION_first_uid,
	};

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		bool allowed = config->layers[i] != CONFIG_ARGUMENT;

		for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
			allowed = allowed || known[k] == (enum option_id)i;
		if (!allowed)
			return error_set(err, RLMD_ERROR_USAGE, "doctor has no use for --%s",
					 option_table[i].name);
	}
	return true;
}

static bool read_settings(struct doctor *doctor, int argc, char **argv, struct rlmd_error *err)
{
	struct config *config = &doctor->config;
	int first;

	if (!config_arguments(config, argc, argv, &first, err) || !check_options(config, err))
		return false;
	if (first < argc)
		return error_set(err, RLMD_ERROR_USAGE, "doctor takes no argument: '%s'",
				 argv[first]);
	if (config->help)
		return true;
	if (!config_environment(config, err) || !config_files(config, err))
		return false;
	if (!config->provider)
		config->provider = xstrdup(llm_default_provider());
	if (config->worker_memory > MEMORY_MAX)
		config->worker_memory = MEMORY_MAX;
	return true;
}

static void warn_of_environment(void)
{
	json_auto_t *strays = config_stray_environment();
	const json_t *stray;
	size_t i;

	json_array_foreach (strays, i, stray)
		tell_warning("%s", json_string_value(stray));
}

static int run(struct doctor *doctor, int argc, char **argv)
{
	bool policy = take_policy(&argc, argv), fine;
	struct rlmd_error err;
	int status;

	if (!read_settings(doctor, argc, argv, &err)) {
		tell_error("%s; see 'rlmd doctor --help'", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	if (doctor->config.help)
		return print_text(text_of(usage));
	warn_of_environment();
	if (policy)
		return show_policy(doctor);
	begin_findings(doctor);
	fine = examine(doctor);
	close_all(doctor);
	status = print_findings(doctor);
	if (interrupt_count())
		return 128 + interrupt_signal();
	return fine || status ? status : rlmd_error_exit_status(RLMD_ERROR_SANDBOX);
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor doctor = {0};
	int status;

	config_init(&doctor.config);
	status = run(&doctor, argc, argv);
	stop(&doctor);
	return status;
}
