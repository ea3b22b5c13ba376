#include "engine/ask.h"

#include <stdlib.h>

#include "async/semaphore.h"
#include "base/alloc.h"
#include "engine/record.h"

struct ask {
	struct room *room; /* lent */
	struct ask_options options;
	struct ticket *ticket; /* owned: our place among the calls at once */
	struct llm_call *call; /* owned: once it was sent */
	struct charge charge;  /* the attempt that is under way */
	struct charge earlier; /* what the attempts before it were billed */
	ask_done_fn *done;
	void *owner;
};

int64_t ask_input_bound(const struct llm_message *messages, size_t count)
{
	int64_t tokens = 0;

	/* The estimate is within a factor of two; half as much again covers all but oddities. */
	for (size_t i = 0; i < count; i++)
		tokens += text_tokens(messages[i].text) * 3 / 2 + 16;
	return tokens;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How many output tokens the account affords after `input` tokens, at most what is wanted. */
static int64_t affordable(const struct ask *ask, int64_t input)
{
	struct budget_amount left = budget_remaining(ask->options.budget);
	const char *model = ask->options.request.model;
	int64_t tokens = ask->options.request.max_tokens;
	int64_t input_cost, more_cost;

	if (left.tokens != BUDGET_UNLIMITED)
		tokens = least(tokens, left.tokens - input);
	if (left.cost == BUDGET_UNLIMITED ||
	    !llm_price(ask->room->llm, model, input, 0, &input_cost) ||
	    !llm_price(ask->room->llm, model, input, 1, &more_cost))
		return tokens;
	if (input_cost > left.cost)
		return -1;
	more_cost -= input_cost;
	return more_cost ? least(tokens, (left.cost - input_cost) / more_cost) : tokens;
}

static bool ask_reserve(struct ask *ask, struct error *err)
{
	struct llm_request *request = &ask->options.request;
	int64_t input = ask_input_bound(request->messages, request->message_count);
	struct budget_amount amount = {0};
	int64_t tokens;

	if (ask->options.reserve)
		charge_drop(ask->options.reserve);
	tokens = affordable(ask, input);
	/* What does not fit is taken as it was wanted, so that the account says why not. */
	if (tokens >= least(request->max_tokens, ASK_TOKENS_FLOOR))
		request->max_tokens = tokens;
	amount.tokens = input + request->max_tokens;
	if (!llm_price(ask->room->llm, request->model, input, request->max_tokens, &amount.cost)) {
		if (budget_limits(ask->options.budget)->cost != BUDGET_UNLIMITED)
			return error_set(err, ERROR_BUDGET,
					 "the price of model '%s' is not known, so the limit on "
					 "cost cannot be kept",
					 request->model);
		amount.cost = 0;
	}
	return charge_take(&ask->charge, ask->options.budget, amount, err);
}

/* The reservation is for one attempt: another one must be affordable beside what is billed. */
static bool may_retry(void *owner, const struct llm_usage *usage, int64_t cost)
{
	struct ask *ask = owner;
	struct budget_amount billed = {cost, usage->input + usage->output};

	charge_drop(&ask->earlier);
	return charge_take(&ask->earlier, ask->options.budget, billed, NULL);
}

static void ask_settle(struct ask *ask, const struct llm_usage *usage, int64_t cost,
		       bool cost_known)
{
	struct budget_usage used = {
		.cost = cost,
		.tokens = usage->input + usage->output,
		.input_tokens = usage->input,
		.output_tokens = usage->output,
		.cached_tokens = usage->cache_read,
		.llm_calls = 1,
		.estimated = usage->estimated,
		.cost_complete = cost_known,
	};

	charge_drop(&ask->earlier);
	charge_settle(&ask->charge, (struct budget_amount){cost, used.tokens});
	budget_count_call(ask->options.budget, &used);
}

/* Turns that were answered are recorded by their run; all else that was sent is, here. */
static void ask_record(const struct ask *ask, const struct llm_response *response,
		       const struct error *err)
{
	const struct llm_request *request = &ask->options.request;

	if (ask->options.number != ASK_TURN || err)
		record_call(ask->room->trace, ask->options.run, ask->options.number, request,
			    response, err);
}

static void ask_free(struct ask *ask)
{
	charge_drop(&ask->charge);
	ticket_free(ask->ticket);
	free(ask);
}

static void on_llm(void *owner, const struct llm_response *response, const struct error *err)
{
	struct ask *ask = owner;
	ask_done_fn *done = ask->done;
	void *above = ask->owner;

	ask->call = NULL;
	ask->room->calls_in_flight--;
	ask_settle(ask, &response->usage, response->cost, response->cost_known);
	ask_record(ask, response, err);
	ask_free(ask);
	done(above, response, err);
}

static void on_ticket(void *owner)
{
	struct ask *ask = owner;
	ask_done_fn *done = ask->done;
	void *above = ask->owner;
	struct error err = {0};

	if (ask_reserve(ask, &err)) {
		ask->room->calls_in_flight++;
		ask->call = llm_start(ask->room->llm, &ask->options.request, on_llm, ask);
		return;
	}
	ask_free(ask);
	done(above, &(struct llm_response){.cost_known = true}, &err);
}

struct ask *ask_start(struct room *room, const struct ask_options *options, ask_done_fn *done,
		      void *owner)
{
	struct ask *ask = xcalloc(1, sizeof *ask);

	*ask = (struct ask){.room = room, .options = *options, .done = done, .owner = owner};
	ask->options.request.may_retry = may_retry;
	ask->ticket = ticket_new(room->calls, 0, on_ticket, ask);
	return ask;
}

void ask_cancel(struct ask *ask)
{
	struct error err = {.kind = ERROR_CANCELLED, .text = "cancelled"};
	struct llm_response response = {0};
	int64_t price;

	if (!ask)
		return;
	if (ask->call) {
		ask->room->calls_in_flight--;
		llm_cancel(ask->call, &response.usage, &response.cost);
		response.cost_known = llm_price(ask->room->llm, ask->options.request.model, 0, 0,
						&price);
		ask_settle(ask, &response.usage, response.cost, response.cost_known);
		ask_record(ask, &response, &err);
	}
	ask_free(ask);
}
