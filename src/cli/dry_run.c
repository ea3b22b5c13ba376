#include "cli/dry_run.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/json_quote.h"
#include "base/money.h"
#include "base/text.h"
#include "cli/figure.h"

enum { FOLDERS_SHOWN = 20, PATH_SHOWN = 200 /* bytes */ };

static void add_string(struct evbuffer *out, const char *label, const json_t *string)
{
	struct rlmd_text text = json_text(string);

	evbuffer_add_printf(out, "%-16s", label);
	evbuffer_add(out, text.bytes, text.size);
	evbuffer_add(out, "\n", 1);
}

static void add_context(struct evbuffer *out, const json_t *context)
{
	struct rlmd_text type = json_get_text(context, "contentType");
	struct rlmd_text name = json_get_text(context, "name");

	evbuffer_add_printf(
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
	evbuffer_add_printf(out, "%-16s%zu\n", "files",
			    json_array_size(json_object_get(context, "files")));
	json_array_foreach (folders, i, folder) {
		if (i == FOLDERS_SHOWN)
			break;
		figure_count(json_get_integer(folder, "tokens", 0), tokens);
		text_escape(json_get_text(folder, "path"), path, sizeof path);
		evbuffer_add_printf(out, "%16s%8s tokens %6" PRId64 " files  %s\n", "", tokens,
				    json_get_integer(folder, "files", 0), *path ? path : "./");
	}
	if (count > FOLDERS_SHOWN)
		evbuffer_add_printf(out, "%16sand %zu folders with less\n", "",
				    count - FOLDERS_SHOWN);
}

void dry_run_format_reading(const json_t *object, struct evbuffer *out)
{
	const json_t *reading = json_object_get(object, "fullReading"), *misfit;
	char tokens[24], cost[32];
	size_t i;

	figure_count(json_get_integer(reading, "tokens", 0), tokens);
	figure_cost(json_object_get(reading, "cost"), cost);
	evbuffer_add_printf(out, "%-16s%" PRId64 " calls, %s tokens, %s at most\n", "all read once",
			    json_get_integer(reading, "calls", 0), tokens, cost);
	if (json_get_bool(object, "fits", false))
		evbuffer_add_printf(out, "%-16sfits the budget\n", "");
	json_array_foreach (json_object_get(object, "misfits"), i, misfit)
		evbuffer_add_printf(out, "%-16sdoes not fit: %s\n", "", json_string_value(misfit));
}

static void add_prompt(struct evbuffer *out, const char *heading, const json_t *prompt)
{
	struct rlmd_text text = json_text(prompt);

	evbuffer_add_printf(out, "\n===== %s =====\n", heading);
	evbuffer_add(out, text.bytes, text.size);
	evbuffer_add(out, "\n", 1);
}

void dry_run_format_request(const json_t *object, struct evbuffer *out)
{
	const json_t *temperature = json_object_get(object, "temperature");
	const json_t *stop;
	size_t i;

	add_string(out, "prompts", json_object_get(object, "promptProfile"));
	evbuffer_add_printf(out, "%-16s%" PRId64 " tokens at most\n", "one reply",
			    json_get_integer(object, "maxOutputTokens", 0));
	if (json_is_number(temperature))
		evbuffer_add_printf(out, "%-16s%g\n", "temperature",
				    json_number_value(temperature));
	json_array_foreach (json_object_get(object, "stop"), i, stop) {
		evbuffer_add_printf(out, "%-16s", i ? "" : "stop");
		json_quote(json_text(stop), out);
		evbuffer_add(out, "\n", 1);
	}
}

static void format_money(const json_t *cost, char out[static 32])
{
	if (json_is_number(cost))
		money_format(money_from_dollars(json_number_value(cost)), out);
}

void dry_run_format_cost(const json_t *object, struct evbuffer *out)
{
	char worst[32] = "unknown", limit[32] = "none";

	format_money(json_object_get(object, "worstCaseCost"), worst);
	format_money(json_object_get(object, "maxCost"), limit);
	evbuffer_add_printf(out, "%-16s%s at most (limit: %s)\n", "cost", worst, limit);
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
	evbuffer_add_printf(out, "%-16sabout %" PRId64 " tokens\n", "first request",
			    json_get_integer(object, "firstRequestTokens", 0));
	dry_run_format_cost(object, out);
	dry_run_format_reading(object, out);
	dry_run_format_request(object, out);
	add_prompt(out, "system prompt", json_object_get(object, "systemPrompt"));
	if (json_object_get(object, "demonstration")) {
		add_prompt(out, "opening", json_object_get(object, "opening"));
		add_prompt(out, "a look at the inputs", json_object_get(object, "demonstration"));
	}
	add_prompt(out, "first turn", json_object_get(object, "firstTurn"));
}
