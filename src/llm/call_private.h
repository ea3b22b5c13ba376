/*
 * llm/call_private.h - the inside of a call, for its three files.
 *
 * call.c tells the story: the attempts, and what comes of them. call_whole.c reads answers that
 * are no streams. call_failed.c judges attempts that failed.
 */
#pragma once

#include <event2/buffer.h>

#include "base/bytes.h"
#include "base/json_ahead.h"
#include "llm/call.h"
#include "llm/custom.h"
#include "llm/delta.h"
#include "llm/stream.h"

enum { CALL_HEAD_MAX = 80 }; /* bytes of nonsense that are shown */

struct call {
	struct rlmd_provider *provider;    /* lent */
	const struct llm_request *request; /* lent */
	struct warnings *warnings;         /* lent: of whoever asks */
	llm_retry_fn *may_retry;
	llm_wait_fn *on_wait;
	llm_done_fn *fn;
	void *owner; /* lent */

	struct event *timer;            /* owned: the gate opens, or a linger is over */
	struct body *outgoing;          /* owned: while it is measured, before the transfer */
	struct http_transfer *transfer; /* owned; NULL between attempts */
	struct custom_request *custom;  /* owned, in its place; NULL likewise */
	struct stream *stream;          /* owned; NULL while whole */
	struct reply reply;             /* owned: of this attempt */
	struct delta delta;             /* what was told of it */
	struct bytes body;              /* owned: whole, or of an error */
	struct json_ahead ahead;        /* owned: what was checked of it */
	int status;                     /* of this attempt; 0: none came */
	bool streaming;
	bool bad_before; /* an earlier attempt's answer was nonsense */
	bool fresh;      /* an earlier attempt's connection broke: no kept one for the next */
	char head[CALL_HEAD_MAX]; /* the answer's first bytes */
	size_t received;          /* of the answer, by this attempt */
	unsigned quirks;          /* enum adapter_quirk, in force */
	unsigned tried;           /* likewise, adapted to during this call */
	int64_t started, attempt_started;
	int64_t input_estimate; /* 0: not counted yet */
	int billed;             /* of the attempts */
	int attempts;           /* begun */
	int failures;           /* of them; without those that only taught a quirk, or were busy */
	int busy_attempts;      /* of them */
	int64_t busy_since;     /* the end of the first of these */
	bool resting;           /* its place is free until it is asked for again */
	const char *busy;       /* what this attempt's provider is busy with; or NULL */
	int64_t retry_after_ms; /* that a host wishes; 0: nothing */

	struct llm_usage usage; /* of the attempts that are over */
	int64_t cost;
	bool cost_unknown;
};

/* call.c */
double call_jitter(void);       /* from 0 to 1 */
void call_admit(struct call *); /* the next attempt, as soon as the gate lets it start */

/* Warns of those by which a request loses something that was wished. */
void call_tell_quirks(const struct call *, unsigned quirks);

/* What a server says may hold the key that it was sent. */
void call_redact(const struct call *, char *);

/* Ends the attempt: what it cost is counted, what it held is gone; the answer only if asked. */
void call_close_attempt(struct call *);
void call_reset_attempt(struct call *);

/* NULL: it succeeded. The call is gone then. */
void call_finish(struct call *, const struct rlmd_error *);

/* An answer was read, with an error or without; `err` is what ended its bytes, or NULL. */
void call_judge(struct call *, const struct rlmd_error *error, const struct rlmd_error *err);

/* call_whole.c: bytes of a body that is kept. What there is too much of it stays in `data`. */
void call_keep(struct call *, struct evbuffer *data);
/* The body of an answer has come: reads it, in as many turns of the loop as that takes. */
void call_read_whole(struct call *);
void call_take_whole(struct call *); /* in each of them */
void call_drop_whole(struct call *);

/* call_failed.c: whether the error is that of an answer that had begun. */
bool call_broke_off(const struct call *, const struct rlmd_error *);

/* call_failed.c: until it goes on; before the next attempt, while its place is free; and whether it
 * has that again. */
void call_wait(struct call *, int64_t ms);
void call_rest(struct call *, int64_t ms);
bool call_has_rested(struct call *);

/* call_failed.c: again later, or that is the call's end. Nothing may follow one of these. */
void call_failed(struct call *, const struct rlmd_error *, bool retry);
void call_failed_in_answer(struct call *, struct rlmd_error *);
void call_failed_with_status(struct call *);
void call_failed_nonsense(struct call *, const char *why);
void call_failed_custom(struct call *, const struct rlmd_error *);
