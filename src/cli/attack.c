#include "cli/attack.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { OUTPUT_MAX = 1000, GREETING_MS = 20000 };

enum { PLAIN, CTYPES };

static const struct attack {
	const char *name, *guarantee, *what;
	int needs;
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

struct attack_series {
	struct rlmd_engine *engine;   /* lent */
	struct rlmd_sandbox *sandbox; /* lent */
	size_t memory;
	struct rlmd_repl *repl;             /* owned: the one that makes the next attack */
	bool greeted;                       /* it is known which Python this is */
	bool has_ctypes;                    /* and that it has that module */
	bool ready;                         /* the worker stood */
	size_t next;                        /* attack */
	const struct attack_events *events; /* lent */
	void *owner;                        /* lent */
};

static void on_ready(void *owner, struct rlmd_repl *);
static void on_block(void *owner, struct rlmd_repl *, const struct rlmd_repl_block *);
static void on_gone(void *owner, struct rlmd_repl *, const struct rlmd_error *);

static bool start_worker(struct attack_series *series, struct rlmd_error *err)
{
	const struct rlmd_repl_hooks hooks = {
		.size = sizeof hooks,
		.ready = on_ready,
		.done = on_block,
		.gone = on_gone,
		.owner = series,
	};
	const struct rlmd_repl_options options = {
		.size = sizeof options, .max_output = OUTPUT_MAX, .hooks = &hooks};

	series->ready = false;
	series->repl = rlmd_repl_start(series->engine, series->sandbox, &options, err);
	return series->repl;
}

struct attack_series *attack_start(struct rlmd_engine *engine, struct rlmd_sandbox *sandbox,
				   size_t memory, const struct attack_events *events, void *owner)
{
	struct attack_series *series = xcalloc(1, sizeof *series);

	*series = (struct attack_series){.engine = engine,
					 .sandbox = sandbox,
					 .memory = memory,
					 .events = events,
					 .owner = owner};
	start_worker(series, NULL); /* the sandbox stands */
	return series;
}

void attack_free(struct attack_series *series)
{
	if (!series)
		return;
	rlmd_repl_free(series->repl);
	free(series);
}

static void greet(struct attack_series *series)
{
	static const char greeting[] = "import sys\n"
				       "try:\n"
				       "    import ctypes\n"
				       "except ImportError:\n"
				       "    ctypes = None\n"
				       "print(sys.version.split()[0], sys.executable)\n"
				       "print('ctypes' if ctypes else 'none')\n";

	rlmd_repl_execute(series->repl, text_of(greeting), GREETING_MS, NULL);
}

static void attack(struct attack_series *series)
{
	const struct attack *next = &attacks[series->next];
	auto_free char *code = xasprintf(prelude, series->memory, SYS_socket, SYS_fcntl, SYS_ptrace,
					 SYS_io_uring_setup, SYS_clock_gettime,
					 SYS_sched_getaffinity, SYS_futex, next->code);

	rlmd_repl_execute(series->repl, text_of(code), next->ms, NULL);
}

static bool is_refusal(const char *refusals, const char *reply)
{
	auto_free char *copy = xstrdup(refusals);
	char *rest = copy, *refusal;

	while ((refusal = strsep(&rest, "|")))
		if (strstr(reply, refusal))
			return true;
	return false;
}

static void report(struct attack_series *series, enum attack_verdict verdict, const char *detail)
{
	const struct attack *made = &attacks[series->next++];
	struct attack_result result = {made->name, made->guarantee, made->what, verdict, ""};

	snprintf(result.detail, sizeof result.detail, "%s", detail);
	series->events->on_result(series->owner, &result);
}

static void go_on(struct attack_series *series)
{
	struct rlmd_error err;

	while (series->next < ATTACKS && attacks[series->next].needs == CTYPES &&
	       !series->has_ctypes)
		report(series, ATTACK_UNTRIED, "this Python lacks ctypes");
	if (series->next == ATTACKS)
		series->events->on_done(series->owner, NULL);
	else if (!start_worker(series, &err))
		series->events->on_done(series->owner, &err);
}

/* `stopped`: by an exception or a death, and not by its own will. */
static void judge(struct attack_series *series, bool stopped, struct rlmd_text reply)
{
	const char *refusals = attacks[series->next].refusals;
	char detail[sizeof((struct attack_result *)0)->detail];

	text_escape(text_error_line(reply), detail, sizeof detail);
	rlmd_repl_free(take_pointer(&series->repl));
	report(series,
	       stopped && is_refusal(refusals, detail) ? ATTACK_REFUSED : ATTACK_GOT_THROUGH,
	       detail);
	go_on(series);
}

static void on_block(void *owner, struct rlmd_repl *repl, const struct rlmd_repl_block *block)
{
	struct attack_series *series = owner;

	(void)repl;
	if (series->greeted) {
		judge(series, block->failed, block->failed ? block->error : block->standard_output);
		return;
	}
	series->greeted = true;
	series->has_ctypes = text_equal(text_trim(text_last_line(block->standard_output)),
					"ctypes");
	series->events->on_python(series->owner,
				  text_trim(text_slice(block->standard_output, 0,
						       text_line_end(block->standard_output, 0))));
	attack(series);
}

static void on_gone(void *owner, struct rlmd_repl *repl, const struct rlmd_error *err)
{
	struct attack_series *series = owner;
	struct rlmd_error copy = *err;

	(void)repl;
	if (series->ready && series->greeted) {
		judge(series, true, text_of(copy.text));
		return;
	}
	rlmd_repl_free(take_pointer(&series->repl));
	series->events->on_done(series->owner, &copy);
}

static void on_ready(void *owner, struct rlmd_repl *repl)
{
	struct attack_series *series = owner;

	(void)repl;
	series->ready = true;
	if (series->greeted)
		attack(series);
	else
		greet(series);
}
