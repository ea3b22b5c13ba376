/*
 * Which FINAL(...) is the answer, and where does it end?
 *
 * A model writes the marker by hand, into prose, with anything inside. So:
 *
 * 1. No marker stands in a fenced block, in an inline code span, or behind a
 *    letter, digit or underscore of ASCII. (Other scripts do without spaces.)
 * 2. It ends where its parenthesis is closed. Parentheses do not count in
 *    strings, in fenced blocks, in code spans, and behind a backslash. A marker
 *    inside another's argument is part of that.
 * 3. A quote begins a string only where code would have a value: behind one of
 *    ( [ { , = : + and blanks; and only if it has an end. Between two letters a
 *    quote is an apostrophe. A quote behind a blank and in front of a letter,
 *    within a string of the same quotes, begins a quotation in it. The end of a
 *    string in single quotes must stand in front of one of ) ] } , : + or the
 *    end, or it is an apostrophe again ("the dogs' bowls"). A parenthesis of ordinary text has no
 *    partner: of a smiley, of a label ("1)" at the start of a line), of an interval ("[0, 1)").
 * 4. Where the parenthesis stays open by these rules, every parenthesis outside
 *    of fenced blocks counts. Where it is open even so, the rest of the text is
 *    the argument: if it is not cut, holds no fenced block, and has no complete
 *    marker of the same rank. Where it leads its line, and one parenthesis too many closes
 *    at the end of the line behind it ("FINAL(1) Paris 2) London)"), it ends with that one.
 * 5. A marker within a sentence does not reach into a fenced block; one that
 *    leads its line may hold some, which are then text and not run.
 * 6. An argument of blanks alone, of dots alone, or of the words that stand for
 *    an answer in our prompts (below), is talk about the marker.
 *    FINAL("") is the empty answer, and in quotes those words are one. FINAL_VAR
 *    wants one identifier, in quotes or not.
 * 7. A marker that leads its line (behind Markdown's decoration) comes before one in a
 *    quotation (>), and that before one within a sentence; among equals the last counts. One
 *    that ends a sentence which takes something back ("Wait, ...") leads its line, too.
 * 8. Other spellings (FinalVar, final_answer) are words of other languages too:
 *    one counts only where it leads its line and nothing follows it there.
 *
 * To stay linear on any input, ends are not searched for marker by marker: one
 * pass from the back over all parentheses and quotes finds, for each, the next
 * parenthesis behind it that closes what is open there.
 */
#include "reply/marker.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define NONE           UINT32_MAX
#define VARIABLE_MAX   256 /* bytes of an identifier: what a worker can be asked for */
#define TRIPLE         3   /* quotes in a row that delimit a long string */
#define LABEL_MAX      3   /* digits */
#define INDENT_MAX     16  /* blanks before a label */
#define INTERVAL_MAX   40  /* bytes within its brackets */
#define TAKEN_BACK_MAX 120 /* bytes before a marker */

enum role { OPENS_WITHIN, CLOSES, APOSTROPHE };

/* A parenthesis, or quotes. Indexes of tokens are NONE where there is none. */
struct token {
	uint32_t at;
	uint32_t string_end; /* of quotes: the token that ends a string which begins behind it */
	uint32_t end;        /* the parenthesis that closes what is open here, by rules 2 and 3 */
	uint32_t plain_end;  /* the same by rule 4 */
	char kind;           /* ( ) ' " or, for three quotes in a row, s d */
	bool weak;           /* of parentheses: in a code span, behind a backslash, or alone */
	bool begins;         /* of quotes: a string may begin here */
	bool final;          /* of quotes: a string may end here */
	enum role role;      /* of quotes: what they are within a string of their kind */
};

struct markers {            /* found so far */
	struct marker best; /* complete */
	struct marker open; /* the first that nothing closes: the rest of the text */
	struct marker form; /* the last that leads its line and has no value: rule 6 */
};

struct tokens {
	struct rlmd_text text;
	const struct markdown *markdown; /* lent */
	struct token *tokens;            /* owned; one more than `count`, all NONE */
	size_t count;
	size_t fence, span, token; /* cursors: the first that ends behind where we are */
};

static bool is_ascii_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool is_word(char c)
{
	return is_ascii_word(c) || (unsigned char)c >= 0x80;
}

static char byte_at(struct rlmd_text text, size_t at)
{
	return at < text.size ? text.bytes[at] : '\0';
}

