#include "batch/job_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_quote.h"
#include "base/money.h"
#include "batch/job_fields.h"
#include "batch/job_messages.h"

enum {
	MODEL_MAX = 512,
	TENANT_MAX = 64,
	PATH_LONGEST = 4000,
	NUMBER_MAX = 64, /* bytes of a written amount of money */
	SCHEMA_DEPTH = 64,
	EXACT_BITS = 53, /* up to which a double is a whole number for sure */
};

enum job_field {
	CUSTOM_ID,
	TASK,
	CONTEXT,
	CONTEXT_FILE,
	CONTEXT_DIR,
	TENANT,
	MODEL,
	BUDGET,
	SCHEMA,
	METHOD,
	URL,
	BODY,
	FIELDS
};

static const char *const names[FIELDS] = {
	"custom_id", "task",   "context", "context_file", "context_dir", "tenant",
	"model",     "budget", "schema",  "method",       "url",         "body",
};

static const struct job_fields job_members = {"a job", "", names, FIELDS};

/* --- the parts of a job ---------------------------------------------------------- */

enum { OWNS_TASK, OWNS_CONTEXT, OWNS_SCHEMA };

static bool take_text(const struct json_view *view, const char *name, char **owned,
		      struct rlmd_text *ret, struct rlmd_error *err)
{
	if (!job_fields_is(view, JSON_VIEW_STRING, name, err))
		return false;
	if (view->kind)
		*ret = json_view_text(view, owned);
	return true;
}

static bool take_path(struct job_line *job, const struct json_view *view, const char *name,
		      enum job_line_source source, struct rlmd_error *err)
{
	char *path = NULL;

	if (!job_fields_string(view, name, PATH_LONGEST, &path, err))
		return false;
	if (!path)
		return true;
	job->owned[OWNS_CONTEXT] = path;
	job->context = text_of(path);
	job->quoted = view->text;
	job->source = source;
	if (strcmp(path, "-"))
		return true;
	return error_set(err, RLMD_ERROR_INPUT, "%s: a job cannot read standard input; name a file",
			 name);
}

static bool take_context(struct job_line *job, const struct json_view *fields,
			 struct rlmd_error *err)
{
	const struct json_view *given = NULL;

	for (size_t i = CONTEXT; i <= CONTEXT_DIR; i++) {
		if (fields[i].kind && given)
			return error_set(err, RLMD_ERROR_INPUT,
					 "%s and %s: a job has one context; leave one out",
					 names[given - fields], names[i]);
		if (fields[i].kind)
			given = &fields[i];
	}
	if (fields[CONTEXT].kind)
		job->source = JOB_LINE_TEXT;
	return take_text(&fields[CONTEXT], names[CONTEXT], &job->owned[OWNS_CONTEXT], &job->context,
			 err) &&
	       take_path(job, &fields[CONTEXT_FILE], names[CONTEXT_FILE], JOB_LINE_FILE, err) &&
	       take_path(job, &fields[CONTEXT_DIR], names[CONTEXT_DIR], JOB_LINE_DIRECTORY, err);
}

static bool take_cost(const struct json_view *view, int64_t *ret, struct rlmd_error *err)
{
	char number[NUMBER_MAX];
	double ignored;

	if (!view->kind)
		return true;
	if (!json_view_number(view, &ignored))
		return error_set(err, RLMD_ERROR_INPUT,
				 "budget.maxCost: must be a number of US dollars, as 0.5");
	if (view->text.size >= sizeof number)
		return error_set(err, RLMD_ERROR_INPUT, "budget.maxCost: has too many digits");
	snprintf(number, sizeof number, "%.*s", (int)view->text.size, view->text.bytes);
	if (money_parse(number, ret, err))
		return true;
	err->kind = RLMD_ERROR_INPUT;
	return error_context(err, "budget.maxCost");
}

/* The bounds are those of the options of the same names. */
static bool take_budget(struct job_line *job, const struct json_view *budget,
			struct rlmd_error *err)
{
	static const char *const parts[] = {"maxCost", "maxTokens", "maxTime", "maxIterations",
					    "maxDepth"};
	static const struct job_fields members = {"a budget", "budget.", parts, 5};
	struct json_view views[5];

	if (!budget->kind)
		return true;
	return job_fields_is(budget, JSON_VIEW_OBJECT, "budget", err) &&
	       job_fields_read(&members, budget->text, views, err) &&
	       take_cost(&views[0], &job->max_cost, err) &&
	       job_fields_count(&views[1], "budget.maxTokens", 1, INT64_C(1000000000000),
				&job->max_tokens, err) &&
	       job_fields_count(&views[2], "budget.maxTime (milliseconds)", 1, 2592000000,
				&job->max_time_ms, err) &&
	       job_fields_count(&views[3], "budget.maxIterations", 1, 100000, &job->max_iterations,
				err) &&
	       job_fields_count(&views[4], "budget.maxDepth", 0, 16, &job->max_depth, err);
}

