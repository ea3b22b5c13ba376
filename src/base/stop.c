#include "base/stop.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *words;
} rows[] = {
#define X(reason, name, words) [STOP_##reason] = {name, words},
	STOP_REASONS(X)
#undef X
};

const char *stop_name(enum stop_reason stop)
{
	return rows[stop].name;
}

const char *stop_words(enum stop_reason stop)
{
	return rows[stop].words;
}

enum stop_reason stop_with_words(const char *words)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].words && !strcmp(rows[i].words, words))
			return (enum stop_reason)i;
	return STOP_FINAL;
}

enum stop_reason stop_of_error(enum rlmd_error_kind kind)
{
	if (kind == RLMD_ERROR_REFUSED)
		return STOP_REFUSED;
	if (kind == RLMD_ERROR_SANDBOX || kind == RLMD_ERROR_WORKER || kind == RLMD_ERROR_INPUT)
		return STOP_SANDBOX_ERROR;
	return STOP_PROVIDER_ERROR;
}

const char *stop_warning(enum stop_reason stop)
{
	if (stop == STOP_INTERRUPTED)
		return "Interrupted, answer was forced";
	if (stop == STOP_NO_CODE)
		return "No code and no answer, answer was forced";
	return "Budget exhausted, answer was forced";
}

enum rlmd_error_kind stop_error(enum stop_reason stop)
{
	if (stop == STOP_INTERRUPTED)
		return RLMD_ERROR_CANCELLED;
	return stop == STOP_NO_CODE ? RLMD_ERROR_NO_ANSWER : RLMD_ERROR_BUDGET;
}
