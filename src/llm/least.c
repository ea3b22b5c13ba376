#include "llm/least.h"

enum kind { KIND_OTHER, KIND_WORD, KIND_NUMBER, KIND_WIDE, KIND_COUNT };

/*
 * How much of a run is one token at most. Punctuation and space stick to the word beside them, and
 * to each other: what is short of them is no token of its own.
 */
static const struct {
	int64_t free, longest;
} rules[KIND_COUNT] = {
	[KIND_OTHER] = {2, 128}, /* bytes: rulers and indentation */
	[KIND_WORD] = {0, 32},   /* bytes */
	[KIND_NUMBER] = {0, 16}, /* digits */
	[KIND_WIDE] = {0, 4},    /* characters: Chinese, Japanese, Korean */
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

/* Goes on with a run by `size` bytes or characters: a token begins with the first one that is not
 * free, and wherever the longest one has ended. */
static void go_on(struct least *least, enum kind kind, int64_t size)
{
	int64_t longest = rules[kind].longest;
	int64_t begun = least->run - rules[kind].free, end = begun + size; /* of what is not free */

	if (end < longest) { /* as nearly always: without a division */
		least->tokens += begun <= 0 && end > 0;
		least->run += size;
		return;
	}
	least->tokens += (end + longest - 1) / longest - (begun > 0);
	least->run = rules[kind].free + end % longest;
}

/* Each byte of an answer comes by here: those of a word, which are most, are taken together. */
void least_feed(struct least *least, struct rlmd_text text)
{
	size_t i = 0;

	while (i < text.size) {
		unsigned char c = (unsigned char)text.bytes[i];
		enum kind kind = continues(c) ? (enum kind)least->kind : kind_of(c);
		size_t start = i++;

		if (continues(c) && kind == KIND_WIDE)
			continue;
		if (kind != (enum kind)least->kind)
			least->run = 0;
		least->kind = (int)kind;
		while (kind == KIND_WORD && i < text.size &&
		       (unsigned char)((text.bytes[i] | 0x20) - 'a') < 26)
			i++;
		go_on(least, kind, (int64_t)(i - start));
	}
}

bool least_is_beyond(int64_t tokens, int64_t asked)
{
	int64_t surely = tokens - SLACK;

	return surely - surely / 5 > asked;
}
