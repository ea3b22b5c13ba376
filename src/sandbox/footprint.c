#include "sandbox/footprint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_MAX = 8 << 10 };

/* "\nField:\t  123 kB"; 0 where there is no such line. */
static int64_t field(const char *content, const char *name)
{
	const char *line = strstr(content, name);

	return line ? strtoll(line + strlen(name), NULL, 10) : 0;
}

struct footprint footprint_parse(const char *content)
{
	return (struct footprint){
		.memory = (field(content, "\nRssAnon:") + field(content, "\nVmSwap:")) * 1024,
		.threads = field(content, "\nThreads:"),
	};
}

bool footprint_read(int status, struct footprint *ret_footprint)
{
	char content[STATUS_MAX];
	ssize_t size = pread(status, content, sizeof content - 1, 0);

	if (size <= 0)
		return false;
	content[size] = '\0';
	*ret_footprint = footprint_parse(content);
	return true;
}
