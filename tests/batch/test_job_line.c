/* batch/job_line: what a line says, what is wrong with it, and what makes two of them the same. */
#include "batch/job_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/money.h"

/* From a copy of exactly its size, so that a sanitizer sees what is read beyond. */
static bool read_bytes(const char *bytes, size_t size, struct job_line *ret, struct rlmd_error *err)
{
	auto_free char *copy = malloc(size ? size : 1);
	bool good;

	memcpy(copy, bytes, size);
	good = job_line_read(text_from(copy, size), ret, err);
	if (good) { /* what is lent ends with the copy */
		ret->task = ret->context = ret->schema = (struct rlmd_text){0};
	}
	return good;
}

static void assert_refused(const char *line, const char *why)
{
	struct rlmd_error err = {0};
	struct job_line job;

	if (read_bytes(line, strlen(line), &job, &err))
		fail_msg("taken: %.100s", line);
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	if (!strstr(err.text, why))
		fail_msg("of %.100s: %s", line, err.text);
}

static void test_all_members(void **state)
{
	static const char line[] =
		"{\"custom_id\":\"a-1\",\"task\":\"What?\\u0000\\n\",\"context\":\"text \\ud83d\\ude00\","
		"\"tenant\":\"acme\",\"model\":\"openai/gpt-5\",\"budget\":{\"maxCost\":0.25,"
		"\"maxTokens\":1e5,\"maxTime\":90000,\"maxIterations\":3,\"maxDepth\":0},"
		"\"schema\":{\"type\":\"object\"}}\r";
	struct rlmd_error err;
	struct job_line job;

	(void)state;
	assert_true(job_line_read(text_from(line, sizeof line - 1), &job, &err));
	assert_string_equal(job.custom_id, "a-1");
	assert_int_equal(job.task.size, 7);
	assert_memory_equal(job.task.bytes, "What?\0\n", 7);
	assert_int_equal(job.source, JOB_LINE_TEXT);
	assert_true(text_equal(job.context, "text \xf0\x9f\x98\x80"));
	assert_string_equal(job.tenant, "acme");
	assert_string_equal(job.model, "openai/gpt-5");
	assert_true(job.max_cost == MONEY_DOLLAR / 4);
	assert_int_equal(job.max_tokens, 100000);
	assert_int_equal(job.max_time_ms, 90000);
	assert_int_equal(job.max_iterations, 3);
	assert_int_equal(job.max_depth, 0);
	assert_true(text_equal(job.schema, "{\"type\":\"object\"}"));
	assert_null(job.ignored);
	job_line_done(&job);
}

static void test_least(void **state)
{
	struct rlmd_error err;
	struct job_line job;

	(void)state;
	assert_true(job_line_read(text_of("{\"task\":\"t\",\"custom_id\":\"x\",\"context\":null,"
					  "\"budget\":{\"maxCost\":null}}"),
				  &job, &err));
	assert_null(job.tenant);
	assert_null(job.model);
	assert_int_equal(job.source, JOB_LINE_NO_CONTEXT);
	assert_int_equal(job.max_cost, JOB_LINE_UNSAID);
	assert_int_equal(job.max_depth, JOB_LINE_UNSAID);
	assert_null(job_line_path(&job, "/dir"));
	job_line_done(&job);
}

#define JOB(rest) "{\"custom_id\":\"a\",\"task\":\"t\"," rest "}"

