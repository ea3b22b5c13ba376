/* base/digest: the SHA-256 of several texts, each with its length. */
#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void digest(const char *a, const char *b, char ret[static DIGEST_SIZE])
{
	digest_texts((const struct rlmd_text[]){text_of(a), text_of(b)}, 2, ret);
}

static void test_division(void **state)
{
	char whole[DIGEST_SIZE], other[DIGEST_SIZE];

	(void)state;
	digest("ab", "c", whole);
	digest("ab", "c", other);
	assert_string_equal(whole, other);
	digest("a", "bc", other);
	assert_string_not_equal(whole, other);
	digest("abc", "", other);
	assert_string_not_equal(whole, other);
}

/* printf '\3\0\0\0\0\0\0\0abc' | sha256sum */
static void test_known(void **state)
{
	const struct rlmd_text text = text_of("abc");
	char digest_of_abc[DIGEST_SIZE];

	(void)state;
	digest_texts(&text, 1, digest_of_abc);
	assert_string_equal(digest_of_abc,
			    "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391");
}

static void test_one_after_the_other(void **state)
{
	char whole[DIGEST_SIZE], parts[DIGEST_SIZE];
	struct digest *texts = digest_new();

	(void)state;
	digest("ab", "c", whole);
	digest_add(texts, text_of("ab"));
	digest_add(texts, text_of("c"));
	digest_end(texts, parts);
	assert_string_equal(whole, parts);
	digest_free(NULL);
}

/* printf abc | sha256sum */
static void test_bytes(void **state)
{
	unsigned char bytes[DIGEST_BYTES];

	(void)state;
	digest_bytes(text_of("abc"), bytes);
	assert_memory_equal(bytes, "\xba\x78\x16\xbf\x8f\x01\xcf\xea", 8);
	digest_bytes(text_of(NULL), bytes);
	assert_memory_equal(bytes, "\xe3\xb0\xc4\x42", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_division),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
