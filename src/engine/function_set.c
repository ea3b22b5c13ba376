#include "engine/function_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "source/context.h"
#include "source/sources.h"

enum {
	SCHEMA_DEPTH = 16,
	SCHEMA_MAX = 64 << 10, /* bytes */
	DOC_MAX = 16 << 10,
	TIMEOUT_MS = 30000, /* where the host says nothing */
};

struct function_set {
	struct function *functions; /* owned */
	size_t count;
	const char **names; /* owned; the strings are lent by the functions. NULL-terminated */
	char *json;         /* owned; NULL: there are none */
	size_t json_size;
	char *described; /* owned: for a model; NULL likewise */
	size_t described_size;
};

static bool refuse(struct rlmd_error *err, const struct rlmd_function *function, const char *why)
{
	return error_set(err, RLMD_ERROR_USAGE, "the function '%s' %s",
			 function->name ? function->name : "(no name)", why);
}

static bool check_argument(const struct rlmd_function *function, const char *name,
			   const json_t *schema, struct rlmd_error *err)
{
	static const char *const keywords[] = {
#define KEYWORD(name) name,
#define HELPER(name)
#define BUILTIN(name)
#include "source/names.def"
#undef BUILTIN
#undef HELPER
#undef KEYWORD
	};

	for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
		if (!strcmp(name, keywords[i]))
			return refuse(err, function, "has an argument with a keyword as its name");
	if (!sources_is_identifier(name))
		return refuse(err, function, "has an argument whose name is no name in Python");
	return json_is_object(schema) ||
	       refuse(err, function, "has an argument whose schema is no object");
}

static bool check_schema(const struct rlmd_function *function, const json_t *schema,
			 struct rlmd_error *err)
{
	json_t *properties = json_object_get(schema, "properties");
	const json_t *required = json_object_get(schema, "required"), *name, *type;
	const char *key;
	json_t *each;
	size_t i;

	type = json_object_get(schema, "type");
	if (!json_is_object(schema) || (type && !text_equal(json_text(type), "object")))
		return refuse(err, function, "has a schema that is not that of a JSON object");
	if (properties && !json_is_object(properties))
		return refuse(err, function, "has 'properties' that are no object");
	json_object_foreach (properties, key, each)
		if (!check_argument(function, key, each, err))
			return false;
	if (required && !json_is_array(required))
		return refuse(err, function, "has 'required' that is no array");
	json_array_foreach (required, i, name)
		if (!json_is_string(name) || !json_object_get(properties, json_string_value(name)))
			return refuse(err, function, "requires an argument that it does not have");
	return true;
}

static bool read_schema(const struct rlmd_function *function, json_t **ret, struct rlmd_error *err)
{
	struct rlmd_text text = text_of(function->schema ? function->schema
							 : "{\"properties\":{}}");

	if (text.size > SCHEMA_MAX)
		return refuse(err, function, "has a schema of more than 64 KiB");
	*ret = json_read(text, SCHEMA_DEPTH, NULL);
	if (!*ret)
		return refuse(err, function, "has a schema that is no JSON");
	return check_schema(function, *ret, err);
}

static bool check_way(const struct rlmd_function *function, struct rlmd_error *err)
{
	if (!function->call == !function->argv)
		return refuse(err, function, "needs either a callback or a program");
	if (function->argv && (!function->argv[0] || function->argv[0][0] != '/'))
		return refuse(err, function, "needs the absolute path of its program");
	if (!function->untold && !text_trim(text_of(function->doc)).size)
		return refuse(err, function, "needs words that tell a model what it does");
	if (text_of(function->doc).size > DOC_MAX || !text_is_utf8(text_of(function->doc)))
		return refuse(err, function, "has a description over 16 KiB, or none of UTF-8");
	return function->max_calls >= 0 || refuse(err, function, "has a negative limit of calls");
}

static bool check_name(const struct function_set *set, const struct rlmd_function *function,
		       const struct context *context, struct rlmd_error *err)
{
	if (!function->name)
		return refuse(err, function, "needs a name");
	if (!sources_check_name("function", function->name, err))
		return false;
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->names[i], function->name))
			return refuse(err, function, "is there twice");
	for (size_t i = 0; context && i < context->count; i++)
		if (!strcmp(context->inputs[i].name, function->name))
			return refuse(err, function, "has the name of an input");
	return strcmp(function->name, "context") != 0 ||
	       refuse(err, function, "has the name of the input");
}

