#include "cli/serve_job.h"

#include <inttypes.h>
#include <rlmd/plan.h>
#include <rlmd/review.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/money.h"
#include "base/timer.h"
#include "batch/trace_buffer.h"
#include "cli/job_settings.h"
#include "cli/output.h"
#include "cli/review_result.h"
#include "cli/serve_model.h"
#include "cli/serve_params.h"
#include "cli/serve_tenants.h"

enum {
	JOBS_MAX = 10000,
	ROOM_MS = 200, /* until it is looked whether there is memory again */
};

/* An answer that the client looks at. */
struct client_check {
	struct serve_job *job;    /* lent */
	struct rlmd_check *check; /* owned */
	struct rpc_call *asked;   /* lent */
	LIST_ENTRY(client_check) entry;
};

struct serve_job {
	struct serve_client *client; /* lent */
	char name[24];
	struct serve_params params;
	enum command_id kind; /* COMMAND_EXEC, COMMAND_PLAN, COMMAND_REVIEW */
	char *task;           /* owned */
	size_t task_size;
	char *schema;                /* owned; or NULL */
	struct rlmd_plan_file *plan; /* owned; or NULL */
	struct rlmd_review *review;  /* owned; or NULL */
	char *directory;             /* owned: of the review */
	bool checked;                /* it looks at answers */
	char **events;               /* owned, up to a NULL; NULL: none are told */
	bool all_events;
	struct trace_buffer *trace; /* owned: for a collector of spans; NULL: there is none */
	int64_t started;            /* clock_ms() */
	struct rlmd_job *job;       /* owned; NULL: its context is loaded */
	struct timer *posted;       /* owned: its end without a job */
	struct rlmd_error error;    /* why it ends; of no kind: see its result */
	LIST_HEAD(, client_check) checks;
	LIST_ENTRY(serve_job) entry;
	TAILQ_ENTRY(serve_job) in_line;
	enum turn { WAITS, CALLED, AT_WORK } turn; /* in line; its turn has come; it is begun */
};

static struct serve_job *find(const struct serve_client *client, const json_t *params)
{
	const char *name = json_get_string(params, "job");
	struct serve_job *job;

	LIST_FOREACH (job, &client->jobs, entry)
		if (!strcmp(job->name, name))
			return job;
	return NULL;
}

static void drop_checks(struct serve_job *job)
{
	struct client_check *check;

	while ((check = LIST_FIRST(&job->checks))) {
		LIST_REMOVE(check, entry);
		rpc_cancel(check->asked);
		rlmd_check_accept(check->check);
		free(check);
	}
}

/* --- its turn ---------------------------------------------------------------------------- */

static bool has_room(struct serve *serve)
{
	return !serve->at_work ||
	       (serve->at_work < serve->jobs.limit && concurrency_admits(&serve->jobs, clock_ms()));
}

static void leave_line(struct serve_job *job, enum turn turn)
{
	struct serve *serve = job->client->serve;

	TAILQ_REMOVE(&job->client->line, job, in_line);
	job->turn = turn;
	job->client->at_work++;
	serve->at_work++;
	concurrency_begin(&serve->jobs);
}

/* Of the clients that wait the one with the fewest jobs at work; NULL: none waits. */
static struct serve_client *next_of(const struct serve *serve)
{
	struct serve_client *client, *next = NULL;

	LIST_FOREACH (client, &serve->clients, entry)
		if (!TAILQ_EMPTY(&client->line) && (!next || client->at_work < next->at_work))
			next = client;
	return next;
}

/* They are begun from the loop. Memory may come back while no job ends. */
void serve_job_call_next(struct serve *serve)
{
	struct serve_client *client;

	while ((client = next_of(serve)) && has_room(serve)) {
		struct serve_job *job = TAILQ_FIRST(&client->line);

		leave_line(job, CALLED);
		timer_post(job->posted);
	}
	if (client)
		timer_start(serve->room, ROOM_MS);
}

static void end_turn(struct serve_job *job)
{
	struct serve *serve = job->client->serve;

	if (job->turn == WAITS) {
		TAILQ_REMOVE(&job->client->line, job, in_line);
		return;
	}
	job->client->at_work--;
	serve->at_work--;
	serve_job_call_next(serve);
}

