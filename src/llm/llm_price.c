/* What models cost, and how much they take. */
#include "llm/llm_private.h"
#include "llm/price.h"
#include "llm/provider.h"

enum {
	WINDOW_USUAL = 128000, /* of models in no table */
	WINDOW_LOCAL = 32768,  /* a local one gets no more than llm/ollama.c asks its server for */
	WINDOW_LOCAL_MAX = 131072,
};

static struct price price_of(const struct llm *llm, const char *model)
{
	struct choice choice = llm_find(llm, model);
	struct price price = {0};

	provider_price(choice.provider, choice.model, &price);
	return price;
}

bool llm_price(const struct llm *llm, const char *model, int64_t input_tokens,
	       int64_t output_tokens, int64_t *ret_cost)
{
	struct llm_usage fresh = {.input = input_tokens, .output = output_tokens};
	struct llm_usage written = fresh;
	struct choice choice = llm_find(llm, model);
	struct price price;
	int64_t cost;

	*ret_cost = 0;
	if (choice.provider->free)
		return true;
	if (!provider_price(choice.provider, choice.model, &price))
		return false;
	/* A prompt may be written to a cache as a whole, at a higher price than its own or not. */
	cost = price_cost(&price, &fresh);
	written.cache_write = input_tokens;
	*ret_cost = price_cost(&price, &written);
	if (*ret_cost < cost)
		*ret_cost = cost;
	return true;
}

int64_t llm_window(const struct llm *llm, const char *model)
{
	const struct rlmd_provider *provider = llm_find(llm, model).provider;
	bool local = provider->adapter && provider->adapter->local;
	struct price price = price_of(llm, model);

	if (provider->window)
		return provider->window;
	if (!price.context_window)
		return local ? WINDOW_LOCAL : WINDOW_USUAL;
	if (local && price.context_window > WINDOW_LOCAL_MAX)
		return WINDOW_LOCAL_MAX;
	return price.context_window;
}

int64_t llm_max_output(const struct llm *llm, const char *model)
{
	struct price price = price_of(llm, model);

	return price.max_output ? price.max_output : INT64_MAX;
}

void llm_warn_unpriced(struct llm *llm, const char *model)
{
	provider_warn_unpriced(model, &llm->warnings);
}
