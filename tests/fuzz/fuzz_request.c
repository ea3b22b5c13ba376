/* The first line of an HTTP request, whatever it holds: refused, or a path that stands in it. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cli/request_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rlmd_text line = text_from(data, size);
	struct request_line request;
	const char *refusal = request_line_read(line, &request);

	if (refusal) {
		assert(*refusal == '4');
		return 0;
	}
	assert(text_starts(line, request.head ? "HEAD " : "GET "));
	assert(request.path.bytes == line.bytes + (request.head ? 5 : 4));
	assert(request.path.size + strlen("GET  HTTP/1.1") <= size);
	assert(!request.path.size || !memchr(request.path.bytes, ' ', request.path.size));
	return 0;
}
