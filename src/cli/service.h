/*
 * cli/service.h - a service and its manager: sd_listen_fds(3), sd_notify(3).
 */
#pragma once

#include "base/error.h"

/* The listening socket of that path among those that the manager has opened, which is the caller's
 * to close. -1: there is none, and `err` is of no kind where the manager has opened nothing, else
 * RLMD_ERROR_USAGE. Once: the environment says nothing of them then. */
int service_take_socket(const char *path, struct rlmd_error *err);

/* Tells the manager a state, such as "READY=1", where there is a manager that wants to know. */
void service_notify(const char *state);
