#include "engine/group.h"

#include <inttypes.h>
#include <stdlib.h>

#include "async/scheduler.h"
#include "base/abi.h"
#include "base/alloc.h"
#include "engine/engine.h"

enum { MINUTE_MS = 60000 };

#define MOST INT64_C(1000000000)

static bool check(const char *name, int64_t value, int64_t most, struct rlmd_error *err)
{
	return (value >= 0 && value <= most) ||
	       error_set(err, RLMD_ERROR_USAGE, "%s is %" PRId64 ", and may be from 0 to %" PRId64,
			 name, value, most);
}

static bool read_options(struct rlmd_group_options *ret, const struct rlmd_group_options *given,
			 struct rlmd_error *err)
{
	return abi_copy_in(ret, sizeof *ret, given, sizeof *ret, "rlmd_group_options", err) &&
	       check("weight", ret->weight, FLOW_WEIGHT_MAX, err) &&
	       check("max_calls", ret->max_calls, MOST, err) &&
	       check("calls_per_minute", ret->calls_per_minute, MOST, err);
}

struct rlmd_group *rlmd_group_new(struct rlmd_engine *engine,
				  const struct rlmd_group_options *given, struct rlmd_error *err)
{
	struct rlmd_group_options options;
	struct rlmd_group *group;
	unsigned weight;

	if (!engine) {
		error_set(err, RLMD_ERROR_USAGE, "a group needs an engine");
		return NULL;
	}
	if (!read_options(&options, given, err))
		return NULL;
	weight = options.weight ? options.weight : 1;
	group = xcalloc(1, sizeof *group);
	group->engine = engine;
	group->references = 1;
	group->calls = flow_new(scheduler_flow(engine->calls), weight);
	group->workers = flow_new(scheduler_flow(engine->workers), weight);
	if (options.max_calls)
		flow_set_limit(group->calls, (size_t)options.max_calls);
	if (options.calls_per_minute)
		flow_set_rate(group->calls, options.calls_per_minute, MINUTE_MS);
	return group;
}

struct rlmd_group *group_ref(struct rlmd_group *group)
{
	if (group)
		group->references++;
	return group;
}

void group_unref(struct rlmd_group *group)
{
	if (!group || --group->references)
		return;
	flow_free(group->calls);
	flow_free(group->workers);
	free(group);
}

void rlmd_group_unref(struct rlmd_group *group)
{
	group_unref(group);
}