static void job_free(struct serve_job *job)
{
	end_turn(job);
	drop_checks(job);
	rlmd_job_free(job->job);
	LIST_REMOVE(job, entry);
	serve_params_done(&job->params);
	rlmd_plan_file_free(job->plan);
	rlmd_review_free(job->review);
	for (char **event = job->events; event && *event; event++)
		free(*event);
	free(job->events);
	trace_buffer_free(job->trace);
	timer_free(job->posted);
	free(job->task);
	free(job->schema);
	free(job->directory);
	free(job);
}

void serve_job_free_all(struct serve_client *client)
{
	while (!LIST_EMPTY(&client->jobs))
		job_free(LIST_FIRST(&client->jobs));
}

/* --- its end ----------------------------------------------------------------------------- */

/* Not as an event, but as --json has it. */
static void tell_end(struct serve_job *job, json_t *result)
{
	json_object_del(result, "event");
	rpc_notify(job->client->rpc, "job.end",
		   json_make("{s:s, s:o}", "job", job->name, "result", result));
	job_free(job);
}

static void set_failure(json_t *object, const struct rlmd_error *err)
{
	json_put(object, "success", json_false());
	json_put(object, "error",
		 json_make("{s:s, s:o}", "kind", rlmd_error_name(err->kind), "message",
			   json_from_text(text_of(err->text))));
}

/* Of a review. */
static void take_findings(struct serve_job *job, const struct rlmd_result *result, json_t *object)
{
	const struct rlmd_error *error = rlmd_result_error(result);
	struct rlmd_error failure = error ? *error : (struct rlmd_error){0};

	if (error)
		free(review_result_take_spare(job->review, job->params.context, object, &failure));
	else
		review_result_take(job->review, job->params.context, rlmd_result_output(result),
				   object, &failure);
	if (failure.kind)
		set_failure(object, &failure);
}

static void on_end(void *owner, struct rlmd_job *ended, const struct rlmd_result *result)
{
	struct serve_job *job = owner;
	json_t *object = session_read(rlmd_result_json(result));

	(void)ended;
	if (job->trace)
		trace_buffer_export(job->trace, job->client->serve->spans, NULL);
	if (job->error.kind)
		set_failure(object, &job->error);
	else if (job->review)
		take_findings(job, result, object);
	tell_end(job, object);
}

static bool go(struct serve_job *, struct rlmd_error *);

/* Its turn has come, or it ends without a job. */
static void on_posted(void *owner)
{
	struct serve_job *job = owner;

	if (job->turn == CALLED && !job->error.kind && go(job, &job->error))
		return;
	tell_end(job, session_no_result(job->client->serve->session, &job->error));
}

static void break_off(struct serve_job *job, const struct rlmd_error *err)
{
	if (!job->error.kind)
		job->error = *err;
	if (job->job)
		rlmd_job_cancel(job->job);
	else
		timer_post(job->posted);
}

/* --- its events -------------------------------------------------------------------------- */

/* Each event begins with its name. */
static bool wants(const struct serve_job *job, struct rlmd_text json)
{
	static const char head[] = "{\"event\":\"";
	struct rlmd_text rest = text_slice(json, sizeof head - 1, json.size);

	if (job->all_events)
		return true;
	for (char **event = job->events; event && *event; event++)
		if (text_starts(rest, *event) && rest.bytes[strlen(*event)] == '"')
			return true;
	return false;
}

static void on_event(void *owner, struct rlmd_job *sender, struct rlmd_text json)
{
	struct serve_job *job = owner;

	(void)sender;
	if (job->trace && !output_is_result(json))
		trace_buffer_add(job->trace, json);
	if (!wants(job, json))
		return;
	rpc_notify(job->client->rpc, "job.event",
		   json_make("{s:s, s:o}", "job", job->name, "event", session_read(json)));
}

static void on_delta(void *owner, struct rlmd_job *sender, struct rlmd_text words)
{
	struct serve_job *job = owner;

	(void)sender;
	rpc_notify(job->client->rpc, "job.delta",
		   json_make("{s:s, s:o}", "job", job->name, "text", json_from_text(words)));
}

