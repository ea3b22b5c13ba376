#include "fuzz_adapter.h"

static void words(const json_t *event, struct evbuffer *text, struct evbuffer *thinking)
{
	const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
	const json_t *delta = json_object_get(choice, "delta");
	const json_t *content = json_object_get(delta, "content"), *part;
	const json_t *reasoning = json_object_get(delta, "reasoning_content");
	size_t i;

	json_array_foreach (content, i, part)
		if (text_equal(json_get_text(part, "type"), "text"))
			fuzz_put(text, json_object_get(part, "text"));
	fuzz_put(text, content);
	fuzz_put(thinking,
		 json_text(reasoning).size ? reasoning : json_object_get(delta, "reasoning"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_adapter(&adapter_openai, words, data, size);
}
