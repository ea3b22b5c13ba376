#include "llm/price.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/money.h"

enum {
	TABLE_SIZE_MAX = 32 << 20,
	TABLE_DEPTH_MAX = 32,
	NAME_SIZE_MAX = 256,
	FIELD_SIZE_MAX = 128,
};

#define RATE_MAX   1.0  /* dollars a token: who writes more means a million tokens */
#define TOKENS_MAX 1e12 /* of a window or an answer */
#define COUNT_MAX  INT64_C(1000000000000000) /* tokens whose cost somebody asks for */

/*
 * The price of writing to a cache where a row has none, in per cent of the input; for an hour it
 * is never less. Reading is taken for as dear as any input: how much less it is differs from
 * model to model.
 */
struct write_custom {
	int64_t write, write_1h;
};

static const struct write_custom usual = {100, 0}, of_anthropic = {125, 200};

struct price_row {
	char *name;                 /* owned */
	struct price price, custom; /* by whomever; and by Anthropic */
};

struct rlmd_price_table {
	int references;
	char *date;             /* owned */
	struct price_row *rows; /* owned; sorted by name */
	size_t count;
};

/* A row whose prices are being read; the first bad one is the error. */
struct row_reading {
	const char *name;       /* lent */
	const json_t *row;      /* lent */
	struct rlmd_error *err; /* lent */
	bool ok;
};

static int64_t read_rate(struct row_reading *reading, const char *field, int64_t otherwise)
{
	const json_t *value = json_object_get(reading->row, field);
	double dollars = json_number_value(value);

	if (!value || json_is_null(value))
		return otherwise;
	if (!json_is_number(value) || !(dollars >= 0) || dollars > RATE_MAX) {
		if (reading->ok)
			error_set(reading->err, RLMD_ERROR_INPUT,
				  "'%.100s': %s must be dollars a token, 0 to %g", reading->name,
				  field, RATE_MAX);
		reading->ok = false;
		return 0;
	}
	return money_from_dollars(dollars);
}

static int64_t read_tokens(const json_t *row, const char *field)
{
	double tokens = json_number_value(json_object_get(row, field));

	return tokens >= 1 && tokens <= TOKENS_MAX ? (int64_t)tokens : 0;
}

/* The N000 of "input_cost_per_token_above_Nk_tokens", the smallest of several; 0: none. */
static int64_t find_long_prompt(const json_t *row)
{
	static const char start[] = "input_cost_per_token_above_";
	int lowest = 0, thousands, end;
	const char *field;
	json_t *value;

	json_object_foreach ((json_t *)row, field, value) {
		end = 0;
		if (strncmp(field, start, sizeof start - 1) ||
		    sscanf(field + sizeof start - 1, "%5dk_tokens%n", &thousands, &end) != 1)
			continue;
		if (end && !field[sizeof start - 1 + (size_t)end] && thousands > 0 &&
		    (!lowest || thousands < lowest))
			lowest = thousands;
	}
	return INT64_C(1000) * lowest;
}

static int64_t read_beyond(struct row_reading *reading, const char *field,
			   const struct price *price, int64_t otherwise)
{
	char longer[FIELD_SIZE_MAX];

	snprintf(longer, sizeof longer, "%s_above_%" PRId64 "k_tokens", field,
		 price->long_prompt / 1000);
	return read_rate(reading, longer, otherwise);
}

/* A price of a cache, and beyond a long prompt; a row that is silent has it in per cent of the
 * input's. One that costs what the input costs goes on doing so. */
static int64_t read_cache(struct row_reading *reading, const char *field, const struct price *price,
			  int64_t percent, int64_t *ret_beyond)
{
	int64_t otherwise = price->input * percent / 100;
	int64_t rate = read_rate(reading, field, otherwise);
	int64_t beyond = price->beyond.input * percent / 100;

	if (rate != otherwise)
		beyond = rate == price->input ? price->beyond.input : rate;
	*ret_beyond = price->long_prompt ? read_beyond(reading, field, price, beyond) : rate;
	return rate;
}

static bool read_price(struct row_reading *reading, const struct write_custom *custom,
		       struct price *price)
{
	static const char input[] = "input_cost_per_token", output[] = "output_cost_per_token",
			  cache_read[] = "cache_read_input_token_cost",
			  cache_write[] = "cache_creation_input_token_cost",
			  cache_write_1h[] = "cache_creation_input_token_cost_above_1hr";
	struct price_beyond *beyond = &price->beyond;

	price->input = read_rate(reading, input, 0);
	price->output = read_rate(reading, output, 0);
	price->context_window = read_tokens(reading->row, "max_input_tokens");
	price->max_output = read_tokens(reading->row, "max_output_tokens");
	price->long_prompt = find_long_prompt(reading->row);
	if (price->long_prompt) {
		beyond->input = read_beyond(reading, input, price, price->input);
		beyond->output = read_beyond(reading, output, price, price->output);
	}
	price->cache_read = read_cache(reading, cache_read, price, 100, &beyond->cache_read);
	price->cache_write = read_cache(reading, cache_write, price, custom->write,
					&beyond->cache_write);
	price->cache_write_1h = read_cache(reading, cache_write_1h, price, custom->write_1h,
					   &beyond->cache_write_1h);
	if (price->cache_write_1h < price->cache_write)
		price->cache_write_1h = price->cache_write;
	if (beyond->cache_write_1h < beyond->cache_write)
		beyond->cache_write_1h = beyond->cache_write;
	return reading->ok;
}

