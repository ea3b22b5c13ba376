#include "cli/attack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "pool/worker.h"

enum { OUTPUT_MAX = 1000, GREETING_MS = 20000 };

static const struct attack {
	const char *name, *guarantee, *what;
	int64_t ms;
	const char *refusals, *code;
} attacks[] = {
#define ATTACK(...) {__VA_ARGS__},
#include "cli/attacks.def"
#undef ATTACK
};

enum { ATTACKS = sizeof attacks / sizeof attacks[0] };

/* By numbers, for Python has no function for most; a new error each time, as `os` would raise. */
static const char prelude[] =
	"import _io, os, posix, sys\n"
	"MEMORY = %zu\n"
	"SOCKET, FCNTL, PTRACE, IO_URING_SETUP = %d, %d, %d, %d\n"
	"CLOCK_GETTIME, SCHED_GETAFFINITY, FUTEX = %d, %d, %d\n"
	"def call(*numbers):\n"
	"    import ctypes\n"
	"    library = ctypes.CDLL(None, use_errno=True)\n"
	"    if library.syscall(*map(ctypes.c_long, numbers)) < 0:\n"
	"        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))\n"
	"%s";

struct assault {
	struct event_base *base;      /* lent */
	struct rlmd_sandbox *sandbox; /* lent */
	size_t memory;
	struct worker *worker;               /* owned: the one that makes the next attack */
	bool greeted;                        /* it is known which Python this is */
	bool ready;                          /* the worker stood */
	size_t next;                         /* attack */
	const struct assault_events *events; /* lent */
	void *owner;                         /* lent */
};

static void on_worker(void *owner, const struct worker_event *event);

static void enlist(struct assault *assault)
{
	struct worker_options options = {.max_output = OUTPUT_MAX};

	assault->ready = false;
	assault->worker = worker_start(assault->base, assault->sandbox, &options, on_worker,
				       assault);
}

struct assault *assault_start(struct event_base *base, struct rlmd_sandbox *sandbox, size_t memory,
			      const struct assault_events *events, void *owner)
{
	struct assault *assault = xcalloc(1, sizeof *assault);

	*assault = (struct assault){.base = base,
				    .sandbox = sandbox,
				    .memory = memory,
				    .events = events,
				    .owner = owner};
	enlist(assault);
	return assault;
}

void assault_free(struct assault *assault)
{
	if (!assault)
		return;
	worker_free(assault->worker);
	free(assault);
}

static void greet(struct assault *assault)
{
	worker_exec(assault->worker, 1,
		    text_of("import sys\nprint(sys.version.split()[0], sys.executable)\n"),
		    GREETING_MS);
}

static void attack(struct assault *assault)
{
	const struct attack *next = &attacks[assault->next];
	auto_free char *code = xasprintf(prelude, assault->memory, SYS_socket, SYS_fcntl,
					 SYS_ptrace, SYS_io_uring_setup, SYS_clock_gettime,
					 SYS_sched_getaffinity, SYS_futex, next->code);

	worker_exec(assault->worker, 2, text_of(code), next->ms);
}

static bool is_refusal(const char *refusals, const char *told)
{
	auto_free char *copy = xstrdup(refusals);
	char *rest = copy, *refusal;

	while ((refusal = strsep(&rest, "|")))
		if (strstr(told, refusal))
			return true;
	return false;
}

/* `stopped`: by an exception or a death, and not by its own will. */
static void judge(struct assault *assault, bool stopped, struct rlmd_text told)
{
	const struct attack *made = &attacks[assault->next++];
	struct attack_result result = {made->name, made->guarantee, made->what, ATTACK_GOT_THROUGH,
				       ""};

	text_escape(text_last_line(told), result.detail, sizeof result.detail);
	if (stopped && is_refusal(made->refusals, result.detail))
		result.verdict = ATTACK_REFUSED;
	else if (stopped && strstr(result.detail, "ModuleNotFoundError"))
		result.verdict = ATTACK_UNTRIED;
	worker_free(take_pointer(&assault->worker));
	assault->events->on_result(assault->owner, &result);
	if (assault->next < ATTACKS)
		enlist(assault);
	else
		assault->events->on_done(assault->owner, NULL);
}

static void on_block(struct assault *assault, const struct worker_block *block)
{
	if (assault->greeted) {
		judge(assault, block->failed, block->failed ? block->error : block->stdout_text);
		return;
	}
	assault->greeted = true;
	assault->events->on_python(assault->owner, text_trim(block->stdout_text));
	attack(assault);
}

static void on_gone(struct assault *assault, const struct rlmd_error *err)
{
	struct rlmd_error copy = *err;

	if (assault->ready && assault->greeted) {
		judge(assault, true, text_of(copy.text));
		return;
	}
	worker_free(take_pointer(&assault->worker));
	assault->events->on_done(assault->owner, &copy);
}

static void on_worker(void *owner, const struct worker_event *event)
{
	struct assault *assault = owner;

	switch (event->kind) {
	case WORKER_READY:
		assault->ready = true;
		if (assault->greeted)
			attack(assault);
		else
			greet(assault);
		return;
	case WORKER_DONE:
		on_block(assault, event->block);
		return;
	case WORKER_GONE:
		on_gone(assault, event->error);
		return;
	case WORKER_CALL:
	case WORKER_VALUE:
		judge(assault, false, text_of("it said what it was not asked for"));
		return;
	}
}
