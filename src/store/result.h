/* store/result.h - reads the rows of a query for whoever asked. */
#pragma once

struct query;

/* Calls the query's owner back: with its fault, or with what its rows say. */
void result_tell(struct query *);
