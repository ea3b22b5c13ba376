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

/* To each command every name and letter stands for one option only; in files every name does for
 * the first one that has it, so that no setting stands behind another option of its name. */
static void test_names_differ(void **state)
{
	(void)state;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_table[i];

		assert_true(row->commands);
		for (size_t j = 0; j < i; j++) {
			const struct option_row *other = &option_table[j];

			if (row->commands & other->commands) {
				assert_string_not_equal(row->name, other->name);
				assert_true(!row->letter || row->letter != other->letter);
			}
			if (row->scope == OPTION_SETTING)
				assert_string_not_equal(row->name, other->name);
		}
	}
}

/* The same name may be another option of another command. */
static void test_find(void **state)
{
	(void)state;
	assert_int_equal(option_find(COMMAND_PLAN, "json"), OPTION_json);
	assert_int_equal(option_find(COMMAND_TRACE, "json"), OPTION_json);
	assert_int_equal(option_find(COMMAND_TRACE, "model"), OPTION_COUNT);
	assert_int_equal(option_find(COMMAND_ANY, "model"), OPTION_model);
	assert_int_equal(option_find(COMMAND_ANY, "no-such-option"), OPTION_COUNT);
	assert_int_equal(option_find(COMMAND_ANY, ""), OPTION_COUNT);
}

/* A typing mistake finds its option; something else finds none. */
static void test_nearest(void **state)
{
	static const char *const names[] = {"exec", "trace"};

	(void)state;
	assert_string_equal(option_nearest_name(COMMAND_EXEC, "modle"), "model");
	assert_string_equal(option_nearest_name(COMMAND_EXEC, "max-itertions"), "max-iterations");
	assert_string_equal(option_nearest_name(COMMAND_EXEC, "contxt"), "context");
	assert_string_equal(option_nearest_name(COMMAND_PLAN, "contxt"), "config");
	assert_null(option_nearest_name(COMMAND_EXEC, "zzzzzzzz"));
	assert_null(
		option_nearest_name(COMMAND_EXEC, "a-name-that-is-longer-than-any-option-can-be"));
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

/* The line of --help for an option: its letter, its name, its argument, its effect. */
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

static size_t entries_of(const char *help)
{
	return count_of(help, "\n      --") + count_of(help, "\n  -");
}

/* Each option of the command has its entry, once, and nothing else has one. */
static void expect_entries(enum command_id command, const char *help)
{
	auto_free char *line = in_one_line(help);
	size_t count = 0;

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		auto_free char *entry = entry_of(&option_table[i]);

		if (!option_is_of((enum option_id)i, command))
			continue;
		count++;
		if (count_of(line, entry) != 1)
			fail_msg("%zu times in --help:%s", count_of(line, entry), entry);
	}
	assert_int_equal(entries_of(help), count);
}

static void expect_lines(const char *help)
{
	auto_free char *copy = xstrdup(help);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n"))) {
		if (strlen(line) > 80)
			fail_msg("longer than 80 columns: %s", line);
		assert_true(!*line || line[strlen(line) - 1] != ' ');
	}
}

static char *help_of(enum command_id command, bool all)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	option_help(out, command, all);
	return text_drain(out, NULL);
}

/* --help-all of each command fits a terminal of 80 columns and has an entry for each of its
 * options; --help has a part of them, and says so, or all where they are few. */
static void test_help(void **state)
{
	(void)state;
	for (enum command_id command = 0; command < COMMAND_COUNT; command++) {
		auto_free char *all = help_of(command, true), *part = help_of(command, false);
		bool few = entries_of(all) <= 20;

		expect_entries(command, all);
		expect_lines(all);
		expect_lines(part);
		assert_int_equal(few, !strcmp(all, part));
		assert_int_equal(few, !strstr(part, "--help-all shows all"));
		assert_true(few || entries_of(part) < 30);
		if (command == COMMAND_EXEC)
			assert_int_equal(entries_of(part), 20);
	}
}

/* An option that goes is known to the commands that have what it means. */
static void test_formers(void **state)
{
	size_t at = 0;

	(void)state;
	assert_string_equal(option_former(COMMAND_WORK, &at)->name, "journal");
	assert_int_equal(option_former(COMMAND_WORK, &at)->now, OPTION_halt);
	assert_null(option_former(COMMAND_WORK, &at));
	at = 0;
	assert_null(option_former(COMMAND_EXEC, &at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_differ), cmocka_unit_test(test_find),
		cmocka_unit_test(test_nearest),      cmocka_unit_test(test_help),
		cmocka_unit_test(test_formers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
