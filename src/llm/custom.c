#include "llm/custom.h"

#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/timer.h"
#include "llm/provider.h"

struct custom_request {
	struct rlmd_provider *provider; /* lent */
	uint64_t id;
	struct rlmd_message *messages; /* owned; its texts are lent */
	struct reply *reply;           /* lent */
	struct timer *posted;          /* owned: the end, from the loop; or its time is over */
	int64_t deadline;              /* on clock_ms() */
	bool fresh;                    /* more has come that is not told yet */
	bool over;                     /* the host said how it ended, or enough has come */
	bool failed;                   /* ... that there is no reply */
	struct rlmd_error error;
	int64_t retry_after_ms;

	custom_more_fn *more;
	custom_end_fn *end;
	void *owner; /* lent */
};

void custom_done(struct custom *custom)
{
	free(custom->open);
	*custom = (struct custom){0};
}

static int compare(const void *id, const void *item)
{
	const struct custom_request *request = *(struct custom_request *const *)item;
	uint64_t wanted = *(const uint64_t *)id;

	return (wanted > request->id) - (wanted < request->id);
}

/* Ids grow, so the open ones are sorted. */
static struct custom_request **find(const struct custom *custom, uint64_t id)
{
	if (!custom->count)
		return NULL;
	return bsearch(&id, custom->open, custom->count, sizeof *custom->open, compare);
}

/* From here on the host knows no such request. */
static void shut(struct custom_request *request)
{
	struct custom *custom = &request->provider->custom;
	struct custom_request **found = find(custom, request->id);
	size_t behind;

	if (!found)
		return;
	behind = custom->count - (size_t)(found - custom->open) - 1;
	memmove(found, found + 1, behind * sizeof *found);
	custom->count--;
}

static void on_posted(void *owner)
{
	struct custom_request *request = owner;
	int64_t left = request->deadline - clock_ms();
	struct rlmd_error err = request->error;

	if (request->fresh)
		request->more(request->owner);
	request->fresh = false;
	if (!request->over && left > 0) {
		timer_start(request->posted, left);
		return;
	}
	if (!request->over)
		error_set(&err, RLMD_ERROR_TIMEOUT,
			  "the time for the call was over before %s answered",
			  request->provider->name);
	request->end(request->owner, err.kind ? &err : NULL, request->retry_after_ms);
}

static struct rlmd_model_request public_request(const struct custom_request *request,
						const struct llm_request *asked)
{
	const struct llm_sampling *sampling = &asked->sampling;

	return (struct rlmd_model_request){
		.size = sizeof(struct rlmd_model_request),
		.id = request->id,
		.model = asked->model,
		.messages = request->messages,
		.message_count = asked->message_count,
		.max_tokens = asked->max_tokens,
		.with_temperature = sampling->with_temperature,
		.temperature = sampling->temperature,
		.stops = sampling->stops,
		.stop_count = sampling->stop_count,
		.time_left_ms = int64_max(asked->deadline - clock_ms(), 0),
		.job = asked->job,
		.run = asked->run,
		.depth = int64_max(asked->depth, 0),
		.kind = request_model_kind(asked),
		.tenant = asked->tenant,
	};
}

static struct rlmd_message *messages_of(const struct llm_request *asked)
{
	static const enum rlmd_role roles[] = {
		[LLM_SYSTEM] = RLMD_ROLE_SYSTEM,
		[LLM_USER] = RLMD_ROLE_USER,
		[LLM_ASSISTANT] = RLMD_ROLE_ASSISTANT,
	};
	struct rlmd_message *messages = xcalloc(asked->message_count + 1, sizeof *messages);

	for (size_t i = 0; i < asked->message_count; i++)
		messages[i] = (struct rlmd_message){roles[asked->messages[i].role],
						    asked->messages[i].text};
	return messages;
}

struct custom_request *custom_start(struct rlmd_provider *provider, const struct llm_request *asked,
				    struct reply *reply, custom_more_fn *more, custom_end_fn *end,
				    void *owner)
{
	struct custom_request *request = xcalloc(1, sizeof *request);
	struct custom *custom = &provider->custom;
	struct rlmd_model_request words;

	*request = (struct custom_request){
		.provider = provider,
		.id = ++custom->last,
		.messages = messages_of(asked),
		.reply = reply,
		.deadline = asked->deadline,
		.more = more,
		.end = end,
		.owner = owner,
	};
	custom->open = xreallocarray(custom->open, custom->count + 1, sizeof *custom->open);
	custom->open[custom->count++] = request;
	request->posted = timer_new(provider->base, on_posted, request);
	words = public_request(request, asked);
	timer_start(request->posted, words.time_left_ms);
	custom->ask(custom->owner, &words);
	return request;
}

