#include "fake/model.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/loop.h"
#include "engine/engine.h"
#include "llm/provider.h"

enum { COST = 1000 }; /* of an attempt */

const char *(*fake_model)(const struct llm_request *);
enum rlmd_error_kind fake_failure = RLMD_ERROR_OVERLOADED;
struct llm_usage (*fake_usage)(const struct llm_request *);
int fake_attempts;
int64_t fake_lowered;
struct llm_usage fake_broken;
size_t fake_again;
bool fake_holds;
size_t fake_calls, fake_calls_most, fake_events, fake_taken;

struct llm_call {
	struct event *event;
	struct llm_request request;
	llm_done_fn *done;
	void *owner;
};

static struct llm_call *held; /* the last one that was */

void fake_answer_held(void)
{
	loop_post(held->event);
}

/* Whether there is an answer, if need be of a second attempt. */
static bool is_answered(struct llm_call *call)
{
	bool again;

	if (!fake_broken.input)
		return true;
	again = call->request.may_retry(call->owner, &fake_broken, COST);
	fake_again += again;
	return again;
}

static void on_call(evutil_socket_t fd, short what, void *owner)
{
	struct llm_call *call = owner;
	llm_done_fn *done = call->done;
	void *above = call->owner;
	const struct llm_usage few = {.input = 10, .output = 5};
	bool answered = is_answered(call);
	const char *text = answered ? fake_model(&call->request) : NULL;
	const struct llm_usage used = fake_usage ? fake_usage(&call->request) : few;
	struct bytes own = {0};
	struct llm_response response = {
		.bytes = &own,
		.usage = fake_broken,
		.attempts = fake_attempts,
		.billed = fake_attempts,
		.cost_known = true,
		.cost = COST * ((fake_broken.input > 0) + answered),
		.duration_ms = 1,
		.lowered = fake_lowered,
		.model = call->request.model ? call->request.model : "fake",
	};
	struct rlmd_error err = {.kind = fake_failure, .text = "the fake is overloaded"};

	(void)fd;
	(void)what;
	if (answered)
		request_add_usage(&response.usage, &used);
	fake_events++;
	event_base_loopbreak(event_get_base(call->event));
	llm_cancel(call, NULL, NULL);
	bytes_add(&own, text_of(text));
	response.text = bytes_text(&own);
	done(above, &response, text ? NULL : &err);
	fake_taken += response.text.size && !own.at;
	bytes_done(&own);
}

void fake_provider(struct rlmd_engine *engine)
{
	const struct rlmd_provider_options config = {.kind = "replay", .name = "fake"};
	struct rlmd_provider *provider = provider_new(&config, NULL);

	rlmd_engine_add_provider(engine, NULL, provider, NULL);
	provider_unref(provider);
}

/* It stands for nothing but the loop. */
struct llm *llm_new(struct registry *registry, const struct llm_config *config,
		    struct rlmd_error *err)
{
	(void)config;
	(void)err;
	return (struct llm *)registry_base(registry);
}

void llm_free(struct llm *llm)
{
	(void)llm;
}

bool llm_allow(struct llm *llm, const char *model, struct rlmd_error *err)
{
	(void)llm;
	(void)model;
	(void)err;
	return true;
}

struct llm_call *llm_start(struct llm *llm, const struct llm_request *request, llm_done_fn *done,
			   void *owner)
{
	struct llm_call *call = xcalloc(1, sizeof *call);

	*call = (struct llm_call){.request = *request, .done = done, .owner = owner};
	call->event = event_new((struct event_base *)llm, -1, 0, on_call, call);
	if (fake_holds)
		held = call;
	else if (!text_starts(request->messages[request->message_count - 1].text, "hang"))
		loop_post(call->event);
	if (++fake_calls > fake_calls_most)
		fake_calls_most = fake_calls;
	return call;
}

/* None of them ever rests. */
void llm_go_on(struct llm_call *call)
{
	loop_post(call->event);
}

void llm_cancel(struct llm_call *call, struct llm_usage *ret_usage, int64_t *ret_cost)
{
	if (ret_usage)
		*ret_usage = (struct llm_usage){.input = 10, .estimated = true};
	if (ret_cost)
		*ret_cost = 500;
	event_free(call->event);
	free(call);
	fake_calls--;
}

struct kept *llm_kept(struct llm *llm)
{
	(void)llm;
	return NULL;
}

struct kept_lookup *llm_look_up(struct llm *llm, const struct llm_request *request,
				const char *asker)
{
	(void)llm;
	(void)request;
	(void)asker;
	return NULL;
}

void llm_connect(const struct llm *llm, const char *model)
{
	(void)llm;
	(void)model;
}

void llm_forget(struct llm *llm, const char *asker)
{
	(void)llm;
	(void)asker;
}

void llm_leave_journal(struct llm *llm)
{
	(void)llm;
}

bool llm_replays(const struct llm *llm)
{
	(void)llm;
	return false;
}

bool llm_keeps(const struct llm *llm)
{
	(void)llm;
	return false;
}

bool llm_knows_positions(const struct llm *llm)
{
	(void)llm;
	return false;
}

bool llm_price(const struct llm *llm, const char *model, int64_t input_tokens,
	       int64_t output_tokens, int64_t *ret_cost)
{
	(void)llm;
	(void)model;
	*ret_cost = input_tokens + output_tokens;
	return true;
}

int64_t llm_window(const struct llm *llm, const char *model)
{
	(void)llm;
	(void)model;
	return 100000;
}

struct room llm_room(const struct llm *llm, const char *model)
{
	(void)llm;
	(void)model;
	return (struct room){0};
}

int64_t llm_max_output(const struct llm *llm, const char *model)
{
	(void)llm;
	(void)model;
	return INT64_MAX;
}

const char *llm_default_model(const struct llm *llm)
{
	(void)llm;
	return "fake";
}

const char *llm_provider(const struct llm *llm, const char *model)
{
	(void)llm;
	(void)model;
	return "fake";
}

const char *llm_price_date(const struct llm *llm)
{
	(void)llm;
	return "2026-01-01";
}

json_t *llm_take_warnings(struct llm *llm)
{
	(void)llm;
	return json_array();
}

void llm_warn_unpriced(struct llm *llm, const char *model)
{
	(void)llm;
	(void)model;
}
