/*
 * sandbox/layer_status.h - which layers stand, and what the kernel said where one does not.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "sandbox/steps.h"

struct layer_status {
	const struct log *log; /* lent: hears of refused modes; NULL: nobody */
	enum mode mode;
	uint32_t layers; /* a bit each */
	struct cause {
		enum step step;
		int error; /* errno; 0: it stands, or nobody tried */
	} causes[LAYER_COUNT];
};

/* The layers that a mode promises, a bit each. */
uint32_t layer_status_promised(enum mode);

/* A step was refused: the layers that it costs now have their cause. */
void layer_status_note(struct layer_status *, const struct launch_failure *);
void layer_status_note_all(struct layer_status *, const struct steps *);

/* The layer that the refusal costs, or LAYER_whole_mode, or LAYER_everything. */
enum layer layer_status_loss(const struct launch_failure *);

/* Sets `err` to the refusal: mode, call, errno, remedy. False. */
bool layer_status_error(const struct launch_failure *, struct rlmd_error *);

/* Logs each layer that was refused. */
void layer_status_tell(const struct layer_status *);

const char *layer_status_mode(const struct layer_status *); /* "root"; static */
const char *layer_status_level(const struct layer_status *);
json_t *layer_status_report(const struct layer_status *); /* new; sandbox_report() */

/* The steps by name, separated by commas, as a bit each. RLMD_ERROR_USAGE for an unknown one. */
bool layer_status_steps(const char *names, uint64_t *ret_steps, struct rlmd_error *);
