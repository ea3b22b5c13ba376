/* batch/line_reader: lines in pieces of any size, and no more memory than a line may take. */
#include "batch/line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static int file_with(const char *bytes, size_t size)
{
	int fd = memfd_create("lines", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static enum line_status next(struct line_reader *reader, struct rlmd_text *ret)
{
	enum line_status status;

	do
		status = line_reader_next(reader, ret);
	while (status == LINE_NOT_YET);
	return status;
}

static void assert_line(struct line_reader *reader, enum line_status wanted, const char *text,
			uint64_t number, off_t offset)
{
	struct rlmd_text line = {0};

	assert_int_equal(next(reader, &line), wanted);
	assert_true(text_equal(line, text));
	assert_int_equal(reader->number, number);
	assert_int_equal(reader->offset, offset);
}

static void test_lines(void **state)
{
	auto_close int fd = file_with("a\n\nbc\r\nlong line\nd", 18);
	struct line_reader reader = {.fd = fd, .limit = 4};
	struct rlmd_text line;

	(void)state;
	assert_line(&reader, LINE_WHOLE, "a", 1, 0);
	assert_line(&reader, LINE_WHOLE, "", 2, 2);
	assert_line(&reader, LINE_WHOLE, "bc\r", 3, 3);
	assert_line(&reader, LINE_TOO_LONG, "", 4, 7);
	assert_line(&reader, LINE_TORN, "d", 5, 17);
	assert_int_equal(next(&reader, &line), LINE_END);
	assert_int_equal(next(&reader, &line), LINE_END);
	line_reader_done(&reader);
}

/* Lines longer than one read, and one that is never to be held. */
static void test_long_lines(void **state)
{
	enum { LINE = 700000, GIANT = 3000000 };
	size_t size = LINE + 1 + GIANT + 1 + 2;
	auto_free char *bytes = malloc(size);
	struct line_reader reader = {.limit = LINE};
	struct rlmd_text line = {0};

	(void)state;
	memset(bytes, 'x', size);
	bytes[LINE] = bytes[LINE + 1 + GIANT] = '\n';
	bytes[size - 1] = '\n';
	reader.fd = file_with(bytes, size);
	assert_int_equal(next(&reader, &line), LINE_WHOLE);
	assert_int_equal(line.size, LINE);
	assert_int_equal(next(&reader, &line), LINE_TOO_LONG);
	assert_int_equal(reader.offset, LINE + 1);
	assert_true(reader.room <= 2 * (LINE + (1 << 18)));
	assert_line(&reader, LINE_WHOLE, "x", 3, LINE + 1 + GIANT + 1);
	assert_int_equal(next(&reader, &line), LINE_END);
	close(reader.fd);
	line_reader_done(&reader);
}

/* The last line is too long, and has no end. */
static void test_long_torn_line(void **state)
{
	auto_close int fd = file_with("a\nlong line", 11);
	struct line_reader reader = {.fd = fd, .limit = 4};
	struct rlmd_text line;

	(void)state;
	assert_line(&reader, LINE_WHOLE, "a", 1, 0);
	assert_line(&reader, LINE_TOO_LONG, "", 2, 2);
	assert_int_equal(next(&reader, &line), LINE_END);
	line_reader_done(&reader);
}

static void test_size(void **state)
{
	auto_close int fd = file_with("a\nb\nc\n", 6);
	struct line_reader reader = {.fd = fd, .limit = 4, .size = 3};
	struct rlmd_text line;

	(void)state;
	assert_line(&reader, LINE_WHOLE, "a", 1, 0);
	assert_line(&reader, LINE_TORN, "b", 2, 2);
	assert_int_equal(next(&reader, &line), LINE_END);
	line_reader_done(&reader);
}

/* A pipe is never waited for, though it be one that blocks. */
static void test_pipe(void **state)
{
	struct line_reader reader = {.limit = 100, .may_block = true};
	struct rlmd_text line;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	reader.fd = ends[0];
	assert_int_equal(next(&reader, &line), LINE_AWAITED);
	assert_int_equal(write(ends[1], "half", 4), 4);
	assert_int_equal(next(&reader, &line), LINE_AWAITED);
	assert_int_equal(write(ends[1], " a line\n", 8), 8);
	assert_line(&reader, LINE_WHOLE, "half a line", 1, 0);
	assert_int_equal(next(&reader, &line), LINE_AWAITED);
	close(ends[1]);
	assert_int_equal(next(&reader, &line), LINE_END);
	close(ends[0]);
	line_reader_done(&reader);
}

static void test_failure(void **state)
{
	auto_close int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct line_reader reader = {.fd = fd, .limit = 100};
	struct rlmd_text line;

	(void)state;
	assert_int_equal(next(&reader, &line), LINE_FAILED);
	assert_int_equal(errno, EISDIR);
	line_reader_done(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),          cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_long_torn_line), cmocka_unit_test(test_size),
		cmocka_unit_test(test_pipe),           cmocka_unit_test(test_failure),
	};

	return cmocka_run_group_tests_name("line_reader", tests, NULL, NULL);
}