static const char *const *copy_argv(const char *const *argv)
{
	size_t count = 0;
	char **copy;

	if (!argv)
		return NULL;
	while (argv[count])
		count++;
	copy = xcalloc(count + 1, sizeof *copy);
	for (size_t i = 0; i < count; i++)
		copy[i] = xstrdup(argv[i]);
	return (const char *const *)copy;
}

static bool add(struct function_set *set, const struct rlmd_function *theirs,
		const struct context *context, struct rlmd_error *err)
{
	struct function *function = &set->functions[set->count];
	struct rlmd_function ours, *given = &ours;

	if (!abi_copy_in(given, sizeof *given, theirs, sizeof *given, "rlmd_function", err) ||
	    !check_name(set, given, context, err) || !check_way(given, err))
		return false;
	function->spec = *given;
	function->spec.name = xstrdup(given->name);
	function->spec.doc = xstrdup(given->doc ? given->doc : "");
	function->spec.argv = copy_argv(given->argv);
	function->spec.schema = NULL;
	if (!function->spec.timeout_ms)
		function->spec.timeout_ms = TIMEOUT_MS;
	set->names[set->count++] = function->spec.name;
	return read_schema(given, &function->schema, err);
}

/* `own`: one of ours beside them, without arguments that anybody checks; or NULL. */
static void write_json(struct function_set *set, const char *own)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	json_auto_t *all = json_make_array();

	for (size_t i = 0; i < set->count; i++)
		json_append(all, json_make("{s:s, s:s, s:O}", "name", set->functions[i].spec.name,
					   "doc", set->functions[i].spec.doc, "schema",
					   set->functions[i].schema));
	if (own)
		json_append(all, json_make("{s:s, s:s, s:{}}", "name", own, "doc", "", "schema"));
	json_write(all, false, out);
	free(set->json);
	set->json = text_drain(out, &set->json_size);
}

static bool is_required(const json_t *schema, const char *name)
{
	const json_t *required = json_object_get(schema, "required"), *each;
	size_t i;

	json_array_foreach (required, i, each)
		if (text_equal(json_text(each), name))
			return true;
	return false;
}

/* Those that have to be given first, as the worker's function has them. */
static void describe_arguments(const json_t *schema, bool required, bool *more,
			       struct evbuffer *out)
{
	json_t *properties = json_object_get(schema, "properties"), *each;
	const char *name;

	json_object_foreach (properties, name, each) {
		const char *type = json_get_string(each, "type");

		if (is_required(schema, name) != required)
			continue;
		buffer_add_printf(out, "%s%s%s%s%s", *more ? ", " : "", name, *type ? ": " : "",
				  type, required ? "" : " = ...");
		*more = true;
	}
}

static void write_described(struct function_set *set)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	for (size_t i = 0; i < set->count; i++) {
		const struct function *function = &set->functions[i];
		bool more = false;

		if (function->spec.untold)
			continue;
		buffer_add_printf(out, "- %s(", function->spec.name);
		describe_arguments(function->schema, true, &more, out);
		describe_arguments(function->schema, false, &more, out);
		buffer_add_printf(out, "): ");
		text_repair(text_trim(text_of(function->spec.doc)), out);
		buffer_add(out, "\n", 1);
	}
	set->described = text_drain(out, &set->described_size);
}

struct function_set *function_set_new(const struct rlmd_function *given, size_t count,
				      const struct context *context, struct rlmd_error *err)
{
	const char *each = (const char *)given;
	struct function_set *set;

	if (count && !given) {
		error_set(err, RLMD_ERROR_USAGE, "%zu functions are NULL", count);
		return NULL;
	}
	if (count > RLMD_FUNCTIONS_MAX) {
		error_set(err, RLMD_ERROR_USAGE, "%zu functions are too many, the most are %d",
			  count, RLMD_FUNCTIONS_MAX);
		return NULL;
	}
	set = xcalloc(1, sizeof *set);
	set->functions = xcalloc(count, sizeof *set->functions);
	set->names = xcalloc(count + 1, sizeof *set->names);
	/* They lie as far apart as the caller's version of them is long. */
	for (size_t i = 0; i < count; i++, each += given->size)
		if (!add(set, (const struct rlmd_function *)(const void *)each, context, err)) {
			function_set_free(set);
			return NULL;
		}
	if (count) {
		write_json(set, NULL);
		write_described(set);
	}
	return set;
}

void function_set_add_own(struct function_set *set, const char *name)
{
	set->names = xreallocarray(set->names, set->count + 2, sizeof *set->names);
	set->names[set->count] = name;
	set->names[set->count + 1] = NULL;
	write_json(set, name);
}

static void free_argv(const char *const *argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free((char *)argv[i]);
	free((void *)argv);
}

