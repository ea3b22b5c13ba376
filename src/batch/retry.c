#include "batch/retry.h"

enum { FIRST_MS = 1000, LONGEST_MS = 300000 };

enum retry retry_of(enum rlmd_error_kind kind)
{
	switch (kind) {
	case RLMD_ERROR_AUTH:
	case RLMD_ERROR_BILLING:
		return RETRY_WITH_ANOTHER_KEY;
	case RLMD_ERROR_THROTTLED:
	case RLMD_ERROR_OVERLOADED:
	case RLMD_ERROR_NETWORK:
	case RLMD_ERROR_TIMEOUT:
	case RLMD_ERROR_BAD_REPLY:
	case RLMD_ERROR_WORKER:
	case RLMD_ERROR_SANDBOX:
		return RETRY_LATER;
	case RLMD_ERROR_MACHINE:
		return RETRY_WITH_FEWER;
	case RLMD_ERROR_CANCELLED:
		return RETRY_UNCOUNTED;
	case RLMD_ERROR_NONE:
	case RLMD_ERROR_INTERNAL:
	case RLMD_ERROR_USAGE:
	case RLMD_ERROR_NOT_FOUND:
	case RLMD_ERROR_BAD_REQUEST:
	case RLMD_ERROR_BUDGET:
	case RLMD_ERROR_NO_ANSWER:
	case RLMD_ERROR_INPUT:
	case RLMD_ERROR_CONTEXT_OVERFLOW:
	case RLMD_ERROR_REFUSED:
	case RLMD_ERROR_REPLAY:
	case RLMD_ERROR_FUNCTION:
	case RLMD_ERROR_SCHEMA:
		break;
	}
	return RETRY_NEVER;
}

bool retry_asks_anew(enum rlmd_error_kind kind)
{
	return kind == RLMD_ERROR_SCHEMA || kind == RLMD_ERROR_NO_ANSWER ||
	       kind == RLMD_ERROR_WORKER;
}

int64_t retry_delay(int64_t attempts, uint32_t random)
{
	int64_t delay = FIRST_MS;

	for (int64_t i = 1; i < attempts && delay < LONGEST_MS; i++)
		delay *= 2;
	if (delay > LONGEST_MS)
		delay = LONGEST_MS;
	return delay - (int64_t)((uint64_t)delay * random / UINT32_MAX) / 2;
}
