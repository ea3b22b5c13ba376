#include "fake_engine.h"

#include <event2/event.h>
#include <rlmd/engine.h>
#include <rlmd/group.h>
#include <rlmd/provider.h>
#include <rlmd/sandbox.h>
#include <rlmd/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/text.h"

struct fake_engine fake_engine;

struct rlmd_result {
	const struct fake_answer *answer;
	struct rlmd_error error;
	char json[100];
};

static void on_end(evutil_socket_t fd, short what, void *owner)
{
	struct rlmd_result result;
	struct rlmd_job *job = owner;

	(void)fd;
	(void)what;
	result.answer = &job->answer;
	error_set(&result.error, job->answer.error, "it failed");
	snprintf(
		result.json, sizeof result.json,
		job->answer.error
			? "{\"success\":false,\"error\":{\"kind\":\"%s\",\"message\":\"it failed\"}}"
			: "{\"success\":true,\"output\":\"%s\"}",
		job->answer.error ? rlmd_error_name(job->answer.error) : job->task);
	job->hooks.event(job->hooks.owner, job, text_of("{\"event\":\"run\",\"run\":\"r\"}"));
	if (job->answer.degraded)
		job->hooks.event(job->hooks.owner, job, text_of("{\"event\":\"degraded\"}"));
	job->over = true;
	fake_engine.now--;
	job->hooks.end(job->hooks.owner, job, &result);
}

void fake_engine_end(struct rlmd_job *job, struct fake_answer answer)
{
	job->answer = answer;
	loop_post(job->end);
}

struct fake_answer fake_engine_stays(const char *task)
{
	(void)task;
	return (struct fake_answer){.stays = true};
}

static char *copy(struct rlmd_text text)
{
	return text.bytes ? xstrndup(text.bytes, text.size) : NULL;
}

/* --- jobs ------------------------------------------------------------------------------ */

struct rlmd_job *rlmd_job_start(struct rlmd_engine *engine, const struct rlmd_job_options *options,
				struct rlmd_error *err)
{
	size_t number = strlen(fake_engine.tasks);
	struct rlmd_job *job;

	(void)engine;
	assert_true(number < FAKE_ENGINE_MOST);
	if (fake_engine.refuses) {
		error_set(err, RLMD_ERROR_INPUT, "no such model");
		return NULL;
	}
	job = xcalloc(1, sizeof *job);
	job->task = copy(options->task);
	job->schema = copy(options->schema);
	job->model = copy(text_of(options->model));
	job->provider = copy(text_of(options->provider));
	job->limits = *options->limits;
	job->context = options->context;
	job->ends_with_account = options->ends_with_account && options->account;
	job->hooks = *options->hooks;
	job->end = event_new(fake_engine.base, -1, 0, on_end, job);
	fake_engine.tasks[number] = *job->task;
	fake_engine.started[number] = job;
	if (++fake_engine.now > fake_engine.most)
		fake_engine.most = fake_engine.now;
	if (fake_engine.answer)
		job->answer = fake_engine.answer(job->task);
	if (!job->answer.stays)
		loop_post(job->end);
	return job;
}

void rlmd_job_cancel(struct rlmd_job *job)
{
	if (!job->over)
		fake_engine_end(job, (struct fake_answer){.error = RLMD_ERROR_CANCELLED});
}

bool rlmd_job_get_status(const struct rlmd_job *job, struct rlmd_job_status *ret)
{
	ret->turn = 1;
	return !job->over;
}

void rlmd_job_free(struct rlmd_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < FAKE_ENGINE_MOST; i++)
		if (fake_engine.started[i] == job)
			fake_engine.started[i] = NULL;
	fake_engine.now -= !job->over;
	event_free(job->end);
	free(job->task);
	free(job->schema);
	free(job->model);
	free(job->provider);
	free(job);
}

/* --- results --------------------------------------------------------------------------- */

const struct rlmd_error *rlmd_result_error(const struct rlmd_result *result)
{
	return result->answer->error ? &result->error : NULL;
}

struct rlmd_text rlmd_result_json(const struct rlmd_result *result)
{
	return text_of(result->json);
}

bool rlmd_result_usage(const struct rlmd_result *result, struct rlmd_usage *ret)
{
	ret->cost = result->answer->cost;
	ret->tokens = result->answer->tokens;
	ret->journaled_cost = result->answer->journaled_cost;
	ret->journaled_tokens = result->answer->journaled_tokens;
	return true;
}

bool rlmd_result_forced(const struct rlmd_result *result)
{
	return result->answer->forced;
}

const char *rlmd_result_limited_by(const struct rlmd_result *result)
{
	return result->answer->limited_by;
}

enum rlmd_stop rlmd_result_stop(const struct rlmd_result *result)
{
	return result->answer->stop;
}

/* No exchange is had, so none is kept. */
void rlmd_journal_kept(struct rlmd_journal_entry *entry)
{
	(void)entry;
	fail();
}

void rlmd_journal_failed(struct rlmd_journal_entry *entry, const struct rlmd_error *err)
{
	(void)entry;
	(void)err;
	fail();
}

struct rlmd_amount rlmd_journal_entry_bill(const struct rlmd_journal_entry *entry)
{
	(void)entry;
	fail();
	return (struct rlmd_amount){0};
}

void rlmd_span_exporter_add(struct rlmd_span_exporter *exporter, struct rlmd_text text,
			    const char *const *attributes)
{
	(void)exporter;
	(void)text;
	for (size_t i = 0; attributes[i]; i += 2)
		strncat(fake_engine.spans, attributes[i + 1],
			sizeof fake_engine.spans - strlen(fake_engine.spans) - 1);
}

/* --- what tenants need -------------------------------------------------------------------- */

int64_t rlmd_engine_provider_wait(const struct rlmd_engine *engine, const char *provider)
{
	int64_t wait_ms = fake_engine.wait_ms;

	(void)engine;
	(void)provider;
	fake_engine.wait_ms = 0;
	return wait_ms;
}

struct rlmd_group *rlmd_group_new(struct rlmd_engine *engine,
				  const struct rlmd_group_options *options, struct rlmd_error *err)
{
	(void)engine;
	(void)options;
	(void)err;
	return xcalloc(1, 1);
}

void rlmd_group_unref(struct rlmd_group *group)
{
	free(group);
}

bool rlmd_engine_add_provider(struct rlmd_engine *engine, const char *name,
			      struct rlmd_provider *provider, struct rlmd_error *err)
{
	(void)engine;
	(void)name;
	(void)provider;
	error_set(err, RLMD_ERROR_USAGE, "no provider here");
	return false;
}

const char *rlmd_provider_kind(size_t index)
{
	return index ? NULL : "openai";
}

void rlmd_provider_unref(struct rlmd_provider *provider)
{
	(void)provider;
}

struct rlmd_sandbox *fake_engine_sandbox(void *owner, const struct tenancy_needs *needs,
					 struct rlmd_error *err)
{
	(void)owner;
	(void)needs;
	(void)err;
	return (struct rlmd_sandbox *)&fake_engine;
}

const char *rlmd_sandbox_level(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return fake_engine.level ? fake_engine.level : "L3";
}
