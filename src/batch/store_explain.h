/* batch/store_explain.h - what a store said of its failure, as an error of ours. */
#pragma once

#include <rlmd/rlmd.h>

struct store_result;

/* RLMD_ERROR_USAGE where the user has to mend something, RLMD_ERROR_INTERNAL otherwise. */
void store_explain(const struct store_result *, struct rlmd_error *);
