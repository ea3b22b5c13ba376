/* Which lines of /etc/subuid reach into the ids of workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/subids.h"

enum { FIRST = 210000, COUNT = 10240 };

static void clashes_are_found(void **state)
{
	static const struct {
		const char *content;
		const char *said; /* of the only warning; NULL: there is none */
	} cases[] = {
		{"alice:100000:65536\nbob:165536:65536\ncarol:231072:65536\n",
		 "workers get ids from 210000 to 220239, of which FILE gives bob those from 165536 "
		 "to 231071; choose others with --first-uid"},
		{"1001:220239:1\n", "gives 1001 those from 220239 to 220239"},
		{"x:209999:2\n", "gives x"},
		{"x:209999:1\nx:220240:65536\n", NULL},
		{"x:0:4294967295", "gives x"},
		{"x:210000:0\n", NULL},
		{"# x:210000:9\n\n:\nx\nx:y:z\nx:210000\n210000:1\n", NULL},
		{"x:99999999999999999999:1\nx:210000:99999999999999999999\n", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		json_t *warnings = json_array();
		const char *said;

		subids_check("FILE", text_of(cases[i].content), FIRST, COUNT, warnings);
		assert_int_equal(json_array_size(warnings), cases[i].said ? 1 : 0);
		said = json_string_value(json_array_get(warnings, 0));
		if (cases[i].said && !strstr(said, cases[i].said))
			fail_msg("%s", said);
		json_decref(warnings);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(clashes_are_found)};

	alloc_install();
	return cmocka_run_group_tests_name("subids", tests, NULL, NULL);
}