static bool take_schema(struct job_line *job, const struct json_view *view, const char *name,
			struct rlmd_error *err)
{
	if (!job_fields_is(view, JSON_VIEW_OBJECT, name, err))
		return false;
	if (view->text.size > JOB_LINE_SCHEMA_MAX)
		return error_set(err, RLMD_ERROR_INPUT, "%s: has %zu bytes; at most %d may be",
				 name, view->text.size, JOB_LINE_SCHEMA_MAX);
	if (view->kind)
		job->schema = view->text;
	return true;
}

/* --- a line of OpenAI's Batch API -------------------------------------------------- */

static bool check_request(const struct json_view *fields, struct rlmd_error *err)
{
	if (fields[METHOD].kind && !json_view_equal(&fields[METHOD], "POST"))
		return error_set(err, RLMD_ERROR_INPUT, "method: must be POST");
	if (fields[URL].kind && !json_view_equal(&fields[URL], "/v1/chat/completions"))
		return error_set(err, RLMD_ERROR_INPUT,
				 "url: must be /v1/chat/completions; of other requests no job can "
				 "be made");
	for (size_t i = TASK; i <= CONTEXT_DIR; i++)
		if (fields[i].kind)
			return error_set(err, RLMD_ERROR_INPUT,
					 "%s and body: the messages of body are the task and its "
					 "context; leave %s out",
					 names[i], names[i]);
	return job_fields_is(&fields[BODY], JSON_VIEW_OBJECT, "body", err);
}

static bool take_body(struct job_line *job, struct json_view *fields, struct rlmd_error *err)
{
	struct job_messages messages;

	if (!check_request(fields, err) || !job_messages_read(fields[BODY].text, &messages, err))
		return false;
	job->owned[OWNS_TASK] = messages.task;
	job->task = text_from(messages.task, messages.task_size);
	job->owned[OWNS_CONTEXT] = messages.context;
	job->context = text_from(messages.context, messages.context_size);
	job->source = messages.context ? JOB_LINE_TEXT : JOB_LINE_NO_CONTEXT;
	job->ignored = messages.ignored;
	if (!fields[MODEL].kind)
		fields[MODEL] = messages.model;
	if (!fields[SCHEMA].kind)
		fields[SCHEMA] = messages.schema;
	return true;
}

static bool take_task(struct job_line *job, struct json_view *fields, struct rlmd_error *err)
{
	if (fields[BODY].kind)
		return take_body(job, fields, err);
	if (fields[METHOD].kind || fields[URL].kind)
		return error_set(err, RLMD_ERROR_INPUT, "%s: has no meaning without body",
				 fields[METHOD].kind ? "method" : "url");
	if (!fields[TASK].kind)
		return error_set(err, RLMD_ERROR_INPUT, "task: is missing; say what is to be done");
	return take_text(&fields[TASK], "task", &job->owned[OWNS_TASK], &job->task, err) &&
	       take_context(job, fields, err);
}

static bool check_task(const struct job_line *job, struct rlmd_error *err)
{
	return text_trim(job->task).size ||
	       error_set(err, RLMD_ERROR_INPUT, "task: is empty; say what is to be done");
}

static bool take_id(struct job_line *job, const struct json_view *fields, struct rlmd_error *err)
{
	if (!fields[CUSTOM_ID].kind)
		return error_set(err, RLMD_ERROR_INPUT,
				 "custom_id: is missing; give each job a string of its own, by "
				 "which its result is found");
	return job_fields_string(&fields[CUSTOM_ID], "custom_id", JOB_LINE_ID_MAX, &job->custom_id,
				 err);
}

/* --- the digest --------------------------------------------------------------------- */

/* A copy in which values that are equal in JSON are written alike: 1.0 as 1. New. */
static json_t *plain(json_t *value)
{
	double number = json_is_real(value) ? json_real_value(value) : 0;
	json_t *copy, *part;
	const char *key;
	size_t i;

	if (json_is_real(value) && number == floor(number) &&
	    fabs(number) < (double)(INT64_C(1) << EXACT_BITS))
		return json_integer((json_int_t)number);
	if (json_is_object(value)) {
		copy = json_object();
		json_object_foreach (value, key, part)
			json_object_set_new_nocheck(copy, key, plain(part));
		return copy;
	}
	if (json_is_array(value)) {
		copy = json_array();
		json_array_foreach (value, i, part)
			json_array_append_new(copy, plain(part));
		return copy;
	}
	return json_incref(value);
}

