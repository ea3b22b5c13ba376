/*
 * The estimate of tokens beside what real tokenizers count: token_counts.tsv, made by
 * tools/token-counts of the texts that token_samples.py writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "effort.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { SAMPLES_MAX = 256, TOKENIZERS_MAX = 16, LINE_MAX = 512 };

static const double BEFORE = 1.5, LEARNED = 1.15;

/*
 * No estimate can be within these bounds of all: the tokenizers differ by more than the square of
 * it among themselves, or a story and a report of a few hundred letters do. `claude` is of Claude
 * 2, the last one that was published; cl100k is of GPT-4.
 */
static const struct {
	const char *kind, *tokenizer; /* NULL: several */
	double before, learned;       /* 0: the usual bound */
} exceptions[] = {
	/* clang-format off */
	{"numbers-long", NULL, 1.75, 0}, /* twelve digits: four tokens or twelve */
	{"chinese", NULL, 1.7, 1.25},
	{"chinese-traditional", NULL, 1.85, 0},
	{"korean", "claude", 1.6, 0},
	{"russian", NULL, 1.75, 1.45},
	{"vietnamese", NULL, 2.1, 1.2},
	{"greek", NULL, 2.25, 1.25},
	{"hebrew", NULL, 1.85, 0},
	{"arabic", NULL, 2, 1.25},
	{"hindi", NULL, 2.3, 1.25},
	{"thai", NULL, 3.4, 1.7},
	{"spanish", NULL, 0, 1.3},
	{"french", NULL, 0, 1.2},
	{"german", NULL, 0, 1.2},
	{"code-sql", NULL, 0, 1.2},
	{"code-go", NULL, 0, 1.2},
	{"diff", NULL, 0, 1.2},
	/* clang-format on */
};

struct sample {
	char name[64];
	char *bytes; /* owned */
	size_t size;
	long counts[TOKENIZERS_MAX];
	struct token_scan scan;
};

/* The samples that main() has read, two of each kind, one behind the other. */
static struct sample samples[SAMPLES_MAX];
static char tokenizers[TOKENIZERS_MAX][16];
static size_t sample_count, tokenizer_count;

static size_t exception_of(const char *name, const char *tokenizer)
{
	size_t i = 0;

	while (i < COUNT(exceptions) &&
	       (strlen(exceptions[i].kind) != strcspn(name, ".") ||
		strncmp(exceptions[i].kind, name, strlen(exceptions[i].kind)) != 0 ||
		(exceptions[i].tokenizer && strcmp(exceptions[i].tokenizer, tokenizer) != 0)))
		i++;
	return i;
}

static double bound_of(const char *name, const char *tokenizer, bool learned)
{
	size_t i = exception_of(name, tokenizer);
	double bound = i == COUNT(exceptions) ? 0
		       : learned              ? exceptions[i].learned
					      : exceptions[i].before;

	return bound > 0 ? bound : learned ? LEARNED : BEFORE;
}

static double apart(int64_t estimate, long counted)
{
	return exp(fabs(log((double)estimate / (double)counted)));
}

static double fresh(size_t i, size_t tokenizer)
{
	return apart(token_estimate(&samples[i].scan.counts), samples[i].counts[tokenizer]);
}

/* How far the estimate is from what a text is counted as, once another has been billed. Both stand
 * behind this prompt, if it is not NULL: the second one and what was billed before. */
static double learned(size_t from, size_t to, size_t tokenizer, const struct sample *prompt)
{
	struct token_estimator estimator = {0};
	struct token_counts counts = samples[from].scan.counts;
	long billed = samples[from].counts[tokenizer];

	if (prompt) {
		token_counts_add(&counts, &prompt->scan.counts);
		billed += prompt->counts[tokenizer];
	}
	token_estimator_learn(&estimator, &counts, billed);
	if (prompt) {
		token_counts_add(&counts, &samples[to].scan.counts);
		billed += samples[to].counts[tokenizer];
	} else {
		counts = samples[to].scan.counts;
		billed = samples[to].counts[tokenizer];
	}
	return apart(token_estimator_tokens(&estimator, &counts), billed);
}

static int beyond(size_t i, size_t tokenizer, double is, bool after, const char *how)
{
	if (is <= bound_of(samples[i].name, tokenizers[tokenizer], after))
		return 0;
	print_message("%s, %s, %s: %.2f times\n", samples[i].name, tokenizers[tokenizer], how, is);
	return 1;
}

