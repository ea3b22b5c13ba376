/*
 * source/secret: any bytes, and a time that goes with their number. What is a secret and what is
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

/* A token is one at the start of a word, which a hyphen ends, and JSON's way to write an end of
 * line; at every place, for a text is looked at in pairs. */
static void test_starts_of_words(void **state)
{
	static const struct {
		const char *before;
		bool found;
	} rows[] = {{"", true},     {" ", true},   {"=", true},   {"\"", true},  {"-", true},
		    {"key-", true}, {"\\n", true}, {"\\r", true}, {"\\t", true}, {"\n", true},
		    {"n", false},   {"x", false},  {"_", false},  {"7", false},  {"\\x", false}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int shift = 0; shift < 2; shift++) {
			auto_free char *text = xasprintf("%s%sAKIAABCDEFGH12345678",
							 shift ? " " : "", rows[i].before);
			const char *what = secret_in_text(text_of(text));

			if (!what == rows[i].found)
				fail_msg("%s", text);
		}
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

/* Every row is found wherever it begins, and with whatever is beside it; not within a word. */
static void test_places(void **state)
{
	static const struct {
		const char *prefix, *then, *what;
	} rows[] = {
#define SECRET_TOKEN(prefix, of, least, what)                                                      \
	{prefix, #of[0] == 'U' ? "ABCD1234" : "aB3dE6gH", what},
#define SECRET_HEADER(first, then, what) {first, then, what},
#include "source/secrets.def"
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t before = 0; before < 18; before++) {
			const char *then = rows[i].then;
			size_t size = before + strlen(rows[i].prefix);

			memset(text, ' ', sizeof text);
			memcpy(text + before, rows[i].prefix, strlen(rows[i].prefix));
			while (size + strlen(then) < 128) {
				memcpy(text + size, then, strlen(then));
				size += strlen(then);
			}
			for (size_t k = 0; k < 12; k++)
				assert_string_equal(secret_in_text(text_from(text, size + k)),
						    rows[i].what);
			if (!before || *text == '-' || *rows[i].prefix == '-')
				continue;
			text[before - 1] = 'x';
			assert_null(secret_in_text(text_from(text, size)));
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
		cmocka_unit_test(test_cut),        cmocka_unit_test(test_starts_of_words),
		cmocka_unit_test(test_beginnings), cmocka_unit_test(test_places),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
