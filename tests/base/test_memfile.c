/* Bytes in a memory file: written once, sealed, shared. */
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "threads.h"

static struct memfile *made(const char *first, const char *second)
{
	struct memfile *file = memfile_new("test");

	assert_non_null(file);
	assert_true(memfile_append(file, text_of(first), NULL));
	assert_true(memfile_append(file, text_of(second), NULL));
	assert_true(memfile_seal(file, NULL));
	return file;
}

/* Appended bytes are there, and counted, also where a character was split between two. */
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

/* The counts of the parts come to what the file counts of all of it; a character that the end
 * of a part cuts short is none. */
static void test_counted(void **state)
{
	static const char *const parts[] = {"h\n", "a\xe2\x82", "\n=", "\xf0\x9f\x98\x80",
					    "",    "b c\n"};
	struct memfile *file = memfile_new("test"), *whole = memfile_new("test");
	const struct text_scan *is, *wanted;

	(void)state;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		struct text_scan scan = {0};

		assert_true(memfile_append(whole, text_of(parts[i]), NULL));
		assert_true(memfile_append_uncounted(file, text_of(parts[i]), NULL));
		text_scan_feed(&scan, text_of(parts[i]));
		text_scan_end(&scan);
		memfile_count(file, &scan);
	}
	assert_true(memfile_seal(file, NULL));
	assert_true(memfile_seal(whole, NULL));
	is = memfile_scan(file);
	wanted = memfile_scan(whole);
	assert_int_equal(is->bytes, wanted->bytes);
	assert_int_equal(is->characters, wanted->characters);
	assert_int_equal(is->invalid, wanted->invalid);
	assert_int_equal(is->invalid, 2);
	assert_int_equal(is->highest, wanted->highest);
	assert_in_range(text_scan_tokens(is), text_scan_tokens(wanted) - 2,
			text_scan_tokens(wanted) + 2);
	memfile_unref(file);
	memfile_unref(whole);
}

