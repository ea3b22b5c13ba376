/*
 * The JSON document stays while the plan does: ids and inputs are lent from it.
 * Its shape is checked here, member by member, and every complaint says where;
 * what operations mean to each other is rlmd_plan_new()'s business.
 */
#include <stdlib.h>
#include <string.h>

#include "async/metrics.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"

enum {
	DEPTH_MAX = 32,
	VALUES_MAX = 4000000, /* jansson takes some 100 bytes for each */
};

struct rlmd_plan_file {
	json_t *document;                  /* owned */
	struct rlmd_operation *operations; /* owned */
	const char **depends;              /* owned, lending from the document: all lists, joined */
	char **texts; /* owned, as are they: contexts, schemas and metadata as JSON */
	size_t text_count, depends_used;
	struct rlmd_plan_description description;
	struct rlmd_plan_config config;
	struct rlmd_plan *plan; /* owned */
};

/* The member that is being read, for complaints, and for values that outlive it. */
struct reader {
	struct rlmd_plan_file *file; /* lent */
	size_t index;                /* of the operation */
	const char *member;          /* lent */
	struct rlmd_error *err;      /* lent */
};

struct member {
	const char *name;
	bool (*read)(const struct reader *, const json_t *, struct rlmd_operation *);
};

static bool complain(const struct reader *reader, const char *what)
{
	return error_set(reader->err, RLMD_ERROR_INPUT, "operations[%zu].%.*s: %s", reader->index,
			 RLMD_PLAN_ID_MAX, reader->member, what);
}

/* NULL where it is no string, or has a NUL in it. */
static const char *plain_string(const json_t *value)
{
	const char *string = json_string_value(value);

	return string && strlen(string) == json_string_length(value) ? string : NULL;
}

static bool read_id(const struct reader *reader, const json_t *value,
		    struct rlmd_operation *operation)
{
	operation->id = plain_string(value);
	return operation->id || complain(reader, "must be a string");
}

static bool read_type(const struct reader *reader, const json_t *value,
		      struct rlmd_operation *operation)
{
	for (int type = 0; type < METRICS_TYPES; type++)
		if (text_equal(json_text(value),
			       metrics_type_name((enum rlmd_operation_type)type))) {
			operation->type = (enum rlmd_operation_type)type;
			return true;
		}
	return complain(reader, "must be \"Query\", \"Transform\", \"Verify\" or \"Synthesize\"");
}

static bool read_mode(const struct reader *reader, const json_t *value,
		      struct rlmd_operation *operation)
{
	bool run = text_equal(json_text(value), "rlm");

	operation->mode = run ? RLMD_OPERATION_RUN : RLMD_OPERATION_CALL;
	return run || text_equal(json_text(value), "llm") ||
	       complain(reader, "must be \"llm\" or \"rlm\"");
}

static bool read_model(const struct reader *reader, const json_t *value,
		       struct rlmd_operation *operation)
{
	operation->model = plain_string(value);
	return (operation->model && *operation->model) ||
	       complain(reader, "must be the name of a model");
}

static struct rlmd_text lend(const json_t *string)
{
	return (struct rlmd_text){json_string_value(string), json_string_length(string)};
}

static bool read_input(const struct reader *reader, const json_t *value,
		       struct rlmd_operation *operation)
{
	operation->input = lend(value);
	return json_is_string(value) || complain(reader, "must be a string");
}

static struct rlmd_text keep_as_text(const struct reader *reader, const json_t *value)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct rlmd_text text;

	json_write(value, false, out);
	text.bytes = text_drain(out, &text.size);
	reader->file->texts[reader->file->text_count++] = (char *)text.bytes;
	return text;
}

static bool read_context(const struct reader *reader, const json_t *value,
			 struct rlmd_operation *operation)
{
	if (json_is_string(value)) {
		operation->context = lend(value);
		return true;
	}
	if (!json_is_object(value) && !json_is_array(value))
		return complain(reader, "must be a string, an object or an array");
	operation->context = keep_as_text(reader, value);
	operation->context_is_json = true;
	return true;
}

static bool read_schema(const struct reader *reader, const json_t *value,
			struct rlmd_operation *operation)
{
	if (!json_is_object(value) && !json_is_boolean(value))
		return complain(reader, "must be a JSON Schema: an object, or true or false");
	operation->schema = keep_as_text(reader, value);
	return true;
}

static bool read_metadata(const struct reader *reader, const json_t *value,
			  struct rlmd_operation *operation)
{
	const char *key;
	json_t *member;

	if (!json_is_object(value))
		return complain(reader, "must be an object of strings");
	json_object_foreach ((json_t *)value, key, member)
		if (!json_is_string(member))
			return error_set(reader->err, RLMD_ERROR_INPUT,
					 "operations[%zu].metadata.%.*s: must be a string",
					 reader->index, RLMD_PLAN_ID_MAX, key);
	operation->metadata = keep_as_text(reader, value);
	return true;
}

static bool read_priority(const struct reader *reader, const json_t *value,
			  struct rlmd_operation *operation)
{
	json_int_t priority = json_integer_value(value);

