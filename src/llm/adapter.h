/*
 * llm/adapter.h - one provider's wire format, as pure functions.
 *
 * An adapter turns a request into the bytes of a body, and the bytes of an
 * answer into a struct reply. It opens nothing, keeps nothing and knows no
 * time; so it is tested, and fuzzed, without a network. One file each, one row
 * each in adapters.def.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "llm/reply.h"
#include "llm/request.h"
#include "net/body.h"

/* A feature that a model was found to refuse; learned from its 400s, one retry each, then
 * remembered. */
enum adapter_quirk {
	QUIRK_NONE = 0,
	QUIRK_OLD_MAX_TOKENS = 1 << 0,    /* openai: send max_tokens, not max_completion_tokens */
	QUIRK_NEW_MAX_TOKENS = 1 << 1,    /* openai: send max_completion_tokens, not max_tokens */
	QUIRK_NO_STREAM_OPTIONS = 1 << 2, /* openai: without stream_options */
	QUIRK_NO_CACHE_CONTROL = 1 << 3,  /* anthropic: without cache_control */
	QUIRK_NO_STREAM = 1 << 4,         /* whole responses only */
	QUIRK_NO_TEMPERATURE = 1 << 5,    /* without a temperature */
	QUIRK_NO_STOP = 1 << 6,           /* without texts that end a reply */
	QUIRK_NO_SCHEMA = 1 << 7,         /* without a schema of the reply */
	QUIRK_NO_SYSTEM = 1 << 8, /* the system prompt stands in the first message of the user */
};

enum adapter_framing { FRAMING_SSE, FRAMING_NDJSON };

/* An event of a stream. All of it is lent. */
struct adapter_event {
	struct rlmd_text name; /* SSE's event field, or empty */
	struct rlmd_text data;
	struct rlmd_text bytes; /* as they came, around the data; empty: the data are a copy */
};

struct adapter {
	const char *name;
	const char *default_model;
	const char *default_base_url;
	const char *const *base_url_env; /* NULL-terminated, the first that is set counts */
	const char *const *key_env;      /* likewise */
	bool key_required;               /* at the default base URL */
	bool local;                      /* costs nothing */
	bool spoken_by_others;           /* many other servers speak it, with models of their own */
	const char *path;                /* appended to the base URL: "/chat/completions" */
	const char *probe_path;       /* likewise: a GET of it costs nothing, and needs the key */
	const char *key_header;       /* printf format with one %s, or NULL */
	const char *const *headers;   /* more than the content type, NULL-terminated; NULL: none */
	enum adapter_framing framing; /* of a stream */
	/* A base URL as users write it, made one to which `path` can be appended; new. NULL: as it
	 * is. */
	char *(*base_url)(const char *given, struct rlmd_error *);
	/* The body. Messages stand before everything that may differ between two turns of one
	 * conversation, so that one request's bytes begin with the last one's. */
	void (*encode)(const struct llm_request *, unsigned quirks, bool stream, struct body *);
	/* One event of a stream. Unknown ones are ignored. */
	bool (*event)(struct reply *, const struct adapter_event *, struct rlmd_error *);
	/* A whole body with status 200. */
	bool (*whole)(struct reply *, struct rlmd_text body, struct rlmd_error *);
};

const struct adapter *adapter_find(const char *name); /* NULL: unknown */
/* The provider that a model's name begins with, if its key is set or it needs none; else that which
 * the environment points to: the only one whose key is set (of those that need none: whose address
 * is), else "ollama". */
const char *adapter_default_name(const char *model);

/* "ollama, openai, anthropic", for messages. */
enum { ADAPTER_NAMES_MAX = 64 };
const char *adapter_names(char out[static ADAPTER_NAMES_MAX]);
const struct adapter *adapter_at(size_t index); /* each of them; NULL: there are no more */

#define ADAPTER(name) extern const struct adapter adapter_##name;
#include "llm/adapters.def"
#undef ADAPTER

/* Functions that adapters share. */

/* The estimated tokens of a message, for any model. */
int64_t adapter_message_tokens(const struct llm_message *);

/* The request's model, or the adapter's default, as "model":"name" */
void adapter_put_model(const struct adapter *, const struct llm_request *, struct body *);
/* {"role":"user","content":"..."} */
void adapter_put_message(const char *role, struct rlmd_text, struct body *);
/* "messages":[...], each under its own role, but for a system prompt that the model refuses. */
void adapter_put_messages(const struct llm_request *, unsigned quirks, struct body *);
/* ,"temperature":0.5,"stop":["..."], with another name for "stop"; what was not asked for, or was
 * refused, is left out. */
void adapter_put_sampling(const struct llm_request *, unsigned quirks, const char *stop,
			  struct body *);
/* The schema that the reply should satisfy, between these, if there is one and it is not refused.
 */
void adapter_put_schema(const struct llm_request *, unsigned quirks, const char *before,
			const char *after, struct body *);
/* Whether a request would be another one by that quirk: what was not sent cannot be left out. */
bool adapter_can_adapt(const struct llm_request *, unsigned quirk);
/* http or https, without credentials, query, odd characters or trailing slashes; new. */
char *adapter_base_url(const char *given, struct rlmd_error *);
