/*
 * store/libpq.h - the functions of PostgreSQL's client library (libpq-fe.h).
 *
 * libpq is opened with the first store in PostgreSQL: a run without one starts without loading it
 * and the libraries that it wants, and a machine without one need not have it.
 */
#pragma once

#include <libpq-fe.h>
#include <rlmd/rlmd.h>

/* clang-format off */
#define LIBPQ_FUNCTIONS(X) \
	X(PQbackendPID) X(PQclear) X(PQconnectPoll) X(PQconnectStartParams) X(PQconninfoFree) \
	X(PQconninfoParse) X(PQconsumeInput) X(PQenterPipelineMode) X(PQerrorMessage) X(PQfinish) \
	X(PQflush) X(PQfreemem) X(PQftype) X(PQgetResult) X(PQgetlength) X(PQgetvalue) X(PQisBusy) \
	X(PQnfields) X(PQnotifies) X(PQntuples) X(PQpipelineSync) X(PQresultErrorField) \
	X(PQresultErrorMessage) X(PQresultStatus) X(PQsendPrepare) X(PQsendQuery) \
	X(PQsendQueryPrepared) X(PQsetNoticeProcessor) X(PQsetnonblocking) X(PQsocket) X(PQstatus)
/* clang-format on */

struct libpq {
#define LIBPQ_MEMBER(name) __typeof__(&name) name;
	LIBPQ_FUNCTIONS(LIBPQ_MEMBER)
#undef LIBPQ_MEMBER
};

/* The library stays open. NULL: RLMD_ERROR_USAGE, it is not here, or too old. */
const struct libpq *libpq_open(struct rlmd_error *err);
