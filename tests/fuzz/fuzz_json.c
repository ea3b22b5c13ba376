/* Whatever bytes come as JSON. */
#include "fuzz_json.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of its size, so that a sanitizer sees who reads behind it. */
	auto_free char *copy = malloc(size + !size);

	memcpy(copy, size ? data : (const uint8_t *)"", size);
	read_by_both(text_from(copy, size));
	return 0;
}