static size_t skip_spaces(struct rlmd_text text, size_t at)
{
	while (at < text.size && text_is_space(text.bytes[at]))
		at++;
	return at;
}

static enum role role_of(struct rlmd_text text, size_t at)
{
	char before = at ? text.bytes[at - 1] : ' ', after = byte_at(text, at + 1);

	if (is_word(before) && is_word(after))
		return APOSTROPHE;
	if (is_word(after) && (text_is_space(before) || text_is_one_of(before, "([{'\"")))
		return OPENS_WITHIN;
	return CLOSES;
}

/* " :)", " ;-(" and the like; what opens stands before no word. */
static bool is_smiley(struct rlmd_text text, size_t at)
{
	size_t eyes = at && text.bytes[at - 1] == '-' ? at - 1 : at;

	return eyes > 1 && text_is_one_of(text.bytes[eyes - 1], ":;") &&
	       text_is_space(text.bytes[eyes - 2]) &&
	       (text.bytes[at] == ')' || !is_word(byte_at(text, at + 1)));
}

/* "1)" or "a)", with a blank behind it, at the start of a line. */
static bool is_label(struct rlmd_text text, size_t at)
{
	size_t start = at;

	if (!text_is_one_of(byte_at(text, at + 1), " \t"))
		return false;
	while (start && at - start < LABEL_MAX && text_is_digit(text.bytes[start - 1]))
		start--;
	if (start == at && at && is_ascii_word(text.bytes[at - 1]))
		start--;
	if (start == at)
		return false;
	for (size_t i = 0; i < INDENT_MAX && start && text_is_one_of(text.bytes[start - 1], " \t");
	     i++)
		start--;
	return start && text.bytes[start - 1] == '\n';
}

/* The round end of "[0, 1)" or "(0, 1]". */
static bool is_interval(struct rlmd_text text, size_t at)
{
	bool closes = text.bytes[at] == ')', comma = false;

	for (size_t i = 1; i <= INTERVAL_MAX && (closes ? i <= at : at + i < text.size); i++) {
		char c = text.bytes[closes ? at - i : at + i];

		if (c == (closes ? '[' : ']'))
			return comma;
		if (text_is_one_of(c, "()[]\n"))
			return false;
		comma |= c == ',';
	}
	return false;
}

/* Rule 3, of parentheses. */
static bool is_alone(struct rlmd_text text, size_t at)
{
	return is_smiley(text, at) || is_interval(text, at) ||
	       (text.bytes[at] == ')' && is_label(text, at));
}

static void add_token(struct tokens *scan, struct token token)
{
	scan->tokens = array_grow(scan->tokens, scan->count + 1, sizeof *scan->tokens);
	scan->tokens[scan->count++] = token;
}

/* Quotes in a row at `at`. Returns how many; six and more are a string and its end. */
static size_t add_quotes(struct tokens *scan, size_t at, char before)
{
	struct rlmd_text text = scan->text;
	char quote = text.bytes[at], next;
	size_t end = at;
	struct token token = {.begins = text_is_one_of(before, "([{,=:+")};

	while (end < text.size && text.bytes[end] == quote)
		end++;
	next = byte_at(text, skip_spaces(text, end));
	token.final = quote == '"' || !next || text_is_one_of(next, ")]},:+");
	if (end - at >= TRIPLE) {
		token.at = (uint32_t)at;
		token.kind = quote == '"' ? 'd' : 's';
		token.role = CLOSES;
		if (end - at < 2 * TRIPLE)
			add_token(scan, token);
		return end - at;
	}
	for (size_t i = at; i < end; i++) {
		token.at = (uint32_t)i;
		token.kind = quote;
		token.role = role_of(text, i);
		add_token(scan, token);
		token.begins = false;
	}
	return end - at;
}

static void read_tokens(struct tokens *scan, size_t from)
{
	struct rlmd_text text = scan->text;
	const struct markdown *md = scan->markdown;
	size_t fence = 0, span = 0;
	char before = '\n'; /* the last byte that is no space */

	for (size_t at = from, size; at < text.size; at += size) {
		char c = text.bytes[at];
		bool in_span;

		while (fence < md->fence_count && md->fences[fence].whole.end <= at)
			fence++;
		while (span < md->span_count && md->spans[span].end <= at)
			span++;
		in_span = span < md->span_count && md->spans[span].start <= at;
		size = 1;
		if (fence < md->fence_count && md->fences[fence].whole.start <= at) {
			size = md->fences[fence].whole.end - at;
			continue;
		}
		if (c == '(' || c == ')') {
			add_token(scan, (struct token){.at = (uint32_t)at,
						       .kind = c,
						       .weak = in_span || before == '\\' ||
							       is_alone(text, at)});
		} else if ((c == '"' || c == '\'') && !in_span && before != '\\') {
			size = add_quotes(scan, at, before);
		}
		if (c == '\\' && before == '\\')
			c = '/'; /* an escaped backslash escapes nothing */
		if (!text_is_space(c))
			before = c;
		else if (before == '\\')
			before = '/';
	}
}