static void on_verdict(void *owner, const json_t *result, const char *why)
{
	struct client_check *check = owner;
	struct serve_job *job = check->job;
	struct rlmd_check *answer = check->check;
	const json_t *accept = json_object_get(result, "accept");
	struct rlmd_error err;

	LIST_REMOVE(check, entry);
	free(check);
	if (json_is_true(accept)) {
		rlmd_check_accept(answer);
	} else if (json_is_false(accept)) {
		const char *wrong = json_get_string(result, "wrong");

		rlmd_check_reject(answer, *wrong ? wrong : "The answer was not accepted.");
	} else {
		error_set(&err, RLMD_ERROR_INTERNAL, "answer.check: %.400s",
			  why ? why : "accept is true or false");
		break_off(job, &err);
		rlmd_check_accept(answer);
	}
}

/* The form of a review's findings first. */
static void on_check(void *owner, struct rlmd_job *sender, struct rlmd_text answer,
		     struct rlmd_check *answered)
{
	struct serve_job *job = owner;
	auto_free char *wrong = job->review ? rlmd_review_wrong(job->review, answer) : NULL;
	struct client_check *check;

	(void)sender;
	if (wrong) {
		rlmd_check_reject(answered, wrong);
		return;
	}
	if (!job->checked) {
		rlmd_check_accept(answered);
		return;
	}
	check = xcalloc(1, sizeof *check);
	check->job = job;
	check->check = answered;
	LIST_INSERT_HEAD(&job->checks, check, entry);
	check->asked = rpc_ask(
		job->client->rpc, "answer.check",
		json_make("{s:s, s:o}", "job", job->name, "answer", json_from_text(answer)),
		on_verdict, check);
}

/* --- its start --------------------------------------------------------------------------- */

static struct rlmd_job_options options_of(struct serve_job *job)
{
	struct rlmd_job_options options = job_settings_options(&job->params.config);

	options.task = text_from(job->task, job->task_size);
	options.context = job->params.context;
	options.plan = job->plan;
	options.functions = job->params.functions;
	options.function_count = job->params.tool_count;
	options.schema = text_of(job->schema);
	options.warnings = job->client->serve->session->warnings;
	if (job->kind == COMMAND_PLAN)
		options.strict = false;
	if (job->review)
		rlmd_review_first_code(job->review, &options.setup, &options.first_code);
	if (options.first_code.size)
		job->params.functions[options.function_count++] = rlmd_review_function(job->review);
	return options;
}

static bool start_job(struct serve_job *job, struct rlmd_error *err)
{
	int64_t allowed = job->params.config.max_time;
	struct rlmd_limits limits = job_settings_limits(&job->params.config,
							allowed + job->started - clock_ms());
	const struct rlmd_hooks hooks = {
		.size = sizeof hooks,
		.event = job->events || job->trace ? on_event : NULL,
		.events = job->all_events || job->trace ? NULL : (const char *const *)job->events,
		.delta = on_delta,
		.check = job->checked || job->review ? on_check : NULL,
		.end = on_end,
		.owner = job,
	};
	struct rlmd_job_options options;

	if (limits.time_ms <= 0)
		return error_limit(err, RLMD_STOP_MAX_TIME,
				   "reading the input took all of the time (max-time)");
	options = options_of(job);
	options.limits = &limits;
	options.hooks = &hooks;
	options.sandbox = serve_params_sandbox(&job->params, err);
	job->job = options.sandbox && serve_model_give(&job->params, &options, err)
			   ? rlmd_job_start(job->client->serve->session->engine, &options, err)
			   : NULL;
	job->params.job = job->job;
	return job->job;
}

/* A review without a change ends with no finding, and asks nobody. */
static void end_without_change(struct serve_job *job)
{
	struct session *session = job->client->serve->session;
	json_t *object = session_no_result(session, NULL);

	review_result_take(job->review, job->params.context, text_of("{\"findings\": []}"), object,
			   NULL);
	tell_end(job, object);
}

/* Where it is true, the job may have ended. */
static bool begin(struct serve_job *job, struct rlmd_error *err)
{
	struct rlmd_text task;

	if (!job->review)
		return start_job(job, err);
	if (!rlmd_review_task(job->review, job->params.context, &task, err))
		return false;
	if (!task.size) {
		end_without_change(job);
		return true;
	}
	job->task = text_copy(task);
	job->task_size = task.size;
	return start_job(job, err);
}

static void on_loaded(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct serve_job *job = owner;
	struct rlmd_error why;

	if (!context)
		break_off(job, err);
	else if (job->error.kind)
		timer_post(job->posted);
	else if (!begin(job, &why))
		break_off(job, &why);
}

