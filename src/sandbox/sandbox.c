#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/timer.h"
#include "sandbox/child.h"
#include "sandbox/filter.h"
#include "sandbox/python.h"
#include "sandbox/sandbox_private.h"

#define PATIENCE_MS    30000 /* far beyond what a machine under load needs to start a Python */
#define CPU_SECONDS    3600  /* of a worker */
#define ANSWER_TIME_MS 10000

static bool sandbox_configure(struct rlmd_sandbox *sandbox, const struct sandbox_config *config,
			      struct rlmd_error *err)
{
	auto_free char *directory = realpath(config->worker_dir, NULL);
	const char **preload;
	size_t count = 0;

	sandbox->config.script = xasprintf("%s/start.py", directory ? directory : "");
	if (!directory || access(sandbox->config.script, R_OK))
		return error_errno(err, RLMD_ERROR_SANDBOX, "cannot use %s/start.py",
				   config->worker_dir);
	while (config->preload && config->preload[count])
		count++;
	sandbox->config.preload = preload = xcalloc(count + 1, sizeof *preload);
	while (count--)
		preload[count] = xstrdup(config->preload[count]);
	sandbox->config.patience_ms = config->patience_ms ? config->patience_ms : PATIENCE_MS;
	sandbox->config.python = python_find(config->python, sandbox->config.patience_ms, err);
	if (!sandbox->config.python)
		return false;
	sandbox->python_version = python_version(sandbox->config.python);
	sandbox->config.archive = archive_new(config->cache, sandbox->config.python,
					      sandbox->config.script, config->log);
	sandbox->config.filter = filter_memfd(&filter_of_workers, err);
	return sandbox->config.filter >= 0;
}

/* A pipe that is never written to: its end is the only news. */
static bool open_life(struct rlmd_sandbox *sandbox, struct rlmd_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return error_errno(err, RLMD_ERROR_SANDBOX, "pipe");
	sandbox->config.life = ends[0];
	sandbox->life = ends[1];
	return true;
}

/* Of the machine's memory, or of what our own cgroups leave us of it. */
static uint64_t half_of_memory(void)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t ours = cgroup_memory_above();

	return (ours < machine ? ours : machine) / 2;
}

/* Opens the limits that hold for all workers together. */
static void open_limits(struct rlmd_sandbox *sandbox, const struct sandbox_config *config,
			uint64_t without)
{
	struct steps steps = {.without = without};
	uint64_t half = half_of_memory() / (config->pool_parts ? config->pool_parts : 1);
	uint64_t memory = config->pool_memory ? config->pool_memory : half;

	sandbox->config.cgroup = cgroup_new(
		&(struct cgroup_limits){
			.memory = memory, .threads = LAUNCH_THREADS_OF_ALL, .log = sandbox->log},
		&steps);
	sandbox->processes.cgroup = sandbox->config.cgroup;
	sandbox->processes.ceiling = memory;
	layer_status_note_all(&sandbox->status, &steps);
}

void sandbox_adopt(struct rlmd_sandbox *sandbox, struct template_process *template)
{
	size_t kept = 0, i;

	for (i = 0; i < sandbox->session_count; i++)
		if (child_session_lives(sandbox->sessions[i]))
			sandbox->sessions[kept++] = sandbox->sessions[i];
	sandbox->sessions = xreallocarray(sandbox->sessions, kept + 1, sizeof *sandbox->sessions);
	sandbox->sessions[kept] = template_pid(template);
	sandbox->session_count = kept + 1;
	sandbox->template_process = template;
}

pid_t sandbox_template_pid(const struct rlmd_sandbox *sandbox)
{
	return sandbox->session_count ? sandbox->sessions[sandbox->session_count - 1] : 0;
}

static const char *modules_from(const struct rlmd_sandbox *sandbox)
{
	return archive_verdict(sandbox->config.archive) == LAUNCH_ARCHIVE_GIVEN ? "archive"
										: "files";
}

/* Of the first one: whoever waits for it by sandbox_await() learns whether it is ready or lost. */
static void on_template(void *owner, const struct template_event *event)
{
	struct rlmd_sandbox *sandbox = owner;

	if (!sandbox->search.begun)
		spawn_on_template(sandbox, event);
	else if (sandbox->on_ready)
		sandbox->on_ready(sandbox->ready_owner);
}

static bool start_template(struct rlmd_sandbox *sandbox, uint64_t without, struct rlmd_error *err)
{
	sandbox->config.terms.without = without;
	sandbox->search = (struct mode_search){
		.base = sandbox->base,
		.config = &sandbox->config,
		.uids = &sandbox->processes.uids,
		.fn = on_template,
		.owner = sandbox,
		.status = sandbox->status,
	};
	return mode_search_begin(&sandbox->search, err);
}

/* Now it is known what stands. */
bool sandbox_await(struct rlmd_sandbox *sandbox, struct rlmd_error *err)
{
	struct launch_request usual = spawn_request(sandbox->worker_memory,
						    sandbox->processes.cpu_seconds, 0);
	struct template_process *template = mode_search_await(&sandbox->search, &usual, err);

	if (!template)
		return false;
	sandbox->status = sandbox->search.status;
	sandbox->maps_texts = template_maps_texts(template);
	sandbox->template_layers = template_layers(template) |
				   cgroup_layers(sandbox->config.cgroup);
	sandbox->status.layers |= sandbox->template_layers;
	watch_init(&sandbox->watch, &sandbox->processes);
	if (sandbox->processes.uids.locked)
		sandbox->status.layers |= BIT(uid_lock);
	sandbox_adopt(sandbox, template);
	sandbox->ready = true;
	layer_status_tell(&sandbox->status);
	log_write(sandbox->log, LOG_TEMPLATE_READY,
		  LOG_FIELDS(LOG_NUMBER("pid", template_pid(template)),
			     LOG_TEXT("mode", layer_status_mode(&sandbox->status)),
			     LOG_TEXT("isolation", layer_status_level(&sandbox->status)),
			     LOG_TEXT("modules", modules_from(sandbox))),
		  "workers can be started");
	return true;
}

