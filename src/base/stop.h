/*
 * base/stop.h - what is said of why a run stopped, or may not go on.
 *
 * The reasons are rlmd/rlmd.h's, their table is base/stops.def; which reason an error is to a run
 * is a column of base/errors.def.
 */
#pragma once

#include <rlmd/rlmd.h>

/* The sentence for models and users; NULL where there is none. Static. */
const char *stop_words(enum rlmd_stop);

/* What is warned of where an answer was forced for it (ENG-20); NULL: none is forced. Static. */
const char *stop_warning(enum rlmd_stop);
