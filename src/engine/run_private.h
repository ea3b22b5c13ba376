/*
 * engine/run_private.h - the inside of a run, for its four files.
 *
 * run.c tells the story: the states and what each does. run_words.c says what the model is told,
 * run_reply.c takes what it answers, run_life.c has the beginning, the end and what comes in from
 * outside. Only run.c reads or sets the state.
 */
#pragma once

#include "base/error.h"
#include "budget/budget.h"
#include "engine/ask.h"
#include "engine/caller.h"
#include "engine/job.h"
#include "engine/pace.h"
#include "engine/reserve.h"
#include "engine/run.h"
#include "engine/subcall.h"
#include "llm/exchange.h"
#include "pool/worker.h"
#include "prompt/conversation.h"
#include "prompt/history.h"
#include "reply/response.h"

/* What a state waits for, which enters it: one of them, and nothing else. */
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
	struct rlmd_job *job;   /* lent */
	struct budget *budget;  /* owned: our account */
	struct caller caller;   /* we, as our calls know us */
	struct reserve reserve; /* for the forced answer */
	struct event *alarm;    /* owned: the time for turns is over */
	struct pace pace;       /* of our turns: when that is */
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
	char *answer; /* owned; NULL: none */
	size_t answer_size;
	enum answer_source source;
	char *wrong; /* owned: with the last answer that would not do; NULL: there was none */

	run_done_fn *done;
	void *owner;
};

/* run.c */
bool run_waits_for(const struct run *, enum run_wake);
void run_drive(struct run *, enum run_wake); /* asserts that; the run may be gone after it */
bool run_is_forcing(const struct run *);

/* Gives up what is under way and goes for a forced answer; then drive. */
void run_give_up(struct run *, enum rlmd_stop, int64_t deadline);
void run_force_failed(struct run *); /* the forced answer did not come in time; then drive */

/* run_words.c: what is said is added to the conversation */
const char *run_model(const struct run *);                /* lent */
const struct prompt_set *run_prompts(const struct run *); /* lent */
void run_say_system(struct run *);
void run_say_turn(struct run *);

/* That the model has looked at the inputs; `code` gets the block. False: there is nothing to see.
 */
bool run_say_look(struct run *, struct evbuffer *code);
void run_say_forced(struct run *);           /* the forced answer's request */
int64_t run_forced_size(const struct run *); /* tokens that the shortest is estimated at */

/* The same in fewer words, as the request was too long for the model; false: it cannot be. */
bool run_say_less(struct run *);
bool run_say_forced_short(struct run *);

/* Once more, after a reply without any: for words; false: that was done before. */
bool run_say_forced_for_words(struct run *, struct rlmd_text reply);
bool run_say_forced_for_form(struct run *); /* likewise, of what was wrong with it */

/* For the next turn: a note (brief_note()), or that FINAL_VAR named none of these variables. */
void run_note(struct run *, const char *name, struct rlmd_text output);
void run_note_unknown(struct run *, struct rlmd_text variables);

/* For the forced request: what variables there are. */
void run_tell_variables(struct run *, struct rlmd_text listing);

/* For the first turn: what that look has shown. */
void run_tell_look(struct run *, struct rlmd_text code, const struct worker_block *);

/* For the next turn: what the block has done that is being worked on; that a worker is gone, and
 * with it the variables, once. */
void run_tell_block(struct run *, const struct worker_block *);
void run_tell_loss(struct run *);

/* That calls which the block made one after the other could be one batch; once a run. */
void run_tell_hint(struct run *);
void run_ask_model(struct run *, enum llm_kind, int64_t max_tokens);

/* run_reply.c: the reply is read; that of a turn is also recorded, and added to the conversation */
void run_take_reply(struct run *);
void run_take_turn(struct run *);
void run_tell_reply(struct run *); /* for the next turn: what of it could not be used */

/* Where an answer has to have a form: without code and without the words for an answer, the reply
 * is JSON, or words around one fence of it. `ret` is lent from the reply. */
bool run_reply_json(const struct run *, struct rlmd_text *ret);
void run_give_answer(struct run *, struct rlmd_text, enum answer_source);
bool run_ask_check(struct run *); /* whether that will do; false: any will */
void run_reject(struct run *);    /* it will not: it is none, and the model is told why */

/* It will: a model's own counts, also where code of the same response failed; a forced one counts
 * with what must be said about it. */
void run_take_answer(struct run *);

/* Why there is not even a forced answer, of which `cause` tells the last. */
struct rlmd_error run_explain_forced(const struct run *, const struct rlmd_error *cause);

/* run_life.c */
void run_deliver(struct run *); /* tells how it ended; the run may be gone after it */
void run_start_worker(struct run *);
bool run_needs_worker(const struct run *); /* for the next block, or the answer's variable */
void run_close_iteration(struct run *);    /* the trace has all of it */
void run_execute(struct run *, struct rlmd_text block); /* by the worker, which is idle */
void run_on_worker(void *run, const struct worker_event *);
void run_on_ask(void *run, const struct llm_response *, const struct rlmd_error *);

/* Its worker may compute. False: it is in line for a permit, and is driven when it has one. */
bool run_may_compute(struct run *);
void run_yield(struct run *); /* it waits for a model, and others may compute */
void run_warn(struct run *, const char *text);
void run_warn_wanted(struct run *, struct rlmd_text traceback); /* of a module, once */

/* How long listing the variables may take before a forced answer, at most; and now. */
enum { RUN_LISTING_MS = 500 };
int64_t run_listing_ms(const struct run *);

/* A turn was answered: the time for others is over sooner where that takes long. */
void run_measure(struct run *, const struct llm_response *);

/* Why there is no further turn: it would take what is kept for the answer, or the budget is spent.
 * RLMD_STOP_NONE: there may be one. */
enum rlmd_stop run_blocked(struct run *, struct rlmd_error *);
