/* base/prometheus: the lines of a metric, as the text format 0.0.4 has them. */
#include "base/prometheus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"

static void test_head(void **state)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *text = NULL;

	(void)state;
	prometheus_head(out, "rlmd_jobs", "gauge", "Jobs by state.");
	text = text_drain(out, NULL);
	assert_string_equal(text, "# HELP rlmd_jobs Jobs by state.\n# TYPE rlmd_jobs gauge\n");
}

static void assert_sample(const struct prometheus_label *labels, size_t count, const char *wanted)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *text = NULL;

	prometheus_sample(out, "jobs", labels, count);
	text = text_drain(out, NULL);
	assert_string_equal(text, wanted);
}

/* Labels without a value are left out, with the braces where none is left. */
static void test_labels(void **state)
{
	const struct prometheus_label labels[] = {
		{"tenant", NULL}, {"state", "failed"}, {"why", ""}, {"other", NULL}};

	(void)state;
	assert_sample(labels, 4, "jobs{state=\"failed\",why=\"\"} ");
	assert_sample(labels, 2, "jobs{state=\"failed\"} ");
	assert_sample(labels, 1, "jobs ");
	assert_sample(NULL, 0, "jobs ");
}

/* A tenant may be called anything. */
static void test_values_are_quoted(void **state)
{
	const struct prometheus_label label = {"tenant", "a\"b\\c\nd\xc3\xa9 %s"};

	(void)state;
	assert_sample(&label, 1, "jobs{tenant=\"a\\\"b\\\\c\\nd\xc3\xa9 %s\"} ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_values_are_quoted),
	};

	return cmocka_run_group_tests_name("prometheus", tests, NULL, NULL);
}
