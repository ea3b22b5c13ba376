#include "base/prometheus.h"

#include "base/buffer.h"

void prometheus_head(struct evbuffer *out, const char *name, const char *type, const char *help)
{
	buffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_label(struct evbuffer *out, const struct prometheus_label *label)
{
	buffer_add_printf(out, "%s=\"", label->name);
	for (const char *c = label->value; *c; c++)
		if (*c == '\n')
			buffer_add_printf(out, "\\n");
		else
			buffer_add_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	buffer_add_printf(out, "\"");
}

void prometheus_sample(struct evbuffer *out, const char *name,
		       const struct prometheus_label *labels, size_t count)
{
	const char *before = "{";

	buffer_add_printf(out, "%s", name);
	for (size_t i = 0; i < count; i++) {
		if (!labels[i].value)
			continue;
		buffer_add_printf(out, "%s", before);
		add_label(out, &labels[i]);
		before = ",";
	}
	buffer_add_printf(out, *before == ',' ? "} " : " ");
}
