/* The cost of tokens: LiteLLM's tables read exactly, models found or not, sums to the last unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/money.h"
#include "llm/price.h"

static const char *shipped; /* lent: the path of share/prices.json */

/* A table out of JSON, through a file as users give it. */
static struct rlmd_price_table *table_of(const char *json, struct rlmd_error *err)
{
	char path[] = "/tmp/rlmd-test-price-XXXXXX";
	int fd = mkstemp(path);
	struct rlmd_price_table *table;

	assert_true(fd >= 0);
	assert_true(file_write_fd(fd, text_of(json), NULL));
	close(fd);
	table = price_table_read(path, err);
	if (!table && err)
		assert_non_null(strstr(err->text, path));
	unlink(path);
	return table;
}

static struct price price_in(const char *json, const char *model)
{
	struct rlmd_error error = {0};
	struct rlmd_price_table *table = table_of(json, &error);
	struct price price = {0};

	if (!table)
		fail_msg("%s", error.text);
	assert_true(price_find(table, "openai", model, &price));
	rlmd_price_table_unref(table);
	return price;
}

/* LIB-21: prices per token are binary fractions in JSON, and whole pico-dollars with us. */
static void prices_are_exact(void **state)
{
	struct price price = price_in(
		"{\"m\":{\"input_cost_per_token\":5.46875e-07,\"output_cost_per_token\":0.000015,"
		"\"cache_read_input_token_cost\":3e-8,\"cache_creation_input_token_cost\":3.75e-06,"
		"\"cache_creation_input_token_cost_above_1hr\":6e-06,\"max_input_tokens\":200000,"
		"\"max_output_tokens\":64000,\"mode\":\"chat\",\"supports_vision\":true}}",
		"m");

	(void)state;
	assert_int_equal(price.input, 546875);
	assert_int_equal(price.output, 15000000);
	assert_int_equal(price.cache_read, 30000);
	assert_int_equal(price.cache_write, 3750000);
	assert_int_equal(price.cache_write_1h, 6000000);
	assert_int_equal(price.context_window, 200000);
	assert_int_equal(price.max_output, 64000);
	assert_int_equal(price.long_prompt, 0);
}

/* A table that is silent on caches bills them in full, not for nothing. */
static void caches_default_to_the_input(void **state)
{
	struct price price = price_in("{\"m\":{\"input_cost_per_token\":1e-6,"
				      "\"output_cost_per_token\":2e-6,"
				      "\"cache_read_input_token_cost\":null,"
				      "\"max_input_tokens\":\"many\",\"max_output_tokens\":-1}}",
				      "m");

	(void)state;
	assert_int_equal(price.cache_read, 1000000);
	assert_int_equal(price.cache_write, 1000000);
	assert_int_equal(price.cache_write_1h, 1000000);
	assert_int_equal(price.context_window, 0);
	assert_int_equal(price.max_output, 0);
}

/* ... but Anthropic bills more for what it writes, and says so in no usage. */
static void caches_of_anthropic(void **state)
{
	static const char json[] =
		"{\"m\":{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":5e-6},"
		"\"own\":{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":5e-6,"
		"\"litellm_provider\":\"anthropic\"},"
		"\"half\":{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":5e-6,"
		"\"cache_creation_input_token_cost\":3e-6},"
		"\"long\":{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":5e-6,"
		"\"input_cost_per_token_above_200k_tokens\":2e-6}}";
	static const struct {
		const char *provider, *model;
		int64_t write, write_1h;
	} cases[] = {
		{"anthropic", "m", 1250000, 2000000},    {"openai", "m", 1000000, 1000000},
		{"anthropic", "own", 1250000, 2000000},  {"openai", "own", 1250000, 2000000},
		{"anthropic", "half", 3000000, 3000000}, {"openai", "half", 3000000, 3000000},
		{"anthropic", "long", 1250000, 2000000}, {"openai", "long", 1000000, 1000000},
	};
	struct rlmd_error error = {0};
	struct rlmd_price_table *table = table_of(json, &error);
	struct price price;

	(void)state;
	assert_non_null(table);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(price_find(table, cases[i].provider, cases[i].model, &price));
		assert_int_equal(price.cache_read, 1000000);
		assert_int_equal(price.cache_write, cases[i].write);
		assert_int_equal(price.cache_write_1h, cases[i].write_1h);
	}
	assert_true(price_find(table, "anthropic", "long", &price));
	assert_int_equal(price.beyond.cache_read, 2000000);
	assert_int_equal(price.beyond.cache_write, 2500000);
	assert_int_equal(price.beyond.cache_write_1h, 4000000);
	rlmd_price_table_unref(table);
}

