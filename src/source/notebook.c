#include "source/notebook.h"

#include <string.h>
#include <strings.h>

static const char ending[] = ".ipynb", member[] = "\"outputs\": [";

enum { ENDING = sizeof ending - 1, MEMBER = sizeof member - 1, NO_MATCH = MEMBER + 1 };

bool notebook_is_name(const char *path)
{
	size_t size = strlen(path);

	return size > ENDING && !strcasecmp(path + size - ENDING, ending);
}

static void begin_line(struct notebook *notebook)
{
	if (!notebook->inside && notebook->matched == MEMBER) {
		notebook->inside = true;
		notebook->indent = notebook->blanks;
	}
	notebook->blanks = 0;
	notebook->matched = 0;
	notebook->begun = false;
}

/* Whether the character stays. */
static bool take(struct notebook *notebook, char c)
{
	if (c == '\n') {
		begin_line(notebook);
		return true;
	}
	if (c == ' ' && !notebook->begun) {
		notebook->blanks++;
		return true;
	}
	if (!notebook->begun && notebook->inside && c == ']' &&
	    notebook->blanks == notebook->indent)
		notebook->inside = false;
	notebook->begun = true;
	if (notebook->matched < MEMBER && c == member[notebook->matched])
		notebook->matched++;
	else if (c != '\r')
		notebook->matched = NO_MATCH;
	notebook->dropped |= notebook->inside;
	return !notebook->inside || c == '\r';
}

size_t notebook_filter(struct notebook *notebook, char *bytes, size_t size)
{
	size_t left = 0;

	for (size_t i = 0; i < size; i++)
		if (take(notebook, bytes[i]))
			bytes[left++] = bytes[i];
	return left;
}