/* Finds `string_end` of all quotes: rule 3. */
static void match_quotes(struct tokens *scan)
{
	static const char kinds[] = "'\"sd";
	uint32_t next[sizeof kinds]; /* of each kind, the first that ends a string begun before */

	memset(next, 0xff, sizeof next);
	for (size_t i = scan->count; i--;) {
		struct token *token = &scan->tokens[i];
		const char *kind = strchr(kinds, token->kind);
		uint32_t *end;

		if (!kind)
			continue;
		end = &next[kind - kinds];
		token->string_end = *end;
		if (token->role == CLOSES)
			*end = (uint32_t)i;
		else if (token->role == OPENS_WITHIN && *end != NONE)
			*end = scan->tokens[*end].string_end;
	}
}

/* Finds `end` and `plain_end` of all tokens: rules 2 and 4. */
static void match_parentheses(struct tokens *scan)
{
	struct token *tokens = scan->tokens;

	tokens[scan->count] = (struct token){.end = NONE, .plain_end = NONE};
	for (size_t i = scan->count; i--;) {
		struct token *token = &tokens[i], *next = token + 1;
		uint32_t string_end = token->string_end;

		token->end = next->end;
		token->plain_end = next->plain_end;
		if (token->kind == ')') {
			token->plain_end = (uint32_t)i;
			if (!token->weak)
				token->end = (uint32_t)i;
		} else if (token->kind == '(') {
			if (next->plain_end != NONE)
				token->plain_end = tokens[next->plain_end + 1].plain_end;
			if (!token->weak && next->end != NONE)
				token->end = tokens[next->end + 1].end;
		} else if (token->begins && string_end != NONE && tokens[string_end].final) {
			token->end = tokens[string_end + 1].end;
		}
	}
}

/* How the marker is written, longest first where one begins like another. */
static const struct spelling {
	const char *opening;
	enum rlmd_answer_kind kind;
	bool alone; /* rule 8 */
} spellings[] = {
	{"FINAL_VAR(", RLMD_ANSWER_VARIABLE, false},
	{"FINAL(", RLMD_ANSWER_DIRECT, false},
	{"FinalVar(", RLMD_ANSWER_VARIABLE, true},
	{"FINALVAR(", RLMD_ANSWER_VARIABLE, true},
	{"final_var(", RLMD_ANSWER_VARIABLE, true},
	{"Final(", RLMD_ANSWER_DIRECT, true},
	{"FINAL_var(", RLMD_ANSWER_VARIABLE, true},
	{"final_answer(", RLMD_ANSWER_DIRECT, true}, /* smolagents */
	{"SUBMIT(", RLMD_ANSWER_DIRECT, true},       /* DSPy */
};

static const struct spelling *spelling_of(struct rlmd_text text)
{
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
		if (text_starts(text, spellings[i].opening))
			return &spellings[i];
	return NULL;
}

/* The first from `from` on, whatever stands around it; the text's size: there is none. */
static size_t find_word(struct rlmd_text text, size_t from)
{
	for (; from < text.size; from++)
		if (text_is_one_of(text.bytes[from], "FfS") &&
		    spelling_of(text_slice(text, from, text.size)))
			break;
	return from;
}

/* Where the next marker is that rule 1 admits; the text's size where there is none. */
static size_t next_word(struct tokens *scan, size_t from)
{
	const struct markdown *md = scan->markdown;
	struct rlmd_text text = scan->text;

	for (; (from = find_word(text, from)) < text.size; from++) {
		while (scan->fence < md->fence_count && md->fences[scan->fence].whole.end <= from)
			scan->fence++;
		while (scan->span < md->span_count && md->spans[scan->span].end <= from)
			scan->span++;
		if ((scan->fence == md->fence_count ||
		     md->fences[scan->fence].whole.start > from) &&
		    (scan->span == md->span_count || md->spans[scan->span].start > from) &&
		    (!from || !is_ascii_word(text.bytes[from - 1])))
			return from;
	}
	return text.size;
}

