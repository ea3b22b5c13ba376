#include "cli/findings.h"

#include <rlmd/rlmd.h>
#include <rlmd/sandbox.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"

/* --- layers ---------------------------------------------------------------------- */

static bool stands(const json_t *layers, const char *name)
{
	const json_t *layer;
	size_t i;

	json_array_foreach (layers, i, layer)
		if (text_equal(json_get_text(layer, "layer"), name) &&
		    text_equal(json_get_text(layer, "state"), "stands"))
			return true;
	return false;
}

static json_t *add_layer(json_t *layers, const char *name, const char *state)
{
	const char *meaning = rlmd_sandbox_meaning(name);
	json_t *layer = json_pack("{s:s, s:s, s:s}", "layer", name, "state", state, "meaning",
				  meaning ? meaning : "");

	json_array_append_new(layers, layer);
	return layer;
}

/* The failure and its remedy stand in the report; the loss, and the protection that is left, in a
 * table. */
static void add_missing(json_t *layers, const json_t *entry)
{
	static const struct {
		const char *layer, *other, *costs;
	} losses[] = {
#define LOSS(layer, other, costs) {#layer, #other, costs},
#include "cli/losses.def"
#undef LOSS
	};
	const char *name = json_string_value(json_object_get(entry, "layer"));
	json_t *layer = add_layer(layers, name, "absent");

	json_object_update_missing(layer, (json_t *)entry);
	for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
		if (strcmp(losses[i].layer, name) != 0)
			continue;
		json_object_set_new(layer, "costs", json_string(losses[i].costs));
		if (stands(layers, losses[i].other))
			json_object_set_new(layer, "state", json_string("degraded"));
	}
}

static json_t *layers_of(const json_t *report)
{
	json_t *layers = json_array(), *entry;
	size_t i;

	json_array_foreach (json_object_get(report, "layers"), i, entry)
		add_layer(layers, json_string_value(entry), "stands");
	json_array_foreach (json_object_get(report, "absent"), i, entry)
		add_missing(layers, entry);
	return layers;
}

bool findings_set_sandbox(json_t *findings, const json_t *report, const char *require)
{
	const char *level = json_get_string(report, "level");
	bool is_short = require && strcmp(level, require) < 0;

	json_object_set(findings, "level", json_object_get(report, "level"));
	json_object_set(findings, "mode", json_object_get(report, "mode"));
	json_object_set_new(findings, "layers", layers_of(report));
	if (is_short)
		findings_add_problem(findings, "isolation %s is less than --require %s", level,
				     require);
	return is_short;
}

/* --- the rest ---------------------------------------------------------------------- */

json_t *findings_new(void)
{
	struct utsname name;

	uname(&name);
	return json_pack("{s:s, s:s, s:s, s:[], s:[], s:[], s:[]}", "version", RLMD_VERSION,
			 "kernel", name.release, "machine", name.machine, "layers", "attacks",
			 "warnings", "problems");
}

void findings_add_problem(json_t *findings, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	json_array_append_new(json_object_get(findings, "problems"), json_from_text(text_of(text)));
}

static const char *verdict_name(enum attack_verdict verdict)
{
	switch (verdict) {
	case ATTACK_REFUSED:
		return "refused";
	case ATTACK_UNTRIED:
		return "untried";
	case ATTACK_GOT_THROUGH:
		return "got through";
	}
	return "unknown";
}

void findings_add_attack(json_t *findings, const struct attack_result *result)
{
	json_array_append_new(json_object_get(findings, "attacks"),
			      json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", result->name,
					"guarantee", result->guarantee, "what", result->what,
					"verdict", verdict_name(result->verdict), "detail",
					json_from_text(text_of(result->detail))));
	if (result->verdict == ATTACK_UNTRIED)
		findings_add_problem(findings,
				     "an attack could not be tried, for this Python lacks ctypes: "
				     "%s (%s)",
				     result->name, result->guarantee);
	if (result->verdict == ATTACK_GOT_THROUGH)
		findings_add_problem(findings, "an attack got through: %s (%s)", result->name,
				     result->guarantee);
}

void findings_set_provider(json_t *findings, const char *name,
			   const struct rlmd_probe_result *result)
{
	const char *what = !result->asked                    ? "not asked:"
			   : result->error && result->status ? "refuses:"
			   : result->error                   ? "does not answer:"
							     : "answers at";
	auto_free char *message = xasprintf("%s %s", what,
					    result->error ? result->error->text : result->url);

	json_object_set_new(findings, "provider",
			    json_pack("{s:s, s:s?, s:b, s:b, s:i, s:o}", "name", name, "url",
				      result->url, "asked", result->asked, "answers",
				      !result->error, "status", result->status, "message",
				      json_from_text(text_of(message))));
}

