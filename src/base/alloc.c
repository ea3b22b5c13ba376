#include "base/alloc.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *present(void *memory)
{
	if (!memory) {
		fputs("rlmd: out of memory\n", stderr);
		abort();
	}
	return memory;
}

void *xcalloc(size_t count, size_t size)
{
	return present(calloc(count ? count : 1, size ? size : 1));
}

void *xreallocarray(void *memory, size_t count, size_t size)
{
	return present(reallocarray(memory, count ? count : 1, size ? size : 1));
}

char *xstrdup(const char *string)
{
	return string ? present(strdup(string)) : NULL;
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
	return present(string);
}

static void *aborting_malloc(size_t size)
{
	return present(malloc(size ? size : 1));
}

static void *aborting_realloc(void *memory, size_t size)
{
	return present(realloc(memory, size ? size : 1));
}

void alloc_install(void)
{
	event_set_mem_functions(aborting_malloc, aborting_realloc, free);
	json_set_alloc_funcs(aborting_malloc, free);
}
