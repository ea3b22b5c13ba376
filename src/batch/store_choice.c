#include "batch/store_choice.h"

#include <event2/buffer.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "store/store.h"

enum { NAMES_TOLD = 10 };

static void refuse(const struct store_result *result, const char *name, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *names = NULL;

	for (size_t i = 0; i < result->count && i < NAMES_TOLD; i++) {
		struct rlmd_text one = result->batches[i].name;

		evbuffer_add_printf(out, "%s'%.*s'", i ? ", " : "", (int)one.size, one.bytes);
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

const struct store_batch *store_choice(const struct store_result *result, const char *name,
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
