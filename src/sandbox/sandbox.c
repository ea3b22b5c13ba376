#include "sandbox/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sandbox/filter.h"
#include "sandbox/launch.h"
#include "sandbox/process.h"
#include "sandbox/python.h"
#include "sandbox/template.h"

#define GIB              ((uint64_t)1 << 30)
#define SENT_MAX         8 /* requests without an answer: bounds the descriptors in flight */
#define SHIM_PATIENCE_MS 5000
#define PR_GET_MDWE_     66 /* PR_GET_MDWE, younger than the headers of some systems */

TAILQ_HEAD(spawn_list, spawn);

/* In one of the sandbox's three lists. A cancelled one that was sent stays until it is answered. */
struct spawn {
	struct sandbox *sandbox; /* lent */
	struct spawn_list *list; /* lent: the one that it is in */
	struct launch_request request;
	int fds[LAUNCH_FILES_MAX + 2]; /* owned until sent: in, out, files */
	size_t fd_count;
	struct error error; /* where it failed */

	sandbox_spawn_fn *fn; /* NULL: cancelled */
	void *owner;
	TAILQ_ENTRY(spawn) entry;
};

struct sandbox {
	struct event_base *base;       /* lent */
	struct template_config config; /* its pointers are owned */
	size_t worker_memory;
	struct template *template; /* owned; NULL: the next spawn starts one */
	bool ready;                /* the template is */
	struct event *pump;        /* owned: something is to be sent, or has failed */
	struct spawn_list queued, sent, failed;
	struct process_list processes; /* owned by their receivers, and by us when freed */
	uint64_t sequence;             /* of the last request */
	pid_t *sessions;               /* owned: of templates that may have left children */
	size_t session_count;
};

static void on_template(void *owner, const struct template_event *event);

static void spawn_move(struct spawn *spawn, struct spawn_list *list)
{
	if (spawn->list)
		TAILQ_REMOVE(spawn->list, spawn, entry);
	spawn->list = list;
	if (list)
		TAILQ_INSERT_TAIL(list, spawn, entry);
}

static void spawn_close(struct spawn *spawn)
{
	while (spawn->fd_count)
		close(spawn->fds[--spawn->fd_count]);
}

static void spawn_free(struct spawn *spawn)
{
	spawn_move(spawn, NULL);
	spawn_close(spawn);
	free(spawn);
}

static void spawn_fail(struct spawn *spawn, const struct error *error)
{
	spawn_close(spawn);
	spawn->error = *error;
	spawn_move(spawn, &spawn->sandbox->failed);
	event_active(spawn->sandbox->pump, 0, 0);
}

static void fail_all(struct spawn_list *list, const struct error *error)
{
	struct spawn *spawn;

	while ((spawn = TAILQ_FIRST(list)))
		spawn_fail(spawn, error);
}

/* Whether children of that session are left, dead or alive; then its number is still theirs. */
static bool session_has_children(pid_t session)
{
	siginfo_t info;

	return !waitid(P_PGID, (id_t)session, &info, WEXITED | WNOHANG | WNOWAIT);
}

static bool sandbox_start_template(struct sandbox *sandbox, struct error *err)
{
	size_t kept = 0, i;

	sandbox->ready = false;
	sandbox->template = template_new(sandbox->base, &sandbox->config, on_template, sandbox,
					 err);
	if (!sandbox->template)
		return false;
	for (i = 0; i < sandbox->session_count; i++)
		if (session_has_children(sandbox->sessions[i]))
			sandbox->sessions[kept++] = sandbox->sessions[i];
	sandbox->sessions = xreallocarray(sandbox->sessions, kept + 1, sizeof *sandbox->sessions);
	sandbox->sessions[kept] = template_pid(sandbox->template);
	sandbox->session_count = kept + 1;
	return true;
}

static void send_queued(struct sandbox *sandbox)
{
	struct spawn *spawn, *other;
	struct error error;
	size_t sent = 0;

	TAILQ_FOREACH (other, &sandbox->sent, entry)
		sent++;
	while (sent < SENT_MAX && (spawn = TAILQ_FIRST(&sandbox->queued))) {
		switch (template_send(sandbox->template, &spawn->request, spawn->fds,
				      spawn->fd_count)) {
		case TEMPLATE_SENT:
			spawn_close(spawn);
			spawn_move(spawn, &sandbox->sent);
			sent++;
			break;
		case TEMPLATE_FULL:
			return;
		case TEMPLATE_FAILED:
			error_errno(&error, ERROR_SANDBOX, "cannot ask for a worker");
			spawn_fail(spawn, &error);
			break;
		}
	}
}

