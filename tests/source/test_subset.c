#include "source/subset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { FILES = 300, FILE_LINES = 100 };

/* As a loader puts it together; the text of file i has the character of its third part. */
static struct context_input put_together(const char *const characters[static 3])
{
	struct memfile *file = memfile_new("test");
	struct file_index *index = file_index_new();
	struct context_input input;
	size_t at = 0;

	for (size_t i = 0; i < FILES; i++) {
		auto_free char *path = xasprintf("%s/%03zu", i == 7 ? "\u00e4" : "a", i);
		auto_free char *header = xasprintf("%s===== %s =====\n", i % 10 == 1 ? "\n" : "",
						   path);
		struct text_scan head = {0}, scan = {0};
		auto_evbuffer struct evbuffer *text = evbuffer_new();

		for (size_t line = 0; line < FILE_LINES; line++)
			evbuffer_add_printf(text, "%zu.%zu %s%s", i, line,
					    characters[i * 3 / FILES],
					    line + 1 < FILE_LINES || i % 10 ? "\n" : "");
		text_scan_feed(&head, text_of(header));
		text_scan_end(&head);
		text_scan_feed(&scan, text_in(text));
		text_scan_end(&scan);
		assert_true(memfile_append(file, text_of(header), NULL));
		at += head.characters;
		file_index_add(index, path, memfile_size(file), at, &scan, NULL);
		assert_true(memfile_append(file, text_in(text), NULL));
		at += scan.characters;
	}
	assert_true(memfile_seal(file, NULL));
	file_index_set_changes(index, text_of("[]"));
	assert_true(file_index_seal(index, NULL));
	input = context_input_of("context", file);
	input.files = index;
	memfile_unref(file);
	return input;
}

/* Each file of it has the text that it has in the whole, and is counted as it is. */
static void assert_part(const struct context_input *whole, struct memfile *file,
			const struct file_index *index, const size_t *ranges, size_t count)
{
	struct rlmd_text all = memfile_text(whole->file), part = memfile_text(file);
	struct text_scan scan = {0};
	size_t place = 0, header;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < ranges[2 * i + 1]; j++, place++) {
			struct file_entry from = file_index_get(whole->files, ranges[2 * i] + j);
			struct file_entry to = file_index_get(index, place);
			struct text_scan before = {0};

			assert_string_equal(to.path.bytes, from.path.bytes);
			assert_int_equal(to.bytes, from.bytes);
			assert_int_equal(to.tokens, from.tokens);
			assert_memory_equal(part.bytes + to.first_byte, all.bytes + from.first_byte,
					    from.bytes);
			header = file_index_header(to.path.size);
			assert_memory_equal(part.bytes + to.first_byte - header, "===== ", 6);
			text_scan_feed(&before, text_slice(part, 0, to.first_byte));
			text_scan_end(&before);
			assert_int_equal(to.first_character, before.characters);
		}
	assert_int_equal(file_index_count(index), place);
	assert_true(text_equal(file_index_changes(index), "[]"));
	text_scan_feed(&scan, part);
	text_scan_end(&scan);
	assert_int_equal(memfile_scan(file)->characters, scan.characters);
	assert_int_equal(memfile_scan(file)->bytes, part.size);
	assert_int_equal(memfile_scan(file)->highest, scan.highest);
	assert_int_equal(memfile_scan(file)->invalid, scan.invalid);
	assert_in_range(text_scan_tokens(memfile_scan(file)), text_scan_tokens(&scan) * 9 / 10,
			text_scan_tokens(&scan) * 11 / 10);
}

static void try_part(const struct context_input *whole, const size_t *ranges, size_t count,
		     bool shared)
{
	struct file_index *index;
	struct memfile *file;

	assert_true(subset_make(whole, ranges, count, &file, &index, NULL));
	assert_part(whole, file, index, ranges, count);
	assert_int_equal(memfile_fd(file, NULL) == memfile_fd(whole->file, NULL), shared);
	memfile_unref(file);
	file_index_unref(index);
}

static void test_neighbours_and_others(void **state)
{
	static const char *const characters[] = {"a", "\u20ac", "z"};
	struct context_input whole = put_together(characters);

	(void)state;
	try_part(&whole, (size_t[]){0, FILES}, 1, true);
	try_part(&whole, (size_t[]){0, 1}, 1, true);
	try_part(&whole, (size_t[]){10, 50}, 1, true);
	try_part(&whole, (size_t[]){95, 50}, 1, true);
	try_part(&whole, (size_t[]){FILES - 1, 1}, 1, true);
	try_part(&whole, (size_t[]){10, 5, 15, 5}, 2, true);
	try_part(&whole, (size_t[]){7, 1, 10, 1, 12, 40, 250, 50}, 4, false);
	context_input_done(&whole);
}

/* Of a part, too: a sub-run's sub-run lies in the same memory. */
static void test_part_of_a_part(void **state)
{
	static const char *const characters[] = {"a", "b", "c"};
	struct context_input whole = put_together(characters), part = {.name = NULL};

	(void)state;
	assert_true(subset_make(&whole, (size_t[]){50, 200}, 1, &part.file, &part.files, NULL));
	try_part(&part, (size_t[]){20, 100}, 1, true);
	assert_int_equal(memfile_fd(part.file, NULL), memfile_fd(whole.file, NULL));
	context_input_done(&whole); /* the part keeps what it needs */
	try_part(&part, (size_t[]){20, 3, 30, 1}, 2, false);
	context_input_done(&part);
}

static void test_no_such_files(void **state)
{
	static const char *const characters[] = {"a", "b", "c"};
	static const size_t wrong[][2] = {
		{FILES, 1}, {0, FILES + 1}, {FILES - 1, 2}, {1, SIZE_MAX}};
	struct context_input whole = put_together(characters);
	struct file_index *index;
	struct memfile *file;
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(subset_make(&whole, wrong[i], 1, &file, &index, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	}
	context_input_done(&whole);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbours_and_others),
		cmocka_unit_test(test_part_of_a_part),
		cmocka_unit_test(test_no_such_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
