#include "base/token.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/block.h"
#include "base/text.h"

enum {
	LONG = 7,    /* letters that a common word has at most */
	JUMBLED = 3, /* changes within a word that no name in a program has */
	GROUP = 3,   /* digits that are one token for most models */

	ASCII_CLASSES = TOKEN_LINE + 1,
	SUMMED = 31, /* blocks of which a byte holds the sum of eight bits each */

	FRAME = 16, /* tokens that a provider may add: roles, separators */
	STEPS = 3,  /* by which one bill is learned */
};

static const double FACTOR_MIN = 0.25, FACTOR_MAX = 4;

/* The kind of a character, as far as its first byte tells. */
enum kind {
	P, /* punctuation, and what else there is in ASCII; also what is before a text */
	S, /* space */
	N, /* end of a line */
	D, /* digit */
	L, /* small letter */
	U, /* capital */
	A, /* Latin letter beyond ASCII */
	R, /* Cyrillic */
	G, /* Greek */
	H, /* Hebrew */
	B, /* Arabic */
	T, /* Thai, Lao */
	X, /* another alphabet */
	Y, /* symbol, and what is not UTF-8 */
	K, /* Chinese, Japanese, Korean */
	E, /* beyond U+FFFF */
	M, /* the second byte tells */
	C, /* goes on with a character */
};

static bool is_letter(uint8_t kind)
{
	return kind == L || kind == U || kind == A;
}

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
	Y, Y, Y, A, A, A, A, A, A, A, Y, Y, Y, Y, G, G,
	R, R, R, R, R, H, H, H, B, B, B, B, B, B, B, B,
	M, M, Y, K, K, K, K, K, K, K, K, K, K, K, Y, M,
	E, E, E, E, E, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y, Y,
};
/* clang-format on */

/* Of those whose second byte tells: U+0E00 to U+0EFF are Thai and Lao, U+1E00 to U+1EFF Latin,
 * U+FF00 to U+FFFF full width. */
static enum kind kind_among(uint8_t lead, uint8_t second)
{
	if (lead == 0xe0)
		return second >= 0xb8 && second <= 0xbb ? T : X;
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
	case G:
		return TOKEN_GREEK;
	case H:
		return TOKEN_HEBREW;
	case B:
		return TOKEN_ARABIC;
	case T:
		return TOKEN_THAI;
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

/* The kind of a character as far as this byte tells; C: nothing yet, or nothing new. */
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

/* Most bytes are whole characters, which end a character that was cut short. */
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

/*
 * Characters of ASCII counted as below, 64 of them at once: a mask for each kind has a bit for each
 * byte, so that the neighbour before is a shift, and runs are told by what a sum carries. Nearly
 * all bytes of most texts go this way. It holds row 6 of docs/performance.md: an answer of 7 MB
 * takes 1.0 times Python's time in the place of 1.5.
 */

/* A bit for each byte, the first one's the lowest. */
struct token_block {
	uint64_t small, capital, digit, space, line;
	uint64_t other; /* punctuation, and what else there is */
};

/* Six kinds take three bits, and so three masks are gathered and not six. */
static struct token_block read_block(const char *at)
{
	uint64_t alnum = 0, one = 0, other = 0;