static void deliver_failure(struct sandbox *sandbox)
{
	struct spawn *spawn = TAILQ_FIRST(&sandbox->failed);
	sandbox_spawn_fn *fn;
	struct error error;
	void *owner;

	if (!spawn)
		return;
	fn = spawn->fn;
	owner = spawn->owner;
	error = spawn->error;
	spawn_free(spawn);
	if (!TAILQ_EMPTY(&sandbox->failed))
		event_active(sandbox->pump, 0, 0);
	if (fn)
		fn(owner, NULL, &error);
}

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox *sandbox = arg;
	struct error error;

	(void)fd;
	(void)what;
	if (!TAILQ_EMPTY(&sandbox->queued) && !sandbox->template &&
	    !sandbox_start_template(sandbox, &error))
		fail_all(&sandbox->queued, &error);
	if (sandbox->ready)
		send_queued(sandbox);
	deliver_failure(sandbox);
}

static void on_launched(struct sandbox *sandbox, const struct template_event *event)
{
	struct spawn *spawn = TAILQ_FIRST(&sandbox->sent);
	struct process *process = NULL;
	sandbox_spawn_fn *fn;
	struct error error;
	void *owner;

	if (!event->error)
		process = process_new(sandbox->base, &sandbox->processes, event->pid, event->pidfd);
	/* Requests are answered in order; one that is not ours to know is not kept. */
	if (!spawn || spawn->request.sequence != event->sequence) {
		process_free(process);
		return;
	}
	event_active(sandbox->pump, 0, 0);
	if (event->error) {
		errno = event->error;
		error_errno(&error, ERROR_SANDBOX, "cannot fork a worker");
		spawn_fail(spawn, &error);
		return;
	}
	fn = spawn->fn;
	owner = spawn->owner;
	spawn_free(spawn);
	if (fn)
		fn(owner, process, NULL);
	else
		process_free(process);
}

static void on_template(void *owner, const struct template_event *event)
{
	struct sandbox *sandbox = owner;

	switch (event->kind) {
	case TEMPLATE_READY:
		sandbox->ready = true;
		event_active(sandbox->pump, 0, 0);
		break;
	case TEMPLATE_WRITABLE:
		event_active(sandbox->pump, 0, 0);
		break;
	case TEMPLATE_LAUNCHED:
		on_launched(sandbox, event);
		break;
	case TEMPLATE_GONE:
		/* What it never saw may wait for the next one, unless that would end likewise. */
		fail_all(&sandbox->sent, event->reason);
		if (!sandbox->ready)
			fail_all(&sandbox->queued, event->reason);
		sandbox->ready = false;
		template_free(sandbox->template);
		sandbox->template = NULL;
		event_active(sandbox->pump, 0, 0);
		break;
	}
}

static bool build_filter(int *ret_fd, struct error *err)
{
	struct filter filter;

	if (!filter_build(&filter, err))
		return false;
	*ret_fd = filter_memfd(&filter, err);
	return *ret_fd >= 0;
}

static bool sandbox_configure(struct sandbox *sandbox, const struct sandbox_config *config,
			      struct error *err)
{
	auto_free char *directory = realpath(config->worker_dir, NULL);
	const char **preload;
	size_t count = 0;

	sandbox->config.script = xasprintf("%s/template.py", directory ? directory : "");
	if (!directory || access(sandbox->config.script, R_OK))
		return error_errno(err, ERROR_SANDBOX, "cannot use %s/template.py",
				   config->worker_dir);
	while (config->preload && config->preload[count])
		count++;
	sandbox->config.preload = preload = xcalloc(count + 1, sizeof *preload);
	while (count--)
		preload[count] = xstrdup(config->preload[count]);
	sandbox->config.python = python_find(config->python, SHIM_PATIENCE_MS, err);
	return sandbox->config.python && build_filter(&sandbox->config.filter, err);
}

struct sandbox *sandbox_new(struct event_base *base, const struct sandbox_config *config,
			    struct error *err)
{
	struct sandbox *sandbox = xcalloc(1, sizeof *sandbox);
	struct sigaction action;
	struct error error = {0};

	sandbox->base = base;
	sandbox->worker_memory = config->worker_memory;
	sandbox->config.filter = -1;
	sandbox->pump = event_new(base, -1, 0, on_pump, sandbox);
	TAILQ_INIT(&sandbox->queued);
	TAILQ_INIT(&sandbox->sent);
	TAILQ_INIT(&sandbox->failed);
	TAILQ_INIT(&sandbox->processes);

