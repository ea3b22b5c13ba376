/*
 * llm/adapter.h - one provider's wire format, as pure functions.
 *
 * An adapter turns a request into the bytes of a body, and the bytes of an
 * answer into a struct reply. It opens nothing, keeps nothing and knows no
 * time; so it is tested, and fuzzed, without a network. One file each, one row
 * each in the table of adapter.c.
 */
#pragma once

#include <event2/buffer.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "llm/body.h"
#include "llm/least.h"
#include "llm/likeness.h"
#include "llm/llm.h"

/* What a model was found to refuse; learned from its 400s, one retry each, then remembered. */
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
};

/* An answer as far as it has come. Zero, with the buffers made by reply_init(). */
struct reply {
	struct evbuffer *text, *thinking;        /* owned; UTF-8, bounded by REPLY_TEXT_MAX */
	struct least text_least, thinking_least; /* tokens that they are */
	int64_t asked;    /* the max_tokens that were asked for; 0: nobody said */
	bool overlong;    /* clearly more came: what is here ends there, and the rest is dropped */
	bool watched;     /* for repetition (llm/repeat.h) */
	bool repeating;   /* it is what came: what is here ends where that began */
	int64_t repeated; /* tokens of what was dropped for it, estimated */
	struct llm_usage usage; /* as far as reported, 0 where not */
	bool usage_seen;        /* the provider reported it, all of it */
	bool usage_absurd;      /* some of what it reported cannot be, and is left out */
	bool finished;          /* the end was seen: what follows is of no interest */
	bool complete;          /* the text is whole; of a stream only the usage may be missing */
	enum llm_finish finish;
	bool refused;
	char refusal[256];     /* why, where the provider says */
	int64_t cost_reported; /* pico-dollars from the provider itself, or -1 */
	char model[128];       /* as the provider resolved it, or "" */
	struct likeness like;  /* owned: the last event that gave nothing but text, or thinking */
	bool like_thinking;    /* it gave that */
};

enum {
	REPLY_TEXT_MAX = 8 << 20,   /* bytes of text in one answer, and of thinking */
	REPLY_WHOLE_MAX = 16 << 20, /* bytes of a whole, unstreamed body */
	REPLY_EVENT_MAX = 4 << 20,  /* bytes of one event or line of a stream */
};

void reply_init(struct reply *);
void reply_done(struct reply *);

enum adapter_framing { FRAMING_SSE, FRAMING_NDJSON };

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
	/* One event of a stream. `event` is SSE's event field or empty. Unknown events are ignored.
	 */
	bool (*event)(struct reply *, struct rlmd_text event, struct rlmd_text data,
		      struct rlmd_error *);
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

extern const struct adapter adapter_ollama, adapter_openai, adapter_anthropic;

/* What adapters share. */

/*
 * Reads the JSON of an answer by a table of what is wanted of it; of so many values at most as are
 * read without holding the loop. A number may be too large for any integer, as one count that
 * cannot be is no reason to lose an answer that is paid for. RLMD_ERROR_BAD_REPLY.
 */
bool reply_scan(struct rlmd_text, const struct json_scan_field *, struct json_view *views,
		size_t view_count, struct rlmd_error *);
/* Likewise each object of an array that stands in such a text; false once `fn` says so. */
typedef bool reply_element_fn(struct reply *, const struct json_view *views, struct rlmd_error *);
bool reply_scan_each(struct reply *, const struct json_view *array, const struct json_scan_field *,
		     struct json_view *views, size_t view_count, reply_element_fn *,
		     struct rlmd_error *);
/* Appends as much as was asked for; RLMD_ERROR_BAD_REPLY beyond REPLY_TEXT_MAX. */
bool reply_add_text(struct reply *, struct rlmd_text, struct rlmd_error *);
bool reply_add_thinking(struct reply *, struct rlmd_text, struct rlmd_error *);
/* Likewise what a string stands for; nothing for any other value. */
bool reply_take_text(struct reply *, const struct json_view *, struct rlmd_error *);
bool reply_take_thinking(struct reply *, const struct json_view *, struct rlmd_error *);
/*
 * To be told of each event that is read: where all that came of it was one of these strings
 * (`alone`), the next ones are compared with it. `idle` differs from event to event, and is of no
 * interest.
 */
void reply_expect(struct reply *, struct rlmd_text event, bool alone, const struct json_view *text,
		  const struct json_view *thinking, const struct json_view *idle);
/* Whether an event is the one that was expected, which then needs no reading: its string is taken.
 */
bool reply_take_expected(struct reply *, struct rlmd_text event, bool *ret_ok, struct rlmd_error *);
/* Drops what the answer repeats at its end, if it does; idempotent. */
void reply_end_repetition(struct reply *);
/* Counts output that is of no use here, so that no answer goes on for ever by it. */
void reply_pass(struct reply *, const struct json_view *);
/* Marks the reply as refused; reasons that come in pieces are joined, as far as they fit. */
void reply_refuse(struct reply *, const struct json_view *why);
void reply_take_model(struct reply *, const struct json_view *);
/* False, with what failure_of_body() makes of it. */
bool reply_error(struct rlmd_text body, struct rlmd_error *);
/*
 * A number of tokens. False, with 0, where it is missing or null; and for what no provider can mean
 * (negative, broken, no number, beyond LLM_COUNT_MAX), which is noted as absurd.
 */
bool reply_count(struct reply *, const struct json_view *, int64_t *ret);
/*
 * What the provider will bill: its own word, or an estimate, marked. A server that does not count
 * says zero: no prompt is that, and no text.
 */
/* `input_estimate` counts where the provider did not say all, which reply_counted() tells. */
bool reply_counted(const struct reply *);
struct llm_usage reply_usage(const struct reply *, int64_t input_estimate);
/* What a message counts for, estimated, whatever the model is. */
int64_t adapter_message_tokens(const struct llm_message *);

/* The request's model, or the adapter's default, as "model":"name" */
void adapter_put_model(const struct adapter *, const struct llm_request *, struct body *);
/* {"role":"user","content":"..."} */
void adapter_put_message(const char *role, struct rlmd_text, struct body *);
/* "messages":[...], each under its own role */
void adapter_put_messages(const struct llm_request *, struct body *);
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
