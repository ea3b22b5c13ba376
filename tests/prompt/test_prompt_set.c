/* Prompt profiles: which one suits a model, and directories of other texts. */
#include "prompt/prompt_set.h"

#include <rlmd/rlmd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

/* A small model or a small window gets few words. Sizes stand in names in many ways. */
static void test_suits(void **state)
{
	static const struct {
		const char *model;
		int64_t window;
		const char *profile;
	} cases[] = {
		{"gpt-5", 400000, "default"},
		{"gpt-5", 4096, "small"},
		{"llama3.2:1b", 128000, "small"},
		{"qwen2.5-coder:1.5b-instruct", 32768, "small"},
		{"gemma3n:e4b", 32768, "small"},
		{"GEMMA-2-2B-IT", 32768, "small"},
		{"llama3.1:70b", 128000, "default"},
		{"qwen3:30b-a3b", 128000, "default"},
		{"model-4bit", 128000, "default"},
		{"b", 128000, "default"},
		{"12345b", 128000, "default"},
		{"v1.2b3", 128000, "default"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *name = prompt_set_for(cases[i].model, cases[i].window)->name;

		if (strcmp(name, cases[i].profile))
			fail_msg("%s of %lld tokens: %s", cases[i].model,
				 (long long)cases[i].window, name);
	}
}

static void test_shipped(void **state)
{
	struct rlmd_error err = {0};
	const struct prompt_set *set = prompt_set_open("small", &err);

	(void)state;
	assert_string_equal(set->name, "small");
	assert_ptr_equal(set, prompt_set_for("m", 1000));
	/* Parts that a profile lacks are the default's. */
	assert_ptr_equal(prompt_set_text(set, "query").bytes,
			 prompt_set_text(prompt_set_open("default", &err), "query").bytes);
	prompt_set_free(set); /* nobody's to free */
	prompt_set_free(NULL);
	assert_null(prompt_set_open("/no such profile", &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "there are: default, small"));
}

/* A set of a directory with one file of that content; the error is in `err`. */
static const struct prompt_set *open_with(const char *file, struct rlmd_text content,
					  struct rlmd_error *err)
{
	char directory[] = "/tmp/test_prompt_set.XXXXXX";
	auto_free char *path = NULL;
	const struct prompt_set *set;

	assert_non_null(mkdtemp(directory));
	path = xasprintf("%s/%s", directory, file);
	assert_true(file_write(path, content, err));
	set = prompt_set_open(directory, err);
	if (!set && !strstr(err->text, directory))
		fail_msg("it does not say where: %s", err->text);
	unlink(path);
	rmdir(directory);
	return set;
}

static void test_directory(void **state)
{
	struct rlmd_error err = {0};
	const struct prompt_set *set = open_with("query.txt", text_of("In verse, please."), &err);

	(void)state;
	if (!set)
		fail_msg("%s", err.text);
	assert_true(text_equal(prompt_set_text(set, "query"), "In verse, please."));
	assert_true(prompt_set_text(set, "turn").size > 0); /* the default's */
	prompt_set_free(set);
	set = open_with("turn.txt", text_of("{{turn}} of {{max_turns}}: {{output}}"), &err);
	assert_non_null(set);
	prompt_set_free(set);
	set = open_with(".hidden", text_of("{{whatever"), &err);
	assert_non_null(set); /* passed over */
	prompt_set_free(set);
}

static void test_bad_files(void **state)
{
	static const struct {
		const char *file, *content, *words;
	} cases[] = {
		{"qury.txt", "x", "qury.txt, which is no prompt: those are root.txt, "},
		{"query", "x", "query, which is no prompt"},
		{"turn.txt", "{{turns}}", "there is no {{turns}} for it; there are "},
		{"query.txt", "{{turn}}", "it has no placeholders"},
		{"turn.txt", "a {{turn} b", "a {{ has no }} after it"},
		{"query.txt", "\xff", "it is no text in UTF-8"},
	};
	struct rlmd_error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_null(open_with(cases[i].file, text_of(cases[i].content), &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		if (!strstr(err.text, cases[i].words))
			fail_msg("%s: %s", cases[i].file, err.text);
	}
	assert_null(open_with("query.txt", text_from("a\0b", 3), &err));
	assert_non_null(strstr(err.text, "UTF-8"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suits),
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_bad_files),
	};

	return cmocka_run_group_tests_name("prompt_set", tests, NULL, NULL);
}