	operation->priority = (int)priority;
	if (!json_is_integer(value) || priority < -RLMD_PLAN_PRIORITY_MAX ||
	    priority > RLMD_PLAN_PRIORITY_MAX)
		return complain(reader, "must be a whole number between -1000000000 and "
					"1000000000");
	return true;
}

static bool read_milliseconds(const json_t *value, int64_t least, int64_t *ret_ms)
{
	double ms = json_number_value(value);

	if (!json_is_number(value) || !(ms >= (double)least) || ms > (double)RLMD_PLAN_TIMEOUT_MAX)
		return false;
	*ret_ms = (int64_t)ms;
	return *ret_ms >= least && (double)*ret_ms == ms;
}

static bool read_timeout(const struct reader *reader, const json_t *value,
			 struct rlmd_operation *operation)
{
	return read_milliseconds(value, 0, &operation->timeout_ms) ||
	       complain(reader, "must be a positive whole number of milliseconds, or 0 for the "
				"plan's");
}

static bool read_depends_on(const struct reader *reader, const json_t *value,
			    struct rlmd_operation *operation)
{
	struct rlmd_plan_file *file = reader->file;
	size_t i;
	json_t *id;

	if (!json_is_array(value))
		return complain(reader, "must be an array of ids");
	operation->depends_on = file->depends + file->depends_used;
	operation->depends_count = json_array_size(value);
	json_array_foreach (value, i, id) {
		const char *string = plain_string(id);

		if (!string)
			return error_set(reader->err, RLMD_ERROR_INPUT,
					 "operations[%zu].dependsOn[%zu]: must be a string",
					 reader->index, i);
		file->depends[file->depends_used++] = string;
	}
	return true;
}

static const struct member members[] = {
	{"id", read_id},
	{"type", read_type},
	{"mode", read_mode},
	{"model", read_model},
	{"input", read_input},
	{"context", read_context},
	{"priority", read_priority},
	{"timeout", read_timeout},
	{"metadata", read_metadata},
	{"schema", read_schema},
	{"dependsOn", read_depends_on},
};

enum { MEMBERS = sizeof members / sizeof *members };

static const struct member *find_member(const char *name)
{
	for (size_t i = 0; i < MEMBERS; i++)
		if (!strcmp(members[i].name, name))
			return &members[i];
	return NULL;
}

static bool read_operation(struct reader *reader, const json_t *value,
			   struct rlmd_operation *operation)
{
	const char *key;
	json_t *member;

	if (!json_is_object(value))
		return error_set(reader->err, RLMD_ERROR_INPUT,
				 "operations[%zu]: must be an object", reader->index);
	json_object_foreach ((json_t *)value, key, member) {
		const struct member *known = find_member(key);

		reader->member = key;
		if (!known)
			return complain(reader, "is not a member of operations");
		if (!known->read(reader, member, operation))
			return false;
	}
	reader->member = "model";
	if (operation->model && operation->mode == RLMD_OPERATION_RUN)
		return complain(reader, "only operations of mode \"llm\" have one");
	reader->member = operation->id ? "input" : "id";
	if (!operation->id || !operation->input.bytes)
		return complain(reader, "is missing");
	return true;
}

/* As many as will be stored; what is no list is complained about when it is its turn. */
static size_t count_dependencies(const json_t *operations)
{
	size_t total = 0, i;
	json_t *operation;

	json_array_foreach (operations, i, operation)
		total += json_array_size(json_object_get(operation, "dependsOn"));
	return total;
}

static bool read_operations(struct rlmd_plan_file *file, const json_t *value,
			    struct rlmd_error *err)
{
	struct reader reader = {.file = file, .err = err};
	size_t count = json_array_size(value);
	json_t *operation;

	if (!json_is_array(value))
		return error_set(err, RLMD_ERROR_INPUT, "operations: must be an array");
	file->operations = xcalloc(count, sizeof *file->operations);
	file->texts = xcalloc(3 * count, sizeof *file->texts);
	file->depends = xcalloc(count_dependencies(value), sizeof *file->depends);
	file->description.operations = file->operations;
	file->description.count = count;
	json_array_foreach (value, reader.index, operation) {
		file->operations[reader.index].size = sizeof *file->operations;
		if (!read_operation(&reader, operation, &file->operations[reader.index]))
			return false;
	}
	return true;
}

static bool read_strategy(struct rlmd_plan_file *file, const json_t *value, struct rlmd_error *err)
{
	for (int i = 0; i < METRICS_STRATEGIES; i++)
		if (text_equal(json_text(value),
			       metrics_strategy_name((enum rlmd_plan_strategy)i))) {
			file->description.strategy = (enum rlmd_plan_strategy)i;
			return true;
		}
	return error_set(err, RLMD_ERROR_INPUT,
			 "strategy: must be \"Sequential\", \"Parallel\", \"Speculative\" or "
			 "\"DependencyAware\"");
}

