/*
 * examples/function.c - functions of one's own, which the model's Python calls.
 *
 *     cc function.c $(pkg-config --cflags --libs rlmd) -o function
 *     OPENAI_API_KEY=... ./function 'Which customers do the orders 17 and 18 belong to?'
 *
 * The code runs behind walls and can reach nothing; what a function gives it is all that it gets.
 * It runs in this process, and what it is asked comes from a model: trust none of it.
 */
#include <rlmd/engine.h>
#include <rlmd/function.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {"number": 17}: the schema has this member and no other, and an integer is all that it can be.
 * Where arguments are more than this, a library for JSON reads them. */
static long number_in(struct rlmd_text arguments)
{
	char copy[64];

	snprintf(copy, sizeof copy, "%.*s", (int)arguments.size, arguments.bytes);
	return strtol(copy + strcspn(copy, ":") + (strchr(copy, ':') != NULL), NULL, 10);
}

/* May answer later, too, from the loop: the call waits for rlmd_function_reply() or _fail(). */
static void look_up(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments)
{
	static const char *const customers[] = {[17] = "{\"name\": \"Ada\", \"town\": \"London\"}",
						[18] = "{\"name\": \"Emmy\", \"town\": \"Bonn\"}"};
	long number = number_in(arguments);
	int *asked = owner;

	++*asked;
	if (number < 17 || number > 18)
		rlmd_function_fail(call, "there is no such order"); /* an exception in Python */
	else
		rlmd_function_reply(call, rlmd_text_of(customers[number]));
}

static bool run(struct rlmd_engine *engine, const char *task, struct rlmd_error *err)
{
	/* A program serves this one, in a process of its own: its standard output is JSON. */
	static const char *const currency[] = {"/bin/echo", "{\"EUR\": 1, \"GBP\": 0.85}", NULL};
	int asked = 0;
	const struct rlmd_function functions[] = {
		{.size = sizeof functions[0],
		 .name = "look_up",
		 .doc = "The customer of the order of that number, a dict with `name` and `town`.",
		 .schema = "{\"properties\": {\"number\": {\"type\": \"integer\"}},"
			   " \"required\": [\"number\"]}",
		 .call = look_up,
		 .owner = &asked,
		 .max_calls = 100},
		{.size = sizeof functions[0],
		 .name = "rates",
		 .doc = "What a euro is in each currency, a dict.",
		 .argv = currency},
	};
	struct rlmd_job_options options = {
		.size = sizeof options, .functions = functions, .function_count = 2};
	struct rlmd_text output = {0};
	struct rlmd_job *job;

	options.task = rlmd_text_of(task);
	job = rlmd_job_start(engine, &options, err);
	if (job && rlmd_engine_wait(engine, job, err)) {
		const struct rlmd_result *result = rlmd_job_result(job);

		output = rlmd_result_output(result);
		if (rlmd_result_error(result))
			*err = *rlmd_result_error(result);
		printf("%.*s\n(look_up was called %d times)\n", (int)output.size, output.bytes,
		       asked);
	}
	rlmd_job_free(job); /* `asked` was lent to its functions */
	return !err->kind;
}

int main(int argc, char **argv)
{
	struct rlmd_provider_options options = {.size = sizeof options, .kind = "openai"};
	struct rlmd_error err = {0};
	struct rlmd_engine *engine;
	struct rlmd_provider *provider;

	if (argc != 2) {
		fprintf(stderr, "usage: function QUESTION\n");
		return 2;
	}
	engine = rlmd_engine_new(NULL, &err);
	provider = rlmd_provider_new(&options, &err);
	if (!engine || !provider || !rlmd_engine_add_provider(engine, NULL, provider, &err) ||
	    !run(engine, argv[1], &err))
		fprintf(stderr, "function: %s\n", err.text);
	rlmd_provider_unref(provider);
	rlmd_engine_free(engine);
	return rlmd_error_exit_status(err.kind);
}
