#include "cli/status_text.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "base/text.h"

enum { ESCAPED_MAX = 4 }; /* bytes that text_escape() makes of one, at most */

static void write_counts(const json_t *object, struct evbuffer *out)
{
	int64_t degraded = json_get_integer(object, "degraded", 0);
	char cost[32];

	money_format(money_from_dollars(json_number_value(json_object_get(object, "cost"))), cost);
	buffer_add_printf(out, "%" PRId64 " pending, %" PRId64 " running, %" PRId64 " succeeded",
			  json_get_integer(object, "pending", 0),
			  json_get_integer(object, "running", 0),
			  json_get_integer(object, "succeeded", 0));
	if (degraded)
		buffer_add_printf(out, " (%" PRId64 " degraded)", degraded);
	buffer_add_printf(out, ", %" PRId64 " failed; %s, %" PRId64 " tokens\n",
			  json_get_integer(object, "failed", 0), cost,
			  json_get_integer(object, "tokens", 0));
}

/* Names and reasons are of others: no control character of theirs comes to a terminal. */
static void write_name(const char *name, struct evbuffer *out)
{
	size_t room = strlen(name) * ESCAPED_MAX + 1;
	auto_free char *escaped = xcalloc(room, 1);

	text_escape(text_of(name), escaped, room);
	buffer_add(out, escaped, strlen(escaped));
}

static void write_tenants(const json_t *batch, struct evbuffer *out)
{
	const json_t *tenants = json_object_get(batch, "tenants"), *tenant;
	size_t i;

	json_array_foreach (tenants, i, tenant) {
		const char *name = json_get_string(tenant, "tenant");

		if (!*name && json_array_size(tenants) == 1)
			return;
		buffer_add_printf(out, "  tenant ");
		write_name(*name ? name : "(none)", out);
		buffer_add_printf(out, ": ");
		write_counts(tenant, out);
	}
}

static void write_batch(const json_t *batch, struct evbuffer *out)
{
	const json_t *one;
	size_t i;

	write_name(json_get_string(batch, "batch"), out);
	buffer_add_printf(out, ": %" PRId64 " jobs: ", json_get_integer(batch, "jobs", 0));
	write_counts(batch, out);
	write_tenants(batch, out);
	json_array_foreach (json_object_get(batch, "breakers"), i, one) {
		buffer_add_printf(out, "  stopped: ");
		write_name(json_get_string(one, "tenant"), out);
		buffer_add_printf(out, "%s", *json_get_string(one, "tenant") ? " at " : "");
		write_name(json_get_string(one, "provider"), out);
		buffer_add_printf(out,
				  ", %" PRId64 " s ago: ", json_get_integer(one, "seconds", 0));
		write_name(json_get_string(one, "why"), out);
		buffer_add_printf(out, "\n");
	}
	json_array_foreach (json_object_get(batch, "nodes"), i, one) {
		buffer_add_printf(out, "  at work: ");
		write_name(json_get_string(one, "host"), out);
		buffer_add_printf(
			out, ", process %" PRId64 ": %" PRId64 " jobs, held for %" PRId64 " s\n",
			json_get_integer(one, "pid", 0), json_get_integer(one, "jobs", 0),
			json_get_integer(one, "leaseSeconds", 0));
	}
}

void status_text_write(const json_t *status, struct evbuffer *out)
{
	const json_t *batches = json_object_get(status, "batches"), *batch;
	size_t i;

	json_array_foreach (batches, i, batch)
		write_batch(batch, out);
	if (!json_array_size(batches))
		buffer_add_printf(out, "no batch\n");
}
