/* The Host header of a request for metrics, whatever it holds: only this machine's names pass. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cli/exporter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char letters[] = "0123456789abcdefABCDEF.:[]";
	struct rlmd_text value = text_trim(text_from(data, size));

	if (!exporter_is_own_host(value, "own"))
		return 0;
	if (text_starts_caseless(value, "localhost"))
		value = text_slice(value, strlen("localhost"), value.size);
	else if (text_starts_caseless(value, "own"))
		value = text_slice(value, strlen("own"), value.size);
	for (size_t i = 0; i < value.size; i++)
		assert(value.bytes[i] && strchr(letters, value.bytes[i]));
	return 0;
}
