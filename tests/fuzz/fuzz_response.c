/* A model's response, whatever it holds: the first byte says whether it was cut. */
#include <assert.h>
#include <stdint.h>

#include "reply/response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile char sink;

/* Touches every byte, so that a sanitizer sees one that is not ours. */
static size_t touch(struct rlmd_text text)
{
	for (size_t i = 0; i < text.size; i++)
		sink ^= text.bytes[i];
	return text.size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rlmd_text text = size ? text_from(data + 1, size - 1) : (struct rlmd_text){0};
	struct response response;
	size_t total;

	response_read(text, size && data[0] % 2, &response);
	total = touch(response.value) + touch(response.thinking);
	for (size_t i = 0; i < response.block_count; i++) {
		total += touch(response.blocks[i]);
		assert(text_trim(response.blocks[i]).size);
	}
	assert(touch(response.said) <= text.size);
	assert(touch(response.form) <= response.said.size || response.invented);
	assert(!response.form.size || !response.answer);
	assert(!response_has_words(&response) || response.answer || response.said.size);
	/* Nothing is said twice. */
	assert(total <= text.size);
	assert(response.answer || !response.value.size);
	assert(response.answer != RLMD_ANSWER_VARIABLE || response.value.size);
	assert(!response.cut_fence || data[0] % 2);
	response_done(&response);
	return 0;
}
