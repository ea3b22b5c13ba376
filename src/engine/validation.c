#include "engine/validation.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/timer.h"
#include "pool/worker.h"
#include "reply/fence.h"

enum {
	OUTPUT_MAX = 100000, /* characters that it says: ten violations are not a tenth of it */
	INPUTS_MAX = 2,
	RESULT_DEPTH = 4,
};

static const char schemas_block[] = "import validation\nvalidation.check_schemas(given_schemas)";
static const char answer_block[] =
	"import validation\nvalidation.check_answer(given_schema, given_answer)";

struct validation_check {
	struct validation *validation; /* lent */
	const char *block;             /* static */
	const char *names[INPUTS_MAX]; /* static; NULL: no more */
	struct memfile *files[INPUTS_MAX];
	struct rlmd_error error; /* it cannot even begin */
	validation_fn *done;
	void *owner; /* lent */
	TAILQ_ENTRY(validation_check) entry;
};

struct validation {
	struct event_base *base;      /* lent */
	struct rlmd_sandbox *sandbox; /* lent */
	const struct log *log;        /* lent */
	int64_t timeout_ms;
	TAILQ_HEAD(, validation_check) checks; /* owned; the first has the worker */
	struct worker *worker;                 /* owned; NULL: there is none */
	struct timer *next;                    /* owned: the first begins, from the loop */
};

static void check_free(struct validation_check *check)
{
	for (size_t i = 0; i < INPUTS_MAX; i++)
		memfile_unref(check->files[i]);
	free(check);
}

/* The next one may begin. */
static void advance(struct validation *validation)
{
	worker_free(take_pointer(&validation->worker));
	if (!TAILQ_EMPTY(&validation->checks))
		timer_post(validation->next);
}

void validation_cancel(struct validation_check *check)
{
	struct validation *validation = check ? check->validation : NULL;
	bool has_worker;

	if (!check)
		return;
	has_worker = check == TAILQ_FIRST(&validation->checks);
	TAILQ_REMOVE(&validation->checks, check, entry);
	check_free(check);
	if (has_worker)
		advance(validation);
}

/* C3: it is gone, and so is its worker, when it is heard of. */
static void end(struct validation *validation, const struct validation_result *result)
{
	struct validation_check *check = TAILQ_FIRST(&validation->checks);
	validation_fn *done = check->done;
	void *owner = check->owner;

	validation_cancel(check);
	done(owner, result);
}

static void fail(struct validation *validation, const struct rlmd_error *err)
{
	struct rlmd_error why = *err;

	end(validation, &(struct validation_result){.error = &why});
}

static void fail_late(struct validation *validation)
{
	struct rlmd_error err;
	char allowed[16];

	clock_format(validation->timeout_ms, allowed);
	error_set(&err, RLMD_ERROR_SCHEMA,
		  "its check took more than %s: a pattern of the schema may take for ever; make "
		  "that simpler",
		  allowed);
	fail(validation, &err);
}

/* The last line of a traceback is what happened. */
static void fail_inside(struct validation *validation, struct rlmd_text traceback)
{
	auto_free char *why = text_copy(text_error_line(traceback));
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_SCHEMA, "it could not be checked: %s", why);
	fail(validation, &err);
}

/* `lack` is what worker/validation.py says that it would have needed more of. False: it has said
 * nothing of that. */
static bool fail_for_lack(struct validation *validation, const char *lack)
{
	struct rlmd_error err;

	if (lack && !strcmp(lack, "memory"))
		error_set(&err, RLMD_ERROR_SCHEMA, "its check took more than %d MiB of memory",
			  VALIDATION_MEMORY >> 20);
	else if (lack && !strcmp(lack, "depth"))
		error_set(&err, RLMD_ERROR_SCHEMA,
			  "its check went too deep: references of the schema may go round in a "
			  "circle");
	else
		return false;
	fail(validation, &err);
	return true;
}

static void tell(struct validation *validation, struct rlmd_text said)
{
	json_auto_t *result = json_read(said, RESULT_DEPTH, NULL);
	const json_t *wrong = json_object_get(result, "wrong"), *line;
	auto_evbuffer struct evbuffer *lines = buffer_new();
	auto_free char *text = NULL;
	size_t i, size;

	if (fail_for_lack(validation, json_string_value(json_object_get(result, "failed"))))
		return;
	if (!json_is_array(wrong)) {
		fail_inside(validation, text_of("the helper made no sense"));
		return;
	}
	json_array_foreach (wrong, i, line)
		buffer_add_printf(lines, "%s%s", i ? "\n" : "", json_string_value(line));
	text = text_drain(lines, &size);
	end(validation, &(struct validation_result){
				.wrong = text_from(text, size),
				.index = (size_t)json_get_integer(result, "index", 0),
			});
}

static void on_gone(struct validation *validation, const struct worker_event *event)
{
	struct rlmd_error err = *event->error;

	if (event->exit == WORKER_EXIT_LATE) {
		fail_late(validation);
		return;
	}
	err.kind = RLMD_ERROR_SCHEMA;
	error_context(&err, "what checks it has ended");
	fail(validation, &err);
}

