#include "base/alloc.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void alloc_failed(void)
{
	static const char message[] = "rlmd: out of memory\n";

	(void)!write(STDERR_FILENO, message, sizeof message - 1);
	abort();
}

void *xpresent(void *memory)
{
	if (!memory)
		alloc_failed();
	return memory;
}

void *xcalloc(size_t count, size_t size)
{
	return xpresent(calloc(count ? count : 1, size ? size : 1));
}

void *xreallocarray(void *memory, size_t count, size_t size)
{
	return xpresent(reallocarray(memory, count ? count : 1, size ? size : 1));
}

char *xstrdup(const char *string)
{
	return string ? xpresent(strdup(string)) : NULL;
}

char *xstrndup(const char *bytes, size_t size)
{
	char *copy = xreallocarray(NULL, size + 1, 1);

	if (size)
		memcpy(copy, bytes, size);
	copy[size] = '\0';
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	char *string;

	va_start(args, fmt);
	if (vasprintf(&string, fmt, args) < 0)
		string = NULL;
	va_end(args);
	return xpresent(string);
}

static void *aborting_malloc(size_t size)
{
	return xpresent(malloc(size ? size : 1));
}

static void *aborting_realloc(void *memory, size_t size)
{
	return xpresent(realloc(memory, size ? size : 1));
}

void alloc_install(void)
{
	event_set_mem_functions(aborting_malloc, aborting_realloc, free);
	json_set_alloc_funcs(aborting_malloc, free);
}
