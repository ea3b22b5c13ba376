#include "cli/plan_dry_run.h"

#include <inttypes.h>

#include "base/json.h"
#include "cli/dry_run.h"

static void add_operation(struct evbuffer *out, size_t number, const json_t *operation)
{
	const json_t *depends = json_object_get(operation, "dependsOn"), *id;
	struct rlmd_text mode = json_get_text(operation, "mode");
	size_t i;

	evbuffer_add_printf(out, "%6zu  %s  %s, %s of %s, about %" PRId64 " tokens", number,
			    json_string_value(json_object_get(operation, "id")),
			    json_string_value(json_object_get(operation, "type")),
			    text_equal(mode, "rlm") ? "a run" : "a call",
			    json_string_value(json_object_get(operation, "model")),
			    json_get_integer(operation, "inputTokens", 0));
	json_array_foreach (depends, i, id)
		evbuffer_add_printf(out, "%s%s", i ? ", " : ", after ", json_string_value(id));
	evbuffer_add(out, "\n", 1);
}

void plan_dry_run_format(const json_t *object, struct evbuffer *out)
{
	const json_t *operations = json_object_get(object, "operations"), *operation;
	size_t i;

	evbuffer_add_printf(
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
	dry_run_format_cost(object, out);
	dry_run_format_reading(object, out);
	dry_run_format_request(object, out);
	evbuffer_add(out, "\n", 1);
	json_array_foreach (operations, i, operation)
		add_operation(out, i + 1, operation);
}
