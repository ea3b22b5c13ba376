#include "engine/estimators.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void estimators_done(struct estimators *estimators)
{
	for (size_t i = 0; i < estimators->count; i++)
		free(estimators->of[i].model);
}

static size_t place_of(const struct estimators *estimators, const char *model)
{
	size_t i = 0;

	while (i < estimators->count && strcmp(estimators->of[i].model, model) != 0)
		i++;
	return i;
}

const struct estimator *estimators_look(const struct estimators *estimators, const char *model)
{
	static const struct estimator pessimistic;
	size_t place = place_of(estimators, model);

	if (place == ESTIMATORS_MAX)
		return &estimators->others;
	return place < estimators->count ? &estimators->of[place].estimator : &pessimistic;
}

struct estimator *estimators_learn(struct estimators *estimators, const char *model)
{
	size_t place = place_of(estimators, model);

	if (place == ESTIMATORS_MAX) {
		estimators->others.mixed = true;
		return &estimators->others;
	}
	if (place == estimators->count)
		estimators->of[estimators->count++].model = xstrdup(model);
	return &estimators->of[place].estimator;
}
