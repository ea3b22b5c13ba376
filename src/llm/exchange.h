/*
 * llm/exchange.h - a request and its answer, as they stand in a recording or a script.
 *
 * Both use one form of JSON for answers, so that a recorded one can be cut out and edited into a
 * script. The identity of a request is independent of provider, key and transport.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/llm.h"

enum { EXCHANGE_ID_SIZE = 65 }; /* hexadecimal SHA-256 and a NUL */

/* An answer. Zero is empty. */
struct exchange {
	char *text, *thinking; /* owned; NULL: empty */
	size_t text_size, thinking_size;
	char *model; /* owned; NULL: as asked for */
	enum llm_finish finish;
	struct llm_usage usage;
	bool usage_given;
	bool cached;  /* it was taken from a cache (llm/cache.h), at no cost */
	int64_t cost; /* pico-dollars; -1: not given */
	int64_t delay_ms;
	bool numbered; /* its call had this number */
	int number;
	int64_t order;   /* of a recording's: how many had come before; -1: nobody says */
	bool cancelled;  /* it never came: it was not wanted any more */
	int64_t lowered; /* as of a response (llm/llm.h) */
	char *asked;     /* owned: the last message that was asked; NULL: nobody says */
	size_t asked_size;
	struct rlmd_error error; /* RLMD_ERROR_NONE: an answer */
};

void exchange_done(struct exchange *);

/* A SHA-256 hash in hexadecimal. */
void exchange_hex(const unsigned char hash[static 32], char out[static EXCHANGE_ID_SIZE]);

/* Model, messages, the asked tokens and what there is of sampling, hashed: nothing that a clock or
 * a purse has a part in. */
/* Of any text, likewise. */
void exchange_hash(struct rlmd_text, char out[static EXCHANGE_ID_SIZE]);

/* The request, new, as recordings have it. */
json_t *exchange_request(const struct llm_request *);

void exchange_id(const struct llm_request *, char out[static EXCHANGE_ID_SIZE]);

/* Whether `object` has no field but these (NULL-terminated); RLMD_ERROR_INPUT names one that it
 * has. */
bool exchange_fields(const json_t *object, const char *const *fields, struct rlmd_error *);

/* "response" and "error" of an entry; RLMD_ERROR_INPUT names the field. */
bool exchange_read(const json_t *entry, struct exchange *ret, struct rlmd_error *);

/* Likewise of an entry as JSON, of whose text no tree is made. */
bool exchange_read_answer(struct rlmd_text json, struct exchange *ret, struct rlmd_error *);

/* An entry with nothing but an answer, or why there is none, new. */
json_t *exchange_answer(const struct llm_response *, const struct rlmd_error *);

/* What came of it, as if it came now, but for times; lent by both. */
struct llm_response exchange_response(const struct exchange *, const struct llm_request *);

/* Parts of these, new, and what an error adds to an entry; NULL: nothing. Of the request all but
 * its model and messages, of the answer all but its texts. */
const char *exchange_role(enum llm_role);
json_t *exchange_asked(const struct llm_request *);
json_t *exchange_facts(const struct llm_response *);
void exchange_add_error(json_t *entry, const struct rlmd_error *);
