/*
 * llm/reply.h - an answer as far as it has come: what adapters fill.
 *
 * They read its JSON by tables, and hand over the strings in it. Here these are gathered, bounded
 * and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "llm/event_pattern.h"
#include "llm/request.h"
#include "llm/token_bound.h"

/* One of the texts of an answer. Zero is empty. */
struct reply_part {
	struct bytes bytes;       /* owned; UTF-8, bounded by REPLY_TEXT_MAX */
	struct token_bound bound; /* tokens that the first `bounded` bytes of them are, or more */
	size_t bounded;
	struct token_scan tokens; /* of the first `counted` bytes of them */
	size_t counted;
};

/* A string of an answer of which some is left. */
struct reply_string {
	struct json_view rest;   /* lent */
	struct reply_part *part; /* lent: whose it is */
	bool is_kept;            /* else it is only counted */
};

/* An answer as far as it has come; made by reply_init(), and not moved then. */
struct reply {
	struct reply_part text, thinking;
	int64_t asked;    /* the max_tokens that were asked for; 0: nobody said */
	bool overlong;    /* clearly more came: what is here ends there, and the rest is dropped */
	bool watched;     /* for repetition (reply_period()) */
	bool repeating;   /* it is what came: what is here ends where that began */
	int64_t repeated; /* tokens of what was dropped for it, estimated */
	struct llm_usage usage; /* as far as reported, 0 where not */
	bool usage_seen;        /* the provider reported it, all of it */
	bool usage_absurd;      /* some of what it reported cannot be, and is left out */
	bool finished;          /* the end was seen: what follows is of no interest */
	bool complete;          /* the text is whole; of a stream only the usage may be missing */
	enum llm_finish finish;
	bool refused;
	char refusal[256];            /* why, where the provider says */
	int64_t cost_reported;        /* pico-dollars from the provider itself, or -1 */
	char model[128];              /* as the provider resolved it, or "" */
	bool calling;                 /* a call of a tool has begun, whose arguments are text */
	int64_t call_index;           /* of the call that came last; -1 where none was told */
	struct event_pattern pattern; /* owned: the last event that gave nothing but a text */
	bool pattern_thinks;          /* ... which was thinking */

	/* Of a whole answer, whose bytes stay until all of it was taken: */
	const struct json_ahead *ahead; /* lent, or NULL: what was checked of it before */
	size_t at_once; /* longer strings, and what is behind them, wait for reply_go_on(); 0: none
			   does */
	struct reply_string *waiting; /* owned */
	size_t waiting_count, taken;  /* of them: those that wait no more */
};

enum {
	REPLY_TEXT_MAX = 8 << 20,   /* bytes of text in one answer, and of thinking */
	REPLY_WHOLE_MAX = 16 << 20, /* bytes of a whole, unstreamed body */
	REPLY_EVENT_MAX = 4 << 20,  /* bytes of one event or line of a stream */
};

void reply_init(struct reply *);
void reply_done(struct reply *);

/*
 * Reads the JSON of an answer by a table of what is wanted of it; of so many values at most as are
 * read without holding the loop. A number may be too large for any integer, as one count that
 * cannot be is no reason to lose an answer that is paid for. RLMD_ERROR_BAD_REPLY.
 */
bool reply_scan(const struct reply *, struct rlmd_text, const struct json_scan_field *,
		struct json_view *views, size_t view_count, struct rlmd_error *);
/* As reply_scan(), for each object of an array in such a text; false once `fn` returns false. */
typedef bool reply_element_fn(struct reply *, const struct json_view *views, struct rlmd_error *);
bool reply_scan_each(struct reply *, const struct json_view *array, const struct json_scan_field *,
		     struct json_view *views, size_t view_count, reply_element_fn *,
		     struct rlmd_error *);
/* Appends as much as was asked for; RLMD_ERROR_BAD_REPLY beyond REPLY_TEXT_MAX. */
bool reply_add_text(struct reply *, struct rlmd_text, struct rlmd_error *);
bool reply_add_thinking(struct reply *, struct rlmd_text, struct rlmd_error *);
/* Adds the value of a string; nothing for any other value. A text that is too long to be taken at
 * once waits. */
bool reply_take_text(struct reply *, const struct json_view *, struct rlmd_error *);
bool reply_take_thinking(struct reply *, const struct json_view *, struct rlmd_error *);
/*
 * An array of calls of tools, or of more of their arguments; any part may be missing. Some models
 * call tools though none were offered. A call becomes text, as Mistral's models write it: a line
 * that is "[TOOL_CALLS]python[ARGS]{...}".
 */
bool reply_take_calls(struct reply *, const struct json_view *calls, struct rlmd_error *);
/* Takes about so many bytes of what waits; reply_waits() says whether something is left. */
bool reply_go_on(struct reply *, size_t bytes, struct rlmd_error *);
bool reply_waits(const struct reply *);
/*
 * To be told of each event that is read, by its bytes, of which the strings are views: where all
 * that came of it was one of these (`alone`), the next ones are compared with it. `idle` differs
 * from event to event, and is of no interest.
 */
void reply_expect(struct reply *, struct rlmd_text bytes, bool alone, const struct json_view *text,
		  const struct json_view *thinking, const struct json_view *idle);
/* Takes the strings of events as expected that the bytes begin with, which so need no reading:
 * `ret_taken` bytes of them; none of a reply that has finished. */
bool reply_take_expected(struct reply *, struct rlmd_text bytes, size_t *ret_taken,
			 struct rlmd_error *);
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
 * The usage that the provider will bill: its own count, or an estimate, marked. A server that
 * does not count says zero: no prompt is that, and no text.
 */
/* `input_estimate` counts where the provider did not say all, which reply_counted() tells. */
bool reply_counted(const struct reply *);
struct llm_usage reply_usage(const struct reply *, int64_t input_estimate);

/*
 * Whether a text has come to say the same thing again and again. Small models fall into it: a line,
 * a phrase, a word without end. Only what is the same byte for byte counts, often and for long; a
 * list whose lines differ in a number is none of it.
 */
enum {
	REPLY_REPEAT_LEAST = 4096, /* bytes that must be the same piece over and over, */
	REPLY_REPEAT_TIMES = 8,    /* so often at least */
	REPLY_REPEAT_TAIL = 8192,  /* bytes at a text's end that are looked at: no piece is longer
				than an  eighth of them */
};

/* The length of the piece that the text's end consists of; 0: of none. Linear in REPLY_REPEAT_TAIL.
 */
size_t reply_period(struct rlmd_text);

/* How much of a text whose end has this period stands before the second such piece, or to the end
 * of the line in which that begins. */
size_t reply_period_start(struct rlmd_text, size_t period);

/*
 * A reply as it comes, piece by piece, to whoever wants to see it grow. The pieces together are the
 * reply that is handed over at its end. The provider's key is replaced in them as it is there, so
 * some bytes at the end are kept until it is certain that they begin none, and no character is cut.
 */
/* Embed it; zero is the beginning. NULL `fn`: nobody wants to see it. */
struct reply_delta {
	llm_delta_fn *fn;
	void *owner;     /* lent */
	const char *key; /* lent; or NULL */
	size_t reported; /* bytes of the reply */
};

/* More of it is there, or, `whole`, all. */
void reply_tell(struct reply_delta *, struct rlmd_text reply, bool whole);

/* It begins again: what came of it is void. */
void reply_tell_again(struct reply_delta *);