static enum marker_lead lead_of(struct rlmd_text text, size_t at)
{
	enum marker_lead lead = LEADS_LINE;

	for (; at && text_is_one_of(text.bytes[at - 1], " \t>*#-+"); at--)
		if (text.bytes[at - 1] == '>')
			lead = LEADS_QUOTATION;
	return !at || text.bytes[at - 1] == '\n' ? lead : WITHIN_LINE;
}

/* Rule 8: nothing but a full stop and Markdown's decoration follows on the line. */
static bool ends_line(struct rlmd_text text, size_t at)
{
	while (text_is_one_of(byte_at(text, at), " \t\r.*_"))
		at++;
	return !byte_at(text, at) || text.bytes[at] == '\n';
}

/* FINAL_VAR( ... ) whose parenthesis is open at `at`. */
static bool read_variable(struct rlmd_text text, size_t at, bool cut, struct marker *marker)
{
	size_t start = skip_spaces(text, at), end;
	char quote = byte_at(text, start);

	quote = text_is_one_of(quote, "'\"`") ? quote : '\0';
	start += quote != '\0';
	for (end = start; end < text.size && is_word(text.bytes[end]);)
		end++;
	if (end == start || end - start > VARIABLE_MAX ||
	    text_is_one_of(text.bytes[start], "0123456789"))
		return false;
	marker->argument = text_from(text.bytes + start, end - start);
	if (!quote)
		end = skip_spaces(text, end);
	else if (byte_at(text, end) == quote)
		end = skip_spaces(text, end + 1);
	else
		return false;
	marker->kind = RLMD_ANSWER_VARIABLE;
	marker->whole.end = end < text.size ? end + 1 : end;
	return end < text.size ? text.bytes[end] == ')' : !cut;
}

/* FINAL(answer="20") has the argument "20". */
static struct rlmd_text without_keyword(struct rlmd_text argument)
{
	static const char *const keywords[] = {"answer", "final_answer", "value", "result", "text"};

	for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
		size_t at = strlen(keywords[i]);

		if (!text_starts(argument, keywords[i]))
			continue;
		at = skip_spaces(argument, at);
		if (byte_at(argument, at) == '=' && byte_at(argument, at + 1) != '=')
			return text_trim(text_slice(argument, at + 1, argument.size));
	}
	return argument;
}

/* Those of share/prompts, which tests/prompt/test_prompts.py compares, and what models make of
 * them. */
static const char *const placeholders[] = {
	"the answer",         "your answer",       "answer",     "final answer",
	"the final answer",   "your final answer", "value",      "the value",
	"your answer here",   "answer here",       "the result", "todo",
	"insert answer here",
};

/* Names that stand for a variable, where there is none of that name. */
static const char *const stand_ins[] = {
	"result",      "results",      "final_result",  "answer_here", "final_answer",
	"your_answer", "output",       "variable",      "var_name",    "variable_name",
	"the_answer",  "answer_value", "answer_string",
};

bool marker_is_stand_in(struct rlmd_text value)
{
	return array_has(stand_ins, sizeof stand_ins / sizeof *stand_ins, value);
}

static struct rlmd_text without_brackets(struct rlmd_text text)
{
	static const char pairs[] = "<>[]{}";

	for (size_t i = 0; pairs[i]; i += 2)
		if (text.size > 1 && text.bytes[0] == pairs[i] &&
		    text.bytes[text.size - 1] == pairs[i + 1])
			return text_trim(text_slice(text, 1, text.size - 1));
	return text;
}

bool marker_is_value(struct rlmd_text argument)
{
	struct rlmd_text words = without_brackets(argument);
	bool bracketed = words.size < argument.size && argument.bytes[0] == '<';

	if (!words.size && !bracketed)
		return argument.size; /* [] and {} */
	while (words.size && text_is_one_of(words.bytes[0], "._?` "))
		words = text_slice(words, 1, words.size);
	while (words.size && text_is_one_of(words.bytes[words.size - 1], "._?` "))
		words.size--;
	return words.size && !text_equal(argument, "\xe2\x80\xa6") &&
	       !(bracketed && !memchr(words.bytes, '<', words.size) &&
		 (text_starts_caseless(words, "the answer") ||
		  text_starts_caseless(words, "your answer"))) &&
	       !array_has(placeholders, sizeof placeholders / sizeof *placeholders, words);
}