/* --- its parameters ---------------------------------------------------------------------- */

static bool take_task(struct serve_job *job, const json_t *task, struct rlmd_error *err)
{
	struct rlmd_text text = json_text(task);

	if (text.size > TASK_SIZE_MAX || !text_trim(text).size)
		return error_set(err, RLMD_ERROR_USAGE,
				 text.size ? "the task has no word, or is longer than 1 MiB"
					   : "there is no task");
	job->task = text_copy(text);
	job->task_size = text.size;
	return true;
}

static bool take_plan(struct serve_job *job, const json_t *plan, struct rlmd_error *err)
{
	auto_free char *text = json_to_string(plan);

	job->plan = rlmd_plan_file_new(text_of(text), err);
	return job->plan || error_context(err, "plan");
}

/* The directory is a context of its own. */
static bool take_review_of(struct serve_job *job, const json_t *asked, struct rlmd_error *err)
{
	const char *rules = json_string_value(json_object_get(asked, "rules"));
	auto_free char *path = rules ? serve_params_path(job->client, rules, err) : NULL;
	struct rlmd_review_options options;

	if (rules && !path)
		return error_context(err, "review: rules");
	if (!job_settings_check_review(&job->params.config, path, err))
		return error_context(err, "review");
	options = job_settings_review(&job->params.config, path);
	options.directory = job->directory;
	job->review = rlmd_review_new(&options, err);
	return job->review || error_context(err, "review");
}

/* As job.start with a task has it: one context, the path, and what changed as an option. */
static json_t *params_of_review(const json_t *params, const json_t *review)
{
	const char *path = json_get_string(review, "path"), *diff = json_get_string(review, "diff");
	json_t *all = json_make_copy(params), *options = json_object_get(params, "options");

	options = json_is_object(options) ? json_make_copy(options) : json_make_object();
	if (*diff)
		json_put(options, "diff", json_make_string(diff));
	json_put(all, "options", options);
	json_put(all, "contexts", json_make("[{s:s}]", "path", *path ? path : "."));
	return all;
}

static bool take_events(struct serve_job *job, const json_t *events, struct rlmd_error *err)
{
	size_t count = json_array_size(events), i;
	const json_t *event;

	if (events && !json_is_array(events))
		return error_set(err, RLMD_ERROR_USAGE, "events are an array of names");
	if (!count)
		return true;
	job->events = xcalloc(count + 1, sizeof *job->events);
	json_array_foreach (events, i, event) {
		if (!json_is_string(event))
			return error_set(err, RLMD_ERROR_USAGE, "events are an array of names");
		job->all_events |= text_equal(json_text(event), "*");
		job->events[i] = xstrdup(json_string_value(event));
	}
	return true;
}

static bool take_schema(struct serve_job *job, const json_t *schema, struct rlmd_error *err)
{
	if (!schema || json_is_null(schema))
		return true;
	if (!json_is_object(schema) && !json_is_boolean(schema))
		return error_set(err, RLMD_ERROR_USAGE, "the schema is an object");
	job->schema = json_to_string(schema);
	return true;
}

static bool take_work(struct serve_job *job, const json_t *params, struct rlmd_error *err)
{
	const json_t *task = json_object_get(params, "task"),
		     *plan = json_object_get(params, "plan"),
		     *review = json_object_get(params, "review");

	if (!!task + !!plan + !!review != 1)
		return error_set(err, RLMD_ERROR_USAGE, "one of task, plan and review is wanted");
	if (task && !json_is_string(task))
		return error_set(err, RLMD_ERROR_USAGE, "the task is a text");
	if ((plan && !json_is_object(plan)) || (review && !json_is_object(review)))
		return error_set(err, RLMD_ERROR_USAGE, "%s is an object",
				 plan ? "plan" : "review");
	if (task)
		return take_task(job, task, err);
	return plan ? take_plan(job, plan, err) : take_review_of(job, review, err);
}

static bool find_directory(struct serve_job *job, const char *path, struct rlmd_error *err)
{
	job->directory = serve_params_path(job->client, *path ? path : ".", err);
	return job->directory || error_context(err, "review: path");
}

