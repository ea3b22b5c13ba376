#include "store/script.h"

#include <stdlib.h>
#include <string.h>

enum access { READS, WRITES };

static const struct {
	enum access access;
	const char *types;
} scripts[] = {
	[SCRIPT_OPEN] = {READS, ""},
#define SCRIPT(script, access, types) [SCRIPT_##script] = {access, types},
#define STATEMENT(script, turns, rows, sql)
#define NOTIFY(script)
#include "store/scripts.def"
#undef SCRIPT
#undef STATEMENT
#undef NOTIFY
};

bool script_writes(enum script script)
{
	return scripts[script].access == WRITES;
}

const char *script_types(enum script script)
{
	return scripts[script].types;
}

size_t statement_width(const char *sql)
{
	size_t width = 0;

	while ((sql = strchr(sql, '$'))) {
		size_t number = strtoul(++sql, NULL, 10);

		if (number > width)
			width = number;
	}
	return width;
}
