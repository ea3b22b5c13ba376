#include "read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void assert_text(struct rlmd_text text, const char *expected, const char *input)
{
	if (text_equal(text, expected))
		return;
	print_error("in:   %s\nwant: [%s]\ngot:  [%.*s]\n", input, expected, (int)text.size,
		    text.bytes ? text.bytes : "");
	fail();
}

void assert_code(const char *input, bool cut, const char *expected)
{
	struct response response;
	char joined[1024] = "";

	response_read(text_of(input), cut, &response);
	for (size_t i = 0; i < response.block_count; i++) {
		strcat(joined, i ? "\n--\n" : "");
		strncat(joined, response.blocks[i].bytes, response.blocks[i].size);
	}
	assert_text(text_of(joined), expected, input);
	response_done(&response);
}

void assert_answer(const char *input, bool cut, enum rlmd_answer_kind kind, const char *expected)
{
	struct response response;

	response_read(text_of(input), cut, &response);
	if (response.answer != kind)
		print_error("in:   %s\ngot:  [%.*s]\n", input, (int)response.value.size,
			    response.value.bytes);
	assert_int_equal(response.answer, kind);
	assert_text(response.value, expected, input);
	assert_int_equal(response.value.bytes[response.value.size], '\0');
	response_done(&response);
}

void assert_reading(const struct reading *row)
{
	struct response response;

	assert_code(row->input, false, row->code);
	response_read(text_of(row->input), false, &response);
	if (response.answer || row->answer)
		assert_text(response.value, row->answer ? row->answer : "(none)", row->input);
	if (row->thinking)
		assert_text(response.thinking, row->thinking, row->input);
	response_done(&response);
}
