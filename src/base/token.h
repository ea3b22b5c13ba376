/*
 * base/token.h - how many tokens a text is for a model, by what it is made of.
 *
 * No provider tells its tokenizer. But all of them part a text into words, numbers, punctuation
 * and space, and make about as many tokens of each: so how many there are of each kind
 * (base/token.def) tells more than how many characters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rlmd_text;

enum token_class {
#define TOKEN_CLASS(name, each, doubt, what) TOKEN_##name,
#include "base/token.def"
#undef TOKEN_CLASS
	TOKEN_CLASSES
};

struct token_counts {
	int64_t of[TOKEN_CLASSES];
};

/* Bytes of a text of which each is looked at: what a window holds, so that no prompt hides tokens
 * from the budget. */
enum { TOKEN_EXACT = 4 << 20 };

/*
 * Counts while a text's bytes pass by, in pieces of any size. Zero is empty. Of what goes beyond
 * TOKEN_EXACT bytes only samples are looked at, which stand for the rest.
 */
struct token_scan {
	struct token_counts counts;
	bool of_many; /* set before the first byte: one of so many texts that samples do for each,
		       * an eighth of what goes beyond 2 KiB */
	/* private */
	uint64_t at;     /* bytes that have passed */
	uint8_t before;  /* kind of the last character */
	uint8_t lead;    /* first byte of one whose kind its second byte tells, or 0 */
	uint8_t rest;    /* bytes that the character still wants */
	uint8_t length;  /* letters of the word, digits of the number; 255: that or more */
	uint8_t changes; /* between letters, digits and capitals since the last other character */
};

void token_scan_feed(struct token_scan *, struct rlmd_text);

void token_counts_add(struct token_counts *, const struct token_counts *more);

/* In tokens, rounded up: for most texts within a factor of 1.5 of what the models in use count;
 * tests/base/test_token.c has the others. */
int64_t token_estimate(const struct token_counts *);

/*
 * The corrections that the bills of one model have taught. Embed it; zero knows nothing. After
 * the first bill it is within a factor of 1.15 for texts of the kind that was billed.
 */
struct token_estimator {
	double change[TOKEN_CLASSES]; /* of the numbers in the table, as a part of them */
};

/* Begins with the vocabulary that the model's name tells (base/vocabularies.def); with nothing
 * where it tells none. */
void token_estimator_begin(struct token_estimator *, const char *model);

int64_t token_estimator_tokens(const struct token_estimator *, const struct token_counts *);

/* The model was billed so many for these. Numbers that are not positive teach nothing, and no
 * number becomes less than a quarter of the table's, or more than four times that. */
void token_estimator_learn(struct token_estimator *, const struct token_counts *, int64_t billed);