static bool read_partial_failure(struct rlmd_plan_file *file, const json_t *value,
				 struct rlmd_error *err)
{
	static const char *const names[] = {
		[RLMD_PLAN_FAIL_DEPENDENTS] = "FailDependents",
		[RLMD_PLAN_FAIL_FAST] = "FailFast",
		[RLMD_PLAN_CONTINUE_ON_ERROR] = "ContinueOnError",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (text_equal(json_text(value), names[i])) {
			file->config.partial_failure = (enum rlmd_plan_failure)i;
			return true;
		}
	return error_set(err, RLMD_ERROR_INPUT,
			 "partialFailure: must be \"FailFast\", \"FailDependents\" or "
			 "\"ContinueOnError\"");
}

static bool read_max_parallel(struct rlmd_plan_file *file, const json_t *value,
			      struct rlmd_error *err)
{
	json_int_t most = json_integer_value(value);

	if (!json_is_integer(value) || most < 1 || most > RLMD_PLAN_PARALLEL_MAX)
		return error_set(err, RLMD_ERROR_INPUT,
				 "maxParallel: must be a whole number between 1 and %d",
				 RLMD_PLAN_PARALLEL_MAX);
	file->config.max_parallel = (size_t)most;
	return true;
}

static bool read_timeout_per_op(struct rlmd_plan_file *file, const json_t *value,
				struct rlmd_error *err)
{
	return read_milliseconds(value, 1, &file->config.timeout_ms) ||
	       error_set(err, RLMD_ERROR_INPUT,
			 "timeoutPerOp: must be a positive whole number of milliseconds");
}

static bool read_document(struct rlmd_plan_file *file, struct rlmd_error *err)
{
	static const struct {
		const char *name;
		bool (*read)(struct rlmd_plan_file *, const json_t *, struct rlmd_error *);
	} parts[] = {
		{"strategy", read_strategy},        {"partialFailure", read_partial_failure},
		{"maxParallel", read_max_parallel}, {"timeoutPerOp", read_timeout_per_op},
		{"operations", read_operations},
	};
	enum { PARTS = sizeof parts / sizeof *parts };
	const char *key;
	json_t *value;

	if (!json_is_object(file->document))
		return error_set(err, RLMD_ERROR_INPUT, "the plan must be an object");
	json_object_foreach (file->document, key, value) {
		size_t i = 0;

		while (i < PARTS && strcmp(parts[i].name, key))
			i++;
		if (i == PARTS)
			return error_set(err, RLMD_ERROR_INPUT, "%.*s: is not a member of plans",
					 RLMD_PLAN_ID_MAX, key);
		if (!parts[i].read(file, value, err))
			return false;
	}
	return file->operations || error_set(err, RLMD_ERROR_INPUT, "operations: is missing");
}

/* So that what is read takes memory in proportion to what a plan may hold. */
static bool check_size(struct rlmd_text text, struct rlmd_error *err)
{
	size_t values;

	if (text.size && !text.bytes)
		return error_set(err, RLMD_ERROR_INPUT, "the plan has %zu bytes and is NULL",
				 text.size);
	if (text.size > RLMD_PLAN_TEXT_MAX)
		return error_set(err, RLMD_ERROR_INPUT, "the plan has %zu bytes; the most is %d",
				 text.size, RLMD_PLAN_TEXT_MAX);
	values = json_look(text).values;
	return values <= VALUES_MAX ||
	       error_set(err, RLMD_ERROR_INPUT, "the plan has %zu values; the most is %d", values,
			 VALUES_MAX);
}

static bool load(struct rlmd_plan_file *file, struct rlmd_text text, struct rlmd_error *err)
{
	struct rlmd_error why;

	if (!check_size(text, err))
		return false;
	file->document = json_read(text, DEPTH_MAX, &why);
	if (!file->document)
		return error_set(err, RLMD_ERROR_INPUT, "the plan is %s", why.text);
	if (!read_document(file, err))
		return false;
	file->plan = rlmd_plan_new(&file->description, err);
	return file->plan != NULL;
}

struct rlmd_plan_file *rlmd_plan_file_new(struct rlmd_text text, struct rlmd_error *err)
{
	struct rlmd_plan_file *file = xcalloc(1, sizeof *file);

	file->config.size = sizeof file->config;
	file->description.size = sizeof file->description;
	if (load(file, text, err))
		return file;
	rlmd_plan_file_free(file);
	return NULL;
}

void rlmd_plan_file_free(struct rlmd_plan_file *file)
{
	if (!file)
		return;
	rlmd_plan_free(file->plan);
	for (size_t i = 0; i < file->text_count; i++)
		free(file->texts[i]);
	free(file->texts);
	free(file->depends);
	free(file->operations);
	json_decref(file->document);
	free(file);
}

struct rlmd_plan *rlmd_plan_file_plan(const struct rlmd_plan_file *file)
{
	return file ? file->plan : NULL;
}

const struct rlmd_plan_config *rlmd_plan_file_config(const struct rlmd_plan_file *file)
{
	return file ? &file->config : NULL;
}