static bool read_params(struct serve_job *job, const json_t *given, struct rlmd_error *err)
{
	const json_t *review = json_object_get(given, "review");
	json_auto_t *changed = json_is_object(review) ? params_of_review(given, review) : NULL;
	const json_t *params = changed ? changed : given;

	job->kind = json_object_get(params, "plan") ? COMMAND_PLAN
		    : review                        ? COMMAND_REVIEW
						    : COMMAND_EXEC;
	if (json_is_object(review) && !find_directory(job, json_get_string(review, "path"), err))
		return false;
	job->checked = json_is_true(json_object_get(params, "check"));
	return serve_params_read(&job->params, job->client, job->kind, params, err) &&
	       take_work(job, params, err) &&
	       take_schema(job, json_object_get(params, "schema"), err) &&
	       take_events(job, json_object_get(params, "events"), err) &&
	       serve_model_take(&job->params, json_object_get(params, "model"), err);
}

/* All that can be known before the context is there. */
static bool check(struct serve_job *job, struct rlmd_error *err)
{
	struct rlmd_job_options options = options_of(job);
	struct rlmd_limits limits = job_settings_limits(&job->params.config,
							job->params.config.max_time);

	if (job->review)
		options.task = text_of("a review");
	options.schema = (struct rlmd_text){0};
	options.limits = &limits;
	return serve_model_give(&job->params, &options, err) &&
	       rlmd_job_check(job->client->serve->session->engine, &options, err);
}

/* Where it is true, the job may have ended. */
static bool go(struct serve_job *job, struct rlmd_error *err)
{
	bool waits;

	job->turn = AT_WORK;
	job->started = clock_ms();
	return serve_params_load(&job->params, on_loaded, job, &waits, err) &&
	       (waits || begin(job, err));
}

/* Of a client that is not trusted: each takes some memory while it waits. */
static bool may_start(const struct serve_client *client, struct rlmd_error *err)
{
	const struct serve_job *job;
	size_t count = 0;

	if (!client->serve->confined)
		return true;
	LIST_FOREACH (job, &client->jobs, entry)
		count++;
	return count <= JOBS_MAX || error_set(err, RLMD_ERROR_USAGE,
					      "a client has at most %d jobs here that have not "
					      "ended: wait for some",
					      JOBS_MAX);
}

/* While others wait it waits behind them. */
static bool job_start(struct serve_job *job, const json_t *params, struct rlmd_error *err)
{
	struct serve_client *client = job->client;
	bool at_once = TAILQ_EMPTY(&client->line) && has_room(client->serve);

	TAILQ_INSERT_TAIL(&client->line, job, in_line);
	if (!may_start(client, err) || !read_params(job, params, err) ||
	    (at_once && !serve_params_open_texts(&job->params, err)) || !check(job, err))
		return false;
	if (!at_once) {
		serve_job_call_next(client->serve);
		return true;
	}
	leave_line(job, AT_WORK);
	return go(job, err);
}

void serve_job_start(struct serve_client *client, const json_t *params, struct rpc_request *request)
{
	struct serve_job *job = xcalloc(1, sizeof *job);
	struct rlmd_error err = {0};

	job->client = client;
	job->started = clock_ms();
	snprintf(job->name, sizeof job->name, "j%" PRId64, ++client->last_job);
	job->params.kind = "job";
	job->params.name = job->name;
	job->posted = timer_new(client->serve->session->base, on_posted, job);
	job->trace = client->serve->spans ? trace_buffer_new() : NULL;
	LIST_INIT(&job->checks);
	LIST_INSERT_HEAD(&client->jobs, job, entry);
	if (job_start(job, params, &err)) {
		rpc_reply(request, json_make("{s:s}", "job", job->name));
		return;
	}
	job_free(job);
	rpc_fail(request, &err);
}

/* --- its other methods ------------------------------------------------------------------- */

/* One that has ended was once there. */
static bool was_there(const struct serve_client *client, const json_t *params,
		      struct rpc_request *request)
{
	const char *name = json_get_string(params, "job");
	int64_t number = *name == 'j' ? strtoll(name + 1, NULL, 10) : 0;
	struct rlmd_error err;

	if (number > 0 && number <= client->last_job)
		return true;
	error_set(&err, RLMD_ERROR_USAGE, "there is no job '%.40s'", name);
	rpc_fail(request, &err);
	return false;
}