/* LIB-8: before anything is known of a model. */
static void test_estimate(void **state)
{
	int wrong = 0;

	(void)state;
	assert_true(sample_count > 80 && tokenizer_count > 5);
	for (size_t i = 0; i < sample_count; i++)
		for (size_t j = 0; j < tokenizer_count; j++)
			wrong += beyond(i, j, fresh(i, j), false, "at first");
	assert_int_equal(wrong, 0);
}

/* A model of each vocabulary, by names as providers have them. */
static const struct {
	const char *tokenizer, *model;
} models[] = {
	{"cl100k", "gpt-4-turbo"},
	{"cl100k", "openai/gpt-3.5-turbo"},
	{"o200k", "gpt-4o-mini"},
	{"o200k", "gpt-5.1"},
	{"o200k", "o3-mini"},
	{"o200k", "openai/gpt-oss-20b"},
	{"claude", "anthropic/claude-sonnet-4"},
	{"llama3", "meta-llama/Llama-3.1-8B-Instruct"},
	{"llama3", "llama3.2:3b"},
	{"qwen", "Qwen/Qwen2.5-7B-Instruct"},
	{"qwen", "deepseek-r1-distill-qwen-1.5b"},
	{"qwen", "qwq:32b"},
	{"gemma", "gemma-2-9b-it"},
	{"gemma", "gemini-2.5-flash"},
	{"deepseek", "deepseek-chat"},
};

static size_t tokenizer_of(const char *name)
{
	size_t i = 0;

	while (i < tokenizer_count && strcmp(tokenizers[i], name) != 0)
		i++;
	assert_true(i < tokenizer_count);
	return i;
}

/* LIB-8: by the vocabulary that a model's name tells, every text is within the usual bound. */
static void test_vocabularies(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t k = 0; k < COUNT(models); k++) {
		struct token_estimator estimator;
		size_t tokenizer = tokenizer_of(models[k].tokenizer);

		token_estimator_begin(&estimator, models[k].model);
		for (size_t i = 0; i < sample_count; i++) {
			const struct sample *sample = &samples[i];
			double is = apart(token_estimator_tokens(&estimator, &sample->scan.counts),
					  sample->counts[tokenizer]);

			if (is > BEFORE)
				print_message("%s, %s: %.2f times\n", sample->name, models[k].model,
					      is);
			wrong += is > BEFORE;
		}
	}
	assert_int_equal(wrong, 0);
}

/* A name that tells no vocabulary leaves the table as it is. */
static void test_unknown_names(void **state)
{
	static const char *const names[] = {"", "fake", "mistral-large", "solo1", "phi4", "llama2"};
	static const struct token_estimator nothing;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct token_estimator estimator;

		token_estimator_begin(&estimator, names[i]);
		assert_memory_equal(&estimator, &nothing, sizeof nothing);
	}
}

/* LIB-8: after the first reply, of the other text of the same kind; alone, and in a conversation
 * that began with English. */
static void test_learn(void **state)
{
	const struct sample *prompt = NULL;
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sample_count; i++)
		if (!strcmp(samples[i].name, "prose-technical.1"))
			prompt = &samples[i];
	assert_non_null(prompt);
	for (size_t i = 0; i < sample_count; i++)
		for (size_t j = 0; j < tokenizer_count; j++) {
			wrong += beyond(i, j, learned(i ^ 1, i, j, NULL), true, "learned");
			wrong += beyond(i, j, learned(i ^ 1, i, j, prompt), true, "talking");
		}
	assert_int_equal(wrong, 0);
}

/* An exception that is none any more is to be taken out. */
static void test_exceptions(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(exceptions); k++) {
		double before = 0, after = 0;

		for (size_t i = 0; i < sample_count; i++)
			for (size_t j = 0; j < tokenizer_count; j++)
				if (exception_of(samples[i].name, tokenizers[j]) == k) {
					before = fmax(before, fresh(i, j));
					after = fmax(after, learned(i ^ 1, i, j, NULL));
				}
		if ((exceptions[k].before > 0) != (before > BEFORE) ||
		    (exceptions[k].learned > 0) != (after > LEARNED))
			fail_msg("%s: %.2f, then %.2f", exceptions[k].kind, before, after);
	}
}

