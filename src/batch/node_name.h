/*
 * batch/node_name.h - by what name a process is known in a store, and whether one is dead.
 *
 * A name has the machine's, for people, and what tells this process from all others that there were
 * and will be: its id, when it began, and of what namespace of processes and what start of which
 * machine that is. So who starts again after a kill can prove that its predecessor is dead, and
 * need not wait for that one's leases. Of other machines nothing is known.
 */
#pragma once

#include <stdbool.h>

#include <rlmd/rlmd.h>

enum { NODE_NAME_SIZE = 256 };

/* The name of this process: "host:pid:...". */
void node_name_get(char ret[NODE_NAME_SIZE]);

/* Whether a process of this machine had the name, and is there no more. False: it is, or nobody can
 * know. */
bool node_name_is_dead(struct rlmd_text name);
