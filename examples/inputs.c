/*
 * examples/inputs.c - parts of the library by themselves: inputs, and what a model's reply says.
 *
 *     cc inputs.c $(pkg-config --cflags --libs rlmd) -o inputs
 *     ./inputs FILE-OR-DIRECTORY...
 */
#include <rlmd/context.h>
#include <rlmd/parser.h>
#include <rlmd/rlmd.h>
#include <stdio.h>

static void show_inputs(const struct rlmd_context *context)
{
	struct rlmd_context_input input = {.size = sizeof input};

	for (size_t i = 0; rlmd_context_get_input(context, i, &input); i++)
		printf("%s: %zu characters of %s, %zu files\n", input.name, input.characters,
		       input.type, input.files);
	for (size_t i = 0; rlmd_context_note(context, i); i++)
		printf("note: %s\n", rlmd_context_note(context, i));
}

static void show_reply(const char *text)
{
	struct rlmd_reply *reply = rlmd_reply_parse(rlmd_text_of(text), false);
	struct rlmd_text answer = rlmd_reply_answer_text(reply);

	for (size_t i = 0; i < rlmd_reply_block_count(reply); i++) {
		struct rlmd_text block = rlmd_reply_block(reply, i);

		printf("code: %.*s\n", (int)block.size, block.bytes);
	}
	printf("answer: %.*s\n", (int)answer.size, answer.bytes);
	rlmd_reply_free(reply);
}

int main(int argc, char **argv)
{
	const char *const *sources = (const char *const *)argv + 1;
	struct rlmd_error err;
	struct rlmd_context *context = rlmd_context_load(sources, (size_t)argc - 1, NULL, &err);

	if (!context) {
		fprintf(stderr, "%s\n", err.text);
		return rlmd_error_exit_status(err.kind);
	}
	show_inputs(context);
	show_reply("Count first.\n```python\nprint(len(context))\n```\nFINAL(seven)\n");
	rlmd_context_unref(context);
	return 0;
}
