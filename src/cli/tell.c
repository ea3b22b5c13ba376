#include "cli/tell.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/text.h"

enum { MESSAGE_MAX = 4096 };

static enum rlmd_log_level most = RLMD_LOG_NOTICE;
static enum log_format format = LOG_FORMAT_TEXT;
static bool colored;
static void (*interlude)(void);

bool tell_can_live(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb");
}

bool tell_can_color(const char *when)
{
	const char *no_color = getenv("NO_COLOR");

	if (strcmp(when, "auto"))
		return !strcmp(when, "always");
	return tell_can_live() && !(no_color && *no_color);
}

void tell_setup(enum rlmd_log_level level, enum log_format form, bool color)
{
	most = level;
	format = form;
	colored = color;
}

void tell_interlude(void (*before)(void))
{
	interlude = before;
}

static void write_line(const struct rlmd_log_record *record)
{
	auto_evbuffer struct evbuffer *line = buffer_new(), *safe = buffer_new();
	struct rlmd_text text;

	log_format_write(format, record, colored, line);
	text_disarm(text_in(line), format == LOG_FORMAT_JSON ? "\\u005b" : "\\x5b", safe);
	text = text_in(safe);
	if (interlude)
		interlude();
	fwrite(text.bytes, 1, text.size, stderr);
}

void tell_log(void *owner, const struct rlmd_log_record *record)
{
	(void)owner;
	if (record->level <= most)
		write_line(record);
}

void tell_record(enum rlmd_log_level level, const char *event, const struct rlmd_log_field *fields,
		 size_t count, const char *message)
{
	const struct rlmd_log_record record = {
		.size = sizeof record,
		.level = level ? level : RLMD_LOG_NOTICE,
		.subject = "rlmd",
		.event = event,
		.message = message,
		.fields = fields,
		.field_count = format == LOG_FORMAT_JSON ? count : 0,
	};

	if (!level || level <= most)
		write_line(&record);
}

__attribute__((format(printf, 4, 0))) static void say(enum rlmd_log_level level, const char *event,
						      const char *run, const char *fmt,
						      va_list args)
{
	char message[MESSAGE_MAX];
	struct rlmd_log_field field = {.name = "run", .text = run};
	struct rlmd_log_record record = {.size = sizeof record,
					 .level = level,
					 .subject = run ? "run" : "rlmd",
					 .event = event,
					 .message = message,
					 .fields = &field,
					 .field_count = run ? 1 : 0};

	if (level > most)
		return;
	vsnprintf(message, sizeof message, fmt, args);
	tell_log(NULL, &record);
}

void tell_hint(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (format == LOG_FORMAT_TEXT)
		vfprintf(stderr, fmt, args);
	else
		say(RLMD_LOG_ERROR, "hint", NULL, fmt, args);
	if (format == LOG_FORMAT_TEXT)
		fputc('\n', stderr);
	va_end(args);
}

void tell_event(enum rlmd_log_level level, const char *event, const char *run, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(level, event, run, fmt, args);
	va_end(args);
}
