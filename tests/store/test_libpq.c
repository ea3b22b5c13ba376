/* store/libpq: it is opened once; where it is missing, or too old, the error says what to do. */
#include "store/libpq.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

static const char *in_its_place;

void *__wrap_dlopen(const char *name, int flags)
{
	return __real_dlopen(in_its_place ? in_its_place : name, flags);
}

static void test_none(void **state)
{
	static const struct {
		const char *library, *problem;
	} cases[] = {
		{"/nowhere/libpq.so.5", "libpq.so.5: cannot open shared object file"},
		{"libm.so.6", "undefined symbol: PQ"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rlmd_error err = {0};

		in_its_place = cases[i].library;
		assert_null(libpq_open(&err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, cases[i].problem));
		assert_non_null(strstr(err.text, "install libpq5 (Debian, Ubuntu)"));
	}
	in_its_place = NULL;
}

static void test_once(void **state)
{
	struct rlmd_error err = {0};
	const struct libpq *libpq = libpq_open(&err);
	PGconn *conn;

	(void)state;
	assert_non_null(libpq);
	conn = libpq->PQconnectStartParams((const char *[]){NULL}, (const char *[]){NULL}, 0);
	assert_non_null(conn);
	libpq->PQfinish(conn);
	in_its_place = "/nowhere"; /* is not asked for again */
	assert_ptr_equal(libpq_open(&err), libpq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_once),
	};

	return cmocka_run_group_tests_name("libpq", tests, NULL, NULL);
}