void function_set_free(struct function_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++) {
		free((char *)set->functions[i].spec.name);
		free((char *)set->functions[i].spec.doc);
		free_argv(set->functions[i].spec.argv);
		json_decref(set->functions[i].schema);
	}
	free(set->functions);
	free(set->names);
	free(set->json);
	free(set->described);
	free(set);
}

void function_set_guard(struct function_set *set, bool *telling)
{
	for (size_t i = 0; set && i < set->count; i++)
		set->functions[i].telling = telling;
}

struct function *function_set_find(struct function_set *set, const char *name)
{
	for (size_t i = 0; set && i < set->count; i++)
		if (!strcmp(set->names[i], name))
			return &set->functions[i];
	return NULL;
}

struct rlmd_text function_set_json(const struct function_set *set)
{
	return set ? text_from(set->json, set->json_size) : text_of("");
}

struct rlmd_text function_set_described(const struct function_set *set)
{
	return set ? text_from(set->described, set->described_size) : text_of("");
}

const char *const *function_set_names(const struct function_set *set)
{
	return set ? (const char *const *)set->names : NULL;
}

/* Types of JSON, and the words of Python for them, which is what code was written in. */
static const struct {
	const char *name, *python;
	json_type type;
} type_names[] = {
	{"object", "a dict", JSON_OBJECT},    {"array", "a list", JSON_ARRAY},
	{"string", "a str", JSON_STRING},     {"integer", "an int", JSON_INTEGER},
	{"number", "a number", JSON_INTEGER}, {"number", "a float", JSON_REAL},
	{"boolean", "a bool", JSON_TRUE},     {"boolean", "a bool", JSON_FALSE},
	{"null", "None", JSON_NULL},
};

enum { TYPE_NAMES = sizeof type_names / sizeof *type_names };

static bool is_of(const json_t *value, struct rlmd_text type)
{
	for (size_t i = 0; i < TYPE_NAMES; i++)
		if (text_equal(type, type_names[i].name) &&
		    json_typeof(value) == type_names[i].type)
			return true;
	return false;
}

static const char *python_of(const json_t *value)
{
	size_t i = 0;

	while (json_typeof(value) != type_names[i].type)
		i++;
	return type_names[i].python;
}

/* A type that JSON Schema does not have is told as it stands. */
static void write_wanted(struct rlmd_text type, struct evbuffer *out)
{
	for (size_t i = 0; i < TYPE_NAMES; i++)
		if (text_equal(type, type_names[i].name)) {
			buffer_add_printf(out, "%s", type_names[i].python);
			return;
		}
	buffer_add(out, type.bytes, type.size);
}

static bool refuse_type(const char *name, const json_t *value, const json_t *types,
			struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *wanted = buffer_new();
	size_t count = json_array_size(types);

	if (!count)
		write_wanted(json_text(types), wanted);
	for (size_t i = 0; i < count; i++) {
		if (i)
			buffer_add_printf(wanted, "%s", i + 1 < count ? ", " : " or ");
		write_wanted(json_text(json_array_get(types, i)), wanted);
	}
	return error_set(err, RLMD_ERROR_INPUT, "%s is %s, %.*s is wanted", name, python_of(value),
			 (int)text_in(wanted).size, text_in(wanted).bytes);
}

/* `types`: the name of one, or an array of them; anything else allows all. */
static bool suits(const json_t *value, const json_t *types)
{
	const json_t *type;
	size_t i;

	if (json_is_string(types))
		return is_of(value, json_text(types));
	json_array_foreach (types, i, type)
		if (is_of(value, json_text(type)))
			return true;
	return !json_array_size(types);
}

bool function_set_accepts(const struct function *function, const json_t *arguments,
			  struct rlmd_error *err)
{
	json_t *properties = json_object_get(function->schema, "properties"), *value;
	const json_t *required = json_object_get(function->schema, "required"), *each;
	bool open = !properties ||
		    json_is_true(json_object_get(function->schema, "additionalProperties"));
	const char *name;
	size_t i;

	json_array_foreach (required, i, each)
		if (!json_object_get(arguments, json_string_value(each)))
			return error_set(err, RLMD_ERROR_INPUT, "the argument '%s' is missing",
					 json_string_value(each));
	json_object_foreach ((json_t *)arguments, name, value) {
		each = json_object_get(properties, name);
		if (!each && !open)
			return error_set(err, RLMD_ERROR_INPUT, "there is no argument '%s'", name);
		if (!suits(value, json_object_get(each, "type")))
			return refuse_type(name, value, json_object_get(each, "type"), err);
	}
	return true;
}
