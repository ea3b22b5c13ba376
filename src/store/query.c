#include "store/query.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/result.h"

/* So that no sum of ours leaves 64 bits. */
#define MS_MAX     INT64_C(1000000000000000)
#define COST_MAX   INT64_C(1000000000000000000)
#define TOKENS_MAX INT64_C(1000000000000000)

struct query *query_new(enum script script, size_t sets, store_fn *fn, void *owner)
{
	struct query *query = xcalloc(1, sizeof *query);

	query->script = script;
	query->sets = sets;
	query->params = xcalloc(sets * strlen(script_types(script)) + 1, sizeof *query->params);
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
	const char *types = script_types(query->script);

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
	value_set(&query->params[query->width++], text);
}

struct value *query_add_row(struct query *query, size_t set, size_t columns)
{
	size_t row = query->rows++;

	assert(!row || columns == query->columns);
	query->columns = columns;
	if (!(row & (row - 1))) { /* room for twice as many */
		size_t room = row ? 2 * row : 1;

		query->cells = xreallocarray(query->cells, room * columns, sizeof *query->cells);
		query->row_sets = xreallocarray(query->row_sets, room, sizeof *query->row_sets);
	}
	query->row_sets[row] = set;
	memset(query->cells + row * columns, 0, columns * sizeof *query->cells);
	return query->cells + row * columns;
}

void value_set(struct value *value, struct rlmd_text text)
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
