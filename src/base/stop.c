#include "base/stop.h"

#include <stddef.h>

static const struct {
	const char *name, *words, *warning;
} rows[] = {
#define STOP(reason, name, error, warning, words) [RLMD_STOP_##reason] = {name, words, warning},
#include "base/stops.def"
#undef STOP
};

/* The public enum is written out; it is this table. */
enum row {
	ROW_NONE,
#define STOP(reason, name, error, warning, words) ROW_##reason,
#include "base/stops.def"
#undef STOP
	ROWS
};

#define STOP(reason, name, error, warning, words)                                                  \
	_Static_assert((int)RLMD_STOP_##reason == (int)ROW_##reason, #reason " is not in place");
#include "base/stops.def"
#undef STOP

/* A caller may have got the number from anywhere. */
const char *rlmd_stop_name(enum rlmd_stop stop)
{
	return (unsigned)stop < ROWS ? rows[stop].name : NULL;
}

const char *stop_words(enum rlmd_stop stop)
{
	return rows[stop].words;
}

const char *stop_warning(enum rlmd_stop stop)
{
	return rows[stop].warning;
}