bool findings_conclude(json_t *findings)
{
	bool fine = !json_array_size(json_object_get(findings, "problems"));

	json_object_set_new(findings, "ok", json_boolean(fine));
	return fine;
}

/* --- for people -------------------------------------------------------------------- */

static void format_layer(const json_t *layer, struct evbuffer *out)
{
	bool missing = *json_get_string(layer, "call");

	buffer_add_printf(out, "  %-9s %-21s %s\n", json_get_string(layer, "state"),
			  json_get_string(layer, "layer"),
			  json_get_string(layer, missing ? "costs" : "meaning"));
	if (missing)
		buffer_add_printf(out, "%34s%s: %s%s%s\n", "", json_get_string(layer, "call"),
				  json_get_string(layer, "errno"),
				  *json_get_string(layer, "remedy") ? "; remedy: " : "",
				  json_get_string(layer, "remedy"));
}

static void format_attack(const json_t *attack, struct evbuffer *out)
{
	buffer_add_printf(out, "  %-11s %-3s %-38s %s\n", json_get_string(attack, "verdict"),
			  json_get_string(attack, "guarantee"), json_get_string(attack, "what"),
			  json_get_string(attack, "detail"));
}

static void format_list(const json_t *list, const char *title,
			void format(const json_t *, struct evbuffer *), struct evbuffer *out)
{
	const json_t *entry;
	size_t i;

	if (json_array_size(list))
		buffer_add_printf(out, "\n%s:\n", title);
	json_array_foreach (list, i, entry)
		format(entry, out);
}

static void format_sentence(const json_t *problem, struct evbuffer *out)
{
	buffer_add_printf(out, "  %s\n", json_string_value(problem));
}

static const char *closing_words(const json_t *findings, bool short_of_level)
{
	size_t problems = json_array_size(json_object_get(findings, "problems"));

	if (problems > (short_of_level ? 1 : 0))
		return "Not every guarantee of docs/security.md can be kept.";
	return short_of_level ? "Every guarantee of docs/security.md can be kept, but --require "
				"asks for more layers."
			      : "Every guarantee of docs/security.md can be kept.";
}

void findings_format(const json_t *findings, bool short_of_level, struct evbuffer *out)
{
	const json_t *provider = json_object_get(findings, "provider");
	const char *python = json_get_string(findings, "python");

	buffer_add_printf(out, "rlmd %s, Linux %s, %s, Python %s\n",
			  json_get_string(findings, "version"), json_get_string(findings, "kernel"),
			  json_get_string(findings, "machine"), *python ? python : "none");
	if (*json_get_string(findings, "level"))
		buffer_add_printf(out, "isolation %s, mode %s\n",
				  json_get_string(findings, "level"),
				  json_get_string(findings, "mode"));
	format_list(json_object_get(findings, "layers"), "Layers", format_layer, out);
	format_list(json_object_get(findings, "attacks"), "Attacks from inside a worker",
		    format_attack, out);
	if (provider)
		buffer_add_printf(out, "\nProvider %s: %s\n", json_get_string(provider, "name"),
				  json_get_string(provider, "message"));
	format_list(json_object_get(findings, "warnings"), "Warnings", format_sentence, out);
	format_list(json_object_get(findings, "problems"), "Problems", format_sentence, out);
	buffer_add_printf(out, "\n%s\n", closing_words(findings, short_of_level));
}

/* --- the policy ---------------------------------------------------------------------- */

static void format_rule(const json_t *rule, struct evbuffer *out)
{
	const json_t *condition;
	size_t i;

	buffer_add_printf(out, "%-7s %-18s %s\n", json_get_string(rule, "answer"),
			  json_get_string(rule, "call"), json_get_string(rule, "reason"));
	json_array_foreach (json_object_get(rule, "conditions"), i, condition)
		buffer_add_printf(out, "%27s%s %s\n", "", i ? "and" : "if",
				  json_string_value(condition));
}

void findings_format_policy(const json_t *policy, struct evbuffer *out)
{
	const json_t *rule;
	size_t i;

	json_array_foreach (json_object_get(policy, "rules"), i, rule)
		format_rule(rule, out);
	buffer_add_printf(out, "%-7s %-18s %s\n", "EPERM", "any other",
			  "Python raises PermissionError, and the model can go on");
	buffer_add_printf(out, "%-7s above %-12d %s\n", "ENOSYS",
			  (int)json_get_integer(policy, "newest", 0), "younger than the policy");
	buffer_add_printf(out, "%-7s %-18s %s\n", "kill", "any", "by another architecture's table");
	buffer_add_printf(out, "\nArguments are counted from 0 and compared as a whole, all 64 "
			       "bits. Of several rules for a call one must hold.\n");
}
