/* cli/status_text: how batches stand, in lines that nobody else's names can break. */
#include "cli/status_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/buffer.h>
#include <stdlib.h>

#include "base/text.h"

#define COUNTS "'pending':1,'running':2,'succeeded':3,'failed':4,'cost':0.5,'tokens':99"

/* Of JSON with single quotes. */
static void assert_lines(const char *json, const char *expected)
{
	struct evbuffer *out = evbuffer_new();
	char *quoted = text_copy(text_of(json)), *lines;
	json_t *status;

	for (char *at = quoted; *at; at++)
		if (*at == '\'')
			*at = '"';
	status = json_loads(quoted, 0, NULL);
	assert_non_null(status);
	status_text_write(status, out);
	lines = text_drain(out, NULL);
	assert_string_equal(lines, expected);
	free(lines);
	free(quoted);
	json_decref(status);
	evbuffer_free(out);
}

static void test_counts(void **state)
{
	(void)state;
	assert_lines("{'batches':[]}", "no batch\n");
	assert_lines(
		"{'batches':[{'batch':'a.jsonl','jobs':10," COUNTS
		"},{'batch':'b','jobs':1,'pending':0,'succeeded':1,'degraded':1}]}",
		"a.jsonl: 10 jobs: 1 pending, 2 running, 3 succeeded, 4 failed; $0.50, 99 tokens\n"
		"b: 1 jobs: 0 pending, 0 running, 1 succeeded (1 degraded), 0 failed; $0.00, "
		"0 tokens\n");
}

/* One without a name is everybody's, and shown beside others alone. */
static void test_tenants(void **state)
{
	(void)state;
	assert_lines("{'batches':[{'batch':'b','jobs':1,'tenants':[{'tenant':''," COUNTS "}]}]}",
		     "b: 1 jobs: 0 pending, 0 running, 0 succeeded, 0 failed; $0.00, 0 tokens\n");
	assert_lines(
		"{'batches':[{'batch':'b','jobs':1,'tenants':[{'tenant':''},{'tenant':'acme'," COUNTS
		"}]}]}",
		"b: 1 jobs: 0 pending, 0 running, 0 succeeded, 0 failed; $0.00, 0 tokens\n"
		"  tenant (none): 0 pending, 0 running, 0 succeeded, 0 failed; $0.00, 0 tokens\n"
		"  tenant acme: 1 pending, 2 running, 3 succeeded, 4 failed; $0.50, 99 tokens\n");
}

static void test_breakers_and_nodes(void **state)
{
	(void)state;
	assert_lines("{'batches':[{'batch':'b','jobs':1,'breakers':["
		     "{'tenant':'acme','provider':'openai','why':'401','seconds':40},"
		     "{'tenant':'','provider':'ollama','why':'away','seconds':2}],"
		     "'nodes':[{'host':'a','pid':4242,'jobs':4,'leaseSeconds':51}]}]}",
		     "b: 1 jobs: 0 pending, 0 running, 0 succeeded, 0 failed; $0.00, 0 tokens\n"
		     "  stopped: acme at openai, 40 s ago: 401\n"
		     "  stopped: ollama, 2 s ago: away\n"
		     "  at work: a, process 4242: 4 jobs, held for 51 s\n");
}

/* Neither a line of their own nor a command to a terminal, in one byte or in two; other alphabets
 * are what they are. */
static void test_names_of_others(void **state)
{
	(void)state;
	assert_lines(
		"{'batches':[{'batch':'\\u00e9\\u65e5\\n\\u001b[2J','jobs':1,'breakers':["
		"{'tenant':'a\\rb','provider':'\\u009b2J','why':'\\u202e\\u007f','seconds':1}],"
		"'nodes':[{'host':'\\b'}]}]}",
		"\xc3\xa9\xe6\x97\xa5\\n\\x1b[2J: 1 jobs: 0 pending, 0 running, 0 succeeded, 0 "
		"failed; $0.00, 0 tokens\n"
		"  stopped: a\\rb at \\u009b2J, 1 s ago: \\u202e\\u007f\n"
		"  at work: \\x08, process 0: 0 jobs, held for 0 s\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_tenants),
		cmocka_unit_test(test_breakers_and_nodes),
		cmocka_unit_test(test_names_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
