/*
 * A program outside of the tree: what it had before it used the library it has afterwards. Silent,
 * where all is as it was.
 */
#include <rlmd/context.h>
#include <rlmd/function.h>
#include <rlmd/parser.h>
#include <rlmd/plan.h>
#include <rlmd/provider.h>
#include <rlmd/rlmd.h>
#include <rlmd/trace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static char *environment(void)
{
	char *all = calloc(1 << 20, 1);

	for (char **each = environ; *each; each++)
		strncat(strncat(all, *each, 4096), "\n", 2);
	return all;
}

static void use(const char *path)
{
	const char *const sources[] = {path};
	struct rlmd_provider_options options = {.size = sizeof options, .kind = "openai"};
	struct rlmd_provider *first = rlmd_provider_new(&options, NULL);
	struct rlmd_provider *second = rlmd_provider_new(&options, NULL);
	struct rlmd_context *context = rlmd_context_load(sources, 1, NULL, NULL);
	struct rlmd_reply *reply = rlmd_reply_parse(rlmd_text_of("FINAL(1)"), false);
	struct rlmd_plan_file *plan = rlmd_plan_file_new(
		rlmd_text_of("{\"operations\":[{\"id\":\"a\",\"input\":\"b\"}]}"), NULL);

	if (!context || !first || !second || !plan ||
	    rlmd_reply_answer(reply) != RLMD_ANSWER_DIRECT)
		puts("a part does not work");
	free(rlmd_trace_tree(rlmd_text_of("no trace\n"), NULL, NULL));
	rlmd_plan_file_free(plan);
	rlmd_reply_free(reply);
	rlmd_context_unref(context);
	rlmd_provider_unref(first);
	rlmd_provider_unref(second);
}

int main(int argc, char **argv)
{
	static struct sigaction before[NSIG], after;
	char *had = environment(), *has;
	sigset_t mask_before, mask_after;

	sigprocmask(SIG_SETMASK, NULL, &mask_before);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &before[i]);
	use(argc > 1 ? argv[1] : ".");
	sigprocmask(SIG_SETMASK, NULL, &mask_after);
	for (int i = 1; i < NSIG; i++)
		if (!sigaction(i, NULL, &after) && after.sa_handler != before[i].sa_handler)
			printf("signal %d is handled in another way\n", i);
	if (memcmp(&mask_before, &mask_after, sizeof mask_before) != 0)
		puts("other signals are blocked");
	has = environment();
	if (strcmp(had, has) != 0)
		puts("the environment is another one");
	if (strcmp(rlmd_version(), RLMD_VERSION) != 0)
		puts("the header is another one's");
	free(had);
	free(has);
	return 0;
}
