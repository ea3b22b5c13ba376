#include "cli/dry_run.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_quote.h"
#include "base/money.h"
#include "base/text.h"
#include "cli/figure.h"

enum {
	FOLDERS_SHOWN = 20,
	PATH_SHOWN = 200,  /* bytes */
	LARGEST_SHOWN = 3, /* folders, and files */
	LARGE_PART = 8,    /* an eighth of all tokens */
};

static void add_string(struct evbuffer *out, const char *label, const json_t *string)
{
	struct rlmd_text text = json_text(string);

	buffer_add_printf(out, "%-16s", label);
	buffer_add(out, text.bytes, text.size);
	buffer_add(out, "\n", 1);
}

static void add_context(struct evbuffer *out, const json_t *context)
{
	struct rlmd_text type = json_get_text(context, "contentType");
	struct rlmd_text name = json_get_text(context, "name");

	buffer_add_printf(
		out,
		"%-16s%.*s: %" PRId64 " characters, %" PRId64 " bytes, about %" PRId64
		" tokens, %.*s\n",
		"context", (int)name.size, name.bytes, json_get_integer(context, "length", 0),
		json_get_integer(context, "bytes", 0),
		json_get_integer(context, "tokenEstimate", 0), (int)type.size, type.bytes);
}

/* The largest: of many files that is where the money goes; --json has all of them. */
static void add_folders(struct evbuffer *out, const json_t *context)
{
	const json_t *folders = json_object_get(context, "folders"), *folder;
	size_t count = json_array_size(folders), i;
	char tokens[24], path[PATH_SHOWN];

	if (!count)
		return;
	buffer_add_printf(out, "%-16s%zu\n", "files",
			  json_array_size(json_object_get(context, "files")));
	json_array_foreach (folders, i, folder) {
		int64_t files = json_get_integer(folder, "files", 0);

		if (i == FOLDERS_SHOWN)
			break;
		figure_count(json_get_integer(folder, "tokens", 0), tokens);
		text_escape(json_get_text(folder, "path"), path, sizeof path);
		buffer_add_printf(out, "%16s%8s tokens %6" PRId64 " %-5s  %s\n", "", tokens, files,
				  files == 1 ? "file" : "files", *path ? path : "./");
	}
	if (count > FOLDERS_SHOWN)
		buffer_add_printf(out, "%16sand %zu folder%s with less\n", "",
				  count - FOLDERS_SHOWN, count == FOLDERS_SHOWN + 1 ? "" : "s");
}

static int64_t tokens_of(const json_t *row)
{
	return json_get_integer(row, "tokens", 0);
}

/* Of rows of "path" and "tokens" the largest that is smaller than `below`, or NULL; not the top. */
static const json_t *largest_below(const json_t *rows, int64_t below)
{
	const json_t *row, *largest = NULL;
	size_t i;

	json_array_foreach (rows, i, row)
		if (tokens_of(row) < below && json_get_text(row, "path").size &&
		    (!largest || tokens_of(row) > tokens_of(largest)))
			largest = row;
	return largest;
}

/* Rows with an eighth of all tokens or more. */
static size_t add_largest(const json_t *rows, int64_t all, size_t count, struct evbuffer *out)
{
	const json_t *row;
	int64_t below = INT64_MAX;
	size_t i;

	for (i = 0; i < LARGEST_SHOWN; i++) {
		char tokens[24], path[PATH_SHOWN];

		row = largest_below(rows, below);
		below = tokens_of(row);
		if (!row || below < all / LARGE_PART)
			break;
		figure_count(below, tokens);
		text_escape(json_get_text(row, "path"), path, sizeof path);
		buffer_add_printf(out, "%s%s (%s tokens)", count + i ? ", " : "", path, tokens);
	}
	return count + i;
}

void dry_run_largest(const json_t *object, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *rows = buffer_new();
	const json_t *context;
	size_t i, count = 0;

	json_array_foreach (json_object_get(object, "contexts"), i, context) {
		int64_t all = json_get_integer(context, "tokenEstimate", 0);

		count = add_largest(json_object_get(context, "folders"), all, count, rows);
		count = add_largest(json_object_get(context, "files"), all, count, rows);
	}
	if (!count)
		return;
	buffer_add_printf(out, "; most of it is in ");
	buffer_add_buffer(out, rows);
	buffer_add_printf(out, ": --exclude leaves out what need not be read");
}

static void add_reading(struct evbuffer *out, const json_t *object)
{
	const json_t *reading = json_object_get(object, "fullReading"), *misfit;
	int64_t calls = json_get_integer(reading, "calls", 0);
	char tokens[24], cost[32];
	size_t i;

	figure_count(json_get_integer(reading, "tokens", 0), tokens);
	figure_cost(json_object_get(reading, "cost"), cost);
	buffer_add_printf(out, "%-16s%" PRId64 " call%s, %s tokens, %s at most\n", "all read once",
			  calls, calls == 1 ? "" : "s", tokens, cost);
	if (json_get_bool(object, "fits", false))
		buffer_add_printf(out, "%-16sfits the budget\n", "");
	json_array_foreach (json_object_get(object, "misfits"), i, misfit)
		buffer_add_printf(out, "%-16sdoes not fit: %s\n", "", json_string_value(misfit));
}

