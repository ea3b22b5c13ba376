#include "llm/token_bound.h"

#include "base/block.h"

enum kind { KIND_OTHER, KIND_WORD, KIND_NUMBER, KIND_WIDE, KIND_COUNT };

enum {
	OTHER_FREE = 2, /* bytes */
	LONGEST_WORD = 32,
	LONGEST_NUMBER = 16,
};

/*
 * How much of a run is one token at most. Punctuation and space stick to the word beside them, and
 * to each other: what is short of them is no token of its own.
 */
static const struct {
	int64_t free, longest;
} rules[KIND_COUNT] = {
	[KIND_OTHER] = {OTHER_FREE, 128},    /* bytes: rulers and indentation */
	[KIND_WORD] = {0, LONGEST_WORD},     /* bytes */
	[KIND_NUMBER] = {0, LONGEST_NUMBER}, /* digits */
	[KIND_WIDE] = {0, 4},                /* characters: Chinese, Japanese, Korean */
};

enum { SLACK = 64 };

/* The bytes after the first one of a sequence go on with what that began. */
static bool continues(unsigned char c)
{
	return c >= 0x80 && c < 0xc0;
}

static enum kind kind_of(unsigned char c)
{
	if ((unsigned char)((c | 0x20) - 'a') < 26)
		return KIND_WORD;
	if (c < 0x80)
		return (unsigned char)(c - '0') < 10 ? KIND_NUMBER : KIND_OTHER;
	return c >= 0xe3 && c <= 0xed ? KIND_WIDE : KIND_WORD; /* U+3000 to U+DFFF */
}

/* Goes on with a run by `size` bytes or characters, or begins one: a token begins with the first
 * one that is not free, and wherever the longest one has ended. */
static void go_on(struct token_bound *bound, enum kind kind, int64_t size)
{
	int64_t longest = rules[kind].longest, begun, end; /* of what is not free */

	if (kind != (enum kind)bound->kind)
		bound->run = 0;
	bound->kind = (int)kind;
	begun = bound->run - rules[kind].free;
	end = begun + size;
	if (end < longest) { /* as nearly always: without a division */
		bound->tokens += begun <= 0 && end > 0;
		bound->run += size;
		return;
	}
	bound->tokens += (end + longest - 1) / longest - (begun > 0);
	bound->run = rules[kind].free + end % longest;
}

/* Each by itself, but for those of a word. */
static void feed_bytes(struct token_bound *bound, struct rlmd_text text)
{
	size_t i = 0;

	while (i < text.size) {
		unsigned char c = (unsigned char)text.bytes[i];
		enum kind kind = continues(c) ? (enum kind)bound->kind : kind_of(c);
		size_t start = i++;

		if (continues(c) && kind == KIND_WIDE)
			continue;
		while (kind == KIND_WORD && i < text.size &&
		       (unsigned char)((text.bytes[i] | 0x20) - 'a') < 26)
			i++;
		go_on(bound, kind, (int64_t)(i - start));
	}
}

/* --- 64 bytes of ASCII at once ---------------------------------------------------------- */

struct masks {
	uint64_t of[KIND_WIDE]; /* by kind */
};

static struct masks read_masks(const char *at)
{
	struct masks masks = {{0}};

	for (int i = 0; i < BYTE_MASK_SIZE; i += BYTE_VECTOR_SIZE) {
		byte_vector text = byte_vector_load(at + i), caseless = text | 0x20;

		masks.of[KIND_WORD] |= byte_mask_gather((caseless >= 'a') & (caseless <= 'z')) << i;
		masks.of[KIND_NUMBER] |= byte_mask_gather((text >= '0') & (text <= '9')) << i;
	}
	masks.of[KIND_OTHER] = ~(masks.of[KIND_WORD] | masks.of[KIND_NUMBER]);
	return masks;
}

/* The places up to which a run has so many bytes, a power of two, or more. */
static uint64_t so_many(uint64_t mask, int bytes)
{
	for (int behind = 1; behind < bytes; behind *= 2)
		mask &= mask << behind;
	return mask;
}

static int64_t runs_of(uint64_t mask)
{
	return __builtin_popcountll(mask & ~(mask << 1));
}

/* Those that begin and end in it. False: one is longer than a token, and each is to be looked at.
 */
static bool count_inner(struct token_bound *bound, const struct masks *masks, uint64_t inner)
{
	uint64_t words = masks->of[KIND_WORD] & inner, numbers = masks->of[KIND_NUMBER] & inner;
	uint64_t others = masks->of[KIND_OTHER] & inner;

	if (so_many(words, LONGEST_WORD) | so_many(numbers, LONGEST_NUMBER))
		return false;
	bound->tokens += runs_of(words) + runs_of(numbers) +
			 runs_of(others & others << 1 & others << OTHER_FREE);
	return true;
}

static enum kind kind_at(const struct masks *masks, int bit)
{
	return masks->of[KIND_WORD] >> bit & 1     ? KIND_WORD
	       : masks->of[KIND_NUMBER] >> bit & 1 ? KIND_NUMBER
						   : KIND_OTHER;
}

/* The first and the last run may go on beyond it. */
static void feed_block(struct token_bound *bound, const char *at)
{
	struct masks masks = read_masks(at);
	enum kind first = kind_at(&masks, 0), last = kind_at(&masks, BYTE_MASK_SIZE - 1);
	uint64_t not_first = ~masks.of[first], not_last = ~masks.of[last];
	struct token_bound before = *bound;
	int begin, end;

	if (!not_first) {
		go_on(bound, first, BYTE_MASK_SIZE);
		return;
	}
	begin = __builtin_ctzll(not_first);
	end = BYTE_MASK_SIZE - __builtin_clzll(not_last);
	go_on(bound, first, begin);
	if (!count_inner(bound, &masks, (UINT64_MAX << begin) & ~(UINT64_MAX << end))) {
		*bound = before;
		feed_bytes(bound, text_from(at, BYTE_MASK_SIZE));
		return;
	}
	bound->kind = (int)last;
	bound->run = 0;
	go_on(bound, last, BYTE_MASK_SIZE - end);
}

/* Each byte of an answer comes by here. */
void token_bound_feed(struct token_bound *bound, struct rlmd_text text)
{
	while (text.size >= BYTE_MASK_SIZE) {
		if (byte_mask_is_ascii(text.bytes))
			feed_block(bound, text.bytes);
		else
			feed_bytes(bound, text_slice(text, 0, BYTE_MASK_SIZE));
		text = text_slice(text, BYTE_MASK_SIZE, text.size);
	}
	feed_bytes(bound, text);
}

bool token_bound_is_beyond(int64_t tokens, int64_t asked)
{
	int64_t surely = tokens - SLACK;

	return surely - surely / 5 > asked;
}