/* A7: each kind of token at its own price; reasoning is part of the output. */
static void a_cost_to_the_last_unit(void **state)
{
	struct price price = {.input = 3000000,
			      .output = 15000000,
			      .cache_read = 300000,
			      .cache_write = 3750000,
			      .cache_write_1h = 6000000};
	struct llm_usage usage = {.input = 1310,
				  .output = 77,
				  .cache_read = 1000,
				  .cache_write = 100,
				  .cache_write_1h = 200,
				  .reasoning = 50};
	struct llm_usage nothing = {0};

	(void)state;
	assert_int_equal(price_cost(&price, &usage), INT64_C(10) * 3000000 + 1000 * 300000 +
							     100 * 3750000 + 200 * 6000000 +
							     INT64_C(77) * 15000000);
	assert_int_equal(price_cost(&price, &nothing), 0);
}

/* Beyond a threshold some models bill all of a request at higher prices. */
static void long_prompts_cost_more(void **state)
{
	struct price price = price_in(
		"{\"m\":{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":2e-6,"
		"\"cache_read_input_token_cost\":1e-7,"
		"\"input_cost_per_token_above_272k_tokens_priority\":9e-6,"
		"\"input_cost_per_token_above_200k_tokens\":2e-6,"
		"\"input_cost_per_token_above_512k_tokens\":3e-6,"
		"\"output_cost_per_token_above_200k_tokens\":3e-6,"
		"\"cache_read_input_token_cost_above_200k_tokens\":2e-7}}",
		"m");
	struct llm_usage just = {.input = 200000, .output = 10, .cache_read = 100};
	struct llm_usage more = {.input = 200001, .output = 10, .cache_read = 100};

	(void)state;
	assert_int_equal(price.long_prompt, 200000);
	assert_int_equal(price.beyond.cache_write, 2000000);
	assert_int_equal(price_cost(&price, &just),
			 199900LL * 1000000 + 100 * 100000 + 10 * 2000000);
	assert_int_equal(price_cost(&price, &more),
			 199901LL * 2000000 + 100 * 200000 + 10 * 3000000);
}

/* Sums that no budget could hold stop at the largest one. */
static void costs_saturate(void **state)
{
	struct price price = {.input = MONEY_DOLLAR, .output = MONEY_DOLLAR};
	struct llm_usage usage = {.input = INT64_C(1) << 53, .output = INT64_C(1) << 53};
	struct llm_usage parts = {.input = 1, .cache_read = 5};

	(void)state;
	assert_int_equal(price_cost(&price, &usage), MONEY_MAX);
	assert_int_equal(price_cost(&price, &parts), 0);
}

#define ROW(price) "{\"input_cost_per_token\":" price ",\"output_cost_per_token\":0}"

/* A table of models whose inputs cost 1, 2, 3 ... pico-dollars a token. */
static struct rlmd_price_table *table_of_models(const char *const *models, size_t count)
{
	struct rlmd_error error = {0};
	struct rlmd_price_table *table;
	char *json = NULL;
	size_t size;
	FILE *out = open_memstream(&json, &size);

	for (size_t i = 0; i < count; i++)
		fprintf(out,
			"%c\"%s\":{\"input_cost_per_token\":%zue-12,\"output_cost_per_token\":0}",
			i ? ',' : '{', models[i], i + 1);
	fputs("}", out);
	fclose(out);
	table = table_of(json, &error);
	if (!table)
		fail_msg("%s", error.text);
	free(json);
	return table;
}

