#include "fuzz_adapter.h"

static void words(const json_t *event, struct evbuffer *text, struct evbuffer *thinking)
{
	const json_t *message = json_object_get(event, "message");

	fuzz_put(text, json_object_get(message, "content"));
	fuzz_put(thinking, json_object_get(message, "thinking"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_adapter(&adapter_ollama, words, data, size);
}