/* Nothing writes, grows, shrinks or unseals it: no descriptor of it and no mapping. */
static void assert_sealed(int fd)
{
	char path[64];
	int again;
	void *map = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(pwrite(again, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(ftruncate(fd, (off_t)1 << 30), -1);
	assert_ptr_equal(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mprotect(map, 1, PROT_WRITE), -1);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & ~(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE),
			 F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	munmap(map, 1);
	close(again);
}

static void test_seal(void **state)
{
	struct memfile *file = made("abc", "");
	int fd = memfile_fd(file, NULL);

	(void)state;
	assert_sealed(fd);
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

enum { PIECES = 5000, LARGE = 3 << 20 };

/* The numbers from `first` on, as bytes: pieces are short, and one in a thousand is large. */
static size_t fill_piece(char *piece, int number, uint32_t *next)
{
	size_t size = number % 1000 == 999 ? LARGE : 1 + (size_t)number % 4000 * sizeof *next;

	for (size_t i = 0; i < size / sizeof *next; i++)
		memcpy(piece + i * sizeof *next, &(uint32_t){(*next)++}, sizeof *next);
	return size / sizeof *next * sizeof *next;
}

/* A thread writes what was appended while the next is: all of it is there, in its order. */
static void test_large(void **state)
{
	struct memfile *file = memfile_new("test");
	static char piece[LARGE];
	uint32_t next = 0;
	size_t size = 0;
	const char *bytes;

	(void)state;
	for (int i = 0; i < PIECES; i++) {
		size_t more = fill_piece(piece, i, &next);

		assert_true(memfile_append(file, text_from(piece, more), NULL));
		size += more;
	}
	assert_true(memfile_seal(file, NULL));
	assert_int_equal(memfile_text(file).size, size);
	assert_int_equal(memfile_scan(file)->bytes, size);
	bytes = memfile_text(file).bytes;
	for (uint32_t i = 0; i < next; i++)
		if (memcmp(bytes + i * sizeof i, &i, sizeof i))
			fail_msg("number %u of %u is another one", i, next);
	memfile_unref(file);
}

/* Where the kernel takes no more, an append that comes later says so, or the seal; and one that is
 * given up while it is written leaves nothing. */
static void test_no_memory(void **state)
{
	struct memfile *file = memfile_new("test"), *left = memfile_new("test");
	static char piece[100000];
	struct rlimit limit, less;
	struct rlmd_error err = {0};
	int appended = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	less = limit;
	less.rlim_cur = LARGE;
	for (int i = 0; i < 25; i++)
		assert_true(memfile_append(left, text_from(piece, sizeof piece), NULL));
	memfile_unref(left);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	while (appended < 1000 && memfile_append(file, text_from(piece, sizeof piece), &err))
		appended++;
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_in_range(appended, LARGE / sizeof piece, 999);
	assert_int_equal(err.kind, RLMD_ERROR_MACHINE);
	memfile_unref(file);
}

/* A private one takes no descriptor before somebody asks for it; its bytes stay where they were
 * lent, and are sealed like any other's. */
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
	assert_sealed(fd);
	assert_int_equal(memfile_fd(file, NULL), fd);
	assert_ptr_equal(memfile_text(file).bytes, text.bytes);
	assert_int_equal(text.bytes[0], 'a');
	assert_int_equal(text.bytes[sizeof block - 1], 'a');
	assert_int_equal(text.bytes[sizeof block], 'b');
	assert_int_equal(text.bytes[text.size - 1], 'j');
	memfile_unref(file);
}

/* A large one does while it grows, so that nothing large is copied at once; and its pages are freed
 * beside whoever gives it back. */
static void test_large_private(void **state)
{
	struct memfile *file = memfile_new_private("test");
	static char block[100001];
	const size_t blocks = MEMFILE_PRIVATE_MAX / sizeof block + 3;
	int fd = open("/dev/null", O_RDONLY);
	struct rlmd_text text;

	(void)state;
	close(fd);
	for (size_t i = 0; i < blocks; i++) {
		assert_int_equal(fcntl(fd, F_GETFD),
				 i * sizeof block > MEMFILE_PRIVATE_MAX ? FD_CLOEXEC : -1);
		memset(block, 'a' + (int)(i % 26), sizeof block);
		assert_true(memfile_append(file, text_from(block, sizeof block), NULL));
	}
	assert_true(memfile_seal(file, NULL));
	assert_int_equal(memfile_fd(file, NULL), fd);
	text = memfile_text(file);
	assert_int_equal(text.size, blocks * sizeof block);
	assert_int_equal(memfile_scan(file)->characters, text.size);
	for (size_t i = 0; i < text.size; i++)
		assert_int_equal(text.bytes[i], 'a' + (int)(i / sizeof block % 26));
	memfile_unref(file);
	while (fcntl(fd, F_GETFD) >= 0)
		sched_yield();
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

/* A file of `size` bytes: `mark` and as many dots as it takes. */
static struct memfile *filled(struct memfile *file, const char *mark, size_t size)
{
	char dots[4096];

	memset(dots, '.', sizeof dots);
	assert_true(memfile_append(file, text_of(mark), NULL));
	while (memfile_size(file) < size) {
		size_t left = size - memfile_size(file);

		assert_true(memfile_append(
			file, text_from(dots, left < sizeof dots ? left : sizeof dots), NULL));
	}
	assert_true(memfile_seal(file, NULL));
	return file;
}

/* A large text goes to workers to be mapped. */
static void test_forms(void **state)
{
	static const struct {
		const char *mark;
		enum text_form form;
		size_t missing; /* characters for bytes */
	} rows[] = {
		{"", TEXT_ASCII, 0},
		{"\xc3\xbc", TEXT_LATIN1, 1},
		{"\xe2\x82\xac", TEXT_UCS2, 2},
		{"\xff", TEXT_UCS2, 0},
		{"\xf0\x9f\x99\x82", TEXT_UCS4, 3},
	};
	size_t row, large = MEMFILE_HEAP_MAX + 1;

	(void)state;
	for (row = 0; row < sizeof rows / sizeof rows[0]; row++) {
		struct memfile *file = filled(memfile_new("test"), rows[row].mark, large);
		struct memfile *small = filled(memfile_new("test"), rows[row].mark, large - 1);
		struct memfile *private = filled(memfile_new_private("test"), rows[row].mark,
						 large);

		assert_int_equal(memfile_form(file), rows[row].form);
		assert_int_equal(memfile_form(small), TEXT_UTF8);
		assert_int_equal(memfile_form(private), rows[row].form);
		assert_int_equal(memfile_form_size(file, TEXT_UTF8), large);
		assert_int_equal(memfile_form_size(file, rows[row].form),
				 (large - rows[row].missing) * text_form_width(rows[row].form));
		memfile_unref(file);
		memfile_unref(small);
		memfile_unref(private);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_append),    cmocka_unit_test(test_counted),
		cmocka_unit_test(test_seal),      cmocka_unit_test(test_heap),
		cmocka_unit_test(test_empty),     cmocka_unit_test(test_references),
		cmocka_unit_test(test_private),   cmocka_unit_test(test_large_private),
		cmocka_unit_test(test_forms),     cmocka_unit_test(test_large),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("memfile", tests, NULL, threads_end);
}