/* By the name, by provider and name, and without the date of a snapshot; else not at all. */
static void models_are_found(void **state)
{
	static const char *const models[] = {"plain",      "openai/full",  "snap-2026-03-05",
					     "snap",       "openai/other", "both",
					     "openai/both"};
	static const struct {
		const char *model;
		int64_t input; /* 0: not found */
	} cases[] = {
		{"plain", 1},
		{"full", 2},
		{"openai/full", 2},
		{"both", 6},
		{"snap-2026-03-05", 3},
		{"snap-2026-03-06", 4},
		{"snap-20260306", 4},
		{"other-20251231", 5},
		{"openai/other-2025-12-31", 5},
		{"", 0},
		{"Plain", 0},
		{"plain-mini", 0},
		{"plain-latest", 0},
		{"plain@20260306", 0},
		{"plain-0613", 0},
		{"plain-20261301", 0},
		{"plain-20260332", 0},
		{"plain-2026-00-05", 0},
		{"plain-2026-03-5", 0},
		{"plain-19990101", 0},
		{"plain-2026x03-05", 0},
		{"plain20260306", 0},
		{"plain-20260306-20260306", 0},
		{"-20260306", 0},
		{"-2026-03-06", 0},
	};
	struct rlmd_price_table *table = table_of_models(models, sizeof models / sizeof *models);
	struct price price = {0};
	char *endless = xcalloc(10001, 1);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool found = price_find(table, "openai", cases[i].model, &price);

		if (found != (cases[i].input != 0) || (found && price.input != cases[i].input))
			fail_msg("'%s': %d, %lld", cases[i].model, found, (long long)price.input);
	}
	assert_false(price_find(table, "anthropic", "full", &price));
	memset(endless, 'a', 10000);
	assert_false(price_find(table, "openai", endless, &price));
	free(endless);
	rlmd_price_table_unref(table);
}

/* LiteLLM's file holds much that is no price of a token: it is passed over. */
static void other_rows_are_skipped(void **state)
{
	struct rlmd_error error = {0};
	struct price price;
	struct rlmd_price_table *table = table_of(
		"{\"sample_spec\":{\"date\":\"2026-09-23\",\"input_cost_per_token\":\"text\","
		"\"output_cost_per_token\":\"text\"},\"embed\":{\"input_cost_per_token\":1e-7},"
		"\"image\":{\"input_cost_per_pixel\":1e-8,\"output_cost_per_pixel\":-1},"
		"\"tiered\":{\"tiered_pricing\":[{}]},\"odd\":7,\"list\":[],\"free\":" ROW("0") "}",
		&error);

	(void)state;
	assert_non_null(table);
	assert_string_equal(rlmd_price_table_date(table), "2026-09-23");
	assert_false(price_find(table, "openai", "sample_spec", &price));
	assert_false(price_find(table, "openai", "embed", &price));
	assert_false(price_find(table, "openai", "image", &price));
	assert_false(price_find(table, "openai", "tiered", &price));
	assert_false(price_find(table, "openai", "odd", &price));
	assert_true(price_find(table, "openai", "free", &price));
	assert_int_equal(price.input, 0);
	rlmd_price_table_unref(table);
}

static void tables_without_a_date(void **state)
{
	struct rlmd_price_table *table = table_of("{}", NULL);

	(void)state;
	assert_string_equal(rlmd_price_table_date(table), "unknown");
	rlmd_price_table_unref(table);
	table = table_of("{\"sample_spec\":{\"date\":\"\\u001b[31m a date that is far too long\"}}",
			 NULL);
	assert_int_equal(strncmp(rlmd_price_table_date(table), "\\x1b[31m", 8), 0);
	rlmd_price_table_unref(table);
}

/* A price that cannot be is refused with its model's name, never taken for something near. */
static void absurd_prices_are_refused(void **state)
{
	static const char *const rows[] = {
		"{\"input_cost_per_token\":-1e-6,\"output_cost_per_token\":1e-6}",
		"{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":\"1e-6\"}",
		"{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":true}",
		"{\"input_cost_per_token\":2.5,\"output_cost_per_token\":10}",
		"{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":1e-6,"
		"\"cache_read_input_token_cost\":-1}",
		"{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":1e-6,"
		"\"input_cost_per_token_above_200k_tokens\":-1}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *json = xasprintf("{\"good\":" ROW("1e-6") ",\"the-bad-one\":%s}", rows[i]);
		struct rlmd_error error = {0};

		assert_null(table_of(json, &error));
		assert_int_equal(error.kind, RLMD_ERROR_INPUT);
		assert_non_null(strstr(error.text, "the-bad-one"));
		free(json);
	}
}

