#include "store/query.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "store/result.h"

/* So that no sum of ours leaves 64 bits. */
#define MS_MAX     INT64_C(1000000000000000)
#define COST_MAX   INT64_C(1000000000000000000)
#define TOKENS_MAX INT64_C(1000000000000000)

enum access { READS, WRITES };

static const struct {
	enum access access;
	const char *types;
} scripts[] = {
	[SCRIPT_OPEN] = {READS, ""},
#define SCRIPT(script, access, types) [SCRIPT_##script] = {access, types},
#define STATEMENT(script, turns, rows, sql)
#define NOTIFY(script, rows)
#include "store/scripts.def"
#undef SCRIPT
#undef STATEMENT
#undef NOTIFY
};

bool query_script_writes(enum script script)
{
	return scripts[script].access == WRITES;
}

const char *query_script_types(enum script script)
{
	return scripts[script].types;
}

size_t query_width(const char *sql)
{
	size_t width = 0;

	while ((sql = strchr(sql, '$'))) {
		size_t number = strtoul(++sql, NULL, 10);

		if (number > width)
			width = number;
	}
	return width;
}

struct query *query_new(enum script script, size_t sets, store_fn *fn, void *owner)
{
	struct query *query = xcalloc(1, sizeof *query);

	query->script = script;
	query->sets = sets;
	query->params = xcalloc(sets * strlen(query_script_types(script)) + 1,
				sizeof *query->params);
	query->fn = fn;
	query->owner = owner;
	return query;
}

static void values_free(struct value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((char *)values[i].text.bytes);
	free(values);
}

void query_free(struct query *query)
{
	if (!query)
		return;
	query_reset(query);
	values_free(query->params, query->width);
	free(query);
}

/* The type that the script has for the next parameter. */
static char next_type(const struct query *query)
{
	const char *types = query_script_types(query->script);

	assert(query->width < query->sets * strlen(types));
	return types[query->width % strlen(types)];
}

void query_put(struct query *query, int64_t integer)
{
	assert(next_type(query) == 'i');
	query->params[query->width++] = (struct value){.is_integer = true, .integer = integer};
}

void query_put_ms(struct query *query, int64_t ms)
{
	if (ms < 0 || ms > MS_MAX)
		query_fail(query, STORE_USAGE, "no store holds anything for so long");
	query_put(query, ms);
}

void query_put_amount(struct query *query, int64_t cost, int64_t tokens)
{
	if (cost < 0 || cost > COST_MAX || tokens < 0 || tokens > TOKENS_MAX)
		query_fail(query, STORE_USAGE, "no store counts so much at once");
	query_put(query, cost);
	query_put(query, tokens);
}

void query_put_text(struct query *query, struct rlmd_text text)
{
	char type = next_type(query);

	assert(type != 'i');
	if (type == 't' && text.size && (!text_is_utf8(text) || memchr(text.bytes, 0, text.size)))
		query_fail(query, STORE_USAGE, "a name of a job, a tenant or the like is no UTF-8");
	query_set_value(&query->params[query->width++], text);
}

struct value *query_add_row(struct query *query, size_t set, size_t columns)
{
	size_t row = query->rows++;

	assert(!row || columns == query->columns);
	query->columns = columns;
	query->cells = array_grow(query->cells, row, columns * sizeof *query->cells);
	query->row_sets = array_grow(query->row_sets, row, sizeof *query->row_sets);
	query->row_sets[row] = set;
	memset(query->cells + row * columns, 0, columns * sizeof *query->cells);
	return query->cells + row * columns;
}

void query_set_value(struct value *value, struct rlmd_text text)
{
	value->text = text_from(xstrndup(text.size ? text.bytes : "", text.size), text.size);
}

void query_reset(struct query *query)
{
	values_free(query->cells, query->rows * query->columns);
	free(query->row_sets);
	query->cells = NULL;
	query->row_sets = NULL;
	query->rows = query->columns = 0;
}

static const char *const meanings[] = {
	[STORE_FINE] = "no fault",
#define FAULT(fault, meaning) [STORE_##fault] = meaning,
#include "store/faults.def"
#undef FAULT
};

const char *query_fault_meaning(enum store_fault fault)
{
	return meanings[fault];
}

bool query_fail(struct query *query, enum store_fault fault, const char *fmt, ...)
{
	char text[sizeof query->error.text];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	query->fault = fault;
	return error_set(&query->error, fault == STORE_USAGE ? RLMD_ERROR_USAGE : RLMD_ERROR_INPUT,
			 "%s", text);
}

static const struct value *cell(const struct query *query, size_t row, size_t column)
{
	assert(row < query->rows && column < query->columns);
	return &query->cells[row * query->columns + column];
}

int64_t query_integer(const struct query *query, size_t row, size_t column)
{
	return cell(query, row, column)->integer;
}

struct rlmd_text query_text(const struct query *query, size_t row, size_t column)
{
	const struct value *value = cell(query, row, column);

	return value->is_integer ? text_of("") : value->text;
}

void query_end(struct query *query)
{
	if (query->fn)
		result_tell(query);
	query_free(query);
}

void query_drop_all(struct query_line *line)
{
	struct query *query;

	while ((query = TAILQ_FIRST(line))) {
		TAILQ_REMOVE(line, query, entry);
		query_free(query);
	}
}
