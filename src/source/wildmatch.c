#include "source/wildmatch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum wild_kind {
	ONE,     /* this character */
	ANY,     /* "?" */
	SET,     /* "[...]" */
	STAR,    /* any number of characters */
	FOLDERS, /* "**": likewise, and of slashes */
	NEVER,   /* nothing matches: the pattern is broken */
};

/* How a text stands at a token. */
enum { CAME = 1, STAYED = 2 };

struct wild {
	enum wild_kind kind;
	bool optional;   /* FOLDERS: also without the slash behind it, "a/" + "**" + "/b" */
	unsigned char c; /* ONE */
	bool *set;       /* SET; owned: which of 256 */
};

struct wildmatch {
	struct wild *tokens; /* owned */
	size_t count;
	int flags;
	unsigned char *now, *next; /* owned: the states at each token; count + 1 */
	bool plain;                /* nothing but ONE */
	size_t least;              /* characters that a text has to have */
};

static unsigned char fold(const struct wildmatch *match, char c)
{
	return (unsigned char)(match->flags & WILDMATCH_FOLD && c >= 'A' && c <= 'Z' ? c - 'A' + 'a'
										     : c);
}

static struct wild *add(struct wildmatch *match, enum wild_kind kind)
{
	struct wild *token = &match->tokens[match->count++];

	token->kind = kind;
	return token;
}

/* --- a set of characters -------------------------------------------------------------- */

/* "[:alpha:]", which begins at `at`; gives where it ends, or 0. */
static size_t add_class(struct wild *token, struct rlmd_text pattern, size_t at)
{
	static const struct {
		const char *name;
		int (*is)(int);
	} classes[] = {
		{"[:alnum:]", isalnum}, {"[:alpha:]", isalpha}, {"[:blank:]", isblank},
		{"[:cntrl:]", iscntrl}, {"[:digit:]", isdigit}, {"[:graph:]", isgraph},
		{"[:lower:]", islower}, {"[:print:]", isprint}, {"[:punct:]", ispunct},
		{"[:space:]", isspace}, {"[:upper:]", isupper}, {"[:xdigit:]", isxdigit},
	};

	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (text_starts(text_slice(pattern, at, pattern.size), classes[i].name)) {
			for (int c = 0; c < 128; c++)
				token->set[c] |= classes[i].is(c) != 0;
			return at + strlen(classes[i].name);
		}
	return 0;
}

/* The character at `*at`, which may be escaped; -1: there is none. */
static int take_character(struct rlmd_text pattern, size_t *at)
{
	if (*at < pattern.size && pattern.bytes[*at] == '\\')
		++*at;
	return *at < pattern.size ? (unsigned char)pattern.bytes[(*at)++] : -1;
}

/* One character, or a range of them, whose first is in it even where the last is before it. */
static bool add_range(struct wild *token, struct rlmd_text pattern, size_t *at)
{
	int first = take_character(pattern, at), last = first;

	if (*at + 1 < pattern.size && pattern.bytes[*at] == '-' && pattern.bytes[*at + 1] != ']') {
		++*at;
		last = take_character(pattern, at);
	}
	if (first >= 0)
		token->set[first] = true;
	for (int c = first; c >= 0 && c <= last; c++)
		token->set[c] = true;
	return first >= 0 && last >= 0;
}

static void fold_set(struct wild *token)
{
	for (int c = 'a'; c <= 'z'; c++) /* the text is folded */
		token->set[c] |= token->set[c - 'a' + 'A'];
}

/* Behind the "["; gives where the pattern goes on. A set that is not closed matches nothing. */
static size_t add_set(struct wildmatch *match, struct rlmd_text pattern, size_t at)
{
	struct wild *token = add(match, SET);
	bool negated = at < pattern.size && strchr("!^", pattern.bytes[at]);
	size_t first = at += negated;

	token->set = xcalloc(256, sizeof *token->set);
	while (at < pattern.size && (at == first || pattern.bytes[at] != ']')) {
		size_t end = add_class(token, pattern, at);

		if (end)
			at = end;
		else if (!add_range(token, pattern, &at))
			break;
	}
	if (at >= pattern.size) {
		token->kind = NEVER;
		return pattern.size;
	}
	if (match->flags & WILDMATCH_FOLD)
		fold_set(token);
	for (int c = 0; c < 256; c++)
		token->set[c] ^= negated;
	if (match->flags & WILDMATCH_PATH)
		token->set['/'] = false;
	return at + 1;
}

/* --- the pattern ---------------------------------------------------------------------- */

