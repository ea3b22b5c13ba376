/*
 * reply/marker.h - the answer in a response's prose: FINAL(value) or FINAL_VAR(name).
 *
 * marker.c has the rules, with what they are for.
 */
#pragma once

#include <rlmd/parser.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "reply/markdown.h"

enum marker_lead { WITHIN_LINE, LEADS_QUOTATION, LEADS_LINE }; /* the later, the higher its rank */

struct marker {
	enum rlmd_answer_kind kind; /* RLMD_ANSWER_NONE: there is none */
	struct range whole;         /* from its F to behind its parenthesis */
	struct rlmd_text argument;  /* lent from the text: trimmed, quotes and all */
	enum marker_lead leads;     /* whether it stands at the start of its line */
};

/*
 * The one that counts. `cut`: the text was to go on. `ret_form`: one that leads its line, but holds
 * dots, blanks or a placeholder instead of an answer; RLMD_ANSWER_NONE: there is none. Linear in
 * the size of the text.
 */
struct marker marker_find(struct rlmd_text, const struct markdown *, bool cut,
			  struct marker *ret_form);

/* Writes the answer to `out`, which has room for the argument. Returns its size. */
size_t marker_value(const struct marker *, char *out);

/* Whether FINAL's argument, trimmed, is an answer: neither dots alone nor, without quotes, the
 * words that stand for one where our prompts show the form. */
bool marker_is_value(struct rlmd_text argument);

/* Whether it names no answer but the variable that models have in mind: result, variable_name. */
bool marker_is_stand_in(struct rlmd_text value);
