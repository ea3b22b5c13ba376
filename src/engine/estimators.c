#include "engine/estimators.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prompt/conversation.h"

enum {
	REPAIR_GROWTH = 2, /* bytes more, where an invalid one becomes U+FFFD */
	APART_BYTES = 192, /* of all that stands apart in a message, at most */
};

void estimators_done(struct estimators *estimators)
{
	for (size_t i = 0; i < estimators->count; i++)
		free(estimators->of[i].model);
}

static size_t index_of(const struct estimators *estimators, const char *model)
{
	size_t i = 0;

	while (i < estimators->count && strcmp(estimators->of[i].model, model) != 0)
		i++;
	return i;
}

const struct estimator *estimators_look(struct estimators *estimators, const char *model)
{
	size_t index = index_of(estimators, model);

	if (index == ESTIMATORS_MAX)
		return &estimators->others;
	if (index < estimators->count)
		return &estimators->of[index].estimator;
	token_estimator_begin(&estimators->fresh.tokens, model);
	return &estimators->fresh;
}

enum estimator_use estimators_use(enum llm_kind kind)
{
	switch (kind) {
	case LLM_TURN:
		return ESTIMATOR_TURN;
	case LLM_FORCED:
		return ESTIMATOR_FORCED;
	case LLM_QUERY:
	case LLM_DIRECT:
		break;
	}
	return ESTIMATOR_CALL;
}

/* By what no clock and no budget has a part in, or a replay would come to something else; that
 * takes little. */
int64_t estimators_bound(struct estimators *estimators, const char *model,
			 const struct llm_message *messages, size_t count,
			 struct token_counts *ret_counts)
{
	const struct estimator *estimator = estimators_look(estimators, model);
	int64_t bytes = 0;

	*ret_counts = (struct token_counts){0};
	for (size_t i = 0; i < count; i++) {
		bool timed = messages[i].timeless.size;
		struct text_scan scan = conversation_scan(&messages[i]);

		token_counts_add(ret_counts, &scan.tokens.counts);
		bytes += (int64_t)(scan.bytes + REPAIR_GROWTH * scan.invalid + timed * APART_BYTES);
	}
	return estimator_input(estimator, estimator_tokens(estimator, ret_counts), bytes, count);
}

struct estimator *estimators_learn(struct estimators *estimators, const char *model)
{
	size_t index = index_of(estimators, model);

	if (index == ESTIMATORS_MAX) {
		estimators->others.mixed = true;
		return &estimators->others;
	}
	if (index == estimators->count) {
		token_estimator_begin(&estimators->of[index].estimator.tokens, model);
		estimators->of[estimators->count++].model = xstrdup(model);
	}
	return &estimators->of[index].estimator;
}