/* Of one or more of them, from `at` on. */
static size_t add_stars(struct wildmatch *match, struct rlmd_text pattern, size_t at)
{
	size_t start = at;
	struct rlmd_text rest;

	while (at < pattern.size && pattern.bytes[at] == '*')
		at++;
	rest = text_slice(pattern, at, pattern.size);
	if (!(match->flags & WILDMATCH_PATH))
		add(match, FOLDERS);
	else if (at - start > 1 && (!start || pattern.bytes[start - 1] == '/') &&
		 (!rest.size || text_starts(rest, "/") || text_starts(rest, "\\/")))
		add(match, FOLDERS)->optional = text_starts(rest, "/");
	else
		add(match, STAR);
	return at;
}

static size_t add_token(struct wildmatch *match, struct rlmd_text pattern, size_t at)
{
	int c;

	switch (pattern.bytes[at]) {
	case '*':
		return add_stars(match, pattern, at);
	case '?':
		add(match, ANY);
		return at + 1;
	case '[':
		return add_set(match, pattern, at + 1);
	}
	c = take_character(pattern, &at);
	add(match, c < 0 ? NEVER : ONE)->c = fold(match, (char)c);
	return at;
}

struct wildmatch *wildmatch_new(struct rlmd_text pattern, int flags)
{
	struct wildmatch *match = xcalloc(1, sizeof *match);

	match->flags = flags;
	match->tokens = xcalloc(pattern.size + 1, sizeof *match->tokens);
	for (size_t at = 0; at < pattern.size;)
		at = add_token(match, pattern, at);
	match->now = xcalloc(match->count + 1, sizeof *match->now);
	match->next = xcalloc(match->count + 1, sizeof *match->next);
	match->plain = true;
	for (size_t i = 0; i < match->count; i++) {
		const struct wild *token = &match->tokens[i];

		match->plain &= token->kind == ONE;
		match->least += token->kind != STAR && token->kind != FOLDERS;
		match->least -= token->optional; /* the slash behind it */
	}
	return match;
}

void wildmatch_free(struct wildmatch *match)
{
	if (!match)
		return;
	for (size_t i = 0; i < match->count; i++)
		free(match->tokens[i].set);
	free(match->tokens);
	free(match->now);
	free(match->next);
	free(match);
}

/* --- the text -------------------------------------------------------------------------- */

/* Where the text may stand too, without another character. */
static void settle(const struct wildmatch *match, unsigned char *states)
{
	for (size_t i = 0; i < match->count; i++) {
		const struct wild *token = &match->tokens[i];

		if (!states[i] || (token->kind != STAR && token->kind != FOLDERS))
			continue;
		states[i + 1] |= CAME;
		if (token->optional && states[i] & CAME)
			states[i + 2] |= CAME;
	}
}

static bool takes(const struct wildmatch *match, const struct wild *token, unsigned char c)
{
	switch (token->kind) {
	case ONE:
		return token->c == c;
	case ANY:
	case STAR:
		return c != '/' || !(match->flags & WILDMATCH_PATH);
	case SET:
		return token->set[c];
	case FOLDERS:
		return true;
	case NEVER:
		break;
	}
	return false;
}

static bool step(const struct wildmatch *match, const unsigned char *now, unsigned char *next,
		 unsigned char c)
{
	bool alive = false;

	memset(next, 0, (match->count + 1) * sizeof *next);
	for (size_t i = 0; i < match->count; i++) {
		const struct wild *token = &match->tokens[i];
		bool stays = token->kind == STAR || token->kind == FOLDERS;

		if (!now[i] || !takes(match, token, c))
			continue;
		next[stays ? i : i + 1] |= stays ? STAYED : CAME;
		alive = true;
	}
	settle(match, next);
	return alive;
}

static bool is_same(const struct wildmatch *match, struct rlmd_text text)
{
	if (text.size != match->count)
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (match->tokens[i].c != fold(match, text.bytes[i]))
			return false;
	return true;
}

bool wildmatch_matches(const struct wildmatch *match, struct rlmd_text text)
{
	unsigned char *now = match->now, *next = match->next;

	if (match->plain)
		return is_same(match, text);
	if (text.size < match->least)
		return false;
	memset(now, 0, (match->count + 1) * sizeof *now);
	now[0] = CAME;
	settle(match, now);
	for (size_t i = 0; i < text.size; i++) {
		unsigned char *turned = now;

		if (!step(match, now, next, fold(match, text.bytes[i])))
			return false;
		now = next;
		next = turned;
	}
	return now[match->count] != 0;
}