/* The schema's one form, new: members in order, numbers with all of their digits. */
static bool write_schema(struct rlmd_text schema, char **ret, struct rlmd_error *err)
{
	json_auto_t *given = NULL, *value = NULL;

	*ret = xstrdup("");
	if (!schema.size)
		return true;
	given = json_read(schema, SCHEMA_DEPTH, err);
	if (!given) {
		err->kind = RLMD_ERROR_INPUT;
		return error_context(err, "schema");
	}
	value = plain(given);
	free(*ret);
	*ret = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
	return true;
}

static bool make_digest(struct job_line *job, struct rlmd_error *err)
{
	static const char *const sources[] = {"", "text", "file", "directory"};
	auto_free char *schema = NULL, *budget = NULL;

	if (!write_schema(job->schema, &schema, err))
		return false;
	budget = xasprintf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
			   job->max_cost, job->max_tokens, job->max_time_ms, job->max_iterations,
			   job->max_depth);
	{
		const struct rlmd_text parts[] = {
			text_of(job->custom_id),
			text_of(job->tenant),
			text_of(job->model),
			job->task,
			text_of(sources[job->source]),
			job->context,
			text_of(budget),
			text_of(schema),
		};

		digest_texts(parts, sizeof parts / sizeof *parts, job->digest);
	}
	return true;
}

/* ------------------------------------------------------------------------------------ */

static bool read_job(struct rlmd_text line, struct job_line *job, struct rlmd_error *err)
{
	struct json_view fields[FIELDS];

	return job_fields_read(&job_members, line, fields, err) && take_id(job, fields, err) &&
	       take_task(job, fields, err) && check_task(job, err) &&
	       job_fields_string(&fields[TENANT], "tenant", TENANT_MAX, &job->tenant, err) &&
	       job_fields_string(&fields[MODEL], "model", MODEL_MAX, &job->model, err) &&
	       take_budget(job, &fields[BUDGET], err) &&
	       take_schema(job, &fields[SCHEMA], "schema", err) && make_digest(job, err);
}

bool job_line_read(struct rlmd_text line, struct job_line *ret, struct rlmd_error *err)
{
	struct job_line job = {
		.max_cost = JOB_LINE_UNSAID,
		.max_tokens = JOB_LINE_UNSAID,
		.max_time_ms = JOB_LINE_UNSAID,
		.max_iterations = JOB_LINE_UNSAID,
		.max_depth = JOB_LINE_UNSAID,
	};

	if (!read_job(line, &job, err)) {
		job_line_done(&job);
		return false;
	}
	*ret = job;
	return true;
}

bool job_line_give(struct job_line *job, const char *tenant, struct rlmd_error *err)
{
	if (job->tenant)
		return true;
	job->tenant = xstrdup(tenant);
	return make_digest(job, err);
}

void job_line_done(struct job_line *job)
{
	free(job->custom_id);
	free(job->tenant);
	free(job->model);
	for (size_t i = 0; i < sizeof job->owned / sizeof *job->owned; i++)
		free(job->owned[i]);
	*job = (struct job_line){0};
}

bool job_line_is_git(const struct job_line *job)
{
	return job->source == JOB_LINE_DIRECTORY && text_starts(job->context, "git:");
}

char *job_line_path(const struct job_line *job, const char *directory)
{
	const char *path = job->context.bytes;

	if (job->source != JOB_LINE_FILE && job->source != JOB_LINE_DIRECTORY)
		return NULL;
	if (*path == '/' || job_line_is_git(job))
		return xstrdup(path);
	/* Never bare: NAME=PATH would be a variable's name. */
	return xasprintf("%s/%s", directory, path);
}

char *job_line_anywhere(struct rlmd_text line, const struct job_line *job, const char *directory,
			size_t *ret_size)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *path = NULL;
	const char *after;

	if (!job->quoted.bytes || *job->context.bytes == '/' || job_line_is_git(job))
		return NULL;
	after = job->quoted.bytes + job->quoted.size + 1;
	path = job_line_path(job, directory);
	buffer_add(out, line.bytes, (size_t)(job->quoted.bytes - 1 - line.bytes));
	json_quote(text_of(path), out);
	buffer_add(out, after, (size_t)(line.bytes + line.size - after));
	return text_drain(out, ret_size);
}

uint64_t job_line_hash(const char *custom_id)
{
	unsigned char bytes[DIGEST_BYTES];
	uint64_t hash = 0;

	digest_bytes(text_of(custom_id), bytes);
	for (size_t i = 0; i < sizeof hash; i++)
		hash = hash << 8 | bytes[i];
	return hash;
}