static void test_refused(void **state)
{
	static const char *const table[][2] = {
		{"", "not JSON"},
		{"{", "not JSON"},
		{"[]", "must be an object, this is an array"},
		{"\"a\"", "must be an object, this is a string"},
		{"{}{}", "not JSON"},
		{"{}", "custom_id: is missing"},
		{"{\"task\":\"t\"}", "custom_id: is missing"},
		{"{\"custom_id\":\"a\"}", "task: is missing; say what"},
		{"{\"custom_id\":\"a\",\"task\":\" \\n\"}", "task: is empty"},
		{"{\"custom_id\":\"\",\"task\":\"t\"}", "custom_id: is empty"},
		{"{\"custom_id\":7,\"task\":\"t\"}", "custom_id: must be a string, not a number"},
		{"{\"custom_id\":\"a\\u0000b\",\"task\":\"t\"}", "custom_id: has a NUL"},
		{"{\"custom_id\":\"a\",\"task\":[]}", "task: must be a string, not an array"},
		{JOB("\"tsk\":1"), "tsk: a job has no such key; it has custom_id, task"},
		{JOB("\"a\\nb\":1"), "no such key"},
		{JOB("\"task\":\"u\""), "duplicate"},
		{JOB("\"t\\u0061sk\":\"u\""), "duplicate"},
		{JOB("\"context\":\"c\",\"context_dir\":\".\""), "context and context_dir: a job"},
		{JOB("\"context\":{}"), "context: must be a string, not an object"},
		{JOB("\"context_file\":\"\""), "context_file: is empty"},
		{JOB("\"context_file\":\"-\""), "cannot read standard input"},
		{JOB("\"context_file\":\"a\\u0000\""), "context_file: has a NUL"},
		{JOB("\"budget\":5"), "budget: must be an object, not a number"},
		{JOB("\"budget\":{\"maxcost\":5}"),
		 "budget.maxcost: a budget has no such key; it has maxCost"},
		{JOB("\"budget\":{\"maxCost\":\"5\"}"),
		 "budget.maxCost: must be a number of US dollars"},
		{JOB("\"budget\":{\"maxCost\":-1}"), "budget.maxCost: "},
		{JOB("\"budget\":{\"maxCost\":1e999}"), "budget.maxCost: "},
		{JOB("\"budget\":{\"maxCost\":NaN}"), "not JSON"},
		{JOB("\"budget\":{\"maxTokens\":0}"), "0 is no whole number from 1 to"},
		{JOB("\"budget\":{\"maxTokens\":1.5}"), "budget.maxTokens: 1.5 is no whole number"},
		{JOB("\"budget\":{\"maxTokens\":99999999999999999999}"), "is no whole number"},
		{JOB("\"budget\":{\"maxTokens\":true}"),
		 "budget.maxTokens: must be a number, not true"},
		{JOB("\"budget\":{\"maxTime\":-5}"), "budget.maxTime (milliseconds): -5"},
		{JOB("\"budget\":{\"maxIterations\":1e300}"), "budget.maxIterations: 1e300"},
		{JOB("\"budget\":{\"maxDepth\":17}"),
		 "budget.maxDepth: 17 is no whole number from 0 to 16"},
		{JOB("\"schema\":\"{}\""), "schema: must be an object, not a string"},
		{JOB("\"tenant\":\"\""), "tenant: is empty"},
		{JOB("\"model\":false"), "model: must be a string, not false"},
		{JOB("\"method\":\"POST\""), "method: has no meaning without body"},
		{"{\"custom_id\":\"a\",\"task\":\"\xff\"}", "not JSON"},
		{"{\"custom_id\":\"a\",\"task\":\"\\ud800\"}", "not JSON"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_refused(table[i][0], table[i][1]);
}

/* Whatever byte is missing, or is NUL, it is an error and nothing else. */
static void test_torn(void **state)
{
	static const char line[] = JOB(
		"\"context\":\"\\u00e9\xc3\xa9\",\"budget\":{\"maxCost\":1}");
	size_t size = sizeof line - 1;
	struct rlmd_error err;
	struct job_line job;

	(void)state;
	for (size_t i = 0; i < size; i++) {
		auto_free char *changed = malloc(size);

		assert_false(read_bytes(line, i, &job, &err));
		memcpy(changed, line, size);
		changed[i] = '\0';
		assert_false(read_bytes(changed, size, &job, &err));
	}
	assert_true(read_bytes(line, size, &job, &err));
	job_line_done(&job);
}

static char *line_with(const char *before, size_t count, const char *filling, const char *after)
{
	size_t width = strlen(filling);
	char *line = malloc(strlen(before) + count * width + strlen(after) + 1), *at = line;

	at = stpcpy(at, before);
	for (size_t i = 0; i < count; i++)
		at = stpcpy(at, filling);
	stpcpy(at, after);
	return line;
}

static void test_bounds(void **state)
{
	auto_free char *id = line_with("{\"task\":\"t\",\"custom_id\":\"", 1 << 20, "i", "\"}");
	auto_free char *deep = line_with("{\"custom_id\":\"a\",\"schema\":{\"a\":", 2000, "[", "");
	auto_free char *many = line_with("{\"custom_id\":\"a\",\"x\":[0", 1100000, ",0", "]}");
	auto_free char *schema = line_with(
		"{\"custom_id\":\"a\",\"task\":\"t\",\"schema\":{\"a\":\"", JOB_LINE_SCHEMA_MAX,
		"s", "\"}}");

	(void)state;
	assert_refused(id, "custom_id: has 1048576 bytes; at most 1024 may be");
	assert_refused(deep, "deep");
	assert_refused(many, "JSON of more than 1000000 values");
	assert_refused(schema, "schema: has");
}

static void assert_digests(const char *one, const char *other, bool same)
{
	struct rlmd_error err;
	struct job_line a, b;

	if (!job_line_read(text_of(one), &a, &err) || !job_line_read(text_of(other), &b, &err))
		fail_msg("%s", err.text);
	if (!strcmp(a.digest, b.digest) != same)
		fail_msg("%s and %s", one, other);
	job_line_done(&a);
	job_line_done(&b);
}

static void test_digest(void **state)
{
	static const char first[] = JOB(
		"\"context\":\"cd\",\"budget\":{\"maxCost\":1,\"maxTokens\":5},"
		"\"schema\":{\"minimum\":1,\"a\":0.30000000000000004}");
	static const char *const others[] = {
		JOB("\"context\":\"ce\",\"budget\":{\"maxCost\":1,\"maxTokens\":5},"
		    "\"schema\":{\"minimum\":1,\"a\":0.30000000000000004}"),
		JOB("\"context_file\":\"cd\",\"budget\":{\"maxCost\":1,\"maxTokens\":5},"
		    "\"schema\":{\"minimum\":1,\"a\":0.30000000000000004}"),
		JOB("\"context\":\"cd\",\"budget\":{\"maxCost\":5,\"maxTokens\":1},"
		    "\"schema\":{\"minimum\":1,\"a\":0.30000000000000004}"),
		JOB("\"context\":\"cd\",\"budget\":{\"maxCost\":1,\"maxTokens\":5},"
		    "\"schema\":{\"minimum\":1,\"a\":0.3}"),
		JOB("\"context\":\"cd\",\"budget\":{\"maxCost\":1,\"maxTokens\":5},"
		    "\"schema\":{\"minimum\":1,\"a\":0.30000000000000004},\"tenant\":\"t\""),
	};

	(void)state;
	assert_digests(first,
		       " { \"schema\":{\"a\":3.0000000000000004e-1,\"minimum\":1.0}, "
		       "\"budget\" : {\"maxTokens\":5.0,\"maxCost\":1.00,\"maxTime\":null},"
		       "\"t\\u0061sk\":\"\\u0074\",\"context\":\"\\u0063d\",\"custom_id\":\"a\"}\r",
		       true);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_digests(first, others[i], false);
	assert_digests("{\"custom_id\":\"ab\",\"task\":\"c\"}",
		       "{\"custom_id\":\"a\",\"task\":\"bc\"}", false);
}

#define CHAT(messages)                                                                             \
	"{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\","               \
	"\"body\":{\"messages\":" messages "}}"

static void test_openai(void **state)
{
	struct rlmd_error err;
	struct job_line job;

	(void)state;
	assert_true(job_line_read(
		text_of("{\"custom_id\":\"r-1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\","
			"\"body\":{\"model\":\"gpt-5\",\"max_tokens\":9,\"n\":1,\"messages\":["
			"{\"role\":\"system\",\"content\":\"Be \\u0062rief.\"},"
			"{\"role\":\"user\",\"content\":\"one\"},"
			"{\"role\":\"assistant\",\"content\":null},"
			"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"tw\"},"
			"{\"type\":\"text\",\"text\":\"o\"}]}],"
			"\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
			"{\"name\":\"n\",\"strict\":true,\"schema\":{\"type\":\"array\"}}}}}"),
		&job, &err));
	assert_string_equal(job.custom_id, "r-1");
	assert_string_equal(job.model, "gpt-5");
	assert_true(text_equal(job.task, "two"));
	assert_int_equal(job.source, JOB_LINE_TEXT);
	assert_true(
		text_equal(job.context, "system:\nBe brief.\n\nuser:\none\n\nassistant:\n\n\n"));
	assert_true(text_equal(job.schema, "{\"type\":\"array\"}"));
	assert_string_equal(job.ignored, "max_tokens");
	job_line_done(&job);

	assert_true(job_line_read(text_of(CHAT("[{\"role\":\"user\",\"content\":\"t\"}]")), &job,
				  &err));
	assert_int_equal(job.source, JOB_LINE_NO_CONTEXT);
	assert_null(job.ignored);
	job_line_done(&job);
	assert_digests(CHAT("[{\"role\":\"user\",\"content\":\"t\"}]"),
		       "{\"custom_id\":\"a\",\"task\":\"t\"}", true);
}

static void test_openai_refused(void **state)
{
	static const char *const table[][2] = {
		{CHAT("[]"), "body.messages: has no message of the user"},
		{CHAT("{}"), "body.messages: must be an array"},
		{CHAT("null"), "body.messages: must be an array"},
		{CHAT("[7]"), "body.messages[0]: must be an object"},
		{CHAT("[{\"role\":7}]"), "body.messages[0].role: must be a string"},
		{CHAT("[{\"role\":\"user\",\"content\":7}]"),
		 "body.messages[0].content: must be text"},
		{CHAT("[{\"role\":\"user\",\"content\":\" \"}]"), "task: is empty"},
		{CHAT("[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{}}]}]"),
		 "body.messages[0].content: image_url: a part"},
		{CHAT("[{\"role\":\"user\",\"content\":[1]}]"),
		 "must be text, or parts of type text"},
		{CHAT("[{\"role\":\"assistant\",\"tool_calls\":[]}]"),
		 "body.messages[0].tool_calls: a message"},
		{CHAT("[],\"tools\":[]"), "body.tools: the body of a job has no such key"},
		{CHAT("[],\"n\":2"), "body.n: 2 is no whole number from 1 to 1"},
		{CHAT("[],\"response_format\":{\"type\":\"json_object\"}"),
		 "body.response_format: must be"},
		{JOB("\"body\":{}"), "task and body: the messages"},
		{"{\"custom_id\":\"a\",\"body\":[]}", "body: must be an object"},
		{"{\"custom_id\":\"a\",\"url\":\"/v1/responses\",\"body\":{}}", "url: must be"},
		{"{\"custom_id\":\"a\",\"method\":\"GET\",\"body\":{}}", "method: must be POST"},
		{"{\"body\":{}}", "custom_id: is missing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_refused(table[i][0], table[i][1]);
}

static void assert_path(const char *line, const char *wanted)
{
	auto_free char *path = NULL;
	struct rlmd_error err;
	struct job_line job;

	assert_true(job_line_read(text_of(line), &job, &err));
	path = job_line_path(&job, "jobs");
	assert_string_equal(path, wanted);
	job_line_done(&job);
}

static void expect_anywhere(const char *line, const char *expected)
{
	auto_free char *moved = NULL;
	struct job_line job;
	size_t size = 0;

	assert_true(job_line_read(text_of(line), &job, NULL));
	moved = job_line_anywhere(text_of(line), &job, "/a \"b\"", &size);
	if (expected)
		assert_string_equal(moved, expected);
	else
		assert_null(moved);
	assert_int_equal(size, expected ? strlen(expected) : 0);
	job_line_done(&job);
}

/* Only the path changes, and the last one counts. */
static void test_anywhere(void **state)
{
	(void)state;
	expect_anywhere(
		"{\"custom_id\":\"a\",\"context_file\": \"x\\u0079\" ,\"task\":\"t\"}",
		"{\"custom_id\":\"a\",\"context_file\": \"/a \\\"b\\\"/xy\" ,\"task\":\"t\"}");
	expect_anywhere("{\"custom_id\":\"a\",\"task\":\"t\",\"context_dir\":\".\"}",
			"{\"custom_id\":\"a\",\"task\":\"t\",\"context_dir\":\"/a \\\"b\\\"/.\"}");
	expect_anywhere("{\"custom_id\":\"a\",\"task\":\"t\",\"context_file\":\"/x\"}", NULL);
	expect_anywhere("{\"custom_id\":\"a\",\"task\":\"t\",\"context_dir\":\"git:x\"}", NULL);
	expect_anywhere("{\"custom_id\":\"a\",\"task\":\"t\",\"context\":\"x\"}", NULL);
}

static void test_paths(void **state)
{
	(void)state;
	assert_path(JOB("\"context_file\":\"a.txt\""), "jobs/a.txt");
	assert_path(JOB("\"context_file\":\"/a.txt\""), "/a.txt");
	assert_path(JOB("\"context_file\":\"git:x\""), "jobs/git:x");
	assert_path(JOB("\"context_dir\":\".\""), "jobs/.");
	assert_path(JOB("\"context_dir\":\"git:HEAD~2:src\""), "git:HEAD~2:src");
}

/* Others count on it: machines that take a shard each, by versions of their own. */
static void test_hash(void **state)
{
	(void)state;
	assert_true(job_line_hash("abc") == UINT64_C(0xba7816bf8f01cfea));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_members), cmocka_unit_test(test_least),
		cmocka_unit_test(test_refused),     cmocka_unit_test(test_torn),
		cmocka_unit_test(test_bounds),      cmocka_unit_test(test_digest),
		cmocka_unit_test(test_openai),      cmocka_unit_test(test_openai_refused),
		cmocka_unit_test(test_anywhere),    cmocka_unit_test(test_paths),
		cmocka_unit_test(test_hash),
	};

	alloc_install();
	return cmocka_run_group_tests_name("job_line", tests, NULL, NULL);
}
