#include "cli/tell.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "base/text.h"

enum { LINE_MAX_BYTES = 4096 };

static bool quietly, colored;
static void (*interlude)(void);

void tell_setup(bool quiet, bool color)
{
	quietly = quiet;
	colored = color;
}

void tell_interlude(void (*before)(void))
{
	interlude = before;
	log_set_interlude(before);
}

/* `color` is a parameter of SGR, "31" for red; `word` stands before the text, or is empty. */
__attribute__((format(printf, 3, 0))) static void say(const char *color, const char *word,
						      const char *fmt, va_list args)
{
	char text[LINE_MAX_BYTES], safe[2 * LINE_MAX_BYTES];

	vsnprintf(text, sizeof text, fmt, args);
	text_escape(text_of(text), safe, sizeof safe);
	if (interlude)
		interlude();
	if (colored && *word)
		fprintf(stderr, "rlmd: \033[%sm%s:\033[0m %s\n", color, word, safe);
	else
		fprintf(stderr, "rlmd: %s%s%s\n", word, *word ? ": " : "", safe);
}

void tell(const char *fmt, ...)
{
	va_list args;

	if (quietly)
		return;
	va_start(args, fmt);
	say("", "", fmt, args);
	va_end(args);
}

void tell_warning(const char *fmt, ...)
{
	va_list args;

	if (quietly)
		return;
	va_start(args, fmt);
	say("33", "warning", fmt, args);
	va_end(args);
}

void tell_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("31", "error", fmt, args);
	va_end(args);
}
