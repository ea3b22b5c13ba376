#include "base/token.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "base/token_block.h"
#include "base/token_kinds.h"

enum {
	BLOCK = 64 << 10, /* behind what is exact, of so many bytes ... */
	SAMPLE = 1 << 10, /* ... the first of which are looked at */

	FRAME = 16, /* tokens that a provider may add: roles, separators */
	STEPS = 3,  /* by which one bill is learned */
};

static const double FACTOR_MIN = 0.25, FACTOR_MAX = 4;

/* clang-format off */
static const uint8_t kinds[256] = {
	P, P, P, P, P, P, P, P, P, S, N, P, P, N, P, P,
	P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P,
	S, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P,
	D, D, D, D, D, D, D, D, D, D, P, P, P, P, P, P,
	P, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U,
	U, U, U, U, U, U, U, U, U, U, U, P, P, P, P, P,
	P, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
	L, L, L, L, L, L, L, L, L, L, L, P, P, P, P, P,
	C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
	C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
	C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
	C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
	Y, Y, Y, A, A, A, A, A, A, A, Y, Y, Y, Y, X, X,
	R, R, R, R, R, X, X, X, X, X, X, X, X, X, X, X,
	X, M, Y, K, K, K, K, K, K, K, K, K, K, K, Y, M,
	E, E, E, E, E, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
};
/* clang-format on */

/* Of those whose second byte tells: U+1E00 to U+1EFF are Latin, U+FF00 to U+FFFF full width. */
static enum kind kind_among(uint8_t lead, uint8_t second)
{
	if (lead == 0xe1)
		return second >= 0xb8 && second <= 0xbb ? A : X;
	return second >= 0xbc ? K : Y;
}

static enum token_class letter(struct token_scan *scan, enum kind kind)
{
	if (is_letter(scan->before) && !(scan->before == L && kind == U)) {
		scan->length += scan->length < UINT8_MAX;
		if (scan->changes >= JUMBLED)
			return TOKEN_JUMBLE;
		return scan->length > LONG ? TOKEN_LONG : TOKEN_INSIDE;
	}
	if (scan->before == L || scan->before == D)
		scan->changes += scan->changes < UINT8_MAX;
	else
		scan->changes = 0;
	scan->length = 1;
	return scan->changes >= JUMBLED ? TOKEN_JUMBLE : TOKEN_WORD;
}

static enum token_class digit(struct token_scan *scan)
{
	bool begins = scan->before != D;

	if (begins && is_letter(scan->before))
		scan->changes += scan->changes < UINT8_MAX;
	else if (begins)
		scan->changes = 0;
	scan->length = begins || scan->length == GROUP ? 1 : scan->length + 1;
	if (begins && scan->before == S)
		return TOKEN_SPACED;
	return scan->length == 1 ? TOKEN_NUMBER : TOKEN_DIGIT;
}

static enum token_class class_of(struct token_scan *scan, enum kind kind)
{
	switch (kind) {
	case L:
	case U:
		return letter(scan, kind);
	case D:
		return digit(scan);
	case P:
		return scan->before == P ? TOKEN_PUNCTS : TOKEN_PUNCT;
	case S:
		return scan->before == S || scan->before == N ? TOKEN_BLANK : TOKEN_SPACE;
	case N:
		return scan->before == N ? TOKEN_BLANK : TOKEN_LINE;
	case A:
		return TOKEN_ACCENT;
	case R:
		return TOKEN_CYRILLIC;
	case X:
		return TOKEN_SCRIPT;
	case K:
		return TOKEN_CJK;
	case E:
		return TOKEN_EMOJI;
	case Y:
	case M:
	case C:
		break;
	}
	return TOKEN_SYMBOL;
}

/* What the byte says of a character's kind: C says nothing yet, or nothing new. */
static enum kind kind_by(struct token_scan *scan, uint8_t c)
{
	enum kind kind = kinds[c];
	uint8_t lead = scan->lead;

	scan->lead = 0;
	if (kind == C && scan->rest) {
		scan->rest--;
		return lead ? kind_among(lead, c) : C;
	}
	scan->rest = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	if (kind == M)
		scan->lead = c;
	return kind == M ? C : kind == C ? Y : kind;
}

/* What most bytes are: whole characters, which end one that was cut short. */
static enum kind ascii_kind(struct token_scan *scan, uint8_t c)
{
	scan->lead = scan->rest = 0;
	return kinds[c];
}

/* Small letters behind a letter are most of most texts: counted together, as letter() would one by
 * one. Returns how many there are. */
static size_t look_within(struct token_scan *scan, const char *at, const char *end, int64_t weight)
{
	size_t size = 0, inside, length = scan->length;

	while (at + size < end && (uint8_t)(at[size] - 'a') < 26)
		size++;
	inside = length < LONG ? LONG - length : 0;
	inside = inside < size ? inside : size;
	if (scan->changes >= JUMBLED) {
		scan->counts.of[TOKEN_JUMBLE] += (int64_t)size * weight;
	} else {
		scan->counts.of[TOKEN_INSIDE] += (int64_t)inside * weight;
		scan->counts.of[TOKEN_LONG] += (int64_t)(size - inside) * weight;
	}
	scan->length = (uint8_t)(length + size < UINT8_MAX ? length + size : UINT8_MAX);
	scan->before = size ? L : scan->before;
	return size;
}

