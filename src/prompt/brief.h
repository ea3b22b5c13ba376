/*
 * prompt/brief.h - what a run tells its model, put together from the prompts.
 *
 * Pure: a view of the run in, text out. System prompts hold nothing that
 * changes while the run lasts; turns say what is left.
 */
#pragma once

#include <event2/buffer.h>
#include <stdbool.h>

#include "budget/budget.h"
#include "budget/estimator.h"
#include "pool/worker.h"
#include "prompt/conversation.h"
#include "prompt/prompt_set.h"
#include "source/context.h"

/* Facts that all runs of one question share, as far as their models are told. All is lent. */
struct brief_facts {
	const struct llm *llm;              /* that knows prices and windows */
	const char *model, *subcall_model;  /* of the root, and of all below */
	const char *const *preload;         /* workers' modules, up to a NULL; or NULL */
	const char *python_version;         /* theirs, as "3.11"; NULL: not known */
	struct rlmd_text functions;         /* of the host's, a line each; empty: none */
	struct rlmd_text setup, first_code; /* the host's, before the root's first turn */
	int64_t max_output;                 /* characters of a block's output */
	int max_parallel;                   /* model calls at once */
	int downgrade; /* per cent of a limit: with less left a sub-run is one call (ENG-14) */
	int64_t call_count, call_ms;                  /* finished llm_query calls and their time */
	int64_t subrun_count, subrun_ms, subrun_cost; /* likewise of sub-runs */
};

struct brief {
	struct brief_facts facts;
	const struct prompt_set *prompts;
	const struct budget *budget;
	const struct context *context;
	struct rlmd_text task;
	int depth;
	int turn;                /* the one that is asked for now, from 1 */
	struct rlmd_text schema; /* that the answer has to satisfy; empty: none */
};

/* A message, and the same message without words that depend on a clock or on money (llm_message).
 */
struct draft {
	struct evbuffer *text, *timeless; /* owned */
};

struct draft draft_new(void);
void draft_free(struct draft *);
/* Adds a prompt that has no values. */
void draft_note(struct draft *, const struct prompt_set *, const char *name);
void draft_say(struct draft *, enum llm_role, struct conversation *); /* and empties it */

/* Tokens of a text that this model is asked about at a time. */
int64_t brief_piece(const struct llm *, const char *model);

void brief_system(const struct brief *, const struct budget *parent, struct draft *out);

/*
 * A run that has inputs begins with a message that names them, a look at them which the model is
 * made to have written, and the first turn, which tells what it has shown. The host's first code
 * follows the look. `code` gets what is to be run; false: there is nothing to look at, and the
 * first turn is a bare one.
 */
void brief_opening(const struct brief *, struct draft *out);
bool brief_demonstration(const struct brief *, struct evbuffer *code, struct draft *out);
void brief_first_turn(const struct brief *, struct rlmd_text observations, struct draft *out);
void brief_first_turn_bare(const struct brief *, struct draft *out);

/* Adds that the answer has to satisfy a schema. */
void brief_schema(const struct prompt_set *, struct rlmd_text schema, struct evbuffer *out);

/* A text without values, as the system prompts "query", "direct" and "forced_short"; lent by the
 * set. */
struct rlmd_text brief_text(const struct prompt_set *, const char *name);

/* A prompt and its context, of which at most `max` characters are told; true: it has more. */
bool brief_operation(const struct prompt_set *, struct rlmd_text input, struct rlmd_text context,
		     int64_t max, struct evbuffer *out);

/* `observations` is what happened since the last turn: outputs of blocks, notes. */
void brief_turn(const struct brief *, struct rlmd_text observations, struct draft *out);
void brief_forced(const struct brief *, const char *reason, struct rlmd_text observations,
		  struct draft *out);
/* Tokens that the shortest of those is estimated at, by the estimator of its model. */
int64_t brief_forced_size(const struct brief *, const struct estimator *);

/* In the place of the first `turns` turns, which their conversation has no room for. */
void brief_summary(const struct prompt_set *, int64_t turns, struct rlmd_text what,
		   struct evbuffer *out);

/* One of the notes without values: "no_code", "cut", "cut_text", "repeated", "serial", "confirm",
 * "invented", "thought"; or "lost", with why, or "form" or "expression", with the
 * answer's.
 */
void brief_note(const struct prompt_set *, const char *name, struct rlmd_text output,
		struct evbuffer *out);
void brief_unknown_variable(const struct prompt_set *, struct rlmd_text name,
			    struct rlmd_text variables, struct evbuffer *out);

/* Which variables there are. */
void brief_variables(struct rlmd_text listing, struct evbuffer *out);

/* The outcome of one block for its model; each text has at most `max_output` characters. */
void brief_block(int64_t number, const struct worker_block *, int64_t max_output,
		 struct evbuffer *out);

/* Head and tail of at most `max` characters, with a note of how much was left out; repaired. */
void brief_clip(struct rlmd_text, int64_t max, struct evbuffer *out);
