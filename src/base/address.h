/*
 * base/address.h - addresses with a password in them, as "postgresql://user:password@host/name".
 *
 * The password is nobody's business but the server's: not of who lists processes, nor of who reads
 * an error or a log.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Its password, and that of a query (password=...), become '*', in place. An address without one,
 * and what is no address, stays as it is. */
void address_hide(char *address);

bool address_has_password(const char *address);

/* A password that could be taken for another part of the address would be told in errors about that
 * part: RLMD_ERROR_USAGE. */
bool address_check(const char *address, struct rlmd_error *);