	/* Who starts us may have SIGCHLD ignored; the kernel would then reap in our place. */
	if (!sigaction(SIGCHLD, NULL, &action) && action.sa_handler == SIG_IGN)
		signal(SIGCHLD, SIG_DFL);
	if (sandbox_configure(sandbox, config, &error) && sandbox_start_template(sandbox, &error) &&
	    template_greet(sandbox->template, &error))
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
static void reap_unknown(const struct sandbox *sandbox)
{
	size_t i;

	for (i = 0; i < sandbox->session_count; i++)
		while (session_has_children(sandbox->sessions[i])) {
			siginfo_t info;

			kill(-sandbox->sessions[i], SIGKILL);
			waitid(P_PGID, (id_t)sandbox->sessions[i], &info, WEXITED);
		}
}

static void free_list(struct spawn_list *list)
{
	struct spawn *spawn;

	while ((spawn = TAILQ_FIRST(list)))
		spawn_free(spawn);
}

void sandbox_free(struct sandbox *sandbox)
{
	size_t i;

	if (!sandbox)
		return;
	template_free(sandbox->template);
	free_list(&sandbox->queued);
	free_list(&sandbox->sent);
	free_list(&sandbox->failed);
	process_list_reap(&sandbox->processes);
	reap_unknown(sandbox);

	event_free(sandbox->pump);
	if (sandbox->config.filter >= 0)
		close(sandbox->config.filter);
	for (i = 0; sandbox->config.preload && sandbox->config.preload[i]; i++)
		free((char *)sandbox->config.preload[i]);
	free((char **)sandbox->config.preload);
	free((char *)sandbox->config.python);
	free((char *)sandbox->config.script);
	free(sandbox->sessions);
	free(sandbox);
}

json_t *sandbox_report(const struct sandbox *sandbox)
{
	static const char *const layers[] = {
#define WALL(name, layer, meaning) [WALL_##name] = layer,
#include "sandbox/walls.def"
#undef WALL
	};
	json_t *stand = json_array();
	size_t i;

	(void)sandbox;
	for (i = 0; i < WALL_COUNT; i++) {
		if (i == WALL_wx && prctl(PR_GET_MDWE_, 0, 0, 0, 0) < 0)
			continue;
		if (*layers[i])
			json_array_append_new(stand, json_string(layers[i]));
	}
	return json_pack("{s:s, s:s, s:o}", "level", "L1", "mode", geteuid() ? "user" : "root",
			 "layers", stand);
}

/*
 * A description of its own for each worker, read-only: those that share an
 * input must not share its position and flags.
 */
static int reopen(int file)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool spawn_open(struct spawn *spawn, const int *files, size_t file_count, struct error *err)
{
	size_t i;

	if (file_count > LAUNCH_FILES_MAX)
		return error_set(err, ERROR_INPUT, "%zu inputs; a worker takes at most %d",
				 file_count, LAUNCH_FILES_MAX);
	for (i = 0; i < file_count; i++) {
		int fd = reopen(files[i]);

		if (fd < 0)
			return error_errno(err, ERROR_SANDBOX, "cannot reopen an input");
		spawn->fds[spawn->fd_count++] = fd;
	}
	return true;
}

struct spawn *sandbox_spawn(struct sandbox *sandbox, int in, int out, const int *files,
			    size_t file_count, size_t extra_memory, sandbox_spawn_fn *fn,
			    void *owner)
{
	struct spawn *spawn = xcalloc(1, sizeof *spawn);
	uint64_t memory = (uint64_t)sandbox->worker_memory + extra_memory;
	struct error error;

	spawn->sandbox = sandbox;
	spawn->fn = fn;
	spawn->owner = owner;
	spawn->fds[spawn->fd_count++] = in;
	spawn->fds[spawn->fd_count++] = out;
	spawn->request = (struct launch_request){
		.sequence = ++sandbox->sequence,
		.data_limit = memory,
		/* The interpreter's own mappings and the inputs' count here too, and malloc's
		 * arenas reserve more than they use. */
		.address_limit = 2 * memory + GIB,
		.supervisor = getpid(),
		.file_count = (uint32_t)file_count,
	};
	spawn_move(spawn, &sandbox->queued);
	if (!spawn_open(spawn, files, file_count, &error))
		spawn_fail(spawn, &error);
	event_active(sandbox->pump, 0, 0);
	return spawn;
}

void spawn_cancel(struct spawn *spawn)
{
	if (!spawn)
		return;
	if (spawn->list == &spawn->sandbox->sent)
		spawn->fn = NULL; /* what comes of it is freed on arrival */
	else
		spawn_free(spawn);
}
