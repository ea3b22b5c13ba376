/* sandbox/layer_status: layers and their causes, the level that they come to, words for refusals.
 */
#include "sandbox/layer_status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void assert_level(uint32_t layers, const char *wanted)
{
	const struct layer_status status = {.layers = layers};

	assert_string_equal(layer_status_level(&status), wanted);
}

/* docs/security.md: what each level has, and the layer without which it is the one below. */
static void test_levels(void **state)
{
	const uint32_t foreign = BIT(not_root) | BIT(uid);
	const uint32_t apart = BIT(landlock) | NAMESPACES | foreign;
	const uint32_t limited = apart | BIT(memory_group) | BIT(pids_group);

	(void)state;
	assert_level(0, "L1");
	assert_level(foreign | BIT(memory_group) | BIT(pids_group), "L1");
	assert_level(BIT(landlock), "L2");
	assert_level(NAMESPACES, "L2");
	assert_level(apart & ~BIT(not_root), "L2");
	assert_level(apart & ~BIT(uid), "L2");
	assert_level(apart, "L3");
	assert_level((apart & ~BIT(uid)) | BIT(user), "L3");
	assert_level(limited & ~BIT(pids_group), "L3");
	assert_level(limited, "L4");
}

/* A refused step costs its layer, or all that the mode has, or nothing that a level counts. */
static void test_causes(void **state)
{
	struct layer_status status = {.mode = MODE_root};
	const struct launch_failure one = {MODE_root, STEP_keyring, ENOSYS};
	const struct launch_failure whole = {MODE_root, STEP_namespaces, EPERM};
	const struct launch_failure all = {MODE_root, STEP_privileges, EINVAL};

	(void)state;
	assert_int_equal(layer_status_loss(&one), LAYER_keyring);
	assert_int_equal(layer_status_loss(&whole), LAYER_whole_mode);
	assert_int_equal(layer_status_loss(&all), LAYER_everything);
	layer_status_note(&status, &one);
	layer_status_note(&status, &all);
	assert_int_equal(status.causes[LAYER_keyring].error, ENOSYS);
	for (int i = 0; i < LAYER_COUNT; i++)
		assert_int_equal(status.causes[i].error, i == LAYER_keyring ? ENOSYS : 0);
}

static void test_report(void **state)
{
	struct layer_status status = {.mode = MODE_plain, .layers = BIT(filter) | BIT(landlock)};
	const struct launch_failure failure = {MODE_plain, STEP_landlock_tcp, ENOSYS};
	json_t *report;
	auto_free char *text = NULL;

	(void)state;
	layer_status_note(&status, &failure);
	report = layer_status_report(&status);
	text = json_dumps(report, JSON_COMPACT);
	assert_string_equal(text, "{\"level\":\"L2\",\"mode\":\"plain\",\"layers\":[\"seccomp\","
				  "\"landlock\"],\"absent\":[{\"layer\":\"landlock_tcp\",\"call\":"
				  "\"landlock_create_ruleset\",\"errno\":\"ENOSYS\",\"remedy\":"
				  "\"Linux 6.7\"}]}");
	assert_string_equal(layer_status_mode(&status), "plain");
	json_decref(report);
}

static void test_refusals(void **state)
{
	const struct launch_failure failure = {MODE_userns, STEP_gid, EINVAL};
	const struct launch_failure bare = {MODE_plain, STEP_privileges, EINVAL};
	struct rlmd_error err = {0};

	(void)state;
	assert_false(layer_status_error(&failure, &err));
	assert_int_equal(err.kind, RLMD_ERROR_SANDBOX);
	assert_string_equal(err.text,
			    "the walls of mode \"userns\" do not stand: setresgid failed: "
			    "Invalid argument; give it CAP_SETGID, and map the ids from "
			    "first-uid on into its user namespace");
	assert_false(layer_status_error(&bare, &err));
	assert_string_equal(err.text, "the walls of mode \"plain\" do not stand: prctl failed: "
				      "Invalid argument");
}

static void test_names_of_steps(void **state)
{
	struct rlmd_error err = {0};
	uint64_t steps = 7;

	(void)state;
	assert_true(layer_status_steps(NULL, &steps, &err));
	assert_true(steps == 0);
	assert_true(layer_status_steps("uid,landlock", &steps, &err));
	assert_true(steps == (UINT64_C(1) << STEP_uid | UINT64_C(1) << STEP_landlock));
	assert_false(layer_status_steps("uid,land", &steps, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_string_equal(err.text, "the sandbox has no step \"land\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),         cmocka_unit_test(test_causes),
		cmocka_unit_test(test_report),         cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_names_of_steps),
	};

	return cmocka_run_group_tests_name("layer_status", tests, NULL, NULL);
}
