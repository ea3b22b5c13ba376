/*
 * store/sqlite.h - a store in a file of SQLite, in a thread of its own.
 *
 * What is in line when the thread looks becomes one transaction, and so one flush of the disk,
 * however many operations that are. Where one of them fails, each gets a transaction of its own.
 * The thread knows nothing but its database and the two lines of queries; signals are not its.
 */
#pragma once

#include "store/database.h"

extern const struct database_kind sqlite_kind; /* `place` is a path */
