/*
 * rlmd status: how the batches of a store stand, and who works on them.
 */
#include <event2/buffer.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "base/text.h"
#include "batch/store_status.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/store_command.h"

struct status_command {
	struct store_command store;
	json_t *status; /* owned */
};

static int64_t integer_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *string_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void write_counts(const json_t *object, struct evbuffer *out)
{
	char cost[32];

	money_format(money_from_dollars(json_number_value(json_object_get(object, "cost"))), cost);
	evbuffer_add_printf(out,
			    "%" PRId64 " pending, %" PRId64 " running, %" PRId64
			    " succeeded, %" PRId64 " failed; %s, %" PRId64 " tokens\n",
			    integer_of(object, "pending"), integer_of(object, "running"),
			    integer_of(object, "succeeded"), integer_of(object, "failed"), cost,
			    integer_of(object, "tokens"));
}

/* Names are of others: no control character of theirs comes to a terminal. */
static void write_name(const char *name, struct evbuffer *out)
{
	for (; *name; name++)
		evbuffer_add_printf(out, "%c",
				    (unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name);
}

static void write_tenants(const json_t *batch, struct evbuffer *out)
{
	const json_t *tenants = json_object_get(batch, "tenants"), *tenant;
	size_t i;

	json_array_foreach (tenants, i, tenant) {
		const char *name = string_of(tenant, "tenant");

		if (!*name && json_array_size(tenants) == 1)
			return;
		evbuffer_add_printf(out, "  tenant ");
		write_name(*name ? name : "(none)", out);
		evbuffer_add_printf(out, ": ");
		write_counts(tenant, out);
	}
}

static void write_batch(const json_t *batch, struct evbuffer *out)
{
	const json_t *one;
	size_t i;

	write_name(string_of(batch, "batch"), out);
	evbuffer_add_printf(out, ": %" PRId64 " jobs: ", integer_of(batch, "jobs"));
	write_counts(batch, out);
	write_tenants(batch, out);
	json_array_foreach (json_object_get(batch, "breakers"), i, one) {
		evbuffer_add_printf(out, "  stopped: ");
		write_name(string_of(one, "tenant"), out);
		evbuffer_add_printf(out, "%s", *string_of(one, "tenant") ? " at " : "");
		write_name(string_of(one, "provider"), out);
		evbuffer_add_printf(out, ", %" PRId64 " s ago: ", integer_of(one, "seconds"));
		write_name(string_of(one, "why"), out);
		evbuffer_add_printf(out, "\n");
	}
	json_array_foreach (json_object_get(batch, "nodes"), i, one) {
		evbuffer_add_printf(out, "  at work: ");
		write_name(string_of(one, "host"), out);
		evbuffer_add_printf(
			out, ", process %" PRId64 ": %" PRId64 " jobs, held for %" PRId64 " s\n",
			integer_of(one, "pid"), integer_of(one, "jobs"),
			integer_of(one, "leaseSeconds"));
	}
}

static int show(const struct status_command *command)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	const json_t *batches = json_object_get(command->status, "batches"), *batch;
	auto_free char *json = NULL;
	size_t i;

	if (command->store.config.json) {
		json = json_to_string(command->status);
		evbuffer_add_printf(out, "%s\n", json);
	} else {
		json_array_foreach (batches, i, batch)
			write_batch(batch, out);
		if (!json_array_size(batches))
			evbuffer_add_printf(out, "no batch\n");
	}
	return print_text(text_in(out));
}

static void on_status(void *owner, json_t *status, const struct rlmd_error *err)
{
	struct status_command *command = owner;

	command->status = json_incref(status);
	store_command_end(&command->store, err);
}

static int run(struct status_command *command, int argc, char **argv)
{
	const struct config *config = &command->store.config;
	struct store_status *status;
	struct rlmd_error err;
	int code;

	if (!store_command_begin(&command->store, COMMAND_STATUS, argc, argv, &code))
		return code;
	status = store_status_new(command->store.base, config->store, config->batch, on_status,
				  command, &err);
	if (!status)
		return command_refuse(COMMAND_STATUS, &err);
	code = store_command_wait(&command->store);
	store_status_free(status);
	return code ? code : show(command);
}

int command_status(int argc, char **argv)
{
	struct status_command command = {0};
	int status = run(&command, argc, argv);

	json_decref(command.status);
	store_command_done(&command.store);
	return status;
}
