#include "base/log.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

static enum log_level threshold = LOG_WARNING;
static void (*interlude)(void);

void log_write(enum log_level level, const char *module, const char *fmt, ...)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	char text[1024], safe[2048];
	va_list args;

	if (level > threshold)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	text_escape(text_of(text), safe, sizeof safe);
	if (interlude)
		interlude();
	fprintf(stderr, "rlmd: %s: %s: %s\n", names[level], module, safe);
}

void log_set_level(enum log_level level)
{
	threshold = level;
}

void log_set_interlude(void (*before)(void))
{
	interlude = before;
}

static void on_libevent(int severity, const char *message)
{
	static const enum log_level levels[] = {
		[EVENT_LOG_DEBUG] = LOG_DEBUG,
		[EVENT_LOG_MSG] = LOG_INFO,
		[EVENT_LOG_WARN] = LOG_WARNING,
		[EVENT_LOG_ERR] = LOG_ERROR,
	};

	log_write(levels[severity & 3], "libevent", "%s", message);
}

void log_install(void)
{
	event_set_log_callback(on_libevent);
}
