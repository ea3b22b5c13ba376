#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const struct {
	const char *name;
	int exit;
	const char *meaning;
} kinds[] = {
	[ERROR_NONE] = {"none", 0, "no error"},
#define ERROR(kind, name, exit, meaning) [ERROR_##kind] = {name, exit, meaning},
#include "base/errors.def"
#undef ERROR
};

static void error_write(struct error *err, enum error_kind kind, const char *text)
{
	if (!err)
		return;
	err->kind = kind;
	err->http_status = 0;
	text_escape(text_of(text), err->text, sizeof err->text);
}

bool error_set(struct error *err, enum error_kind kind, const char *fmt, ...)
{
	char text[sizeof err->text];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	error_write(err, kind, text);
	return false;
}

bool error_errno(struct error *err, enum error_kind kind, const char *fmt, ...)
{
	const char *reason = strerror(errno);
	char text[sizeof err->text];
	va_list args;
	int used;

	va_start(args, fmt);
	used = vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (used >= 0 && (size_t)used < sizeof text)
		snprintf(text + used, sizeof text - (size_t)used, ": %s", reason);
	error_write(err, kind, text);
	return false;
}

bool error_context(struct error *err, const char *fmt, ...)
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

const char *error_name(enum error_kind kind)
{
	return kinds[kind].name;
}

int error_exit_status(enum error_kind kind)
{
	return kinds[kind].exit;
}

const char *error_meaning(enum error_kind kind)
{
	return kinds[kind].meaning;
}