/* By the row's own provider; and should it be Anthropic who bills. */
static bool read_row(struct row_reading *reading, struct price_row *row)
{
	struct rlmd_text provider = json_get_text(reading->row, "litellm_provider");
	bool own = text_equal(provider, "anthropic");

	return read_price(reading, own ? &of_anthropic : &usual, &row->price) &&
	       read_price(reading, &of_anthropic, &row->custom);
}

/* Embeddings, images and speech are not priced by tokens in and out. */
static bool has_price(const json_t *row)
{
	return json_object_get(row, "input_cost_per_token") &&
	       json_object_get(row, "output_cost_per_token");
}

static int compare_rows(const void *a, const void *b)
{
	return strcmp(((const struct price_row *)a)->name, ((const struct price_row *)b)->name);
}

static bool fill(struct rlmd_price_table *table, json_t *root, struct rlmd_error *err)
{
	const char *name;
	json_t *value;

	table->rows = xcalloc(json_object_size(root) + 1, sizeof *table->rows);
	json_object_foreach (root, name, value) {
		struct price_row *row = &table->rows[table->count];
		struct row_reading reading = {.name = name, .row = value, .err = err, .ok = true};

		if (!strcmp(name, "sample_spec") || !has_price(value))
			continue;
		if (!read_row(&reading, row))
			return false;
		row->name = xstrdup(name);
		table->count++;
	}
	qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
	return true;
}

static char *read_date(const json_t *root)
{
	struct rlmd_text date = json_get_text(json_object_get(root, "sample_spec"), "date");
	char plain[32];

	text_escape(date.size ? date : text_of("unknown"), plain, sizeof plain);
	return xstrdup(plain);
}

struct rlmd_price_table *price_table_read(const char *path, struct rlmd_error *err)
{
	struct rlmd_error why = {0};
	size_t size;
	auto_free char *bytes = file_read(path, TABLE_SIZE_MAX, &size, err);
	json_auto_t *root = NULL;
	struct rlmd_price_table *table;

	if (!bytes)
		return NULL;
	root = json_read(text_from(bytes, size), TABLE_DEPTH_MAX, &why);
	if (!json_is_object(root)) {
		error_set(err, RLMD_ERROR_INPUT, "%s: %s", path,
			  root ? "a price table is an object of models" : why.text);
		return NULL;
	}
	table = xcalloc(1, sizeof *table);
	table->references = 1;
	table->date = read_date(root);
	if (!fill(table, root, err)) {
		error_context(err, "%s", path);
		rlmd_price_table_unref(table);
		return NULL;
	}
	return table;
}

struct rlmd_price_table *price_table_ref(struct rlmd_price_table *table)
{
	table->references++;
	return table;
}

void rlmd_price_table_unref(struct rlmd_price_table *table)
{
	if (!table || --table->references)
		return;
	for (size_t i = 0; i < table->count; i++)
		free(table->rows[i].name);
	free(table->rows);
	free(table->date);
	free(table);
}

const char *rlmd_price_table_date(const struct rlmd_price_table *table)
{
	return table ? table->date : "unknown";
}

static const struct price_row *find(const struct rlmd_price_table *table, const char *name)
{
	struct price_row key = {.name = (char *)name};

	return bsearch(&key, table->rows, table->count, sizeof *table->rows, compare_rows);
}

static bool find_either(const struct rlmd_price_table *table, const char *provider,
			const char *model, struct price *ret)
{
	char full[NAME_SIZE_MAX * 2];
	const struct price_row *row = find(table, model);

	snprintf(full, sizeof full, "%s/%s", provider, model);
	if (!row)
		row = find(table, full);
	if (row)
		*ret = strcmp(provider, "anthropic") ? row->price : row->custom;
	return row;
}

static int two_digits(const char *at)
{
	return (at[0] - '0') * 10 + at[1] - '0';
}

/* Whether the string is all of -YYYYMMDD or -YYYY-MM-DD: how providers name a snapshot. */
static bool is_date_suffix(const char *string)
{
	bool dashes = strlen(string) == 11;
	const char *form = dashes ? "-dddd-dd-dd" : "-dddddddd";
	const char *month = string + (dashes ? 6 : 5), *day = string + (dashes ? 9 : 7);

	if (strlen(string) != strlen(form) || strncmp(string, "-20", 3))
		return false;
	for (size_t i = 0; form[i]; i++)
		if (form[i] == '-' ? string[i] != '-' : string[i] < '0' || string[i] > '9')
			return false;
	return two_digits(month) >= 1 && two_digits(month) <= 12 && two_digits(day) >= 1 &&
	       two_digits(day) <= 31;
}

