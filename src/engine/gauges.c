#include "engine/gauges.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void gauges_done(struct gauges *gauges)
{
	for (size_t i = 0; i < gauges->count; i++)
		free(gauges->of[i].model);
}

static size_t place_of(const struct gauges *gauges, const char *model)
{
	size_t i = 0;

	while (i < gauges->count && strcmp(gauges->of[i].model, model) != 0)
		i++;
	return i;
}

const struct gauge *gauges_look(const struct gauges *gauges, const char *model)
{
	static const struct gauge pessimistic;
	size_t place = place_of(gauges, model);

	if (place == GAUGES_MAX)
		return &gauges->others;
	return place < gauges->count ? &gauges->of[place].gauge : &pessimistic;
}

struct gauge *gauges_learn(struct gauges *gauges, const char *model)
{
	size_t place = place_of(gauges, model);

	if (place == GAUGES_MAX) {
		gauges->others.mixed = true;
		return &gauges->others;
	}
	if (place == gauges->count)
		gauges->of[gauges->count++].model = xstrdup(model);
	return &gauges->of[place].gauge;
}
