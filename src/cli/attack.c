#include "cli/attack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/alloc.h"
#include "base/cleanup.h"

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
	struct rlmd_engine *engine;   /* lent */
	struct rlmd_sandbox *sandbox; /* lent */
	size_t memory;
	struct rlmd_repl *repl;              /* owned: the one that makes the next attack */
	bool greeted;                        /* it is known which Python this is */
	bool ready;                          /* the worker stood */
	size_t next;                         /* attack */
	const struct assault_events *events; /* lent */
	void *owner;                         /* lent */
};

static void on_ready(void *owner, struct rlmd_repl *);
static void on_block(void *owner, struct rlmd_repl *, const struct rlmd_repl_block *);
static void on_gone(void *owner, struct rlmd_repl *, const struct rlmd_error *);

static bool enlist(struct assault *assault, struct rlmd_error *err)
{
	const struct rlmd_repl_hooks hooks = {
		.size = sizeof hooks,
		.ready = on_ready,
		.done = on_block,
		.gone = on_gone,
		.owner = assault,
	};
	const struct rlmd_repl_options options = {
		.size = sizeof options, .max_output = OUTPUT_MAX, .hooks = &hooks};

	assault->ready = false;
	assault->repl = rlmd_repl_start(assault->engine, assault->sandbox, &options, err);
	return assault->repl;
}

struct assault *assault_start(struct rlmd_engine *engine, struct rlmd_sandbox *sandbox,
			      size_t memory, const struct assault_events *events, void *owner)
{
	struct assault *assault = xcalloc(1, sizeof *assault);

	*assault = (struct assault){.engine = engine,
				    .sandbox = sandbox,
				    .memory = memory,
				    .events = events,
				    .owner = owner};
	enlist(assault, NULL); /* the sandbox stands */
	return assault;
}

void assault_free(struct assault *assault)
{
	if (!assault)
		return;
	rlmd_repl_free(assault->repl);
	free(assault);
}

static void greet(struct assault *assault)
{
	rlmd_repl_execute(assault->repl,
			  text_of("import sys\nprint(sys.version.split()[0], sys.executable)\n"),
			  GREETING_MS, NULL);
}

static void attack(struct assault *assault)
{
	const struct attack *next = &attacks[assault->next];
	auto_free char *code = xasprintf(prelude, assault->memory, SYS_socket, SYS_fcntl,
					 SYS_ptrace, SYS_io_uring_setup, SYS_clock_gettime,
					 SYS_sched_getaffinity, SYS_futex, next->code);

	rlmd_repl_execute(assault->repl, text_of(code), next->ms, NULL);
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

	struct rlmd_error err;

	text_escape(text_last_line(told), result.detail, sizeof result.detail);
	if (stopped && is_refusal(made->refusals, result.detail))
		result.verdict = ATTACK_REFUSED;
	else if (stopped && strstr(result.detail, "ModuleNotFoundError"))
		result.verdict = ATTACK_UNTRIED;
	rlmd_repl_free(take_pointer(&assault->repl));
	assault->events->on_result(assault->owner, &result);
	if (assault->next == ATTACKS)
		assault->events->on_done(assault->owner, NULL);
	else if (!enlist(assault, &err))
		assault->events->on_done(assault->owner, &err);
}

static void on_block(void *owner, struct rlmd_repl *repl, const struct rlmd_repl_block *block)
{
	struct assault *assault = owner;

	(void)repl;
	if (assault->greeted) {
		judge(assault, block->failed,
		      block->failed ? block->error : block->standard_output);
		return;
	}
	assault->greeted = true;
	assault->events->on_python(assault->owner, text_trim(block->standard_output));
	attack(assault);
}

static void on_gone(void *owner, struct rlmd_repl *repl, const struct rlmd_error *err)
{
	struct assault *assault = owner;
	struct rlmd_error copy = *err;

	(void)repl;
	if (assault->ready && assault->greeted) {
		judge(assault, true, text_of(copy.text));
		return;
	}
	rlmd_repl_free(take_pointer(&assault->repl));
	assault->events->on_done(assault->owner, &copy);
}

static void on_ready(void *owner, struct rlmd_repl *repl)
{
	struct assault *assault = owner;

	(void)repl;
	assault->ready = true;
	if (assault->greeted)
		attack(assault);
	else
		greet(assault);
}