	for (int i = 0; i < BYTE_MASK_SIZE; i += BYTE_VECTOR_SIZE) {
		byte_vector text = byte_vector_load(at + i), caseless = text | 0x20;
		byte_vector letters = (caseless >= 'a') & (caseless <= 'z');
		byte_vector digit = (text >= '0') & (text <= '9');
		byte_vector small = letters & (text == caseless);
		byte_vector space = (text == ' ') | (text == '\t');
		byte_vector line = (text == '\n') | (text == '\r');

		alnum |= byte_mask_gather(letters | digit) << i;
		one |= byte_mask_gather(small | space) << i;
		other |= byte_mask_gather(digit | line) << i;
	}
	return (struct token_block){
		.small = alnum & one,
		.capital = alnum & ~one & ~other,
		.digit = alnum & other,
		.space = one & ~alnum,
		.line = other & ~alnum,
		.other = ~(alnum | one | other),
	};
}

/* Where it was so some bytes before; the highest bit of `past` is the last before the block. */
static uint64_t behind(uint64_t mask, uint64_t past, int bytes)
{
	return mask << bytes | past >> (BYTE_MASK_SIZE - bytes);
}

static uint64_t after(uint64_t mask, bool before)
{
	return mask << 1 | before;
}

static int top_bit(uint64_t mask)
{
	return mask ? BYTE_MASK_SIZE - 1 - __builtin_clzll(mask) : -1;
}

/* The first of `marks` in each run of `all`: what is added at its start carries up to it. */
static uint64_t first_of(uint64_t marks, uint64_t all)
{
	return ((all & ~marks) + (all & ~(all << 1))) & marks;
}

/* From these, one a run at most, to the end of the run. */
static uint64_t from_there(uint64_t marks, uint64_t all)
{
	return all & ~(all + marks);
}

/* The parts of the runs behind JUMBLED turns. `goes_on`: the first run began before the block. */
static uint64_t jumbled(const struct token_scan *scan, uint64_t all, uint64_t turns, bool goes_on)
{
	uint64_t nth[JUMBLED + 1] = {1}, first_run = goes_on ? from_there(1, all) : 0, marks;
	int had = scan->changes < JUMBLED ? scan->changes : JUMBLED;

	for (int i = 1; i <= JUMBLED; i++) {
		nth[i] = first_of(turns, all);
		turns &= ~nth[i];
	}
	marks = (nth[JUMBLED] & ~first_run) | (nth[JUMBLED - had] & first_run);
	return from_there(marks, all);
}

/* Letters from the eighth of a word on: so many before them are `within` it, but for the first. */
static uint64_t beyond_long(const struct token_scan *scan, uint64_t within)
{
	int had = !is_letter(scan->before) ? 0 : scan->length > LONG ? LONG : scan->length - 1;
	uint64_t past = had ? ~UINT64_C(0) << (BYTE_MASK_SIZE - had) : 0;
	uint64_t two = within & behind(within, past, 1), two_past = past & past << 1;
	uint64_t four = two & behind(two, two_past, 2), four_past = two_past & two_past << 2;

	return four & behind(four, four_past, LONG - 4);
}

/* The digits that begin a group. */
static uint64_t groups(const struct token_scan *scan, uint64_t digit, uint64_t begins)
{
	uint64_t pair = digit & digit << 1, fourth = pair & pair << 1 & pair << 2;
	uint64_t next = begins, found = 0;
	int open = GROUP - scan->length; /* digits that the last group still takes */

	if (scan->before == D && !(~digit & ((UINT64_C(2) << open) - 1)))
		next |= UINT64_C(1) << open;
	for (; next; next = next << GROUP & fourth)
		found |= next;
	return found;
}

/* The state behind the block, as letter() and digit() would leave it. */
static void leave_block(struct token_scan *scan, const struct token_block *block, uint64_t within,
			uint64_t found, uint64_t turns, bool goes_on)
{
	uint64_t last = UINT64_C(1) << (BYTE_MASK_SIZE - 1),
		 letters = block->small | block->capital;
	int start = top_bit(~(letters | block->digit)) + 1; /* of the last run */
	int inside = BYTE_MASK_SIZE - 1 - top_bit(~within), length, changes;

	scan->lead = scan->rest = 0;
	if (!((letters | block->digit) & last)) {
		scan->before = block->space & last ? S : block->line & last ? N : P;
		return;
	}
	changes = __builtin_popcountll(turns >> start) + (!start && goes_on ? scan->changes : 0);
	length = letters & last ? inside + (inside < BYTE_MASK_SIZE ? 1 : scan->length)
				: BYTE_MASK_SIZE - top_bit(found);
	scan->changes = (uint8_t)(changes < UINT8_MAX ? changes : UINT8_MAX);
	scan->length = (uint8_t)(length < UINT8_MAX ? length : UINT8_MAX);
	scan->before = block->small & last ? L : block->capital & last ? U : D;
}

/* Which of its characters are of which class. */
static void part_block(struct token_scan *scan, const struct token_block *block,
		       uint64_t ret[ASCII_CLASSES])
{
	const uint8_t before = scan->before;
	uint64_t letters = block->small | block->capital, all = letters | block->digit;
	uint64_t after_letter = after(letters, is_letter(before));
	uint64_t after_digit = after(block->digit, before == D);
	uint64_t humps = block->capital & after(block->small, before == L);
	uint64_t turns = humps | (letters & after_digit) | (block->digit & after_letter);
	uint64_t within = letters & after_letter & ~humps;
	bool goes_on = all & (after_letter | after_digit) & 1;
	bool may_jumble = turns || (goes_on && scan->changes >= JUMBLED);
	uint64_t jumble = may_jumble ? letters & jumbled(scan, all, turns, goes_on) : 0;
	uint64_t beyond = beyond_long(scan, within);
	uint64_t begins = block->digit & ~after_digit;
	uint64_t spaced = begins & after(block->space, before == S);
	uint64_t found = groups(scan, block->digit, begins);
	uint64_t blank = (block->space &
			  after(block->space | block->line, before == S || before == N)) |
			 (block->line & after(block->line, before == N));
	uint64_t again = block->other & after(block->other, before == P);

	ret[TOKEN_WORD] = letters & ~within & ~jumble;
	ret[TOKEN_INSIDE] = within & ~beyond & ~jumble;
	ret[TOKEN_LONG] = beyond & ~jumble;
	ret[TOKEN_JUMBLE] = jumble;
	ret[TOKEN_NUMBER] = found & ~spaced;
	ret[TOKEN_DIGIT] = block->digit & ~found;
	ret[TOKEN_SPACED] = spaced;
	ret[TOKEN_PUNCT] = block->other & ~again;
	ret[TOKEN_PUNCTS] = again;
	ret[TOKEN_SPACE] = block->space & ~blank;
	ret[TOKEN_BLANK] = blank;
	ret[TOKEN_LINE] = block->line & ~blank;
	leave_block(scan, block, within, found, turns, goes_on);
}

/* How many bits each byte has, added to the sums. */
static void add_bits(const uint64_t masks[ASCII_CLASSES], uint64_t sums[ASCII_CLASSES])
{
	const uint64_t pairs = UINT64_C(0x5555555555555555), fours = UINT64_C(0x3333333333333333),
		       low = UINT64_C(0x0f0f0f0f0f0f0f0f);

	for (int i = 0; i < ASCII_CLASSES; i++) {
		uint64_t bits = masks[i] - (masks[i] >> 1 & pairs);

		bits = (bits & fours) + (bits >> 2 & fours);
		sums[i] += (bits + (bits >> 4)) & low;
	}
}

static int64_t sum_of_bytes(uint64_t sums)
{
	const uint64_t odd = UINT64_C(0x00ff00ff00ff00ff);

	return (int64_t)(((sums & odd) + (sums >> 8 & odd)) * UINT64_C(0x0001000100010001) >> 48);
}

/* Takes whole blocks, up to the first that is cut short or not ASCII; returns where that begins. */
static const char *look_blocks(struct token_scan *scan, const char *at, const char *end,
			       int64_t weight)
{
	uint64_t masks[ASCII_CLASSES];
	struct token_block block;
	bool more = true;

	while (more) {
		uint64_t sums[ASCII_CLASSES] = {0};

		for (int i = 0; i < SUMMED && more; i++) {
			more = end - at >= BYTE_MASK_SIZE && byte_mask_is_ascii(at);
			if (!more)
				break;
			block = read_block(at);
			part_block(scan, &block, masks);
			add_bits(masks, sums);
			at += BYTE_MASK_SIZE;
		}
		for (int i = 0; i < ASCII_CLASSES; i++)
			scan->counts.of[i] += sum_of_bytes(sums[i]) * weight;
	}
	return at;
}

static void look(struct token_scan *scan, struct rlmd_text text, int64_t weight)
{
	const char *at = text.bytes, *end = at + text.size;

	while (at < end) {
		const char *stop;

		at = look_blocks(scan, at, end, weight);
		stop = end - at > BYTE_MASK_SIZE ? at + BYTE_MASK_SIZE : end;
		look_singly(scan, at, stop, weight);
		at = stop;
	}
}

/* Behind the bytes that are all looked at, those in the midst of each stretch stand for it. */
static const struct sampling {
	size_t exact, stretch, sample; /* bytes */
} of_long_texts = {TOKEN_EXACT, 64 << 10, 1 << 10}, of_many_texts = {2 << 10, 2 << 10, 256};

/* The bytes that follow count for so many each, 0: are not looked at; returns how many do. */
static size_t stretch(const struct token_scan *scan, int64_t *ret_weight)
{
	const struct sampling *by = scan->of_many ? &of_many_texts : &of_long_texts;
	const size_t before = (by->stretch - by->sample) / 2; /* the sample */
	size_t phase;

	*ret_weight = 1;
	if (scan->at < by->exact)
		return by->exact - (size_t)scan->at;
	phase = (size_t)(scan->at - by->exact + by->stretch - before) % by->stretch;
	*ret_weight = phase < by->sample ? (int64_t)(by->stretch / by->sample) : 0;
	return (phase < by->sample ? by->sample : by->stretch) - phase;
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

enum { VOCABULARY_WORDS = 10 };

/* The vocabularies, and the words that a model's name has. 0: the table's number. */
static const struct {
	const char *words[VOCABULARY_WORDS]; /* up to a NULL */
	double each[TOKEN_CLASSES];
} vocabularies[] = {
#define WORDS(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define VOCABULARY(names, accent, cyrillic, greek, hebrew, arabic, thai, script, cjk, emoji,       \
		   digit)                                                                          \
	{.words = names,                                                                           \
	 .each = {[TOKEN_ACCENT] = (accent),                                                       \
		  [TOKEN_CYRILLIC] = (cyrillic),                                                   \
		  [TOKEN_GREEK] = (greek),                                                         \
		  [TOKEN_HEBREW] = (hebrew),                                                       \
		  [TOKEN_ARABIC] = (arabic),                                                       \
		  [TOKEN_THAI] = (thai),                                                           \
		  [TOKEN_SCRIPT] = (script),                                                       \
		  [TOKEN_CJK] = (cjk),                                                             \
		  [TOKEN_EMOJI] = (emoji),                                                         \
		  [TOKEN_DIGIT] = (digit)}},
#include "base/vocabularies.def"
#undef VOCABULARY
#undef WORDS
};

enum { VOCABULARIES = sizeof vocabularies / sizeof *vocabularies };

/* Whether the word stands in the name with no letter before it, in any case. */
static bool names_word(const char *name, const char *word)
{
	for (const char *at = name; (at = strcasestr(at, word)); at++)
		if (at == name || !(kinds[(uint8_t)at[-1]] == L || kinds[(uint8_t)at[-1]] == U))
			return true;
	return false;
}

static bool is_of(const char *model, size_t vocabulary)
{
	const char *const *words = vocabularies[vocabulary].words;

	while (*words && !names_word(model, *words))
		words++;
	return *words;
}

void token_estimator_begin(struct token_estimator *estimator, const char *model)
{
	size_t v = 0;

	*estimator = (struct token_estimator){0};
	while (v < VOCABULARIES && !is_of(model, v))
		v++;
	for (size_t i = 0; v < VOCABULARIES && i < TOKEN_CLASSES; i++)
		if (vocabularies[v].each[i] > 0)
			estimator->change[i] = vocabularies[v].each[i] / classes[i].each - 1;
}

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
 * billed (a step of Kaczmarz's method). Where the text is short, tokens that the provider adds to
 * it explain a bill as well as another number does.
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