static void add_prompt(struct evbuffer *out, const char *heading, const json_t *prompt)
{
	struct rlmd_text text = json_text(prompt);

	buffer_add_printf(out, "\n===== %s =====\n", heading);
	buffer_add(out, text.bytes, text.size);
	buffer_add(out, "\n", 1);
}

static void add_request(struct evbuffer *out, const json_t *object)
{
	const json_t *temperature = json_object_get(object, "temperature");
	const json_t *stop;
	size_t i;

	add_string(out, "prompts", json_object_get(object, "promptProfile"));
	buffer_add_printf(out, "%-16s%" PRId64 " tokens at most\n", "one reply",
			  json_get_integer(object, "maxOutputTokens", 0));
	if (json_is_number(temperature))
		buffer_add_printf(out, "%-16s%g\n", "temperature", json_number_value(temperature));
	json_array_foreach (json_object_get(object, "stop"), i, stop) {
		buffer_add_printf(out, "%-16s", i ? "" : "stop");
		json_quote(json_text(stop), out);
		buffer_add(out, "\n", 1);
	}
}

static void format_money(const json_t *cost, char out[static 32])
{
	if (json_is_number(cost))
		money_format(money_from_dollars(json_number_value(cost)), out);
}

static void add_cost(struct evbuffer *out, const json_t *object)
{
	char worst[32] = "unknown", limit[32] = "none";

	format_money(json_object_get(object, "worstCaseCost"), worst);
	format_money(json_object_get(object, "maxCost"), limit);
	buffer_add_printf(out, "%-16s%s at most (limit: %s)\n", "cost", worst, limit);
}

void dry_run_format(const json_t *object, struct evbuffer *out)
{
	const json_t *context;
	size_t i;

	add_string(out, "provider", json_object_get(object, "provider"));
	add_string(out, "model", json_object_get(object, "model"));
	add_string(out, "subcall model", json_object_get(object, "subcallModel"));
	add_string(out, "prices of", json_object_get(object, "priceTable"));
	json_array_foreach (json_object_get(object, "contexts"), i, context) {
		add_context(out, context);
		add_folders(out, context);
	}
	buffer_add_printf(out, "%-16sabout %" PRId64 " tokens\n", "first request",
			  json_get_integer(object, "firstRequestTokens", 0));
	add_cost(out, object);
	add_reading(out, object);
	add_request(out, object);
	add_prompt(out, "system prompt", json_object_get(object, "systemPrompt"));
	if (json_object_get(object, "demonstration")) {
		add_prompt(out, "opening", json_object_get(object, "opening"));
		add_prompt(out, "a look at the inputs", json_object_get(object, "demonstration"));
	}
	add_prompt(out, "first turn", json_object_get(object, "firstTurn"));
}

/* --- a plan -------------------------------------------------------------------- */

static void add_operation(struct evbuffer *out, size_t number, const json_t *operation)
{
	const json_t *depends = json_object_get(operation, "dependsOn"), *id;
	struct rlmd_text mode = json_get_text(operation, "mode");
	size_t i;

	buffer_add_printf(out, "%6zu  %s  %s, %s of %s, about %" PRId64 " tokens", number,
			  json_string_value(json_object_get(operation, "id")),
			  json_string_value(json_object_get(operation, "type")),
			  text_equal(mode, "rlm") ? "a run" : "a call",
			  json_string_value(json_object_get(operation, "model")),
			  json_get_integer(operation, "inputTokens", 0));
	json_array_foreach (depends, i, id)
		buffer_add_printf(out, "%s%s", i ? ", " : ", after ", json_string_value(id));
	buffer_add(out, "\n", 1);
}

void dry_run_format_plan(const json_t *object, struct evbuffer *out)
{
	const json_t *operations = json_object_get(object, "operations"), *operation;
	size_t i;

	buffer_add_printf(
		out,
		"provider        %s\nmodel           %s\nsubcall model   %s\nprices of       %s\n"
		"strategy        %s, %" PRId64 " at once\n"
		"operations      %zu (whole runs: %" PRId64 ")\n"
		"tokens          %" PRId64 " at most\n",
		json_string_value(json_object_get(object, "provider")),
		json_string_value(json_object_get(object, "model")),
		json_string_value(json_object_get(object, "subcallModel")),
		json_string_value(json_object_get(object, "priceTable")),
		json_string_value(json_object_get(object, "strategy")),
		json_get_integer(object, "maxParallel", 0), json_array_size(operations),
		json_get_integer(object, "runs", 0),
		json_get_integer(object, "worstCaseTokens", 0));
	add_cost(out, object);
	add_reading(out, object);
	add_request(out, object);
	buffer_add(out, "\n", 1);
	json_array_foreach (operations, i, operation)
		add_operation(out, i + 1, operation);
}