bool custom_billed(const struct custom_request *request)
{
	return !request->failed;
}

void custom_free(struct custom_request *request)
{
	struct custom *custom;

	if (!request)
		return;
	custom = &request->provider->custom;
	if (find(custom, request->id)) {
		shut(request);
		if (custom->cancel)
			custom->cancel(custom->owner, request->id);
	}
	timer_free(request->posted);
	free(request->messages);
	free(request);
}

/* --- the host's answers --------------------------------------------------------------- */

static struct custom_request *open_request(const struct rlmd_provider *provider, uint64_t id)
{
	struct custom_request **found = provider ? find(&provider->custom, id) : NULL;

	return found && !(*found)->over ? *found : NULL;
}

static void post(struct custom_request *request)
{
	request->over = true;
	timer_post(request->posted);
}

typedef bool add_fn(struct reply *, struct rlmd_text, struct rlmd_error *);

/* A reply beyond the limits ends with an error, as a server's does. */
static void take(struct custom_request *request, add_fn *add, struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *clean = buffer_new();

	if (request->over || !text.size || !text.bytes)
		return;
	text_repair(text, clean);
	if (!add(request->reply, text_in(clean), &request->error) || request->reply->overlong)
		post(request);
}

static bool has_bytes(struct rlmd_text text)
{
	return text.bytes || !text.size;
}

bool rlmd_provider_delta(struct rlmd_provider *provider, uint64_t id, struct rlmd_text text)
{
	struct custom_request *request = open_request(provider, id);

	if (!request || !has_bytes(text))
		return false;
	take(request, reply_add_text, text);
	request->fresh = true;
	timer_post(request->posted);
	return true;
}

static int64_t count_of(struct reply *reply, int64_t count)
{
	if (count >= 0 && count <= LLM_COUNT_MAX)
		return count;
	reply->usage_absurd = true;
	return 0;
}

static void take_usage(struct reply *reply, const struct rlmd_model_answer *answer)
{
	reply->usage = (struct llm_usage){
		.input = count_of(reply, answer->input_tokens),
		.output = count_of(reply, answer->output_tokens),
		.cache_read = count_of(reply, answer->cached_tokens),
	};
	if (reply->usage.cache_read > reply->usage.input)
		reply->usage.cache_read = reply->usage.input;
	reply->usage_seen = reply->usage.input && !reply->usage_absurd;
	if (answer->with_cost && answer->cost >= 0)
		reply->cost_reported = answer->cost;
}

bool rlmd_provider_answer(struct rlmd_provider *provider, uint64_t id,
			  const struct rlmd_model_answer *given)
{
	struct custom_request *request = open_request(provider, id);
	struct rlmd_model_answer answer;
	struct reply *reply;

	if (!request || !given ||
	    !abi_copy_in(&answer, sizeof answer, given, sizeof answer, "rlmd_model_answer", NULL) ||
	    !has_bytes(answer.text) || !has_bytes(answer.thinking))
		return false;
	reply = request->reply;
	shut(request);
	take(request, reply_add_text, answer.text);
	take(request, reply_add_thinking, answer.thinking);
	take_usage(reply, &answer);
	reply->finish = answer.cut ? LLM_FINISH_LENGTH : LLM_FINISH_STOP;
	reply->finished = reply->complete = true;
	if (answer.model)
		text_escape(text_of(answer.model), reply->model, sizeof reply->model);
	if (!request->over)
		post(request);
	return true;
}

bool rlmd_provider_fail(struct rlmd_provider *provider, uint64_t id,
			const struct rlmd_model_failure *given)
{
	struct custom_request *request = open_request(provider, id);
	struct rlmd_model_failure failure;
	enum rlmd_error_kind kind;
	char words[sizeof request->error.text / 2];

	if (!request || !given ||
	    !abi_copy_in(&failure, sizeof failure, given, sizeof failure, "rlmd_model_failure",
			 NULL))
		return false;
	shut(request);
	kind = failure.kind > RLMD_ERROR_NONE && failure.kind <= RLMD_ERROR_CANCELLED
		       ? failure.kind
		       : RLMD_ERROR_INTERNAL;
	text_escape(text_of(failure.message ? failure.message : rlmd_error_meaning(kind)), words,
		    sizeof words);
	error_set(&request->error, kind, "%s: %s", provider->name, words);
	request->error.http_status = failure.http_status;
	request->retry_after_ms = int64_max(failure.retry_after_ms, 0);
	request->failed = true;
	post(request);
	return true;
}
