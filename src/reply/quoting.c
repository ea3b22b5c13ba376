#include "reply/quoting.h"

enum { TRIPLE = 3 };

static bool has_three(struct rlmd_text line, size_t at)
{
	return line.size - at >= TRIPLE && line.bytes[at + 1] == line.bytes[at] &&
	       line.bytes[at + 2] == line.bytes[at];
}

/* Behind the quotes at `at`, which open a string, close the one that is open, or do neither. */
static size_t pass_quotes(struct quoting *quoting, struct rlmd_text line, size_t at)
{
	bool three = has_three(line, at);

	if (!quoting->quote) {
		*quoting = (struct quoting){line.bytes[at], three};
		return at + (three ? TRIPLE : 1);
	}
	if (quoting->quote != line.bytes[at] || (quoting->triple && !three))
		return at + 1;
	at += quoting->triple ? TRIPLE : 1;
	*quoting = (struct quoting){0};
	return at;
}

size_t quoting_backtick(struct quoting *quoting, struct rlmd_text line)
{
	size_t found = line.size, at = 0;

	while (at < line.size) {
		char c = line.bytes[at];

		if (c == '#' && !quoting->quote)
			break;
		if (c == '"' || c == '\'') {
			at = pass_quotes(quoting, line, at);
			continue;
		}
		if (c == '`' && !quoting->quote && found == line.size)
			found = at;
		at += c == '\\' ? 2 : 1;
	}
	/* Only three quotes, or a backslash at its end, take a string to the next line. */
	if (!quoting->triple && at <= line.size)
		*quoting = (struct quoting){0};
	return found;
}
