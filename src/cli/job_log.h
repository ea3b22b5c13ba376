/*
 * cli/job_log.h - a job's log, of which a CI service takes lines for commands.
 *
 * GitHub's runner (and Gitea's, Forgejo's) obeys "::add-mask::" and the like at the beginning of a
 * line; it, Azure's and TeamCity's obey "##[group]", "##vso[...]", "##teamcity[...]" anywhere. They
 * read what a step prints, and tell of themselves in its environment.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

/* Whether what is written there may be read for commands: nothing of a file is. */
bool job_log_is(int fd);

/* Appends `text` with \x3a and \x5b for the signs that would make a command. */
void job_log_disarm(struct rlmd_text, struct evbuffer *out);