struct rlmd_sandbox *sandbox_begin(struct event_base *base, const struct sandbox_config *config,
				   struct rlmd_error *err)
{
	struct rlmd_sandbox *sandbox = xcalloc(1, sizeof *sandbox);
	struct rlmd_error error = {0};
	uint64_t without;

	sandbox->base = base;
	sandbox->log = sandbox->status.log = config->log;
	sandbox->worker_memory = config->worker_memory;
	sandbox->config.filter = sandbox->config.life = sandbox->life = -1;
	sandbox->pump = timer_new(base, spawn_pump, sandbox);
	sandbox->overdue = timer_new(base, spawn_overdue, sandbox);
	sandbox->answer_ms = ANSWER_TIME_MS;
	TAILQ_INIT(&sandbox->queued);
	TAILQ_INIT(&sandbox->sent);
	TAILQ_INIT(&sandbox->failed);
	TAILQ_INIT(&sandbox->processes.queue);
	sandbox->processes.base = base;
	sandbox->processes.cpu_seconds = CPU_SECONDS;
	uids_begin(&sandbox->processes.uids, config->first_uid);
	if (layer_status_steps(config->without, &without, &error) &&
	    sandbox_configure(sandbox, config, &error) && open_life(sandbox, &error)) {
		open_limits(sandbox, config, without);
		if (start_template(sandbox, without, &error))
			return sandbox;
	}
	sandbox_free(sandbox);
	if (err)
		*err = error;
	return NULL;
}

void sandbox_on_ready(struct rlmd_sandbox *sandbox, rlmd_sandbox_ready_fn *fn, void *owner)
{
	sandbox->on_ready = fn;
	sandbox->ready_owner = owner;
}

struct rlmd_sandbox *sandbox_new(struct event_base *base, const struct sandbox_config *config,
				 struct rlmd_error *err)
{
	struct rlmd_sandbox *sandbox = sandbox_begin(base, config, err);
	struct rlmd_error error = {0};

	if (!sandbox || sandbox_await(sandbox, &error))
		return sandbox;
	sandbox_free(sandbox);
	if (err)
		*err = error;
	return NULL;
}

/*
 * A template that died between a fork and its reply has left a child that nobody
 * was told of. It is found by its session, which a worker cannot leave.
 */
static void reap_unknown(const struct rlmd_sandbox *sandbox, int64_t deadline)
{
	size_t i;

	for (i = 0; i < sandbox->session_count; i++)
		child_end_session(sandbox->sessions[i], deadline);
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void sandbox_cut(struct rlmd_sandbox *sandbox)
{
	if (sandbox->config.archive)
		archive_free(take_pointer(&sandbox->config.archive));
	if (sandbox->search.begun)
		template_cut(sandbox->search.begun);
	if (sandbox->template_process)
		template_cut(sandbox->template_process);
	process_list_cut(&sandbox->processes);
	if (sandbox->config.cgroup)
		cgroup_cut(sandbox->config.cgroup);
	sandbox->session_count = 0;
}

void sandbox_free(struct rlmd_sandbox *sandbox)
{
	int64_t deadline = clock_ms() + CHILD_END_MS;
	size_t i;

	if (!sandbox)
		return;
	if (sandbox->config.archive)
		archive_keep(sandbox->config.archive);
	mode_search_done(&sandbox->search);
	template_free(sandbox->template_process);
	spawn_free_all(sandbox);
	process_list_reap(&sandbox->processes, deadline);
	reap_unknown(sandbox, deadline);
	cgroup_free(sandbox->config.cgroup);
	uids_done(&sandbox->processes.uids);
	watch_done(&sandbox->watch);

	timer_free(sandbox->pump);
	timer_free(sandbox->overdue);
	close_if_open(sandbox->config.filter);
	close_if_open(sandbox->config.life);
	close_if_open(sandbox->life);
	for (i = 0; sandbox->config.preload && sandbox->config.preload[i]; i++)
		free((char *)sandbox->config.preload[i]);
	free((char **)sandbox->config.preload);
	archive_free(sandbox->config.archive);
	free((char *)sandbox->config.python);
	free(sandbox->python_version);
	free((char *)sandbox->config.script);
	free(sandbox->sessions);
	free(sandbox);
}

json_t *sandbox_report(const struct rlmd_sandbox *sandbox)
{
	return layer_status_report(&sandbox->status);
}

char *rlmd_sandbox_report(const struct rlmd_sandbox *sandbox)
{
	json_auto_t *report = sandbox ? sandbox_report(sandbox) : NULL;

	return report ? json_to_string(report) : NULL;
}

const char *rlmd_sandbox_level(const struct rlmd_sandbox *sandbox)
{
	return sandbox ? layer_status_level(&sandbox->status) : NULL;
}

bool sandbox_maps_texts(const struct rlmd_sandbox *sandbox)
{
	return sandbox->maps_texts;
}

const char *const *sandbox_preload(const struct rlmd_sandbox *sandbox)
{
	return sandbox->config.preload;
}

const char *sandbox_python_version(const struct rlmd_sandbox *sandbox)
{
	return sandbox->python_version;
}
