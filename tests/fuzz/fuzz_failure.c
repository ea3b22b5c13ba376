/* Errors: two bytes of status, then the body; the same bytes also as a Retry-After. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "llm/failure.h"
#include "net/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct failure *failure)
{
	require(failure->kind != RLMD_ERROR_NONE);
	require(!failure->quirk || failure->kind == RLMD_ERROR_BAD_REQUEST);
	require(!failure->retry || !failure->quirk);
	require(strlen(failure->message) < sizeof failure->message);
	require(text_is_utf8(text_of(failure->message)));
	require(!strpbrk(failure->message, "\n\r\t\x1b"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct failure failure;
	struct rlmd_text body;
	char *header;
	int64_t delay;

	if (size < 2)
		return 0;
	body = text_from(data + 2, size - 2);
	failure_of_status(data[0] | data[1] << 8, body, &failure);
	check(&failure);
	failure_of_body(body, &failure);
	check(&failure);
	header = text_copy(body);
	delay = gate_delay(*data, NULL, header, INT64_C(1795253400000), 1);
	require(delay > 0 && delay <= GATE_TOLD_MAX);
	free(header);
	return 0;
}
