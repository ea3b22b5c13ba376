#include "batch/batch_store.h"

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

enum { NAMES_TOLD = 10 };

const char *batch_store_news(enum store_news news)
{
	switch (news) {
	case STORE_WENT_AWAY:
		return "the store cannot be reached: no job is begun until it can, those at "
		       "work go on";
	case STORE_CAME_BACK:
		return "the store can be reached again";
	case STORE_HELD:
		return "another process holds the store locked: waiting until it is free (Ctrl-C "
		       "ends that)";
	case STORE_FREED:
		return "the store is free again";
	case STORE_CHANGED:
	case STORE_NEWS:
		break;
	}
	return NULL;
}

void batch_store_explain(const struct store_result *result, struct rlmd_error *ret)
{
	*ret = result->error;
	switch (result->fault) {
	case STORE_LOCKED:
	case STORE_FOREIGN:
	case STORE_NEWER:
	case STORE_USAGE:
		ret->kind = RLMD_ERROR_USAGE;
		break;
	case STORE_MISSING:
	case STORE_CORRUPT:
		ret->kind = RLMD_ERROR_INPUT;
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

static void refuse(const struct store_result *result, const char *name, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *names = NULL;

	for (size_t i = 0; i < result->count && i < NAMES_TOLD; i++) {
		struct rlmd_text one = result->batches[i].name;

		buffer_add_printf(out, "%s'%.*s'", i ? ", " : "", (int)one.size, one.bytes);
	}
	names = text_drain(out, NULL);
	if (!result->count)
		error_set(err, RLMD_ERROR_USAGE, "the store has no batch");
	else if (name)
		error_set(err, RLMD_ERROR_USAGE, "the store has no batch '%s'; it has %s%s", name,
			  names, result->count > NAMES_TOLD ? ", ..." : "");
	else
		error_set(err, RLMD_ERROR_USAGE,
			  "the store has %zu batches, and --batch does not say which: %s%s",
			  result->count, names, result->count > NAMES_TOLD ? ", ..." : "");
}

const struct store_batch *batch_store_choose(const struct store_result *result, const char *name,
					     struct rlmd_error *err)
{
	if (!name && result->count == 1)
		return &result->batches[0];
	for (size_t i = 0; name && i < result->count; i++)
		if (text_equal(result->batches[i].name, name))
			return &result->batches[i];
	refuse(result, name, err);
	return NULL;
}
