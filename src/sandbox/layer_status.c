#include "sandbox/layer_status.h"

#include <rlmd/sandbox.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

/* clang-format off */
static const struct {
	const char *name, *meaning;
} layer_table[] = {
#define LAYER(name, shown, meaning) {shown, meaning},
#include "sandbox/layers.def"
#undef LAYER
};

static const struct {
	const char *name;
	uint32_t layers;
} modes[] = {
#define MODE(name, layers, meaning) {#name, layers},
#include "sandbox/modes.def"
#undef MODE
};

static const struct {
	const char *name, *call, *remedy;
	enum layer loss;
} steps[] = {
#define STEP(name, loss, call, error, remedy) {#name, call, remedy, LAYER_##loss},
#include "sandbox/steps.def"
#undef STEP
};
/* clang-format on */

_Static_assert(LAYER_COUNT <= 32 && STEP_COUNT <= 64, "a bit each");

static const char *errno_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown";
}

const char *rlmd_sandbox_meaning(const char *layer)
{
	for (size_t i = 0; layer && i < LAYER_COUNT; i++)
		if (!strcmp(layer_table[i].name, layer))
			return layer_table[i].meaning;
	return NULL;
}

uint32_t layer_status_promised(enum mode mode)
{
	return modes[mode].layers;
}

enum layer layer_status_loss(const struct launch_failure *failure)
{
	return steps[failure->step].loss;
}

void layer_status_note(struct layer_status *status, const struct launch_failure *failure)
{
	enum layer loss = layer_status_loss(failure);
	struct cause cause = {(enum step)failure->step, failure->error};
	uint32_t lost = loss < LAYER_COUNT         ? 1U << loss
			: loss == LAYER_whole_mode ? modes[failure->mode].layers
						   : 0;

	for (int i = 0; i < LAYER_COUNT; i++)
		if (lost >> i & 1)
			status->causes[i] = cause;
	if (loss == LAYER_whole_mode)
		log_write(status->log, LOG_MODE_REFUSED,
			  LOG_FIELDS(LOG_TEXT("mode", modes[failure->mode].name),
				     LOG_TEXT("step", steps[failure->step].call),
				     LOG_TEXT("errno", errno_name(failure->error)),
				     LOG_TEXT("remedy", steps[failure->step].remedy)),
			  "mode \"%s\" of the sandbox is refused: %s failed: %s",
			  modes[failure->mode].name, steps[failure->step].call,
			  strerror(failure->error));
}

void layer_status_tell(const struct layer_status *status)
{
	for (int i = 0; i < LAYER_COUNT; i++) {
		const struct cause *cause = &status->causes[i];

		if (status->layers >> i & 1 || !cause->error)
			continue;
		log_write(status->log, LOG_LAYER_ABSENT,
			  LOG_FIELDS(LOG_TEXT("layer", layer_table[i].name),
				     LOG_TEXT("step", steps[cause->step].call),
				     LOG_TEXT("errno", errno_name(cause->error)),
				     LOG_TEXT("remedy", steps[cause->step].remedy)),
			  "the layer \"%s\" does not stand: %s failed: %s", layer_table[i].name,
			  steps[cause->step].call, strerror(cause->error));
	}
}

void layer_status_note_all(struct layer_status *status, const struct steps *tried)
{
	for (size_t i = 0; i < tried->count; i++)
		layer_status_note(status, &tried->failures[i]);
}

bool layer_status_error(const struct launch_failure *failure, struct rlmd_error *err)
{
	const char *remedy = steps[failure->step].remedy;

	return error_set(err, error_kind_of(failure->error, RLMD_ERROR_SANDBOX),
			 "the walls of mode \"%s\" do not stand: %s failed: %s%s%s",
			 modes[failure->mode].name, steps[failure->step].call,
			 strerror(failure->error), *remedy ? "; " : "", remedy);
}

const char *layer_status_mode(const struct layer_status *status)
{
	return modes[status->mode].name;
}

const char *layer_status_level(const struct layer_status *status)
{
	uint32_t layers = status->layers;
	bool landlock = layers & BIT(landlock);
	bool namespaces = (layers & (NAMESPACES)) == (NAMESPACES);
	bool limited = layers & BIT(memory_group) && layers & BIT(pids_group);
	bool foreign = layers & BIT(not_root) && layers & (BIT(uid) | BIT(user));

	if (!landlock && !namespaces)
		return "L1";
	if (!landlock || !namespaces || !foreign)
		return "L2";
	return limited ? "L4" : "L3";
}

static json_t *absence(enum layer layer, const struct cause *cause)
{
	return json_make("{s:s, s:s, s:s, s:s}", "layer", layer_table[layer].name, "call",
			 steps[cause->step].call, "errno", errno_name(cause->error), "remedy",
			 steps[cause->step].remedy);
}

json_t *layer_status_report(const struct layer_status *status)
{
	json_t *stand = json_make_array(), *absent = json_make_array();

	for (int i = 0; i < LAYER_COUNT; i++) {
		if (status->layers >> i & 1)
			json_append(stand, json_make_string(layer_table[i].name));
		else if (status->causes[i].error)
			json_append(absent, absence((enum layer)i, &status->causes[i]));
	}
	return json_make("{s:s, s:s, s:o, s:o}", "level", layer_status_level(status), "mode",
			 modes[status->mode].name, "layers", stand, "absent", absent);
}

static bool find_step(const char *name, size_t length, uint64_t *ret_step)
{
	for (int i = 0; i < STEP_COUNT; i++)
		if (strlen(steps[i].name) == length && !strncmp(steps[i].name, name, length)) {
			*ret_step = (uint64_t)1 << i;
			return true;
		}
	return false;
}

bool layer_status_steps(const char *names, uint64_t *ret_steps, struct rlmd_error *err)
{
	*ret_steps = 0;
	while (names && *names) {
		size_t length = strcspn(names, ",");
		uint64_t step;

		if (!find_step(names, length, &step))
			return error_set(err, RLMD_ERROR_USAGE, "the sandbox has no step \"%.*s\"",
					 (int)length, names);
		*ret_steps |= step;
		names += length + (names[length] == ',');
	}
	return true;
}