/* A bill that cannot be does no lasting harm: no number leaves its bounds. */
static void test_odd_bills(void **state)
{
	static const int64_t bills[] = {1, 0, INT64_MAX, -5, INT64_MIN, 3};
	const struct token_counts *counts = &samples[0].scan.counts;
	struct token_estimator estimator = {0};
	int64_t plain = token_estimate(counts);

	(void)state;
	for (size_t i = 0; i < COUNT(bills); i++) {
		token_estimator_learn(&estimator, counts, bills[i]);
		assert_in_range(token_estimator_tokens(&estimator, counts), plain / 4,
				plain * 4 + 1);
	}
	estimator = (struct token_estimator){0};
	token_estimator_learn(&estimator, counts, 0);
	token_estimator_learn(&estimator, counts, -1);
	token_estimator_learn(&estimator, &(struct token_counts){0}, 500);
	assert_int_equal(token_estimator_tokens(&estimator, counts), plain);
}

/* In whatever pieces the bytes come. */
static void test_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++)
		for (size_t piece = 1; piece < 8; piece += effort(1, 4)) {
			struct token_scan scan = {0};

			for (size_t at = 0; at < samples[i].size; at += piece) {
				size_t left = samples[i].size - at;

				token_scan_feed(&scan, text_from(samples[i].bytes + at,
								 left < piece ? left : piece));
			}
			assert_memory_equal(&scan.counts, &samples[i].scan.counts,
					    sizeof scan.counts);
		}
}

static void feed_singly(struct token_scan *scan, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		token_scan_feed(scan, text_from(bytes + i, 1));
}

/* A count of several comes to what is counted byte by byte, whatever stands beside it. */
static void test_any_bytes(void **state)
{
	static const char some[] =
		"aazzmmAZ19  \n\t;_\x80\xbf\xc3\xb8\xd0\xe1\xb9\xe4\xef\xbc\xf0\xff";
	static const size_t choices[] = {8, 10, 16, sizeof some - 1}; /* words only, ..., all */
	char bytes[300];

	(void)state;
	srand(1);
	for (unsigned i = 0; i < effort(4000, 400); i++) {
		struct token_scan whole = {0}, single = {0};
		size_t first = (size_t)rand() % 70, choice = choices[i % COUNT(choices)];
		size_t same = (size_t)rand() % 90; /* in a row, now and then */

		for (size_t k = 0; k < sizeof bytes; k++)
			bytes[k] = k && (size_t)rand() % 100 < same ? bytes[k - 1]
								    : some[(size_t)rand() % choice];
		feed_singly(&single, bytes, sizeof bytes);
		token_scan_feed(&whole, text_from(bytes, first));
		token_scan_feed(&whole, text_from(bytes + first, sizeof bytes - first));
		assert_memory_equal(&whole.counts, &single.counts, sizeof whole.counts);
	}
}

/* Where only samples are looked at, the estimate goes on as before. */
static void test_long(void **state)
{
	enum { TIMES = 8 };

	(void)state;
	for (size_t i = 0; i < sample_count; i += effort(2, 16)) {
		struct token_scan scan = {0};
		int64_t exact = 0, all;

		while (scan.at < TIMES * (uint64_t)TOKEN_EXACT) {
			token_scan_feed(&scan, text_from(samples[i].bytes, samples[i].size));
			if (!exact && scan.at + samples[i].size > TOKEN_EXACT)
				exact = token_estimate(&scan.counts);
		}
		all = token_estimate(&scan.counts);
		if (all < exact * (TIMES - 1) || all > exact * (TIMES + 1))
			fail_msg("%s: %ld, then %ld", samples[i].name, (long)exact, (long)all);
	}
}

/* Of many texts of all lengths, each made of the sample again and again. */
static void test_of_many(void **state)
{
	enum { TEXTS = 300, STEP = 97 };

	(void)state;
	for (size_t i = 0; i < sample_count; i += effort(2, 16)) {
		int64_t exact = 0, all = 0;

		for (size_t size = 1; size < TEXTS * STEP; size += STEP) {
			struct token_scan each = {0}, sampled = {.of_many = true};
			int64_t one, other;

			while (each.at < size) {
				size_t left = size - each.at;
				struct rlmd_text piece = text_from(
					samples[i].bytes,
					left < samples[i].size ? left : samples[i].size);

				token_scan_feed(&each, piece);
				token_scan_feed(&sampled, piece);
			}
			one = token_estimate(&each.counts);
			other = token_estimate(&sampled.counts);
			if (size <= 2048)
				assert_int_equal(one, other);
			if (other * 2 > one * 3 + 2 || one * 2 > other * 3 + 2)
				fail_msg("%s, %zu bytes: %ld, and %ld by samples", samples[i].name,
					 size, (long)one, (long)other);
			exact += one;
			all += other;
		}
		if (all * 10 < exact * 9 || all * 10 > exact * 11)
			fail_msg("%s: %ld, and %ld by samples", samples[i].name, (long)exact,
				 (long)all);
	}
}

