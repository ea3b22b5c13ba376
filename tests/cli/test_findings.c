/* cli/findings: what is a problem, what a layer that a machine lacks costs, and the words for it.
 */
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
	json_t *findings = findings_new();
	const json_t *layers, *root, *pids;

	(void)state;
	assert_false(findings_set_sandbox(findings, report, NULL));
	layers = json_object_get(findings, "layers");
	root = layer_of(layers, "empty_root");
	pids = layer_of(layers, "pid_namespace");
	assert_int_equal(json_array_size(layers), 3);
	assert_string_equal(json_get_string(layer_of(layers, "landlock"), "state"), "stands");
	assert_string_equal(json_get_string(root, "state"), "degraded");
	assert_string_equal(json_get_string(root, "call"), "mount");
	assert_non_null(strstr(json_get_string(root, "costs"), "sees the machine's files"));
	assert_string_equal(json_get_string(pids, "state"), "absent");
	assert_non_null(strstr(json_get_string(pids, "costs"), "sees the machine's processes"));
	json_decref(findings);
	json_decref(report);
}

static void assert_problem(const json_t *findings, const char *wanted)
{
	const json_t *problems = json_object_get(findings, "problems");

	assert_int_equal(json_array_size(problems), wanted ? 1 : 0);
	if (wanted)
		assert_string_equal(json_string_value(json_array_get(problems, 0)), wanted);
}

static void test_level(void **state)
{
	static const struct {
		const char *require, *problem;
	} cases[] = {
		{NULL, NULL},
		{"L1", NULL},
		{"L2", NULL},
		{"L3", "isolation L2 is less than --require L3"},
	};
	json_t *report = json_pack("{s:s, s:s}", "level", "L2", "mode", "userns");

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *findings = findings_new();

		assert_int_equal(findings_set_sandbox(findings, report, cases[i].require),
				 cases[i].problem != NULL);
		assert_problem(findings, cases[i].problem);
		assert_string_equal(json_get_string(findings, "level"), "L2");
		assert_string_equal(json_get_string(findings, "mode"), "userns");
		assert_int_equal(findings_conclude(findings), !cases[i].problem);
		assert_int_equal(json_is_true(json_object_get(findings, "ok")), !cases[i].problem);
		json_decref(findings);
	}
	json_decref(report);
}

static void test_attacks(void **state)
{
	static const struct {
		enum attack_verdict verdict;
		const char *name, *problem;
	} cases[] = {
		{ATTACK_REFUSED, "refused", NULL},
		{ATTACK_UNTRIED, "untried",
		 "an attack could not be tried, for this Python lacks ctypes: read (G1)"},
		{ATTACK_GOT_THROUGH, "got through", "an attack got through: read (G1)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct attack_result result = {.name = "read",
						     .guarantee = "G1",
						     .what = "reads a file",
						     .verdict = cases[i].verdict,
						     .detail = "so it was"};
		json_t *findings = findings_new();
		const json_t *attack;

		findings_add_attack(findings, &result);
		attack = json_array_get(json_object_get(findings, "attacks"), 0);
		assert_string_equal(json_get_string(attack, "verdict"), cases[i].name);
		assert_string_equal(json_get_string(attack, "what"), "reads a file");
		assert_string_equal(json_get_string(attack, "detail"), "so it was");
		assert_problem(findings, cases[i].problem);
		json_decref(findings);
	}
}

/* A provider that does not answer costs no guarantee. */
static void test_provider(void **state)
{
	const struct rlmd_error refused = {.text = "the key is wrong"};
	const struct {
		struct rlmd_probe_result result;
		const char *message;
	} cases[] = {
		{{.url = "http://u", .asked = true, .status = 200}, "answers at http://u"},
		{{.url = "http://u", .asked = true, .status = 401, .error = &refused},
		 "refuses: the key is wrong"},
		{{.url = "http://u", .asked = true, .error = &refused},
		 "does not answer: the key is wrong"},
		{{.error = &refused}, "not asked: the key is wrong"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct rlmd_probe_result *result = &cases[i].result;
		json_t *findings = findings_new();
		const json_t *provider;

		findings_set_provider(findings, "openai", result);
		provider = json_object_get(findings, "provider");
		assert_string_equal(json_get_string(provider, "name"), "openai");
		assert_string_equal(json_get_string(provider, "message"), cases[i].message);
		assert_int_equal(json_is_true(json_object_get(provider, "asked")), result->asked);
		assert_int_equal(json_is_true(json_object_get(provider, "answers")),
				 !result->error);
		assert_int_equal(json_integer_value(json_object_get(provider, "status")),
				 result->status);
		assert_int_equal(json_is_null(json_object_get(provider, "url")), !result->url);
		assert_true(findings_conclude(findings));
		json_decref(findings);
	}
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
		cmocka_unit_test(test_layers),      cmocka_unit_test(test_level),
		cmocka_unit_test(test_attacks),     cmocka_unit_test(test_provider),
		cmocka_unit_test(test_the_verdict), cmocka_unit_test(test_everything_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