/* One character after the other; each counts for so many like it. */
static void look_singly(struct token_scan *scan, const char *at, const char *end, int64_t weight)
{
	while (at < end) {
		uint8_t c = (uint8_t)*at++;
		enum kind kind = c < 0x80 ? ascii_kind(scan, c) : kind_by(scan, c);

		if (kind == C)
			continue;
		/* A letter with an accent may begin a word, but counts for itself. */
		if (kind == A)
			scan->counts.of[letter(scan, kind)] += weight;
		scan->counts.of[class_of(scan, kind)] += weight;
		scan->before = (uint8_t)kind;
		if (kind == L || kind == U)
			at += look_within(scan, at, end, weight);
	}
}

static void look(struct token_scan *scan, struct rlmd_text text, int64_t weight)
{
	const char *at = text.bytes, *end = at + text.size;

	while (at < end) {
		const char *stop;

		at = token_block_look(scan, at, end, weight);
		stop = end - at > TOKEN_BLOCK ? at + TOKEN_BLOCK : end;
		look_singly(scan, at, stop, weight);
		at = stop;
	}
}

/* The bytes that follow count for so many each, 0: are not looked at; returns how many do. */
static size_t stretch(const struct token_scan *scan, int64_t *ret_weight)
{
	size_t place;

	*ret_weight = 1;
	if (scan->at < TOKEN_EXACT)
		return TOKEN_EXACT - (size_t)scan->at;
	place = (size_t)(scan->at - TOKEN_EXACT) % BLOCK;
	*ret_weight = place < SAMPLE ? BLOCK / SAMPLE : 0;
	return place < SAMPLE ? SAMPLE - place : BLOCK - place;
}

void token_scan_feed(struct token_scan *scan, struct rlmd_text text)
{
	while (text.size) {
		int64_t weight;
		size_t size = stretch(scan, &weight);

		if (size > text.size)
			size = text.size;
		if (weight) {
			look(scan, text_slice(text, 0, size), weight);
		} else { /* it is not known what the next sample goes on with */
			scan->before = P;
			scan->rest = 3;
		}
		scan->at += size;
		text = text_slice(text, size, text.size);
	}
}

void token_counts_add(struct token_counts *counts, const struct token_counts *more)
{
	for (size_t i = 0; i < TOKEN_CLASSES; i++)
		counts->of[i] += more->of[i];
}

static const struct {
	double each, doubt;
} classes[TOKEN_CLASSES] = {
#define TOKEN_CLASS(name, each, doubt, what) [TOKEN_##name] = {(each), (doubt)},
#include "base/token.def"
#undef TOKEN_CLASS
};

static double part(const struct token_estimator *estimator, const struct token_counts *counts,
		   size_t i)
{
	return classes[i].each * (1 + estimator->change[i]) * (double)counts->of[i];
}

static double total(const struct token_estimator *estimator, const struct token_counts *counts)
{
	double sum = 0;

	for (size_t i = 0; i < TOKEN_CLASSES; i++)
		sum += part(estimator, counts, i);
	return sum;
}

int64_t token_estimator_tokens(const struct token_estimator *estimator,
			       const struct token_counts *counts)
{
	double sum = ceil(total(estimator, counts));

	return sum >= (double)INT64_MAX ? INT64_MAX : (int64_t)sum;
}

int64_t token_estimate(const struct token_counts *counts)
{
	static const struct token_estimator nothing;

	return token_estimator_tokens(&nothing, counts);
}

/*
 * The smallest change of the numbers, each measured by its doubt, after which they come to what was
 * billed (a step of Kaczmarz's method). What a provider adds to a text is as good an explanation as
 * a number, where the text is short.
 */
static void step(struct token_estimator *estimator, const struct token_counts *counts,
		 double billed)
{
	double missing = billed - total(estimator, counts), sum = FRAME * FRAME;

	for (size_t i = 0; i < TOKEN_CLASSES; i++)
		sum += pow(classes[i].doubt * part(estimator, counts, i), 2);
	for (size_t i = 0; i < TOKEN_CLASSES; i++) {
		double share = pow(classes[i].doubt, 2) * part(estimator, counts, i) / sum;
		double factor = (1 + estimator->change[i]) * (1 + missing * share);

		estimator->change[i] = fmin(fmax(factor, FACTOR_MIN), FACTOR_MAX) - 1;
	}
}

void token_estimator_learn(struct token_estimator *estimator, const struct token_counts *counts,
			   int64_t billed)
{
	/* Again, for what a number that came to its bounds could not take. */
	for (int i = 0; i < STEPS && billed > 0; i++)
		step(estimator, counts, (double)billed);
}
