#include "base/token_block.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/byte_mask.h"
#include "base/token.h"
#include "base/token_kinds.h"

enum {
	CLASSES = TOKEN_LINE + 1, /* what ASCII is counted as */
	SUMMED = 31,              /* blocks of which a byte holds the sum of eight bits each */
};

/* A bit for each byte, the first one's the lowest. */
struct block {
	uint64_t small, capital, digit, space, line;
	uint64_t other; /* punctuation, and what else there is */
};

/* --- what the characters are ------------------------------------------------------------ */

/* Six kinds take three bits, and so three masks are gathered and not six. */
static struct block read_block(const char *at)
{
	uint64_t alnum = 0, one = 0, other = 0;

	for (int i = 0; i < TOKEN_BLOCK; i += BYTE_VECTOR_SIZE) {
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
	return (struct block){
		.small = alnum & one,
		.capital = alnum & ~one & ~other,
		.digit = alnum & other,
		.space = one & ~alnum,
		.line = other & ~alnum,
		.other = ~(alnum | one | other),
	};
}

/* --- what they count as ----------------------------------------------------------------- */

/* Where it was so some places before; the highest bit of `past` is the last before the block. */
static uint64_t behind(uint64_t mask, uint64_t past, int places)
{
	return mask << places | past >> (TOKEN_BLOCK - places);
}

static uint64_t after(uint64_t mask, bool before)
{
	return mask << 1 | before;
}

static int top_bit(uint64_t mask)
{
	return mask ? TOKEN_BLOCK - 1 - __builtin_clzll(mask) : -1;
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

/* What of the runs stands behind JUMBLED turns. `goes_on`: the first one began before the block. */
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
	uint64_t past = had ? ~UINT64_C(0) << (TOKEN_BLOCK - had) : 0;
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
static void leave_block(struct token_scan *scan, const struct block *block, uint64_t within,
			uint64_t found, uint64_t turns, bool goes_on)
{
	uint64_t last = UINT64_C(1) << (TOKEN_BLOCK - 1), letters = block->small | block->capital;
	int start = top_bit(~(letters | block->digit)) + 1; /* of the last run */
	int inside = TOKEN_BLOCK - 1 - top_bit(~within), length, changes;

	scan->lead = scan->rest = 0;
	if (!((letters | block->digit) & last)) {
		scan->before = block->space & last ? S : block->line & last ? N : P;
		return;
	}
	changes = __builtin_popcountll(turns >> start) + (!start && goes_on ? scan->changes : 0);
	length = letters & last ? inside + (inside < TOKEN_BLOCK ? 1 : scan->length)
				: TOKEN_BLOCK - top_bit(found);
	scan->changes = (uint8_t)(changes < UINT8_MAX ? changes : UINT8_MAX);
	scan->length = (uint8_t)(length < UINT8_MAX ? length : UINT8_MAX);
	scan->before = block->small & last ? L : block->capital & last ? U : D;
}

/* Which of its characters are of which class. */
static void part_block(struct token_scan *scan, const struct block *block, uint64_t ret[CLASSES])
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
static void add_bits(const uint64_t masks[CLASSES], uint64_t sums[CLASSES])
{
	const uint64_t pairs = UINT64_C(0x5555555555555555), fours = UINT64_C(0x3333333333333333),
		       low = UINT64_C(0x0f0f0f0f0f0f0f0f);

	for (int i = 0; i < CLASSES; i++) {
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

const char *token_block_look(struct token_scan *scan, const char *at, const char *end,
			     int64_t weight)
{
	uint64_t masks[CLASSES];
	struct block block;
	bool more = true;

	while (more) {
		uint64_t sums[CLASSES] = {0};

		for (int i = 0; i < SUMMED && more; i++) {
			more = end - at >= TOKEN_BLOCK && byte_mask_is_ascii(at);
			if (!more)
				break;
			block = read_block(at);
			part_block(scan, &block, masks);
			add_bits(masks, sums);
			at += TOKEN_BLOCK;
		}
		for (int i = 0; i < CLASSES; i++)
			scan->counts.of[i] += sum_of_bytes(sums[i]) * weight;
	}
	return at;
}