static void stop(struct serve_job *job)
{
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_CANCELLED, "cancelled before it began");
	if (job->params.loading)
		rlmd_context_load_cancel(take_pointer(&job->params.loading));
	else if (job->turn == AT_WORK)
		return;
	break_off(job, &err);
}

static void job_interrupt(struct serve_job *job)
{
	if (job->job)
		rlmd_job_interrupt(job->job);
	else
		stop(job);
}

void serve_job_interrupt(struct serve_client *client, const json_t *params,
			 struct rpc_request *request)
{
	struct serve_job *job = find(client, params);

	if (!job && !was_there(client, params, request))
		return;
	if (job)
		job_interrupt(job);
	rpc_reply(request, json_make_object());
}

void serve_job_cancel(struct serve_client *client, const json_t *params,
		      struct rpc_request *request)
{
	struct serve_job *job = find(client, params);

	if (!job && !was_there(client, params, request))
		return;
	if (job && job->job)
		rlmd_job_cancel(job->job);
	else if (job)
		stop(job);
	rpc_reply(request, json_make_object());
}

void serve_job_interrupt_all(struct serve_client *client)
{
	struct serve_job *job;

	LIST_FOREACH (job, &client->jobs, entry)
		job_interrupt(job);
}

static json_t *money_of(int64_t amount)
{
	if (amount == RLMD_UNLIMITED)
		return json_null();
	return json_make_real(money_to_dollars(amount == RLMD_NOTHING ? 0 : amount));
}

static json_t *number_of(int64_t number)
{
	if (number == RLMD_UNLIMITED)
		return json_null();
	return json_make_integer(number == RLMD_NOTHING ? 0 : number);
}

static json_t *show_left(const struct rlmd_job *job)
{
	struct rlmd_limits left = RLMD_LIMITS_INIT;

	if (!rlmd_job_get_left(job, &left))
		return json_null();
	return json_make("{s:o, s:o, s:o, s:o, s:o}", "cost", money_of(left.cost), "tokens",
			 number_of(left.tokens), "timeMs", number_of(left.time_ms), "calls",
			 number_of(left.calls), "subruns", number_of(left.subruns));
}

static void show_activity(void *owner, const struct rlmd_activity *activity)
{
	json_t *running = owner;
	const char *kind = activity->kind == RLMD_SUBCALL_RUN
				   ? "run"
				   : serve_model_kind_name(activity->call);

	json_append(running,
		    json_make("{s:s, s:s, s:I, s:I, s:s, s:b, s:I}", "kind", kind, "run",
			      activity->run, "depth", (json_int_t)activity->depth, "turn",
			      (json_int_t)activity->turn, "model", activity->model, "waits",
			      (int)activity->waits, "elapsedMs", (json_int_t)activity->elapsed_ms));
}

void serve_job_show(const struct rlmd_job *job, json_t *object)
{
	json_t *running = json_make_array();

	rlmd_job_each_activity(job, show_activity, running);
	json_put(object, "left", show_left(job));
	json_put(object, "running", running);
}

void serve_job_status(struct serve_client *client, const json_t *params,
		      struct rpc_request *request)
{
	struct rlmd_job_status status = RLMD_JOB_STATUS_INIT;
	struct serve_job *job = find(client, params);

	if (!job && !was_there(client, params, request))
		return;
	if (job)
		rlmd_job_get_status(job->job, &status);
	rpc_reply(request,
		  json_make("{s:I, s:I, s:I, s:I, s:f, s:I, s:o, s:I, s:I, s:b, s:b}", "turn",
			    (json_int_t)status.turn, "depth", (json_int_t)status.depth,
			    "callsInFlight", (json_int_t)status.calls_in_flight, "tokens",
			    (json_int_t)status.tokens, "cost", money_to_dollars(status.cost),
			    "elapsedMs", (json_int_t)status.elapsed_ms, "maxCost",
			    money_of(status.max_cost), "operations", (json_int_t)status.operations,
			    "operationsEnded", (json_int_t)status.operations_ended, "interrupted",
			    (int)status.interrupted, "ended", (int)!job));
}

void serve_job_activity(struct serve_client *client, const json_t *params,
			struct rpc_request *request)
{
	const struct serve_job *job = find(client, params);
	json_t *shown;

	if (!job && !was_there(client, params, request))
		return;
	shown = json_make_object();
	serve_job_show(job ? job->job : NULL, shown);
	rpc_reply(request, shown);
}