/* Whether the text begins and ends with these, and has none of them in between. */
static bool is_enclosed(struct rlmd_text text, const char *open, const char *close)
{
	size_t size = strlen(open);
	struct rlmd_text inner;

	if (text.size <= 2 * size || !text_starts(text, open) ||
	    memcmp(text.bytes + text.size - size, close, size) != 0)
		return false;
	inner = text_slice(text, size, text.size - size);
	return !text_find(inner, open) && !text_find(inner, close);
}

/* Whether all of `text` is one string in quotes, by the rules for strings; how many quotes. */
static size_t string_quotes(struct rlmd_text text)
{
	char quote = byte_at(text, 0);
	size_t quotes = 0, depth = 1;

	if (is_enclosed(text, "\xe2\x80\x9c", "\xe2\x80\x9d"))
		return strlen("\xe2\x80\x9c");
	if (quote != '"' && quote != '\'')
		return 0;
	while (byte_at(text, quotes) == quote)
		quotes++;
	if (quotes == text.size)
		return quotes == 2 * TRIPLE ? TRIPLE : quotes == 2;
	if (quotes >= TRIPLE) {
		char fence[TRIPLE + 1] = {quote, quote, quote};
		struct rlmd_text inside = text_from(text.bytes + quotes, text.size - quotes);
		const char *end = text_find(inside, fence);

		if (!end)
			return 0;
		while (end < text.bytes + text.size && *end == quote)
			end++;
		return end == text.bytes + text.size ? TRIPLE : 0;
	}
	for (size_t i = 1; i < text.size && depth; i++) {
		if (text.bytes[i] == '\\') {
			i++;
		} else if (text.bytes[i] == quote) {
			enum role role = role_of(text, i);

			depth += role == OPENS_WITHIN;
			depth -= role == CLOSES;
			if (!depth)
				return i + 1 == text.size;
		}
	}
	return 0;
}

/* Without what belongs to Markdown or to Python, and not to the value: `42`, r"42", "42", */
static struct rlmd_text plain_argument(struct rlmd_text text)
{
	struct rlmd_text rest = text;

	if (is_enclosed(text, "`", "`"))
		return text_trim(text_slice(text, 1, text.size - 1));
	if (text.size && text.bytes[text.size - 1] == ',')
		rest = text_trim(text_slice(text, 0, text.size - 1));
	if (text_is_one_of(byte_at(rest, 0), "rRbBuU"))
		rest = text_slice(rest, 1, rest.size);
	return string_quotes(rest) ? rest : text;
}

static bool set_value(struct marker *marker, struct rlmd_text text, size_t start, size_t end)
{
	struct rlmd_text argument = text_trim(text_from(text.bytes + start, end - start));

	marker->kind = RLMD_ANSWER_DIRECT;
	marker->argument = plain_argument(without_keyword(argument));
	return marker_is_value(marker->argument);
}

/* Whether a fenced block begins between the cursor and `end`. */
static bool holds_fence(const struct tokens *scan, size_t end)
{
	return scan->fence < scan->markdown->fence_count &&
	       scan->markdown->fences[scan->fence].whole.start < end;
}

/* The parenthesis that closes the one at `open`; NONE where none does. */
static uint32_t closing(struct tokens *scan, size_t open, bool leads)
{
	const struct token *inside;
	uint32_t end;

	while (scan->token < scan->count && scan->tokens[scan->token].at < open)
		scan->token++;
	assert(scan->token < scan->count && scan->tokens[scan->token].at == open);
	inside = &scan->tokens[scan->token + 1];
	end = inside->end == NONE ? inside->plain_end : inside->end;
	if (end == NONE)
		return NONE;
	end = scan->tokens[end].at;
	return !leads && holds_fence(scan, end) ? NONE : end;
}

