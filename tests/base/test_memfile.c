/* Bytes in a memory file: written once, sealed, shared. */
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
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

static struct memfile *made(const char *first, const char *second)
{
	struct memfile *file = memfile_new("test");

	assert_non_null(file);
	assert_true(memfile_append(file, text_of(first), NULL));
	assert_true(memfile_append(file, text_of(second), NULL));
	assert_true(memfile_seal(file, NULL));
	return file;
}

/* What was appended is there, and counted, also where a character was split between two. */
static void test_append(void **state)
{
	struct memfile *file = made("a\xe2\x82", "\xac z");

	(void)state;
	assert_int_equal(memfile_size(file), 6);
	assert_true(text_equal(memfile_text(file), "a\xe2\x82\xac z"));
	assert_ptr_equal(memfile_text(file).bytes, memfile_text(file).bytes);
	assert_int_equal(memfile_scan(file)->characters, 4);
	assert_int_equal(memfile_scan(file)->invalid, 0);
	memfile_unref(file);
}

/* After the seal nobody writes, grows, shrinks or unseals it: not by any descriptor. */
static void test_seal(void **state)
{
	struct memfile *file = made("abc", "");
	int fd = memfile_fd(file, NULL);

	(void)state;
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(ftruncate(fd, 100), -1);
	assert_ptr_equal(mmap(NULL, 3, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(fcntl(fd, F_GET_SEALS),
			 F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(text_equal(memfile_text(file), "abc"));
	memfile_unref(file);
}

/* Many small ones take no descriptors; what outgrows the heap is in a file, bytes and all. */
static void test_heap(void **state)
{
	struct memfile *small = made("a", ""), *large = memfile_new("test");
	static char block[MEMFILE_HEAP_MAX / 2 + 1];
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	memset(block, 'x', sizeof block);
	close(fd);
	assert_true(memfile_append(large, text_of("head"), NULL));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_true(memfile_append(large, text_from(block, sizeof block), NULL));
	assert_true(memfile_append(large, text_from(block, sizeof block), NULL));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(memfile_seal(large, NULL));
	assert_int_equal(memfile_fd(large, NULL), fd);
	assert_int_equal(memfile_text(large).size, 4 + 2 * sizeof block);
	assert_true(text_starts(memfile_text(large), "headxxx"));
	memfile_unref(large);
	memfile_unref(small);
}

/* A private one takes no descriptor, of whatever size, before somebody asks for it; its bytes stay
 * where they were lent, and are sealed like any other's. */
static void test_private(void **state)
{
	struct memfile *file = memfile_new_private("test");
	static char block[100000];
	int fd = open("/dev/null", O_RDONLY);
	struct rlmd_text text;

	(void)state;
	close(fd);
	for (int i = 0; i < 10; i++) {
		memset(block, 'a' + i, sizeof block);
		assert_true(memfile_append(file, text_from(block, sizeof block - (size_t)i), NULL));
	}
	assert_true(memfile_seal(file, NULL));
	text = memfile_text(file);
	assert_int_equal(text.size, 10 * sizeof block - 45);
	assert_int_equal(fcntl(fd, F_GETFD), -1);

	assert_int_equal(memfile_fd(file, NULL), fd);
	assert_int_equal(fcntl(fd, F_GET_SEALS),
			 F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	assert_int_equal(memfile_fd(file, NULL), fd);
	assert_ptr_equal(memfile_text(file).bytes, text.bytes);
	assert_int_equal(text.bytes[0], 'a');
	assert_int_equal(text.bytes[sizeof block - 1], 'a');
	assert_int_equal(text.bytes[sizeof block], 'b');
	assert_int_equal(text.bytes[text.size - 1], 'j');
	memfile_unref(file);
}

/* An empty one is an empty text. */
static void test_empty(void **state)
{
	struct memfile *file = made("", "");

	(void)state;
	assert_int_equal(memfile_size(file), 0);
	assert_int_equal(memfile_text(file).size, 0);
	memfile_unref(file);
}

/* It lives as long as somebody holds it, and closes its descriptor then. */
static void test_references(void **state)
{
	struct memfile *file = made("abc", "");
	int fd = memfile_fd(file, NULL);

	(void)state;
	assert_ptr_equal(memfile_ref(file), file);
	memfile_unref(file);
	assert_true(text_equal(memfile_text(file), "abc"));
	memfile_unref(file);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_null(memfile_ref(NULL));
	memfile_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_append),     cmocka_unit_test(test_seal),
		cmocka_unit_test(test_heap),       cmocka_unit_test(test_empty),
		cmocka_unit_test(test_references), cmocka_unit_test(test_private),
	};

	return cmocka_run_group_tests_name("memfile", tests, NULL, NULL);
}
