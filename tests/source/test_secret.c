/*
 * engine/secret: any bytes, and a time that goes with their number. What is a secret and what is
 * none stands in tests/system/test_left_out.py.
 */
#include "source/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "effort.h"

/* Nothing behind the end is read: each is on the heap, to its last byte, for the sanitizers. */
static void test_cut(void **state)
{
	static const char *const wholes[] = {
		"AKIA"
		"ABCDEFGH12345678",
		"-----BEGIN "
		"PRIVATE KEY",
		"hooks.slack.com/services/",
	};

	(void)state;
	for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
		for (size_t size = 0; size < strlen(wholes[i]); size++) {
			auto_free char *bytes = xcalloc(size + 1, 1);
			auto_free char *exact = realloc(take_pointer(&bytes), size ? size : 1);

			memcpy(exact, wholes[i], size);
			assert_null(secret_in_text(text_from(exact, size)));
		}
	assert_string_equal(secret_in_text(text_of(wholes[0])), "an AWS key");
	assert_string_equal(secret_in_text(text_of(wholes[1])), "a private key");
	assert_null(secret_in_text((struct rlmd_text){0}));
}

/* Beginnings that come to nothing, one behind the other: no more is looked at than a token needs.
 */
static void test_beginnings(void **state)
{
	static const char *const beginnings[] = {"-----BEGIN ", "sk-", "AKIA.", "xoxb-.", "SG.?"};
	const size_t size = effort(1 << 20, 1 << 16);
	auto_free char *bytes = xcalloc(size, 1);

	(void)state;
	for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
		size_t length = strlen(beginnings[i]);

		for (size_t k = 0; k < size; k++)
			bytes[k] = beginnings[i][k % length];
		assert_null(secret_in_text(text_from(bytes, size)));
	}
}

static void test_names(void **state)
{
	struct rlmd_text none = {0};

	(void)state;
	assert_string_equal(secret_by_name(".env", none), "an environment file");
	assert_string_equal(secret_by_name("a/b/.Env.Production", none), "an environment file");
	assert_string_equal(secret_by_name(".ssh/known_hosts", none), "SSH's own");
	assert_string_equal(secret_by_name(".npmrc", text_of("_auth=x")), "a registry's token");
	assert_null(secret_by_name(".npmrc", text_of("save=true")));
	assert_null(secret_by_name("ssh/config", none));
	assert_null(secret_by_name("key", none));
	assert_null(secret_by_name("", none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_beginnings),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
