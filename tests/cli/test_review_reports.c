/* cli/review_reports: which files a review writes, and that all of them appear or none. */
#include "cli/review_reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "directory.h"

static struct config config;

/* In the place of the library's: the number of the format. */
char *__wrap_rlmd_review_report(const struct rlmd_review *, enum rlmd_review_format, size_t *);
char *__wrap_rlmd_review_report(const struct rlmd_review *review, enum rlmd_review_format format,
				size_t *ret_size)
{
	char *text = xasprintf("%d", format);

	(void)review;
	*ret_size = strlen(text);
	return text;
}

static int enter(void **state)
{
	(void)state;
	unsetenv("GITHUB_STEP_SUMMARY");
	config_init(&config);
	return directory_enter();
}

static int leave(void **state)
{
	(void)state;
	config_done(&config);
	return directory_leave(
		(const char *const[]){"sarif", "junit", "gitlab", "rdjson", "md", "summary", NULL});
}

static void set(enum option_id option, const char *value)
{
	struct rlmd_error err = {0};

	if (!config_set(&config, CONFIG_ARGUMENT, option, value, &err))
		fail_msg("%s", err.text);
}

static void assert_format(const char *path, enum rlmd_review_format format)
{
	auto_free char *wanted = xasprintf("%d", format);

	assert_content(path, wanted);
}

static struct review_reports *open_all(void)
{
	struct rlmd_error err = {0};
	struct review_reports *reports;

	set(OPTION_sarif, "sarif");
	set(OPTION_junit, "junit");
	set(OPTION_gitlab, "gitlab");
	set(OPTION_rdjson, "rdjson");
	set(OPTION_markdown, "md");
	reports = review_reports_new(&config, &err);
	if (!reports)
		fail_msg("%s", err.text);
	return reports;
}

static void test_each_has_its_format(void **state)
{
	struct review_reports *reports = open_all();

	(void)state;
	assert_int_equal(access("sarif", F_OK), -1);
	assert_true(review_reports_write(reports, NULL, NULL));
	review_reports_free(reports);
	assert_format("sarif", RLMD_REVIEW_SARIF);
	assert_format("junit", RLMD_REVIEW_JUNIT);
	assert_format("gitlab", RLMD_REVIEW_GITLAB);
	assert_format("rdjson", RLMD_REVIEW_RDJSON);
	assert_format("md", RLMD_REVIEW_MARKDOWN);
}

/* An earlier report stays as it was, also where the last one is the one that fails. */
static void test_none_where_one_fails(void **state)
{
	struct rlmd_error err;
	struct review_reports *reports;

	(void)state;
	assert_true(file_write("sarif", text_of("older"), NULL));
	set(OPTION_sarif, "sarif");
	set(OPTION_junit, "junit");
	set(OPTION_markdown, "/dev/full");
	reports = review_reports_new(&config, NULL);
	assert_non_null(reports);
	assert_false(review_reports_write(reports, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
	assert_string_equal(err.text,
			    "--markdown: /dev/full: cannot write: No space left on device");
	review_reports_free(reports);
	assert_content("sarif", "older");
	assert_int_equal(access("junit", F_OK), -1);
}

static void expect_refusal(const char *wanted)
{
	struct rlmd_error err = {0};

	assert_null(review_reports_new(&config, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	if (strncmp(err.text, wanted, strlen(wanted)))
		fail_msg("%s", err.text);
}

static void test_refused(void **state)
{
	(void)state;
	set(OPTION_sarif, "-");
	expect_refusal("--sarif names a file: standard output has the findings");
	set(OPTION_sarif, "sarif");
	set(OPTION_markdown, "sarif");
	expect_refusal("--markdown: sarif is the file of another report, too");
	set(OPTION_markdown, "md");
	set(OPTION_output, "sarif");
	expect_refusal("--sarif: sarif is the file of another report, too");
	set(OPTION_output, "out");
	set(OPTION_markdown, "./sarif");
	expect_refusal("--markdown: ./sarif is the file of another report, too");
	set(OPTION_markdown, "md");
	set(OPTION_output, "./sarif");
	expect_refusal("--sarif: sarif is the file of another report, too");
	set(OPTION_output, "-");
	set(OPTION_junit, "nowhere/junit");
	expect_refusal("--junit: cannot write nowhere/junit: No such file or directory");
}

/* Steps before this one have written to it. */
static void test_step_summary(void **state)
{
	struct review_reports *reports;

	(void)state;
	assert_true(file_write("summary", text_of("before"), NULL));
	setenv("GITHUB_STEP_SUMMARY", "summary", 1);
	for (int github = 0; github < 2; github++) {
		auto_free char *wanted = github ? xasprintf("before%d", RLMD_REVIEW_SUMMARY)
						: xstrdup("before");

		if (github)
			set(OPTION_github, "true");
		reports = review_reports_new(&config, NULL);
		assert_true(review_reports_write(reports, NULL, NULL));
		review_reports_free(reports);
		assert_content("summary", wanted);
	}
	setenv("GITHUB_STEP_SUMMARY", "nowhere/summary", 1);
	reports = review_reports_new(&config, NULL);
	assert_true(review_reports_write(reports, NULL, NULL));
	review_reports_free(reports);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_has_its_format, enter, leave),
		cmocka_unit_test_setup_teardown(test_none_where_one_fails, enter, leave),
		cmocka_unit_test_setup_teardown(test_refused, enter, leave),
		cmocka_unit_test_setup_teardown(test_step_summary, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
