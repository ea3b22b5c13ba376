#include "llm/key.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"

static char path[64];

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/rlmd-key-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void put(const char *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

/* A key file holds the key; the line feed that an editor adds is not part of it. */
static void test_file(void **state)
{
	struct rlmd_error err;
	char *key;

	(void)state;
	put("sk-12345\r\n", 10);
	key = key_read_file(path, &err);
	assert_string_equal(key, "sk-12345");
	key_free(key);
}

/* A key that others could read, or that is no file, is refused with what to do. */
static void test_unsafe_file(void **state)
{
	struct rlmd_error err;

	(void)state;
	put("sk-12345", 8);
	chmod(path, 0640);
	assert_null(key_read_file(path, &err));
	assert_int_equal(err.kind, RLMD_ERROR_AUTH);
	assert_non_null(strstr(err.text, "chmod 600"));
	chmod(path, 0604);
	assert_null(key_read_file(path, &err));
	chmod(path, 0620);
	assert_null(key_read_file(path, &err));
	assert_non_null(strstr(err.text, "chmod go-w"));
	assert_null(key_read_file("/dev/null", &err));
	assert_non_null(strstr(err.text, "regular"));
	assert_null(key_read_file("/tmp", &err));
	assert_null(key_read_file("/nonexistent/key", &err));
	assert_int_equal(err.kind, RLMD_ERROR_AUTH);
}

/* A key that could break out of a header, or is no key at all, is refused; and not shown. */
static void test_bad_content(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} cases[] = {
		{"", 0},          {" \n", 2},
		{"se cret", 7},   {"secret\r\nX-Evil: 1", 17},
		{"secret\0x", 8}, {"secret\xc3\xa9", 8},
	};
	static char large[20000];
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put(cases[i].bytes, cases[i].size);
		assert_null(key_read_file(path, &err));
		assert_int_equal(err.kind, RLMD_ERROR_AUTH);
		assert_null(strstr(err.text, "secret"));
	}
	memset(large, 'k', sizeof large);
	put(large, sizeof large);
	assert_null(key_read_file(path, &err));
	assert_non_null(strstr(err.text, "too large"));
}

/* A key of the environment is read, and stays there: it is not the library's. */
static void test_environment(void **state)
{
	static const char *const names[] = {"RLMD_TEST_KEY", "RLMD_OTHER_KEY", NULL};

	(void)state;
	setenv("RLMD_TEST_KEY", "first-secret", 1);
	setenv("RLMD_OTHER_KEY", "other-secret", 1);
	for (int i = 0; i < 2; i++) {
		char *key = key_from_environment(names);

		assert_string_equal(key, "first-secret");
		key_free(key);
	}
	assert_string_equal(getenv("RLMD_TEST_KEY"), "first-secret");
	assert_string_equal(getenv("RLMD_OTHER_KEY"), "other-secret");
	unsetenv("RLMD_TEST_KEY");
	unsetenv("RLMD_OTHER_KEY");
	assert_null(key_from_environment(names));
	assert_null(key_from_environment(NULL));
}

/* Of several keys none stays. */
static void test_several(void **state)
{
	char text[] = "sk-12345 and sk-67890";
	struct key_list keys = {0};
	size_t size;

	(void)state;
	key_list_add(&keys, "sk-12345");
	key_list_add(&keys, NULL);
	key_list_add(&keys, "sk-67890");
	key_list_add(&keys, "sk-12345");
	assert_int_equal(keys.count, 2);
	size = key_list_redact(&keys, text, strlen(text));
	assert_int_equal(size, strlen("*** and ***"));
	assert_memory_equal(text, "*** and ***", size);
	key_list_done(&keys);
	assert_int_equal(keys.count, 0);
}

/* An empty variable counts as not set. */
static void test_empty_variable(void **state)
{
	static const char *const names[] = {"RLMD_TEST_KEY", "RLMD_OTHER_KEY", NULL};
	char *key;

	(void)state;
	setenv("RLMD_TEST_KEY", "", 1);
	setenv("RLMD_OTHER_KEY", "second", 1);
	key = key_from_environment(names);
	assert_string_equal(key, "second");
	key_free(key);
}

/* Every occurrence goes, one that a limit cut at the end too; other text stays. */
static void test_redact(void **state)
{
	char text[] = "key sk-12345 and sk-12345, then sk-123";
	size_t size = key_redact("sk-12345", text, strlen(text));

	(void)state;
	assert_int_equal(size, strlen("key *** and ***, then ***"));
	assert_memory_equal(text, "key *** and ***, then ***", size);

	/* So much of a key at the end is hidden, and no less. */
	strcpy(text, "it begins sk-12");
	assert_int_equal(key_redact("sk-12345", text, strlen(text)), strlen("it begins ***"));
	strcpy(text, "it begins sk-1");
	assert_int_equal(key_redact("sk-12345", text, strlen(text)), strlen(text));

	strcpy(text, "sk is no key");
	assert_int_equal(key_redact("sk-12345", text, strlen(text)), strlen(text));
	assert_int_equal(key_redact(NULL, text, strlen(text)), strlen(text));
	assert_int_equal(key_redact("x", text, strlen(text)), strlen(text));
	assert_int_equal(key_redact("sk-12345", NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsafe_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_content, setup, teardown),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_empty_variable),
		cmocka_unit_test(test_redact),
		cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
