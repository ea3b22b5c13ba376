/* asking.h - a store whose operations are waited for, for tests: each tells what it was told. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "store/store.h"

enum { ASKING_MOST = 64, ASKING_TEXT = 64 };

/* A copy of a result, as much of it as fits. */
struct told {
	int times; /* how often the callback came */
	enum store_fault fault;
	char error[512];
	size_t count;
	struct store_load load;
	struct store_account account;
	struct store_lease lease;
	bool ready;
	int64_t jobs_ready;
	char digest[ASKING_TEXT];
	int states[ASKING_MOST]; /* of lines */
	bool lost[ASKING_MOST];
	struct told_job {
		int64_t id, token, number, attempts, rank, cost, tokens;
		int state;
		bool suspect;
		char custom_id[ASKING_TEXT], tenant[ASKING_TEXT], line[ASKING_TEXT];
		char result[ASKING_TEXT], error[ASKING_TEXT], trace[ASKING_TEXT];
	} jobs[ASKING_MOST];
	struct told_exchange {
		int64_t id, number, cost;
		char key[ASKING_TEXT], bytes[ASKING_TEXT];
		size_t size;
	} exchanges[ASKING_MOST];
	struct store_count counts[ASKING_MOST]; /* without their tenants */
	struct store_node nodes[ASKING_MOST];   /* without their names */
	char node_names[ASKING_MOST][ASKING_TEXT];
	char tenants[ASKING_MOST][ASKING_TEXT]; /* of counts and breakers */
	char providers[ASKING_MOST][ASKING_TEXT];
	char whys[ASKING_MOST][ASKING_TEXT];
};

void on_told(void *told, const struct store_result *);

/* Runs the loop until the callback came. */
void await(struct event_base *, const struct told *);

/* Asks and waits: ASK(base, &told, store_counts, store, batch). Cleared first: no argument may be
 * of what was told before. */
#define ASK(base, to, operation, ...)                                                              \
	do {                                                                                       \
		*(to) = (struct told){0};                                                          \
		operation(__VA_ARGS__, on_told, to);                                               \
		assert_int_equal((to)->times, 0);                                                  \
		await(base, to);                                                                   \
	} while (0)