static void what_is_no_table(void **state)
{
	static const char *const files[] = {
		"", "[]", "7", "{\"a\":1", "{\"a\":1}x", "{\"a\":1,\"a\":2}", "\xff"};
	struct rlmd_error error = {0};

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		memset(&error, 0, sizeof error);
		assert_null(table_of(files[i], &error));
		assert_int_equal(error.kind, RLMD_ERROR_INPUT);
	}
	assert_null(price_table_read("/nonexistent/prices.json", &error));
	assert_int_equal(error.kind, RLMD_ERROR_INPUT);
	assert_null(price_table_read("/", &error));
	rlmd_price_table_unref(NULL);
}

/* A table of LiteLLM's size is read, and searched, while nobody notices. */
static void large_tables(void **state)
{
	char *json = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&json, &size);
	struct rlmd_error error = {0};
	struct rlmd_price_table *table;
	struct price price;

	(void)state;
	fputs("{\"sample_spec\":{}", out);
	for (int i = 0; i < 5000; i++)
		fprintf(out,
			",\"provider/model-%d\":{\"input_cost_per_token\":%de-12,"
			"\"output_cost_per_token\":2e-6,\"litellm_provider\":\"provider\","
			"\"mode\":\"chat\",\"supported_modalities\":[\"text\",\"image\"],"
			"\"search_context_cost_per_query\":{\"search_context_size_high\":0.01},"
			"\"source\":\"a page somewhere with a long address of its own\"}",
			i, i + 1);
	fputs("}", out);
	fclose(out);
	assert_true(size > 1300000);
	table = table_of(json, &error);
	assert_non_null(table);
	for (int i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof name, "model-%d", i);
		assert_true(price_find(table, "provider", name, &price));
		assert_int_equal(price.input, i + 1);
	}
	rlmd_price_table_unref(table);
	free(json);
}

/* The shipped prices hold together: default models priced, output dearer than input, caches sane.
 */
static void the_shipped_table(void **state)
{
	static const char *const models[][2] = {
		{"openai", "gpt-5.4"},
		{"openai", "gpt-5.4-2026-03-05"},
		{"openai", "gpt-5-mini"},
		{"anthropic", "claude-sonnet-5"},
		{"anthropic", "claude-haiku-4-5-20251001"},
		{"anthropic", "claude-opus-4-8"},
		{"anthropic", "claude-3-haiku"},
		{"anthropic", "claude-3-haiku-20240307"},
		{"anthropic", "claude-3-5-haiku-20241022"},
		{"anthropic", "claude-3-5-haiku-latest"},
	};
	struct rlmd_error error = {0};
	struct rlmd_price_table *table = price_table_read(shipped, &error);
	struct price price;

	(void)state;
	if (!table)
		fail_msg("%s", error.text);
	assert_int_equal(strlen(rlmd_price_table_date(table)), strlen("2026-11-01"));
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		if (!price_find(table, models[i][0], models[i][1], &price))
			fail_msg("%s has no price", models[i][1]);
		assert_true(price.input > 0 && price.output > price.input);
		assert_true(price.cache_read < price.input);
		assert_true(price.cache_write_1h >= price.cache_write);
		assert_true(price.context_window >= 128000);
	}
	assert_true(price_find(table, "anthropic", "claude-sonnet-4-5", &price));
	assert_int_equal(price.input, 3000000);
	assert_int_equal(price.output, 15000000);
	assert_int_equal(price.cache_read, 300000);
	assert_int_equal(price.cache_write, 3750000);
	assert_int_equal(price.cache_write_1h, 6000000);
	assert_int_equal(price.long_prompt, 200000);
	assert_int_equal(price.beyond.output, 22500000);
	assert_false(price_find(table, "openai", "llama3.2", &price));
	rlmd_price_table_unref(table);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prices_are_exact),
		cmocka_unit_test(caches_default_to_the_input),
		cmocka_unit_test(caches_of_anthropic),
		cmocka_unit_test(a_cost_to_the_last_unit),
		cmocka_unit_test(long_prompts_cost_more),
		cmocka_unit_test(costs_saturate),
		cmocka_unit_test(models_are_found),
		cmocka_unit_test(other_rows_are_skipped),
		cmocka_unit_test(tables_without_a_date),
		cmocka_unit_test(absurd_prices_are_refused),
		cmocka_unit_test(what_is_no_table),
		cmocka_unit_test(large_tables),
		cmocka_unit_test(the_shipped_table),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: test_price PATH-OF-PRICES.JSON\n");
		return 2;
	}
	shipped = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
