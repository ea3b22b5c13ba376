/*
 * examples/repl.c - Python behind walls, without a model: run code on inputs, read a variable.
 *
 *     cc repl.c $(pkg-config --cflags --libs rlmd libevent_core) -o repl
 *     ./repl 'words = context.split()' words FILE-OR-DIRECTORY...
 */
#include <event2/event.h>
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/repl.h>
#include <stdio.h>

enum { BLOCK_MS = 10000 };

struct session {
	struct event_base *base;
	const char *code, *variable;
	struct rlmd_error err; /* of kind NONE: all went well */
};

static void finish(struct session *session)
{
	event_base_loopexit(session->base, NULL);
}

static void on_ready(void *owner, struct rlmd_repl *repl)
{
	struct session *session = owner;

	if (!rlmd_repl_execute(repl, rlmd_text_of(session->code), BLOCK_MS, &session->err))
		finish(session);
}

static void on_done(void *owner, struct rlmd_repl *repl, const struct rlmd_repl_block *block)
{
	struct session *session = owner;

	fwrite(block->standard_output.bytes, 1, block->standard_output.size, stdout);
	fwrite(block->standard_error.bytes, 1, block->standard_error.size, stderr);
	fwrite(block->error.bytes, 1, block->error.size, stderr); /* the session goes on */
	if (!rlmd_repl_get(repl, session->variable, BLOCK_MS, &session->err))
		finish(session);
}

static void on_value(void *owner, struct rlmd_repl *repl, bool found, struct rlmd_text value,
		     struct rlmd_text variables)
{
	struct session *session = owner;

	(void)repl;
	if (found)
		printf("%s = %.*s\n", session->variable, (int)value.size, value.bytes);
	else
		printf("there is no %s, but:\n%.*s\n", session->variable, (int)variables.size,
		       variables.bytes);
	finish(session);
}

static void on_gone(void *owner, struct rlmd_repl *repl, const struct rlmd_error *err)
{
	struct session *session = owner;

	(void)repl;
	session->err = *err;
	finish(session);
}

int main(int argc, char **argv)
{
	struct session session = {0};
	struct rlmd_repl_hooks hooks = {.size = sizeof hooks,
					.ready = on_ready,
					.done = on_done,
					.value = on_value,
					.gone = on_gone,
					.owner = &session};
	struct rlmd_repl_options options = {.size = sizeof options, .hooks = &hooks};
	struct rlmd_context *context;
	struct rlmd_engine *engine;
	struct rlmd_repl *repl = NULL;

	if (argc < 4) {
		fprintf(stderr, "usage: repl CODE VARIABLE FILE-OR-DIRECTORY...\n");
		return 2;
	}
	session.code = argv[1];
	session.variable = argv[2];
	context = rlmd_context_load((const char *const *)argv + 3, (size_t)argc - 3, NULL,
				    &session.err);
	engine = rlmd_engine_new(NULL, &session.err);
	options.context = context;
	if (context && engine)
		repl = rlmd_repl_start(engine, NULL, &options, &session.err);
	if (repl) {
		session.base = rlmd_engine_base(engine);
		event_base_dispatch(session.base); /* until finish() */
	}
	if (session.err.kind)
		fprintf(stderr, "repl: %s\n", session.err.text);
	rlmd_repl_free(repl);
	rlmd_context_unref(context);
	rlmd_engine_free(engine);
	return rlmd_error_exit_status(session.err.kind);
}
