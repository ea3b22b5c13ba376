#include "store/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"

enum { DIGITS = 16 };

static void add_number(struct digest *digest, int64_t number)
{
	char text[24];
	int size = snprintf(text, sizeof text, "%" PRId64, number);

	digest_add(digest, text_from(text, (size_t)size));
}

static int64_t end(struct digest *digest)
{
	char hex[DIGEST_SIZE];
	int64_t sum;

	digest_end(digest, hex);
	hex[DIGITS] = '\0';
	sum = (int64_t)(strtoull(hex, NULL, 16) >> 1);
	return sum ? sum : 1;
}

static int64_t of_job(const struct store_job *job, const char *kind, struct rlmd_text text)
{
	struct digest *digest = digest_new();

	digest_add(digest, text_of(kind));
	add_number(digest, job->number);
	digest_add(digest, job->custom_id);
	digest_add(digest, job->tenant);
	digest_add(digest, text);
	return end(digest);
}

int64_t checksum_of_name(const struct store_job *job)
{
	return of_job(job, "name", job->digest);
}

int64_t checksum_of_line(const struct store_job *job)
{
	return of_job(job, "line", job->line);
}

int64_t checksum_of_end(int64_t job, enum store_state state, const struct store_outcome *outcome)
{
	struct digest *digest = digest_new();

	digest_add(digest, text_of("end"));
	add_number(digest, job);
	add_number(digest, state);
	digest_add(digest, outcome->result);
	digest_add(digest, outcome->error);
	add_number(digest, outcome->cost);
	add_number(digest, outcome->tokens);
	digest_add(digest, outcome->trace);
	return end(digest);
}

int64_t checksum_of_exchange(int64_t job, const struct store_exchange *exchange)
{
	struct digest *digest = digest_new();

	digest_add(digest, text_of("exchange"));
	add_number(digest, job);
	digest_add(digest, exchange->key);
	add_number(digest, exchange->number);
	digest_add(digest, exchange->bytes);
	add_number(digest, exchange->cost);
	add_number(digest, exchange->tokens);
	return end(digest);
}

bool checksum_is(int64_t kept, int64_t sum)
{
	return !kept || kept == sum;
}
