/* base/address: whatever is a password is hidden, and nothing else. */
#include "base/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_hide(void **state)
{
	static const struct {
		const char *address, *shown;
	} cases[] = {
		{"postgresql://me:secret@host:5432/db?x=1",
		 "postgresql://me:******@host:5432/db?x=1"},
		{"postgres://me@host:5432/db", "postgres://me@host:5432/db"},
		{"postgres://me:@host/db", "postgres://me:@host/db"},
		{"postgres://host:5432/db", "postgres://host:5432/db"},
		{"postgres://me:a@b/c@host/db", "postgres://me:*****@host/db"},
		{"postgres://h/d?user=u&password=abc&x=1",
		 "postgres://h/d?user=u&password=***&x=1"},
		{"postgres://h/d?password=abc&sslpassword=de",
		 "postgres://h/d?password=***&sslpassword=**"},
		{"--store=postgres://u:p@h/d", "--store=postgres://u:*@h/d"},
		{"dir/a?password=b", "dir/a?password=b"},
		{"", ""},
	};
	char address[128];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(address, sizeof address, "%s", cases[i].address);
		address_hide(address);
		assert_string_equal(address, cases[i].shown);
		if (strcmp(cases[i].address, cases[i].shown))
			assert_true(address_has_password(cases[i].address));
	}
	assert_false(address_has_password("postgres://host:5432/db"));
	assert_false(address_has_password("dir/a?password=b"));
}

static void test_check(void **state)
{
	struct rlmd_error err;

	(void)state;
	assert_true(address_check("postgres://me:secret@host:5432/db", NULL));
	assert_true(address_check("postgres://host:5432/db", NULL));
	assert_true(address_check("dir/file", NULL));
	assert_false(address_check("postgres://me:se@cret@host/db", &err));
	assert_null(strstr(err.text, "cret"));
	assert_false(address_check("postgres://me:se/cret@host/db", &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hide),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
