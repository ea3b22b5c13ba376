#include "base/log.h"

#include <assert.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>

enum { FIELDS_MAX = 32, MESSAGE_MAX = 1024 };

/* clang-format off */
static const struct {
	enum rlmd_log_level level;
	const char *subject, *name;
} events[LOG_EVENT_COUNT] = {
#define LOG_EVENT(id, level, subject, name, when) [LOG_##id] = {RLMD_LOG_##level, subject, name},
#include "base/log.def"
#undef LOG_EVENT
};
/* clang-format on */

struct log log_root(enum rlmd_log_level level, rlmd_log_fn *fn, void *owner)
{
	return (struct log){.fn = fn, .owner = owner, .level = level ? level : RLMD_LOG_WARNING};
}

struct log log_child(const struct log *parent)
{
	return (struct log){.parent = parent};
}

static void add(struct log *log, struct rlmd_log_field field)
{
	assert(log->count < LOG_OWN_MAX);
	log->fields[log->count++] = field;
}

void log_add_text(struct log *log, const char *name, const char *text)
{
	add(log, (struct rlmd_log_field)LOG_TEXT(name, text));
}

void log_add_number(struct log *log, const char *name, int64_t number)
{
	add(log, (struct rlmd_log_field)LOG_NUMBER(name, number));
}

/* Fields of the engine come before fields of one of its workers. */
static size_t gather(const struct log *log, struct rlmd_log_field *fields)
{
	size_t count = log->parent ? gather(log->parent, fields) : 0;

	for (size_t i = 0; i < log->count && count < FIELDS_MAX; i++)
		fields[count++] = log->fields[i];
	return count;
}

void log_write(const struct log *log, enum log_event event, const struct rlmd_log_field *more,
	       const char *fmt, ...)
{
	const struct log *root = log;
	struct rlmd_log_field fields[FIELDS_MAX];
	char message[MESSAGE_MAX];
	struct rlmd_log_record record = {.size = sizeof record,
					 .level = events[event].level,
					 .subject = events[event].subject,
					 .event = events[event].name,
					 .message = message,
					 .fields = fields};
	va_list args;

	while (root && root->parent)
		root = root->parent;
	if (!root || !root->fn || record.level > root->level)
		return;
	va_start(args, fmt);
	vsnprintf(message, sizeof message, fmt, args);
	va_end(args);
	record.field_count = gather(log, fields);
	for (; more && more->name && record.field_count < FIELDS_MAX; more++)
		if (!more->text || *more->text)
			fields[record.field_count++] = *more;
	root->fn(root->owner, &record);
}

const char *log_level_name(enum rlmd_log_level level)
{
	switch (level) {
	case RLMD_LOG_ERROR:
		return "error";
	case RLMD_LOG_DEFAULT:
	case RLMD_LOG_WARNING:
		return "warning";
	case RLMD_LOG_NOTICE:
		return "notice";
	case RLMD_LOG_INFO:
		return "info";
	case RLMD_LOG_DEBUG:
		return "debug";
	}
	return "unknown";
}

static const struct log *of_libevent;

static void on_libevent(int severity, const char *message)
{
	bool trouble = severity == EVENT_LOG_WARN || severity == EVENT_LOG_ERR;

	log_write(of_libevent, trouble ? LOG_LOOP_TROUBLE : LOG_LOOP_NOTE, NULL, "%s", message);
}

void log_take_libevent(const struct log *log)
{
	of_libevent = log;
	event_set_log_callback(log ? on_libevent : NULL);
}
