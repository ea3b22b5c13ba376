/* cli/dry_run: what a person reads of a dry run. */
#include "cli/dry_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"

static char *text_of_run(const json_t *object, void (*format)(const json_t *, struct evbuffer *out))
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	format(object, out);
	return text_drain(out, NULL);
}

/* The largest folders, and how many there are beside them. */
static void test_folders(void **state)
{
	json_t *folders = json_array(), *object;
	char *text;

	(void)state;
	for (int i = 0; i < 22; i++)
		json_array_append_new(folders,
				      json_pack("{s:s, s:i, s:i}", "path", i ? "a\033" : "",
						"files", i + 1, "tokens", 1500));
	object = json_pack("{s:[{s:s, s:s, s:i, s:[s], s:o}]}", "contexts", "name", "context",
			   "contentType", "directory", "length", 7, "files", "f", "folders",
			   folders);
	text = text_of_run(object, dry_run_format);
	assert_non_null(strstr(
		text, "context         context: 7 characters, 0 bytes, about 0 tokens, directory\n"
		      "files           1\n"
		      "                    1.5k tokens      1 file   ./\n"
		      "                    1.5k tokens      2 files  a\\x1b\n"));
	assert_non_null(strstr(text, "                and 2 folders with less\n"));
	free(text);
	json_decref(object);
}

/* Whether reading it all fits, and what does not. */
static void test_what_fits(void **state)
{
	json_t *fits = json_pack("{s:{s:i, s:i, s:f}, s:b, s:f, s:f}", "fullReading", "calls", 1,
				 "tokens", 2000, "cost", 0.5, "fits", 1, "worstCaseCost", 2.0,
				 "maxCost", 5.0);
	json_t *not = json_pack("{s:[s]}", "misfits", "the cost");
	char *text = text_of_run(fits, dry_run_format), *other = text_of_run(not, dry_run_format);

	(void)state;
	assert_non_null(strstr(text, "cost            $2.00 at most (limit: $5.00)\n"
				     "all read once   1 call, 2.0k tokens, $0.50 at most\n"
				     "                fits the budget\n"));
	assert_non_null(strstr(other, "cost            unknown at most (limit: none)\n"
				      "all read once   0 calls, 0 tokens, cost unknown at most\n"
				      "                does not fit: the cost\n"));
	free(text);
	free(other);
	json_decref(fits);
	json_decref(not );
}

static void test_a_plan(void **state)
{
	json_t *object = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:i, s:[{s:s, s:s, s:s, s:s, s:i, s:[s, s]}]}",
		"provider", "p", "model", "m", "subcallModel", "m", "priceTable", "2026",
		"strategy", "DAG", "maxParallel", 4, "operations", "id", "o", "type", "query",
		"mode", "rlm", "model", "m", "inputTokens", 10, "dependsOn", "a", "b");
	char *text = text_of_run(object, dry_run_format_plan);

	(void)state;
	assert_non_null(strstr(
		text, "strategy        DAG, 4 at once\noperations      1 (whole runs: 0)\n"));
	assert_non_null(
		strstr(text, "\n\n     1  o  query, a run of m, about 10 tokens, after a, b\n"));
	free(text);
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folders),
		cmocka_unit_test(test_what_fits),
		cmocka_unit_test(test_a_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
