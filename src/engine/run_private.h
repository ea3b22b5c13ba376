/*
 * engine/run_private.h - the inside of a run, for its two files.
 *
 * run.c has the states, what each does, and what comes in from outside. run_words.c says what the
 * model is told, and reads what it answers. Only run.c reads or sets the state.
 */
#pragma once

#include "base/error.h"
#include "budget/budget.h"
#include "engine/ask.h"
#include "engine/caller.h"
#include "engine/latency.h"
#include "engine/reserve.h"
#include "engine/run.h"
#include "engine/scope.h"
#include "engine/subcall.h"
#include "llm/exchange.h"
#include "pool/worker.h"
#include "prompt/conversation.h"
#include "prompt/history.h"
#include "reply/response.h"

/* The one event that a state waits for. */
enum run_wake {
	WAKE_NOTHING, /* it is entered at once, from another state */
	WAKE_PERMIT,
	WAKE_WORKER,
	WAKE_MODEL,
	WAKE_CHECK,
};

#define RUN_STATES(X)                                                                              \
	X(ADMIT, admit, PERMIT)     /* get a worker                               */               \
	X(SHOW, show, WORKER)       /* look at the inputs, as if the model had    */               \
	X(SHOWN, shown, WORKER)     /* note what was seen                         */               \
	X(ASK, ask, NOTHING)        /* send the conversation to the model         */               \
	X(READ, read, MODEL)        /* find the code and the answer in its words  */               \
	X(EXEC, exec, WORKER)       /* give the next block to the worker          */               \
	X(QUEUE, queue, PERMIT)     /* get a turn to compute                      */               \
	X(RESTART, restart, PERMIT) /* get another worker                         */               \
	X(FEED, feed, WORKER)       /* note what the block did                    */               \
	X(JUDGE, judge, NOTHING)    /* is there an answer?                        */               \
	X(LOOKUP, lookup, WORKER)   /* take the answer out of a variable          */               \
	X(LIST, list, NOTHING)      /* ask the worker which variables exist       */               \
	X(FORCE, force, WORKER)     /* ask for an answer from what there is       */               \
	X(CLOSE, close, MODEL)      /* take the forced answer                     */               \
	X(CHECK, check, CHECK)      /* hear whether the answer will do            */               \
	X(FINISH, finish, NOTHING)  /* hand over the answer, or the error         */

enum run_state {
#define X(name, fn, wake) RUN_##name,
	RUN_STATES(X)
#undef X
};

struct run {
	struct scope *scope;    /* lent */
	struct budget *budget;  /* owned: our account */
	struct caller caller;   /* we, as our calls know us */
	struct reserve reserve; /* for the forced answer */
	struct timer *alarm;    /* owned: the time for turns is over */
	struct latency latency; /* of our turns: when that is */
	char id[37];
	char asked[EXCHANGE_ID_SIZE]; /* the last turn's request, where exchanges are kept */
	int depth;
	char *task; /* owned */
	size_t task_size;
	char *model;             /* owned: of its turns; NULL: what its depth has */
	struct answer_form form; /* that its answer has to have */
	struct context context;  /* owned */
	struct conversation conversation;
	struct history history;
	struct evbuffer *observations; /* owned: what the model is told next */
	struct evbuffer
		*last_observations; /* owned: what it was told last, for the forced answer */

	struct permit *alive;  /* owned: held; NULL: the root of a task needs none */
	struct permit *permit; /* owned: to compute, held or in line; NULL: we wait for others */
	int open_calls;        /* calls of our blocks that wait for models or sub-runs */
	struct worker *worker; /* owned; NULL: none, or not any more */
	bool worker_idle;
	bool starting;                /* the worker has not been ready yet */
	struct rlmd_error gone;       /* how the last worker ended */
	enum worker_exit exit;        /* of which kind that was */
	struct ask *ask;              /* owned; the model is being asked */
	struct answer_check *check;   /* owned; whether the answer will do is being asked */
	struct subcall_list subcalls; /* owned: the calls of our blocks */

	struct response response; /* the one that is being worked on */
	size_t next_block;
	int64_t block_number; /* of the whole run, from 1 */
	char *look;           /* owned: the block that looks at the inputs, while it runs */
	bool looked;          /* the conversation begins with it */
	bool block_failed;    /* one of this response */
	bool iteration_open;
	bool cut;      /* this response, by its length limit */
	bool repeated; /* it is the one before, word for word */
	bool forgot;   /* a turn was summed up, and the user was told so */
	bool worded;   /* the forced answer had no words in it, and they were asked for */
	bool formed;   /* it had not the form that was asked for, which was told */
	int shrunk;    /* how often this request was too long for the model */
	int turn, idle_turns;
	int lone_calls;  /* of this block, each made when none was open */
	bool overlapped; /* some of them were not */
	bool hinted;     /* the model was told to make one batch of such calls */

