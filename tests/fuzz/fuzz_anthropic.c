#include "fuzz_adapter.h"

static void words(const json_t *event, struct evbuffer *text, struct evbuffer *thinking)
{
	struct rlmd_text type = json_get_text(event, "type");
	const json_t *block = NULL;

	if (text_equal(type, "content_block_start"))
		block = json_object_get(event, "content_block");
	else if (text_equal(type, "content_block_delta"))
		block = json_object_get(event, "delta");
	fuzz_put(text, json_object_get(block, "text"));
	fuzz_put(thinking, json_object_get(block, "thinking"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_adapter(&adapter_anthropic, words, data, size);
}