/* A text as long as a window is looked at as a whole: where it is blank now and then, in whatever
 * places, it is dense all the same. */
static void test_blank_in_places(void **state)
{
	enum { SIZE = 3 << 20, EVERY = 64 << 10, BLANK = 2 << 10, APART = 64 << 10 };
	char *bytes = malloc(SIZE);
	struct token_scan whole = {0};
	int64_t parts = 0;

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = i % EVERY < BLANK ? ' ' : "a1!B;2?c"[i % 8];
	token_scan_feed(&whole, text_from(bytes, SIZE));
	for (size_t at = 0; at < SIZE; at += APART) {
		struct token_scan part = {0};

		token_scan_feed(&part, text_from(bytes + at, APART));
		parts += token_estimate(&part.counts);
	}
	free(bytes);
	assert_in_range(token_estimate(&whole.counts), parts * 99 / 100, parts * 101 / 100);
}

/* Bytes that are no text are counted too, and nothing is nothing. */
static void test_bytes(void **state)
{
	struct token_scan scan = {0};

	(void)state;
	token_scan_feed(&scan, text_of(""));
	token_scan_feed(&scan, (struct rlmd_text){0});
	assert_int_equal(token_estimate(&scan.counts), 0);
	token_scan_feed(&scan, text_of("\x80\xff\xbf\xc3(\xe1z\xef\xbc"));
	assert_in_range(token_estimate(&scan.counts), 4, 9);
	assert_int_equal(text_tokens(text_of("a")), 1);
}

static void read_sample(const char *directory, struct sample *sample)
{
	char path[LINE_MAX];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", directory, sample->name);
	file = fopen(path, "r");
	if (!file) {
		perror(path);
		exit(1);
	}
	sample->bytes = malloc(sample->size + 1);
	if (fread(sample->bytes, 1, sample->size + 1, file) != sample->size) {
		fprintf(stderr, "%s has other bytes than were counted: run tools/token-counts\n",
			path);
		exit(1);
	}
	fclose(file);
	token_scan_feed(&sample->scan, text_from(sample->bytes, sample->size));
}

static void read_line(char *line, const char *directory)
{
	struct sample *sample = &samples[sample_count];
	char *rest = line;
	const char *name = strsep(&rest, "\t"), *size = strsep(&rest, "\t"), *field;

	if (strcmp(name, "sample") != 0) {
		snprintf(sample->name, sizeof sample->name, "%s", name);
		sample->size = strtoul(size, NULL, 10);
	}
	for (size_t j = 0; (field = strsep(&rest, "\t")) && j < TOKENIZERS_MAX; j++) {
		if (!sample->name[0])
			snprintf(tokenizers[tokenizer_count++], sizeof *tokenizers, "%s", field);
		else
			sample->counts[j] = strtol(field, NULL, 10);
	}
	if (sample->name[0]) {
		read_sample(directory, sample);
		sample_count++;
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_estimate),      cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_learn),         cmocka_unit_test(test_odd_bills),
		cmocka_unit_test(test_pieces),        cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_long),          cmocka_unit_test(test_blank_in_places),
		cmocka_unit_test(test_bytes),         cmocka_unit_test(test_vocabularies),
		cmocka_unit_test(test_unknown_names), cmocka_unit_test(test_of_many),
	};
	char line[LINE_MAX];
	FILE *table;
	int failed;

	assert(argc == 3);
	table = fopen(argv[1], "r");
	assert(table);
	while (sample_count < SAMPLES_MAX && fgets(line, sizeof line, table)) {
		line[strcspn(line, "\n")] = '\0';
		read_line(line, argv[2]);
	}
	fclose(table);
	failed = cmocka_run_group_tests_name("token", tests, NULL, NULL);
	for (size_t i = 0; i < sample_count; i++)
		free(samples[i].bytes);
	return failed;
}
