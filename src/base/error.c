#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const struct {
	const char *name;
	int exit;
	enum rlmd_stop stop;
	const char *meaning;
} kinds[] = {
	[RLMD_ERROR_NONE] = {"none", 0, RLMD_STOP_NONE, "no error"},
#define ERROR(kind, name, exit, stop, meaning)                                                     \
	[RLMD_ERROR_##kind] = {name, exit, RLMD_STOP_##stop, meaning},
#include "base/errors.def"
#undef ERROR
};

/* The public enums are written out; they are these tables. */
enum error_row {
	ROW_NONE,
#define ERROR(kind, name, exit, stop, meaning) ROW_##kind,
#include "base/errors.def"
#undef ERROR
	ROWS
};

#define ERROR(kind, name, exit, stop, meaning)                                                     \
	_Static_assert((int)RLMD_ERROR_##kind == (int)ROW_##kind, #kind " is not in its place");
#include "base/errors.def"
#undef ERROR

static const struct {
	const char *name;
	enum rlmd_error_kind error;
	const char *warning, *words;
} stops[] = {
#define STOP(reason, name, error, warning, words)                                                  \
	[RLMD_STOP_##reason] = {name, RLMD_ERROR_##error, warning, words},
#include "base/stops.def"
#undef STOP
};

enum stop_row {
	STOP_ROW_NONE,
#define STOP(reason, name, error, warning, words) STOP_ROW_##reason,
#include "base/stops.def"
#undef STOP
	STOP_ROWS
};

#define STOP(reason, name, error, warning, words)                                                  \
	_Static_assert((int)RLMD_STOP_##reason == (int)STOP_ROW_##reason, #reason " is elsewhere");
#include "base/stops.def"
#undef STOP

static void error_write(struct rlmd_error *err, enum rlmd_error_kind kind, const char *text)
{
	if (!err)
		return;
	err->kind = kind;
	err->http_status = 0;
	err->stop = RLMD_STOP_NONE;
	text_escape(text_of(text), err->text, sizeof err->text);
}

bool error_set(struct rlmd_error *err, enum rlmd_error_kind kind, const char *fmt, ...)
{
	char text[sizeof err->text];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	error_write(err, kind, text);
	return false;
}

bool error_limit(struct rlmd_error *err, enum rlmd_stop limit, const char *fmt, ...)
{
	char text[sizeof err->text];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	error_write(err, RLMD_ERROR_BUDGET, text);
	if (err)
		err->stop = limit;
	return false;
}

/* The machine is short of something, and may not be later: nothing is wrong with the task.
 * EAGAIN says that of processes, and of a read that nothing is there yet. */
enum rlmd_error_kind error_kind_of(int number, enum rlmd_error_kind kind)
{
	switch (number) {
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOBUFS:
	case ETOOMANYREFS:
		return RLMD_ERROR_MACHINE;
	case EAGAIN:
		return kind == RLMD_ERROR_SANDBOX ? RLMD_ERROR_MACHINE : kind;
	default:
		return kind;
	}
}

bool error_errno(struct rlmd_error *err, enum rlmd_error_kind kind, const char *fmt, ...)
{
	const char *remedy = errno == EMFILE ? " (ulimit -n allows no more)" : "";
	const char *reason = strerror(errno);
	enum rlmd_error_kind cause = error_kind_of(errno, kind);
	char text[sizeof err->text];
	va_list args;
	int used;

	va_start(args, fmt);
	used = vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (used >= 0 && (size_t)used < sizeof text)
		snprintf(text + used, sizeof text - (size_t)used, ": %s%s", reason, remedy);
	error_write(err, cause, text);
	return false;
}

bool error_context(struct rlmd_error *err, const char *fmt, ...)
{
	char text[2 * sizeof err->text];
	va_list args;
	int used;

	if (!err)
		return false;
	va_start(args, fmt);
	used = vsnprintf(text, sizeof err->text, fmt, args);
	va_end(args);
	if (used >= 0 && (size_t)used < sizeof err->text)
		snprintf(text + used, sizeof text - (size_t)used, ": %s", err->text);
	text_escape(text_of(text), err->text, sizeof err->text);
	return false;
}

/* A caller may have got the number from anywhere. */
static enum rlmd_error_kind known(enum rlmd_error_kind kind)
{
	return (unsigned)kind < ROWS ? kind : RLMD_ERROR_INTERNAL;
}

const char *rlmd_error_name(enum rlmd_error_kind kind)
{
	return kinds[known(kind)].name;
}

const char *rlmd_error_meaning(enum rlmd_error_kind kind)
{
	return kinds[known(kind)].meaning;
}

int rlmd_error_exit_status(enum rlmd_error_kind kind)
{
	return kinds[known(kind)].exit;
}

enum rlmd_stop error_stop(const struct rlmd_error *err)
{
	return err->stop ? err->stop : kinds[known(err->kind)].stop;
}

enum rlmd_error_kind error_of_stop(enum rlmd_stop stop)
{
	return stops[stop].error;
}

enum rlmd_error_kind error_named(struct rlmd_text name)
{
	for (int kind = RLMD_ERROR_NONE + 1; kind < ROWS; kind++)
		if (text_equal(name, kinds[kind].name))
			return (enum rlmd_error_kind)kind;
	return RLMD_ERROR_NONE;
}

/* A caller may have got the number from anywhere. */
const char *rlmd_stop_name(enum rlmd_stop stop)
{
	return (unsigned)stop < STOP_ROWS ? stops[stop].name : NULL;
}

const char *error_stop_words(enum rlmd_stop stop)
{
	return stops[stop].words;
}

const char *error_stop_warning(enum rlmd_stop stop)
{
	return stops[stop].warning;
}
