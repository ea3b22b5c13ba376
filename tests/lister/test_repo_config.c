/* lister/repo_config: what a repository may say of itself, and what is told and not heeded. */
#include "lister/repo_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct repo_config read_text(const char *text)
{
	struct repo_config config = {0};

	repo_config_read(&config, text_of(text));
	return config;
}

static void test_own_settings(void **state)
{
	struct repo_config config = read_text("\xef\xbb\xbf# of git\n"
					      "[core]\n"
					      "\tbare = false ; no\n"
					      "\tignoreCase\n"
					      "\tworktree = \"/a b\"/c\\\\d  # here\n"
					      "[extensions] objectFormat = sha256\n"
					      "refStorage = reftable\n");

	(void)state;
	assert_true(config.fold);
	assert_string_equal(config.worktree, "/a b/c\\d");
	assert_true(config.sha256);
	assert_true(config.reftable);
	assert_null(config.ignored);
	repo_config_done(&config);
}

/* The later one wins, whatever the case of its name, and a section ends where the next begins. */
static void test_order(void **state)
{
	struct repo_config config = read_text("[CORE]\nIgnoreCase = yes\nWORKTREE = a\n"
					      "[user]\nignorecase = no\nworktree = b\n"
					      "[extensions]\nobjectformat = sha1\n");

	(void)state;
	assert_true(config.fold);
	assert_string_equal(config.worktree, "a");
	assert_false(config.sha256);
	repo_config_read(&config, text_of("[core]\nignorecase = off\nworktree = c"));
	assert_false(config.fold);
	assert_string_equal(config.worktree, "c");
	repo_config_done(&config);
}

/* Settings that lead to other files or to programs. */
static void test_not_heeded(void **state)
{
	struct repo_config config = read_text(
		"[include]\npath = /etc/passwd\n"
		"[filter \"a.b\"]\nclean = rm -rf .\nrequired = true\n"
		"[core]\nsshCommand = x\nfsmonitor = true\n"
		"[core]\nfsmonitor = /bin/evil\nsshCommand = y\n"
		"[includeIf \"gitdir:/\"]\npath = x\n[diff.x]\ntextconv = y\n");

	(void)state;
	assert_string_equal(config.ignored,
			    "include.path, filter.a.b.clean, core.sshCommand, core.fsmonitor, "
			    "includeIf.gitdir:/.path, diff.x.textconv");
	repo_config_done(&config);
}

/* It is a stranger's text: whatever it is, reading it ends, within it. */
static void test_broken(void **state)
{
	static const char *const texts[] = {
		"",
		"[",
		"[core",
		"[core]",
		"[core]\nworktree",
		"= x",
		"[core]\n=",
		"[core \"a\\",
		"]]]",
		"[core]\nworktree = \"a\nb",
		"[core]\nworktree = \\",
		"\\",
		"[.]\n.=.\n",
		"[core]worktree=",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		size_t size = strlen(texts[i]);
		char *copy = malloc(size + !size); /* so that a sanitizer sees what is beyond */
		struct repo_config config = {0};

		memcpy(copy, texts[i], size);
		repo_config_read(&config, text_from(copy, size));
		assert_null(config.ignored);
		repo_config_done(&config);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_settings),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_not_heeded),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests_name("repo_config", tests, NULL, NULL);
}