bool price_find(const struct rlmd_price_table *table, const char *provider, const char *model,
		struct price *ret)
{
	size_t size = strlen(model);
	char plain[NAME_SIZE_MAX];

	if (size >= sizeof plain || strlen(provider) >= sizeof plain)
		return false;
	if (find_either(table, provider, model, ret))
		return true;
	memcpy(plain, model, size + 1);
	for (size_t suffix = 9; suffix <= 11; suffix += 2)
		if (size > suffix && is_date_suffix(model + size - suffix)) {
			plain[size - suffix] = '\0';
			return find_either(table, provider, plain, ret);
		}
	return false;
}

int64_t price_cost(const struct price *price, const struct llm_usage *usage)
{
	struct price_beyond rates = {price->input, price->output, price->cache_read,
				     price->cache_write, price->cache_write_1h};
	int64_t full = usage->input - usage->cache_read - usage->cache_write -
		       usage->cache_write_1h;
	int64_t cost;

	if (price->long_prompt && usage->input > price->long_prompt)
		rates = price->beyond;
	cost = money_times(rates.input, full > 0 ? full : 0);
	cost = money_add(cost, money_times(rates.cache_read, usage->cache_read));
	cost = money_add(cost, money_times(rates.cache_write, usage->cache_write));
	cost = money_add(cost, money_times(rates.cache_write_1h, usage->cache_write_1h));
	return money_add(cost, money_times(rates.output, usage->output));
}

/* --- rlmd/price.h ---------------------------------------------------------------------- */

struct rlmd_price_table *rlmd_price_table_open(const char *path, struct rlmd_error *err)
{
	auto_free char *shipped = path ? NULL : file_shipped("share", "prices.json");

	return price_table_read(path ? path : shipped, err);
}

static bool look_up(const struct rlmd_price_table *table, const char *provider, const char *model,
		    struct price *ret)
{
	return table && provider && model && price_find(table, provider, model, ret);
}

bool rlmd_price_find(const struct rlmd_price_table *table, const char *provider, const char *model,
		     struct rlmd_price *ret)
{
	struct price price;
	struct rlmd_price found;

	if (!look_up(table, provider, model, &price))
		return false;
	found = (struct rlmd_price){
		.input = price.input,
		.output = price.output,
		.cache_read = price.cache_read,
		.cache_write = price.cache_write,
		.cache_write_1h = price.cache_write_1h,
		.long_prompt = price.long_prompt,
		.context_window = price.context_window,
		.max_output = price.max_output,
	};
	return abi_copy_out(ret, &found, sizeof found, sizeof found);
}

static bool is_price(int64_t rate)
{
	return rate >= 0 && rate <= (int64_t)(RATE_MAX * MONEY_DOLLAR);
}

bool price_take(const struct rlmd_price *theirs, struct price *ret, struct rlmd_error *err)
{
	struct rlmd_price given;

	if (!abi_copy_in(&given, sizeof given, theirs, sizeof given, "rlmd_price", err))
		return false;
	*ret = (struct price){
		.input = given.input,
		.output = given.output,
		.cache_read = given.cache_read ? given.cache_read : given.input,
		.cache_write = given.cache_write ? given.cache_write : given.input,
		.cache_write_1h = given.cache_write_1h ? given.cache_write_1h : given.input,
		.context_window = given.context_window,
		.max_output = given.max_output,
	};
	if (given.long_prompt)
		return error_set(err, RLMD_ERROR_USAGE,
				 "a price of a provider's options is the same for all prompts, so "
				 "long_prompt is 0");
	return (is_price(given.input) && is_price(given.output) && is_price(given.cache_read) &&
		is_price(given.cache_write) && is_price(given.cache_write_1h) &&
		given.context_window >= 0 && given.max_output >= 0) ||
	       error_set(err, RLMD_ERROR_USAGE,
			 "a price is from 0 to 10^12 pico-dollars a token, and sizes are not "
			 "negative");
}

static bool is_count(int64_t count)
{
	return count >= 0 && count <= COUNT_MAX;
}

bool rlmd_price_cost(const struct rlmd_price_table *table, const char *provider, const char *model,
		     const struct rlmd_tokens *given, int64_t *ret_cost)
{
	struct rlmd_tokens tokens;
	struct price price;

	if (!ret_cost)
		return false;
	*ret_cost = 0;
	if (!given ||
	    !abi_copy_in(&tokens, sizeof tokens, given, sizeof tokens, "rlmd_tokens", NULL) ||
	    !is_count(tokens.input) || !is_count(tokens.output) || !is_count(tokens.cache_read) ||
	    !is_count(tokens.cache_write) || !is_count(tokens.cache_write_1h) ||
	    !look_up(table, provider, model, &price))
		return false;
	*ret_cost = price_cost(&price, &(struct llm_usage){
					       .input = tokens.input,
					       .output = tokens.output,
					       .cache_read = tokens.cache_read,
					       .cache_write = tokens.cache_write,
					       .cache_write_1h = tokens.cache_write_1h,
				       });
	return true;
}