static void on_block(struct validation *validation, const struct worker_block *block)
{
	if (block->interrupted)
		fail_late(validation);
	else if (block->failed)
		fail_inside(validation, block->error);
	else
		tell(validation, block->stdout_text);
}

static void on_worker(void *owner, const struct worker_event *event)
{
	struct validation *validation = owner;
	const struct validation_check *check = TAILQ_FIRST(&validation->checks);

	switch (event->kind) {
	case WORKER_READY:
		worker_exec(validation->worker, 1, text_of(check->block), validation->timeout_ms);
		return;
	case WORKER_CALL:
	case WORKER_VALUE:
		fail_inside(validation, text_of("the helper asked for something"));
		return;
	case WORKER_DONE:
		on_block(validation, event->block);
		return;
	case WORKER_GONE:
		on_gone(validation, event);
		return;
	}
}

static void on_next(void *owner)
{
	struct validation *validation = owner;
	const struct validation_check *check = TAILQ_FIRST(&validation->checks);
	struct worker_input inputs[INPUTS_MAX];
	struct worker_options options = {
		.inputs = inputs,
		.max_output = OUTPUT_MAX,
		.log = validation->log,
	};

	if (!check || validation->worker)
		return;
	if (check->error.kind) {
		fail(validation, &check->error);
		return;
	}
	while (options.input_count < INPUTS_MAX && check->names[options.input_count]) {
		size_t i = options.input_count++;

		inputs[i] = (struct worker_input){check->names[i], check->files[i], NULL};
	}
	validation->worker = worker_start(validation->base, validation->sandbox, &options,
					  on_worker, validation);
}

struct validation *validation_new(struct event_base *base, struct rlmd_sandbox *sandbox,
				  const struct log *log, int64_t timeout_ms)
{
	struct validation *validation = xcalloc(1, sizeof *validation);

	validation->base = base;
	validation->sandbox = sandbox;
	validation->log = log;
	validation->timeout_ms = timeout_ms < VALIDATION_MS_MAX ? timeout_ms : VALIDATION_MS_MAX;
	TAILQ_INIT(&validation->checks);
	validation->next = timer_new(base, on_next, validation);
	return validation;
}

void validation_free(struct validation *validation)
{
	struct validation_check *check;

	if (!validation)
		return;
	worker_free(validation->worker);
	while ((check = TAILQ_FIRST(&validation->checks))) {
		TAILQ_REMOVE(&validation->checks, check, entry);
		check_free(check);
	}
	timer_free(validation->next);
	free(validation);
}

static void add_input(struct validation_check *check, size_t i, const char *name,
		      struct rlmd_text text)
{
	check->names[i] = name;
	check->files[i] = memfile_new_private(name);
	if (!check->error.kind && memfile_append(check->files[i], text, &check->error))
		memfile_seal(check->files[i], &check->error);
}

static struct validation_check *check_new(struct validation *validation, const char *block,
					  validation_fn *done, void *owner)
{
	struct validation_check *check = xcalloc(1, sizeof *check);

	check->validation = validation;
	check->block = block;
	check->done = done;
	check->owner = owner;
	TAILQ_INSERT_TAIL(&validation->checks, check, entry);
	timer_post(validation->next);
	return check;
}

struct validation_check *validation_check_schemas(struct validation *validation,
						  const struct rlmd_text *schemas, size_t count,
						  validation_fn *done, void *owner)
{
	struct validation_check *check = check_new(validation, schemas_block, done, owner);
	auto_evbuffer struct evbuffer *out = buffer_new();
	json_auto_t *texts = json_make_array();

	for (size_t i = 0; i < count; i++)
		json_append(texts, json_from_text(schemas[i]));
	json_write(texts, false, out);
	add_input(check, 0, "given_schemas", text_in(out));
	return check;
}

struct validation_check *validation_check_answer(struct validation *validation,
						 struct rlmd_text schema, struct rlmd_text answer,
						 validation_fn *done, void *owner)
{
	struct validation_check *check = check_new(validation, answer_block, done, owner);

	add_input(check, 0, "given_schema", schema);
	add_input(check, 1, "given_answer", answer);
	return check;
}

/* Some close a fence and a parenthesis in one line, which ends no fence. */
static struct rlmd_text body_of(struct rlmd_text text, const struct fence *fence)
{
	struct rlmd_text body = text_slice(text, fence->body.start, fence->body.end);
	const char *end = text_find(body, "\n```");

	return text_trim(end ? text_from(body.bytes, (size_t)(end - body.bytes)) : body);
}

/* Words around a fence are no part of what stands in it. */
struct rlmd_text validation_json(struct rlmd_text answer)
{
	struct rlmd_text all = text_trim(answer), json = all;
	struct fence *fences;
	size_t count, found = 0;
	bool open;

	if (!text_find(all, "```") || strchr("{[\"", *all.bytes))
		return all;
	fences = fences_read(all, &count, &open);
	for (size_t i = 0; i < count; i++)
		if (count == 1 || text_equal(fence_info(all, &fences[i]), "json")) {
			json = body_of(all, &fences[i]);
			found++;
		}
	free(fences);
	return found == 1 ? json : all;
}
