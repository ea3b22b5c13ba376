/* cli/findings: what a layer that a machine lacks costs, and the words for it all. */
#include "cli/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

static const json_t *layer_of(const json_t *layers, const char *name)
{
	const json_t *layer;
	size_t i;

	json_array_foreach (layers, i, layer)
		if (!strcmp(json_get_string(layer, "layer"), name))
			return layer;
	return NULL;
}

/* A layer that is missing is degraded where another one that stands does a part of its work. */
static void test_layers(void **state)
{
	json_t *report = json_pack("{s:[s], s:[{s:s, s:s}, {s:s, s:s}]}", "layers", "landlock",
				   "absent", "layer", "empty_root", "call", "mount", "layer",
				   "pid_namespace", "call", "clone");
	json_t *layers = findings_layers(report);
	const json_t *root = layer_of(layers, "empty_root"),
		     *pids = layer_of(layers, "pid_namespace");

	(void)state;
	assert_int_equal(json_array_size(layers), 3);
	assert_string_equal(json_get_string(layer_of(layers, "landlock"), "state"), "stands");
	assert_string_equal(json_get_string(root, "state"), "degraded");
	assert_string_equal(json_get_string(root, "call"), "mount");
	assert_non_null(strstr(json_get_string(root, "costs"), "sees the machine's files"));
	assert_string_equal(json_get_string(pids, "state"), "absent");
	assert_non_null(strstr(json_get_string(pids, "costs"), "sees the machine's processes"));
	json_decref(layers);
	json_decref(report);
}

static char *text_of_findings(const json_t *findings, bool short_of_level)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	findings_format(findings, short_of_level, out);
	return text_drain(out, NULL);
}

/* The last sentence is the verdict: a level that is asked for is no guarantee. */
static void test_the_verdict(void **state)
{
	static const struct {
		size_t problems;
		bool short_of_level;
		const char *words;
	} cases[] = {
		{0, false, "\nEvery guarantee of docs/security.md can be kept.\n"},
		{1, false, "\nNot every guarantee of docs/security.md can be kept.\n"},
		{1, true, "can be kept, but --require asks for more layers.\n"},
		{2, true, "\nNot every guarantee of docs/security.md can be kept.\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *findings = json_pack("{s:s, s:[]}", "version", "1", "problems");
		char *text;

		for (size_t k = 0; k < cases[i].problems; k++)
			json_array_append_new(json_object_get(findings, "problems"),
					      json_string("it is so"));
		text = text_of_findings(findings, cases[i].short_of_level);
		assert_true(strlen(text) > strlen(cases[i].words));
		assert_string_equal(text + strlen(text) - strlen(cases[i].words), cases[i].words);
		assert_int_equal(!strstr(text, "\nProblems:\n  it is so\n"), !cases[i].problems);
		free(text);
		json_decref(findings);
	}
}

static void test_everything_is_shown(void **state)
{
	json_t *findings = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:[{s:s, s:s, s:s, s:s, s:s, s:s}], s:[{s:s, s:s, s:s, "
		"s:s}], s:{s:s, s:s}, s:[s], s:[]}",
		"version", "1.0", "kernel", "6.1", "machine", "x86_64", "python", "3.11", "level",
		"L3", "mode", "user", "layers", "layer", "landlock", "state", "absent", "call",
		"landlock_x", "errno", "ENOSYS", "remedy", "a newer kernel", "costs", "much",
		"attacks", "verdict", "refused", "guarantee", "G1", "what", "read it", "detail",
		"no", "provider", "name", "p", "message", "answers at u", "warnings", "beware",
		"problems");
	char *text = text_of_findings(findings, false);

	(void)state;
	assert_non_null(strstr(
		text, "rlmd 1.0, Linux 6.1, x86_64, Python 3.11\nisolation L3, mode user\n"));
	assert_non_null(strstr(text, "absent    landlock              much\n"));
	assert_non_null(strstr(text, "landlock_x: ENOSYS; remedy: a newer kernel\n"));
	assert_non_null(strstr(text, "refused     G1  read it"));
	assert_non_null(strstr(text, "\nProvider p: answers at u\n"));
	assert_non_null(strstr(text, "\nWarnings:\n  beware\n"));
	assert_null(strstr(text, "Problems"));
	free(text);
	json_decref(findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_the_verdict),
		cmocka_unit_test(test_everything_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
