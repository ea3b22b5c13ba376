/* source/content: the bytes of a file or of a text, and the secrets in them. */
#include "source/content.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "source/secret.h"

/* A file of that text, open at its beginning. */
static int file_of(const char *bytes, size_t size)
{
	int fd = memfd_create("test_content", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void test_taken(void **state)
{
	auto_close int fd = file_of("abcde", 5);
	struct file_content content[] = {content_of_fd(fd), content_of_text(text_of("abcde"))};
	char bytes[4];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_false(content_waits(&content[i]));
		assert_int_equal(content_take(&content[i], bytes, 4), 4);
		assert_memory_equal(bytes, "abcd", 4);
		assert_false(content_ends(&content[i]));
		assert_int_equal(content_take(&content[i], bytes, 4), 1);
		assert_int_equal(bytes[0], 'e');
		assert_int_equal(content_take(&content[i], bytes, 4), 0);
		assert_int_equal(content[i].taken, 5);
	}
	assert_true(content_ends(&content[0]));
	assert_true(content_is_larger(&content[0], 4));
	assert_false(content_is_larger(&content[0], 5));
	assert_false(content_is_larger(&content[1], 0));
}

static void test_pipe(void **state)
{
	struct file_content content;
	char bytes[4];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	content = content_of_fd(fds[0]);
	assert_true(content_waits(&content));
	assert_int_equal(write(fds[1], "ab", 2), 2);
	assert_false(content_waits(&content));
	assert_int_equal(content_take(&content, bytes, 4), 2);
	assert_false(content_ends(&content)); /* there may be more */
	close(fds[1]);
	assert_false(content_waits(&content));
	assert_int_equal(content_take(&content, bytes, 4), 0);
	close(fds[0]);
}

/* The same file under any name. */
static void test_identity(void **state)
{
	auto_close int fd = file_of("a", 1), same = dup(fd), other = file_of("a", 1);
	struct file_content content = content_of_fd(fd), text = content_of_text(text_of("a"));
	const struct file_id ids[] = {content_of_fd(other).id, content_of_fd(same).id};

	(void)state;
	assert_true(content_is_one_of(&content, ids, 2));
	assert_false(content_is_one_of(&content, ids, 1));
	assert_false(content_is_one_of(&text, ids, 2));
}

static const char *search(struct file_content content, size_t from, int *ret_calls)
{
	const char *what = NULL;

	for (*ret_calls = 1; !content_search(&content, from, &what); ++*ret_calls)
		;
	return what;
}

/* Wherever it stands: behind the first window, and where one ends and the next begins. */
static void test_search(void **state)
{
	enum { SIZE = 200000, WINDOW = 1 << 16 };
	static const char secret[] = "AKIA"
				     "ABCDEFGH12345678";
	static const size_t places[] = {300, WINDOW - 10, WINDOW + SECRET_SPAN - 10, SIZE - 30};
	auto_free char *bytes = xcalloc(SIZE, 1);
	int calls, windows;

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		auto_close int fd = -1;

		memset(bytes, ' ', SIZE);
		memcpy(bytes + places[i], secret, sizeof secret - 1);
		fd = file_of(bytes, SIZE);
		assert_non_null(
			search(content_of_text(text_from(bytes, SIZE)), SECRET_SPAN, &calls));
		assert_non_null(search(content_of_fd(fd), SECRET_SPAN, &calls));
	}
	memset(bytes, ' ', SIZE);
	assert_null(search(content_of_text(text_from(bytes, SIZE)), SECRET_SPAN, &windows));
	assert_int_equal(windows, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_search),
	};

	return cmocka_run_group_tests_name("content", tests, NULL, NULL);
}
