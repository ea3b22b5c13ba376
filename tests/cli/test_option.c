#include "cli/option.h"

#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

/* Every name and letter stands for one option only. */
static void test_names_differ(void **state)
{
	(void)state;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		assert_int_equal(option_find(option_table[i].name), i);
		for (size_t j = 0; j < i; j++)
			if (option_table[i].letter)
				assert_int_not_equal(option_table[i].letter,
						     option_table[j].letter);
	}
	assert_int_equal(option_find("no-such-option"), OPTION_COUNT);
	assert_int_equal(option_find(""), OPTION_COUNT);
}

/* A typing mistake finds its option; something else finds none. */
static void test_nearest(void **state)
{
	static const char *const names[] = {"exec", "trace"};

	(void)state;
	assert_string_equal(option_nearest_name("modle"), "model");
	assert_string_equal(option_nearest_name("max-itertions"), "max-iterations");
	assert_string_equal(option_nearest_name("contxt"), "context");
	assert_null(option_nearest_name("zzzzzzzz"));
	assert_null(option_nearest_name("a-name-that-is-longer-than-any-option-can-be"));
	assert_string_equal(option_nearest("exce", names, 2), "exec");
	assert_null(option_nearest("serve", names, 2));
}

/* Each run of white space is one space. */
static char *in_one_line(const char *text)
{
	char *line = xstrdup(text), *to = line;

	for (const char *from = line; *from; from++)
		if (!strchr(" \n", *from))
			*to++ = *from;
		else if (to > line && to[-1] != ' ')
			*to++ = ' ';
	*to = '\0';
	return line;
}

/* What --help says of an option: its letter, its name, what it wants, what it does. */
static char *entry_of(const struct option_row *row)
{
	char letter[] = {'-', row->letter, ',', ' ', '\0'};
	auto_free char *standard = row->standard ? xasprintf(" (default: %s)", row->standard)
						 : xstrdup("");

	return xasprintf(" %s--%s%s%s %s%s", row->letter ? letter : "", row->name,
			 row->argument ? " " : "", row->argument ? row->argument : "", row->help,
			 standard);
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	while ((text = strstr(text, part))) {
		count++;
		text++;
	}
	return count;
}

/* Each option has its entry, once, and nothing else has one. */
static void expect_entries(const char *help)
{
	auto_free char *line = in_one_line(help);

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		auto_free char *entry = entry_of(&option_table[i]);

		if (count_of(line, entry) != 1)
			fail_msg("%zu times in --help:%s", count_of(line, entry), entry);
	}
	assert_int_equal(count_of(help, "\n      --") + count_of(help, "\n  -"), OPTION_COUNT);
}

/* What is another command's is not shown, and no more than that is missing. */
static void test_help_of_a_command(void **state)
{
	static const enum option_id foreign[] = {OPTION_model, OPTION_contexts};
	auto_evbuffer struct evbuffer *out = evbuffer_new(), *whole = evbuffer_new();
	auto_free char *help = NULL, *all = NULL;

	(void)state;
	option_help(out, foreign, 2);
	option_help(whole, NULL, 0);
	help = text_drain(out, NULL);
	all = text_drain(whole, NULL);
	assert_null(strstr(help, "\n  -m, --model"));
	assert_null(strstr(help, "\n  -c, --context"));
	assert_int_equal(count_of(help, "\n      --") + count_of(help, "\n  -") + 2,
			 count_of(all, "\n      --") + count_of(all, "\n  -"));
}

/* --help fits a terminal of 80 columns and has an entry for each option. */
static void test_help(void **state)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *help = NULL;
	char *rest, *line;

	(void)state;
	option_help(out, NULL, 0);
	help = text_drain(out, NULL);
	expect_entries(help);
	rest = help;
	while ((line = strsep(&rest, "\n"))) {
		if (strlen(line) > 80)
			fail_msg("longer than 80 columns: %s", line);
		assert_true(!*line || line[strlen(line) - 1] != ' ');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_differ),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_help_of_a_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