	enum run_state state;
	bool driving;
	const struct worker_event *event;     /* lent while driving, else NULL */
	const struct llm_response *reply;     /* likewise */
	const struct rlmd_error *reply_error; /* likewise; NULL: the call succeeded */
	const struct answer_verdict *verdict; /* likewise */

	enum rlmd_stop stop;
	char *reason;     /* owned: why an answer is forced; NULL: none is */
	int64_t deadline; /* of what is asked now, on clock_ms() */
	struct rlmd_error error;
	char *guess; /* owned: an answer that the model is asked to confirm; NULL: none */
	size_t guess_size;
	bool guess_computes; /* it may be an expression, of which the value was meant */
	char *answer;        /* owned; NULL: none */
	size_t answer_size;
	enum answer_source source;
	char *wrong; /* owned: with the last answer that would not do; NULL: there was none */

	run_done_fn *done;
	void *owner;
};

/* Its model and its prompts; lent. */
const char *run_words_model(const struct run *);
const struct prompt_set *run_words_prompts(const struct run *);

/* Each of these adds to the conversation. */
void run_words_say_system(struct run *);
void run_words_say_turn(struct run *);

/* That the model has looked at the inputs; `code` gets the block. False: there is nothing to see.
 */
bool run_words_say_look(struct run *, struct evbuffer *code);
void run_words_say_forced(struct run *);           /* the forced answer's request */
int64_t run_words_forced_size(const struct run *); /* tokens that the shortest is estimated at */

/* The same in fewer words, as the request was too long for the model; false: it cannot be. */
bool run_words_say_less(struct run *);
bool run_words_say_forced_short(struct run *);

/* The forced request once more: for words, after a reply without any; for the form that was asked
 * for, with what was wrong. False: that was done before. */
bool run_words_ask_words(struct run *, struct rlmd_text reply);
bool run_words_ask_form(struct run *);

/* Sends the conversation to the model. */
struct ask *run_words_ask(struct run *, enum llm_kind, int64_t max_tokens, ask_done_fn *);

/* Observations, for the next turn: a note (brief_note()); that FINAL_VAR named none of these
 * variables; which variables there are, for the forced request; what the look has shown; what the
 * block in work has done; that a worker is gone, and with it the variables, once; that calls which
 * the block made one after the other could be one batch, once a run. */
void run_words_note(struct run *, const char *name, struct rlmd_text output);
void run_words_note_unknown(struct run *, struct rlmd_text variables);
void run_words_note_variables(struct run *, struct rlmd_text listing);
void run_words_note_look(struct run *, struct rlmd_text code, const struct worker_block *);
void run_words_note_block(struct run *, const struct worker_block *);
void run_words_note_loss(struct run *);
void run_words_note_hint(struct run *);
void run_words_note_reply(struct run *); /* what of the reply could not be used */

/* Counts a call that a block makes, for the hint. */
void run_words_count_call(struct run *, const struct worker_call *);

/* The reply is read; that of a turn is also recorded, and added to the conversation. */
void run_words_read(struct run *);
void run_words_read_turn(struct run *);

/* Warns that the answer that stands was not confirmed. */
void run_words_warn_unconfirmed(struct run *);

/* Why a forced reply without words is no answer; static. */
const struct rlmd_error *run_words_wordless(const struct run *);

/* Whether the answer's text may mean a value that code has computed: FINAL(n) for the text "n". */
bool run_words_may_mean_value(const struct run *);

/* Where an answer has to have a form: without code and without the words for an answer, the reply
 * is JSON, or words around one fence of it. `ret` is lent from the reply. */
bool run_words_json(const struct run *, struct rlmd_text *ret);
void run_words_give_answer(struct run *, struct rlmd_text, enum answer_source);
void run_words_reject(struct run *); /* the answer is none, and the model is told why */

/* The answer counts: a model's own also where code of the same response failed; a forced one with
 * what must be said about it. */
void run_words_accept(struct run *);

/* Why there is not even a forced answer, of which `cause` tells the last. */
struct rlmd_error run_words_explain_forced(const struct run *, const struct rlmd_error *cause);
