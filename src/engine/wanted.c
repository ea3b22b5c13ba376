#include "engine/wanted.h"

#include <string.h>

static const char head[] = "ModuleNotFoundError: No module named '";
static const char tail[] = "': nothing can be installed here";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

bool wanted_module(struct rlmd_text traceback, char ret[WANTED_MAX + 1])
{
	struct rlmd_text line = text_last_line(traceback), rest;
	size_t size = 0;

	if (!text_starts(line, head))
		return false;
	rest = text_slice(line, strlen(head), line.size);
	while (size < rest.size && rest.bytes[size] && strchr(letters, rest.bytes[size]))
		size++;
	if (!size || size > WANTED_MAX || !text_starts(text_slice(rest, size, rest.size), tail))
		return false;
	memcpy(ret, rest.bytes, size);
	ret[size] = '\0';
	return true;
}
