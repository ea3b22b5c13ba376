/*
 * examples/glib.c - jobs inside a program that runs GLib's main loop, as one of GTK does.
 *
 *     cc glib.c $(pkg-config --cflags --libs rlmd glib-2.0) -o glib
 *     OPENAI_API_KEY=... ./glib 'Which host failed first?' big.log
 *
 * The loop watches one descriptor and one clock of the engine's. Any other loop does it likewise:
 * libuv with uv_poll_t and uv_timer_t, Qt with QSocketNotifier and QTimer.
 */
#include <glib.h>
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>

/* An engine as a source of events. */
struct engine_source {
	GSource source; /* first: GLib makes and frees it */
	struct rlmd_engine *engine;
	gpointer tag; /* of the descriptor */
};

static gboolean prepare(GSource *source, gint *timeout_ms)
{
	int64_t next = rlmd_engine_next_ms(((struct engine_source *)source)->engine);

	*timeout_ms = next > G_MAXINT ? G_MAXINT : (gint)next; /* -1 means the same to both */
	return next == 0;
}

static gboolean check(GSource *source)
{
	const struct engine_source *ours = (const struct engine_source *)source;

	return g_source_query_unix_fd(source, ours->tag) || !rlmd_engine_next_ms(ours->engine);
}

static gboolean dispatch(GSource *source, GSourceFunc fn, gpointer owner)
{
	(void)fn;
	(void)owner;
	rlmd_engine_turn(((struct engine_source *)source)->engine, NULL);
	return G_SOURCE_CONTINUE;
}

static GSource *watch(struct rlmd_engine *engine)
{
	static GSourceFuncs functions = {prepare, check, dispatch, NULL, NULL, NULL};
	GSource *source = g_source_new(&functions, sizeof(struct engine_source));
	struct engine_source *ours = (struct engine_source *)source;

	ours->engine = engine;
	ours->tag = g_source_add_unix_fd(source, rlmd_engine_fd(engine), G_IO_IN);
	g_source_attach(source, NULL);
	return source;
}

static void on_end(void *loop, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct rlmd_text output = rlmd_result_output(result);

	(void)job;
	printf("%.*s\n", (int)output.size, output.bytes);
	if (rlmd_result_error(result))
		fprintf(stderr, "glib: %s\n", rlmd_result_error(result)->text);
	g_main_loop_quit(loop);
}

static gboolean on_tick(gpointer ticks)
{
	++*(int *)ticks;
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	struct rlmd_provider_options provider_options = {.size = sizeof provider_options,
							 .kind = "openai"};
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = loop};
	struct rlmd_job_options options = {.size = sizeof options, .hooks = &hooks};
	struct rlmd_error err = {0};
	struct rlmd_context *context = NULL;
	struct rlmd_engine *engine = rlmd_engine_new(NULL, &err);
	struct rlmd_provider *provider = rlmd_provider_new(&provider_options, &err);
	GSource *source = engine ? watch(engine) : NULL;
	int ticks = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: glib QUESTION FILE\n");
		return 2;
	}
	options.task = rlmd_text_of(argv[1]);
	context = rlmd_context_load((const char *const *)argv + 2, 1, NULL, &err);
	options.context = context;
	if (engine && context && provider &&
	    rlmd_engine_add_provider(engine, NULL, provider, &err) &&
	    rlmd_job_start(engine, &options, &err)) {
		g_timeout_add(10, on_tick, &ticks); /* the program's own work goes on */
		g_main_loop_run(loop);
		printf("(%s)\n", ticks ? "the loop had time for other things" : "no tick");
	}
	if (err.kind)
		fprintf(stderr, "glib: %s\n", err.text);
	if (source)
		g_source_destroy(source);
	rlmd_context_unref(context);
	rlmd_provider_unref(provider);
	rlmd_engine_free(engine);
	return rlmd_error_exit_status(err.kind);
}