/* Rule 4: the last parenthesis of the line behind the one at `end`; `end`: that counts. */
static uint32_t at_line_end(struct rlmd_text text, size_t start, uint32_t end)
{
	struct rlmd_text rest = text_slice(text, end + 1U, text_line_end(text, end));
	size_t open = 0, closed = 0;
	bool words = false;

	rest = text_trim(rest);
	while (rest.size && text_is_one_of(rest.bytes[rest.size - 1], ".*_"))
		rest.size--;
	if (rest.size < 2 || rest.bytes[rest.size - 1] != ')' ||
	    string_quotes(text_trim(text_slice(text, start, end))))
		return end;
	for (size_t i = 0; i < rest.size; i++) {
		open += rest.bytes[i] == '(';
		closed += rest.bytes[i] == ')';
		words |= is_word(rest.bytes[i]) || text_is_one_of(rest.bytes[i], "'\"`");
	}
	rest.size--;
	if (closed <= open || !words || rest.bytes[rest.size - 1] == ')' ||
	    is_smiley(text, (size_t)(rest.bytes + rest.size - text.bytes)) ||
	    text_find(rest, "FINAL"))
		return end;
	return (uint32_t)(rest.bytes + rest.size - text.bytes);
}

/* FINAL( ... ) whose parenthesis is at `at`. True: it is complete. */
static bool read_direct(struct tokens *scan, size_t at, bool cut, struct marker *marker,
			struct markers *found)
{
	struct rlmd_text text = scan->text;
	uint32_t end = closing(scan, at, marker->leads);

	if (end != NONE) {
		if (marker->leads)
			end = at_line_end(text, at + 1, end);
		marker->whole.end = end + 1U;
		if (set_value(marker, text, at + 1, end))
			return true;
		if (marker->leads)
			found->form = *marker;
	} else if (!found->open.kind && !cut && !holds_fence(scan, text.size) &&
		   set_value(marker, text, at + 1, text.size)) {
		marker->whole.end = text.size;
		found->open = *marker;
	}
	return false;
}

/* Rule 7: whether the words before it in its line take back what was said. */
static bool takes_back(struct rlmd_text text, size_t at)
{
	static const char *const words[] = {"wait",         "actually", "correction",
					    "correct that", "mistake",  "sorry"};
	size_t start = at;

	while (start && at - start < TAKEN_BACK_MAX && text.bytes[start - 1] != '\n')
		start--;
	for (; start < at; start++)
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			if (text_starts_caseless(text_slice(text, start, at), words[i]))
				return true;
	return false;
}

static void scan_markers(struct tokens *scan, bool cut, struct markers *found)
{
	struct rlmd_text text = scan->text;

	for (size_t at = 0; (at = next_word(scan, at)) < text.size;) {
		const struct spelling *spelling = spelling_of(text_slice(text, at, text.size));
		struct marker marker = {.whole = {at, 0}, .leads = lead_of(text, at)};
		size_t open = at + strlen(spelling->opening) - 1;
		bool complete;

		at = open + 1;
		if (spelling->alone && !marker.leads)
			continue;
		if (spelling->kind == RLMD_ANSWER_VARIABLE)
			complete = read_variable(text, at, cut, &marker);
		else
			complete = read_direct(scan, open, cut || spelling->alone, &marker, found);
		if (!complete || (spelling->alone && !ends_line(text, marker.whole.end)))
			continue;
		if (!marker.leads && found->best.leads && ends_line(text, marker.whole.end) &&
		    takes_back(text, marker.whole.start))
			marker.leads = LEADS_LINE;
		at = marker.whole.end;
		if (!found->best.kind || marker.leads >= found->best.leads)
			found->best = marker;
	}
}

struct marker marker_find(struct rlmd_text text, const struct markdown *md, bool cut,
			  struct marker *ret_form)
{
	struct tokens scan = {.text = text, .markdown = md};
	struct markers found = {0};
	size_t first = find_word(text, 0);

	assert(text.size < NONE);
	if (first < text.size) {
		add_token(&scan, (struct token){.kind = '\0'}); /* so that there is an array */
		scan.count = 0;
		read_tokens(&scan, first);
		match_quotes(&scan);
		match_parentheses(&scan);
		scan_markers(&scan, cut, &found);
		free(scan.tokens);
	}
	if (found.open.kind && (!found.best.kind || found.open.leads > found.best.leads))
		found.best = found.open;
	*ret_form = found.form;
	return found.best;
}

size_t marker_value(const struct marker *marker, char *out)
{
	struct rlmd_text text = marker->argument;
	size_t quotes = marker->kind == RLMD_ANSWER_DIRECT ? string_quotes(text) : 0;
	size_t end = text.size - quotes, used = 0;

	for (size_t i = quotes; i < end; i++) {
		if (quotes && text.bytes[i] == '\\' && i + 1 < end) {
			if (text.bytes[i + 1] != text.bytes[0])
				out[used++] = '\\';
			i++;
		}
		out[used++] = text.bytes[i];
	}
	return used;
}
