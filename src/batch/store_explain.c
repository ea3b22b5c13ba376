#include "batch/store_explain.h"

#include "store/store.h"

void store_explain(const struct store_result *result, struct rlmd_error *ret)
{
	*ret = result->error;
	switch (result->fault) {
	case STORE_LOCKED:
	case STORE_CORRUPT:
	case STORE_NEWER:
	case STORE_USAGE:
		ret->kind = RLMD_ERROR_USAGE;
		break;
	case STORE_FINE:
	case STORE_REFUSED:
	case STORE_AWAY:
	case STORE_FULL:
	case STORE_FAILED:
		ret->kind = RLMD_ERROR_INTERNAL;
		break;
	}
}
