#include "fuzz_adapter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_adapter(&adapter_ollama, data, size);
}
