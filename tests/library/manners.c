/*
 * A program outside of the tree: what it had before it used the library it has afterwards. Silent,
 * where all is as it was.
 */
#include <dirent.h>
#include <errno.h>
#include <rlmd/context.h>
#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <rlmd/parser.h>
#include <rlmd/plan.h>
#include <rlmd/provider.h>
#include <rlmd/rlmd.h>
#include <rlmd/trace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ALL = 1 << 20 }; /* bytes of a text of all there is */

static char *environment(void)
{
	char *all = calloc(ALL, 1);

	for (char **each = environ; *each; each++)
		strncat(strncat(all, *each, 4096), "\n", 2);
	return all;
}

/* Each, with what it leads to; that of the directory itself has the same number each time. */
static char *descriptors(void)
{
	char *all = calloc(ALL, 1), path[64], target[256];
	DIR *open = opendir("/proc/self/fd");
	size_t used = 0;

	for (int number = 0; open && number < 2048; number++) {
		ssize_t size;

		snprintf(path, sizeof path, "/proc/self/fd/%d", number);
		size = readlink(path, target, sizeof target - 1);
		if (size >= 0)
			used += (size_t)snprintf(all + used, ALL - used, "%d %.*s\n", number,
						 (int)size, target);
	}
	closedir(open);
	return all;
}

static struct rlmd_provider *add(struct rlmd_engine *engine, const char *name)
{
	struct rlmd_provider_options options = {
		.size = sizeof options, .kind = "openai", .name = name};
	struct rlmd_provider *provider = rlmd_provider_new(&options, NULL);

	if (!provider || !rlmd_engine_add_provider(engine, NULL, provider, NULL))
		puts("a provider is refused");
	return provider;
}

/* A worker, and two providers with the key that both find in one variable. */
static void run(const struct rlmd_context *context)
{
	struct rlmd_job_options options = {.size = sizeof options, .context = context};
	struct rlmd_error err = {0};
	struct rlmd_engine *engine = rlmd_engine_new(NULL, &err);
	struct rlmd_provider *first = add(engine, "first");
	struct rlmd_provider *second = add(engine, "second");
	struct rlmd_job *job;

	options.task = rlmd_text_of("?");
	options.model = "gpt-5.4"; /* of the first one, which is the default */
	options.subcall_model = "second/gpt-5-mini";
	job = rlmd_job_start(engine, &options, &err);
	if (!job || !rlmd_engine_wait(engine, job, &err))
		puts(err.text);
	else if (!rlmd_result_success(rlmd_job_result(job)))
		puts(rlmd_result_error(rlmd_job_result(job))->text);
	rlmd_engine_free(engine);
	rlmd_provider_unref(first);
	rlmd_provider_unref(second);
}

static void use(const char *path)
{
	const char *const sources[] = {path};
	struct rlmd_context *context = rlmd_context_load(sources, 1, NULL, NULL);
	struct rlmd_reply *reply = rlmd_reply_parse(rlmd_text_of("FINAL(1)"), false);
	struct rlmd_plan_file *plan = rlmd_plan_file_new(
		rlmd_text_of("{\"operations\":[{\"id\":\"a\",\"input\":\"b\"}]}"), NULL);

	if (!context || !plan || rlmd_reply_answer(reply) != RLMD_ANSWER_DIRECT)
		puts("a part does not work");
	free(rlmd_trace_tree(rlmd_text_of("no trace\n"), NULL, NULL));
	run(context);
	rlmd_plan_file_free(plan);
	rlmd_reply_free(reply);
	rlmd_context_unref(context);
}

static void compare(const char *what, char *had, char *has)
{
	if (strcmp(had, has) != 0)
		printf("other %s. There were:\n%sThere are:\n%s", what, had, has);
	free(had);
	free(has);
}

int main(int argc, char **argv)
{
	static struct sigaction before[NSIG], after;
	char *had = environment(), *open = descriptors();
	sigset_t mask_before, mask_after;

	sigprocmask(SIG_SETMASK, NULL, &mask_before);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &before[i]);
	use(argc > 1 ? argv[1] : ".");
	sigprocmask(SIG_SETMASK, NULL, &mask_after);
	for (int i = 1; i < NSIG; i++)
		if (!sigaction(i, NULL, &after) && after.sa_handler != before[i].sa_handler)
			printf("signal %d is handled in another way\n", i);
	for (int i = 1; i < NSIG; i++) /* there is more room in a mask than anybody fills */
		if (sigismember(&mask_before, i) != sigismember(&mask_after, i))
			printf("signal %d is no longer blocked as it was\n", i);
	compare("variables", had, environment());
	compare("descriptors", open, descriptors());
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		puts("a process is left");
	if (strcmp(rlmd_version(), RLMD_VERSION) != 0)
		puts("the header is another one's");
	return 0;
}
