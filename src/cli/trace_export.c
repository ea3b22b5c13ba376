#include "cli/trace_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/sink.h"

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

struct rlmd_otlp_options trace_export_environment(void)
{
	const char *own = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
	const char *headers = variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS");

	return (struct rlmd_otlp_options){
		.size = sizeof(struct rlmd_otlp_options),
		.service = variable("OTEL_SERVICE_NAME"),
		.resource = variable("OTEL_RESOURCE_ATTRIBUTES"),
		.traceparent = variable("TRACEPARENT"),
		.url = own ? own : variable("OTEL_EXPORTER_OTLP_ENDPOINT"),
		.headers = headers ? headers : variable("OTEL_EXPORTER_OTLP_HEADERS"),
	};
}

static bool write_file(const char *path, const char *text, struct rlmd_error *err)
{
	struct sink *sink = sink_new(path, true, err);
	bool ok = sink && sink_write(sink, text_of(text), err) && sink_commit(sink, true, err);

	sink_free(sink);
	return ok;
}

/* The environment says how, the option where. */
static bool export_spans(struct rlmd_text lines, const char *name, const struct config *config,
			 struct rlmd_error *err)
{
	struct rlmd_otlp_options options = trace_export_environment();
	auto_free char *object = NULL;

	options.content = config->otel_content;
	options.url = config->otlp;
	if (strcmp(config->otlp, "-") != 0)
		return rlmd_trace_push(lines, name, &options, NULL, NULL, err);
	object = rlmd_trace_otlp(lines, name, &options, err);
	return object && (!command_print(text_of(object)) ||
			  error_set(err, RLMD_ERROR_INTERNAL, "standard output cannot be written"));
}

bool trace_export(struct rlmd_text lines, const char *name, const struct config *config,
		  struct rlmd_error *err)
{
	auto_free char *text = NULL;

	if (config->otlp)
		return export_spans(lines, name, config, err);
	text = rlmd_trace_chrome(lines, name, err);
	return text && write_file(config->chrome, text, err);
}
