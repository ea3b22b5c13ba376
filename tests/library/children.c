/*
 * A program outside of the tree that ignores SIGCHLD, so that the kernel reaps its children: code
 * runs, an end of a worker is told, and the signal is still ignored afterwards.
 */
#include <event2/event.h>
#include <rlmd/engine.h>
#include <rlmd/repl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>

static const char *const blocks[] = {"print(6 * 7)", "import os; os._exit(3)"};
static size_t next;
static bool over;

static void go_on(struct rlmd_repl *repl)
{
	struct rlmd_error err = {0};

	if (!rlmd_repl_execute(repl, rlmd_text_of(blocks[next++]), 60000, &err)) {
		printf("refused: %s\n", err.text);
		over = true;
	}
}

static void on_ready(void *owner, struct rlmd_repl *repl)
{
	(void)owner;
	go_on(repl);
}

static void on_done(void *owner, struct rlmd_repl *repl, const struct rlmd_repl_block *block)
{
	(void)owner;
	printf("%.*s", (int)block->standard_output.size, block->standard_output.bytes);
	go_on(repl);
}

static void on_gone(void *owner, struct rlmd_repl *repl, const struct rlmd_error *err)
{
	(void)owner;
	(void)repl;
	printf("%s: %s\n", rlmd_error_name(err->kind), err->text);
	over = true;
}

int main(void)
{
	const struct rlmd_repl_hooks hooks = {
		.size = sizeof hooks, .ready = on_ready, .done = on_done, .gone = on_gone};
	const struct rlmd_repl_options options = {.size = sizeof options, .hooks = &hooks};
	struct rlmd_engine *engine;
	struct rlmd_repl *repl;
	struct rlmd_error err = {0};

	signal(SIGCHLD, SIG_IGN);
	engine = rlmd_engine_new(NULL, &err);
	repl = engine ? rlmd_repl_start(engine, NULL, &options, &err) : NULL;
	if (!repl) {
		printf("%s\n", err.text);
		return 1;
	}
	while (!over && event_base_loop(rlmd_engine_base(engine), EVLOOP_ONCE) == 0)
		;
	rlmd_repl_free(repl);
	rlmd_engine_free(engine);
	if (signal(SIGCHLD, SIG_DFL) != SIG_IGN)
		puts("SIGCHLD is ignored no more");
	if (waitpid(-1, NULL, WNOHANG) >= 0)
		puts("a child is left");
	return 0;
}
