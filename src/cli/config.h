/*
 * cli/config.h - the settings of one command: from its arguments, the
 * environment, the configuration files and the defaults, in this order of
 * precedence.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "batch/tenants.h"
#include "cli/option.h"

/* Where a value comes from; a later layer wins. */
enum config_layer {
	CONFIG_DEFAULT,
	CONFIG_SYSTEM_FILE,
	CONFIG_USER_FILE,
	CONFIG_ENVIRONMENT,
	CONFIG_ARGUMENT,
	CONFIG_JOB, /* of one job of a server's */
};

struct config_list {
	char **items; /* owned, NULL-terminated; NULL: empty */
	size_t count;
};

#define CONFIG_TEXT     char *
#define CONFIG_NAME     char *
#define CONFIG_LIST     struct config_list
#define CONFIG_PHRASES  struct config_list
#define CONFIG_COUNT    int64_t
#define CONFIG_NUMBER   double
#define CONFIG_DURATION int64_t
#define CONFIG_MONEY    int64_t
#define CONFIG_SIZE     int64_t
#define CONFIG_SWITCH   bool
#define CONFIG_TALLY    int64_t
#define CONFIG_CHOICE   char *

/* A member for each option; strings are owned. Zero before config_init(). */
struct config {
#define GROUP(heading)
#define OPTION(field, type, ...) CONFIG_##type field;
#include "cli/options.def"
#undef OPTION
#undef GROUP
	enum config_layer layers[OPTION_COUNT];
	struct tenants tenants; /* of the files */
	json_t *notes;          /* owned: sentences about options that go; NULL: none */
};

void config_init(struct config *); /* the defaults */
void config_done(struct config *);
void config_copy(struct config *ret, const struct config *from); /* without tenants and notes */

/*
 * The options of a command's line; `ret_first` is the first argument that is none, after they were
 * moved to the end. RLMD_ERROR_USAGE says what is wrong with which; an option that only other
 * commands have is wrong.
 */
bool config_arguments(struct config *, enum command_id, int argc, char **argv, int *ret_first,
		      struct rlmd_error *);

/* The password in the address of a store is not shown to programs that list processes. */
void config_hide_password(int argc, char **argv);

/* RLMD_MODEL and the like: one variable for each setting. An empty one counts as unset. */
bool config_environment(struct config *, struct rlmd_error *);

/* A sentence for each variable RLMD_* that is no setting, as a new array of strings: most are
 * mistyped. */
json_t *config_stray_environment(void);

/* The file of --config, or else the system's and the user's, where they exist. */
bool config_files(struct config *, struct rlmd_error *);
bool config_file(struct config *, enum config_layer, const char *path, struct rlmd_error *);

/* One value, as if it were written in that layer; without effect where a higher one gave it. */
bool config_set(struct config *, enum config_layer, enum option_id, const char *value,
		struct rlmd_error *);

/* Somebody asked for it, wherever. */
bool config_given(const struct config *, enum option_id);
