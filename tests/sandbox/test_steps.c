/*
 * Every step of the way to a worker, made to fail: then there is no worker, or
 * the report names what it costs. Never a weaker worker without a word.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "sandbox/launch.h"
#include "sandbox/layer_status.h"
#include "stage.h"

static const struct {
	const char *name, *call;
	int error;
	enum layer loss;
} steps[] = {
#define STEP(name, loss, call, error, remedy) {#name, call, error, LAYER_##loss},
#include "sandbox/steps.def"
#undef STEP
};

static const char *const layer_names[] = {
#define LAYER(name, shown, meaning) shown,
#include "sandbox/layers.def"
#undef LAYER
};

static const char *const modes[] = {
#define MODE(name, layers, meaning) #name,
#include "sandbox/modes.def"
#undef MODE
};

/* The layers that stand without a step; NULL and `ret_error` where nothing does. */
static json_t *report_without(struct stage *stage, const char *step, struct rlmd_error *ret_error)
{
	auto_free char *without = xasprintf("%s%s%s",
					    stage_mode->without ? stage_mode->without : "",
					    stage_mode->without ? "," : "", step);

	sandbox_free(take_pointer(&stage->sandbox));
	stage->sandbox = sandbox_new(stage->base,
				     &(struct sandbox_config){
					     .python = "python3",
					     .worker_memory = MEMORY,
					     .worker_dir = stage_directory,
					     .without = without,
				     },
				     ret_error);
	return stage->sandbox ? sandbox_report(stage->sandbox) : NULL;
}

static int rank(const json_t *report)
{
	const char *mode = json_string_value(json_object_get(report, "mode"));

	for (int i = 0; i < MODE_COUNT; i++)
		if (!strcmp(modes[i], mode))
			return i;
	fail_msg("mode %s", mode);
	return -1;
}

/* Every layer that stood before stands, or is named as absent, with an errno. */
static void expect_named(const json_t *before, const json_t *after, const char *step)
{
	for (int i = 0; i < LAYER_COUNT; i++)
		if (report_has(before, layer_names[i]) && !report_has(after, layer_names[i]) &&
		    !report_lacks(after, layer_names[i]))
			fail_msg("without %s, %s is gone and not named", step, layer_names[i]);
}

/* A worker of the sandbox as it is proves what the report says. */
static void expect_proven(struct stage *stage, const json_t *report)
{
	auto_free char *layers = json_dumps(json_object_get(report, "layers"), 0);
	auto_free char *code = xasprintf(
		"say([name for name in %s if name[-7:] not in ('_cgroup', 'y_watch', 'ed_uids')] == layers)",
		layers);

	expect(stage, code, "True\n");
}

/* As root every step is on the way, but for those of another mode. */
static void expect_change(const json_t *before, const json_t *after, const char *step)
{
	static const char *const elsewhere[] = {"user_namespace", "setgroups", "uid_map",
						"gid_map",        "outer_uid", "outer_gid",
						"outer_groups"};

	if (strcmp(stage_mode->name, "root") || !json_equal(before, after))
		return;
	for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
		if (!strcmp(step, elsewhere[i]))
			return;
	fail_msg("nothing changes without %s", step);
}

/* Only root becomes somebody else for the sake of a user namespace. */
static bool is_taken(const char *step)
{
	return strncmp(step, "outer_", 6) || !strcmp(stage_mode->name, "rootless");
}

static void expect_loss(struct stage *stage, const json_t *before, int i)
{
	struct rlmd_error err = {0};
	json_t *after = report_without(stage, steps[i].name, &err);

	if (!after) {
		assert_int_equal(err.kind, error_kind_of(steps[i].error, RLMD_ERROR_SANDBOX));
		assert_true(steps[i].loss >= LAYER_COUNT); /* a layer less is no reason */
		if (!strstr(err.text, steps[i].call) || !strstr(err.text, strerror(steps[i].error)))
			fail_msg("without %s: %s", steps[i].name, err.text);
		return;
	}
	expect_named(before, after, steps[i].name);
	expect_change(before, after, steps[i].name);
	if (steps[i].loss < LAYER_COUNT && is_taken(steps[i].name) &&
	    report_has(before, layer_names[steps[i].loss])) {
		const char *error = report_lacks(after, layer_names[steps[i].loss]);

		assert_false(report_has(after, layer_names[steps[i].loss]));
		assert_non_null(error);
		assert_string_equal(error, strerrorname_np(steps[i].error));
	}
	if (rank(after) != rank(before)) {
		assert_int_equal(steps[i].loss, LAYER_whole_mode);
		assert_true(rank(after) > rank(before));
	}
	assert_true(strcmp(rlmd_sandbox_level(stage->sandbox),
			   json_string_value(json_object_get(before, "level"))) <= 0);
	expect_proven(stage, after);
	json_decref(after);
}

/* G1 to G10 rest on it: one step after the other, in the mode of this test. */
static void each_step_may_fail(void **state)
{
	struct stage *stage = *state;
	json_t *before = sandbox_report(stage->sandbox);

	for (int i = 0; i < STEP_COUNT; i++)
		expect_loss(stage, before, i);
	json_decref(before);
}

/* Without what no worker may be without, there is none, whatever the mode. */
static void some_steps_are_never_missed(void **state)
{
	static const char *const needed[] = {
		"privileges",  "keep",    "hide", "fork",       "death_signal", "life", "dup",
		"close_range", "rlimits", "drop", "undumpable", "filter",       "watch"};
	struct rlmd_error err;

	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
		assert_null(report_without(*state, needed[i], &err));
}

/* All that a kernel may lack at once: the filter and what belongs to it still stand. */
static void the_filter_stands_alone(void **state)
{
	struct stage *stage = *state;
	struct rlmd_error err;
	json_t *report = report_without(
		stage,
		"namespaces,user_namespace,uid,uid_lock,landlock,keyring,priority,wx,memory_group,"
		"pids_group,cpu_group",
		&err);

	assert_non_null(report);
	assert_string_equal(rlmd_sandbox_level(stage->sandbox), "L1");
	assert_string_equal(json_string_value(json_object_get(report, "mode")), "plain");
	assert_true(report_has(report, "seccomp"));
	expect_proven(stage, report);
	expect(stage, "say(attempt('open(\"/etc/passwd\")'), attempt('os.fork()'))",
	       "PermissionError PermissionError\n");
	json_decref(report);
}

/* The switch itself knows its names. */
static void unknown_steps_are_refused(void **state)
{
	struct rlmd_error err = {0};

	assert_null(report_without(*state, "no_such_step", &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "no_such_step"));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
	const struct CMUnitTest tests[] = {
		TEST(each_step_may_fail),
		TEST(some_steps_are_never_missed),
		TEST(the_filter_stands_alone),
		TEST(unknown_steps_are_refused),
	};

	stage_enter_mode(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests_name("steps", tests, stage_make_directory,
					   stage_remove_directory);
}
