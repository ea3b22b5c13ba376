/*
 * llm/exchange.h - a request and its answer, and the JSON that they are in recordings, journals,
 * caches and scripts.
 *
 * All use one form for answers, so that a recorded one can be cut out and edited into a script; a
 * cache alone has the text behind it. The identity of a request is independent of provider, key and
 * transport.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/request.h"

struct body;
struct key_list;

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
	int billed;   /* attempts that the usage is the sum of */
	int64_t cost; /* pico-dollars; -1: not given */
	int64_t delay_ms;
	bool numbered; /* its call had this number */
	int number;
	int64_t order;   /* of a recording's: how many were used before; -1: nobody says */
	bool cancelled;  /* it never came: it was not wanted any more */
	int64_t lowered; /* as of a response (llm/llm.h) */
	char *asked;     /* owned: the last message that was asked; NULL: nobody says */
	size_t asked_size;
	struct rlmd_error error; /* RLMD_ERROR_NONE: an answer */
};

void exchange_done(struct exchange *);

/* --- identity --- */

/* A SHA-256 hash in hexadecimal; and that of a text. */
void exchange_hex(const unsigned char hash[static 32], char out[static EXCHANGE_ID_SIZE]);
void exchange_hash(struct rlmd_text, char out[static EXCHANGE_ID_SIZE]);

/* Model, messages, the tokens that were asked for and what there is of sampling, hashed; not what
 * depends on a clock or a budget. */
void exchange_id(const struct llm_request *, char out[static EXCHANGE_ID_SIZE]);

/* The id and a hash of the request's position, "ID-POSITION"; new. */
char *exchange_name(const struct llm_request *);

/* --- reading --- */

/* Whether `object` has no field but these (NULL-terminated); RLMD_ERROR_INPUT names one that it
 * has. */
bool exchange_fields(const json_t *object, const char *const *fields, struct rlmd_error *);

/* "response" and "error" of an entry; RLMD_ERROR_INPUT names the field. */
bool exchange_read(const json_t *entry, struct exchange *ret, struct rlmd_error *);

/* The response, as if it came now, but for times; lent by both. */
struct llm_response exchange_response(const struct exchange *, const struct llm_request *);

/* --- writing --- */

/* The request, new, as entries have it. */
json_t *exchange_request(const struct llm_request *);

/* An entry with nothing but an answer, or why there is none, new. */
json_t *exchange_answer(const struct llm_response *, const struct rlmd_error *);

/*
 * The same as bytes that end with a line feed, for texts of megabytes. No tree is made of them and
 * no copy: they are quoted into a piece of 64 KiB, keys are taken out of that, and it is written,
 * before the next one. New memory for all of it would take the kernel longer than all else does.
 */

/* A recording but for its last member, which says when it came, new; all is lent until body_free().
 * `err` is NULL for an answer. */
struct body *exchange_entry(const struct llm_request *, const struct llm_response *,
			    const struct rlmd_error *err);

/* All of an answer that came to its end but its text, in one line. */
struct body *exchange_facts(const struct llm_response *);

/*
 * A file that an entry is being written to, of a recording or a cache: these know how it is opened,
 * and how it gets its name. In steps, for many megabytes would hold the loop.
 */
struct exchange_file {
	struct body *entry;          /* owned */
	struct rlmd_text rest;       /* lent: stands behind it, as it is */
	const struct key_list *keys; /* lent: the file must not have them */
	int fd;                      /* owned by the kind of file */
	const char *path;            /* lent: as errors call it */
	/* Is told of each piece that was written; may be NULL. */
	void (*piece)(struct exchange_file *, struct rlmd_text);
	/* All is written: it gets its end and its name. RLMD_ERROR_INPUT. */
	bool (*commit)(struct exchange_file *, struct rlmd_error *);
	void (*free)(struct exchange_file *); /* nothing is left of one without a name */

	char *room;  /* owned: the piece, and behind it ... */
	size_t open; /* ... bytes in which a key may have begun */
};

enum exchange_progress {
	EXCHANGE_MORE,
	EXCHANGE_WHOLE,
	EXCHANGE_FAILED,
};

/* Writes about `bytes` more. RLMD_ERROR_INPUT where it fails. */
enum exchange_progress exchange_write(struct exchange_file *, size_t bytes, struct rlmd_error *);
void exchange_file_free(struct exchange_file *); /* with its entry; NULL is fine */
