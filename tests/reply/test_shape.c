/* Texts of the shape of Python, and texts that only look like it. */
#include "reply/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "effort.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_shape(const char *text, enum shape expected)
{
	enum shape shape = shape_of(text_of(text));

	if (shape != expected)
		print_error("in: %s\n", text);
	assert_int_equal(shape, expected);
}

static void test_statements(void **state)
{
	static const char *const rows[] = {
		"print(len(context))",
		"x = len(context)\nx",
		"import re",
		"from collections import Counter, defaultdict as dd\n",
		"from . import x",
		"python\nprint(1)",
		"REPL\nx = context[:100]",
		"def f(a, *b, c=1, **d) -> str:\n    \"\"\"It's one.\"\"\"\n    return a + 'x'\n",
		"async def f():\n    await g()",
		"for i, line in enumerate(context.split('\\n')):\n    if 'x' in line: print(i)\n",
		"while True:\n    print(1)\n    break",
		"with open('x') as f:\n    data = f.read()",
		("try:\n    x = f(1)\nexcept (A, B) as e:\n    raise ValueError(f'{e}') from e\nelse:\n    "
		 "pass"),
		"class A(B):\n    x = 1\n    def f(self): return self.x",
		"@cache\ndef f(n): return n if n < 2 else f(n - 1)",
		"a, (b, *c) = f(x)\nd.e['k'] += a[0] ** -2 // 3\nprint(a @ b, ~c, not d)",
		"x: list[int] = []\nprint(x)",
		"r = [f(y) for y in z if y not in w and y is not None]\n",
		"r = {k: v for k, v in z.items()}",
		"f = lambda a, b: a + b\nprint(f(1), sep='')",
		"s = \"\"\"any text; it's `here` $x\n```\n\"\"\".strip()",
		"x = (1 +\n     f(2))  # comment: it's one",
		"x = f(1) \\\n    + 2",
		"import re; print(re)",
		"print('a' 'b', f\"{x}\", rb'x', ...)",
		"if (n := len(context)) > 3:\n    print(n)",
		"print(x[1:, ::2], 1.5e-3, .5, 0xff, 1_000)",
		"FINAL(x)",
		"assert x, 'm'\nprint(x)\n\nx",
		"nums = await gather(a())",
		"x = 1\nif x:\n  pass\nelif y: print(2)",
		"print(\"\xc3\xa9\")  # \xe2\x86\x92",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_shape(rows[i], SHAPE_STATEMENTS);
}

/* Work without a trace of it: a call that may be what was printed. */
static void test_calls(void **state)
{
	static const char *const rows[] = {
		"Counter({'a': 3, 'b': 1})",
		"datetime.date(2020, 1, 2)",
		"foo()\nbar(1)",
		"await f(x)",
		">>> x = 1\n>>> x\n1",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_shape(rows[i], SHAPE_CALLS);
}

static void test_others(void **state)
{
	static const char *const rows[] = {
		"",
		"42",
		"Paris",
		"python",
		"# only a comment",
		"total = 42", /* or an output */
		"name = 'x'\nother = y",
		/* prose */
		"Done (see above).",
		"It is done. print(x)",
		"for example:\n    foo(x)",
		"from there on it goes",
		"import the data",
		"The answer is 42",
		"it's foo(x)",
		"1. First print(x)\n2. Then",
		"- print(x)\n- f(y)",
		"* print(x)\n* f(y)",
		"print(x) and then it waits",
		"Use print (x)",
		/* shell */
		"ls -la",
		"grep -c x file",
		"cd /tmp && ls",
		"pip install pandas",
		"!pip install pandas",
		"%time f(x)",
		"x=$(ls)",
		"export A=f(x)",
		"for f in *.txt; do echo $f; done",
		"python script.py",
		"cat a.txt | wc -l",
		/* data and output */
		"{\"a\": [1, 2]}",
		"{'a': 1}",
		"[1, 2]",
		"a,b,c\n1,2,3",
		"Total: 42",
		"key: value\nlist:\n  - f(x)",
		"[section]\nkey = f(x)",
		"Traceback (most recent call last):\n  File \"x\", line 1",
		"2024-01-01 12:00:00 ERROR f(x) failed",
		/* diffs */
		"-x = f(1)\n+x = f(2)",
		"@@ -1 +1 @@\n x = f(1)",
		/* other languages */
		"const x = f(1);",
		"let x = f(1)",
		"x = f(1);",
		"x := f(1)",
		"x <- mean(y)\nprint(x)",
		"int x = f(1)",
		"if (x) { f(y) }",
		"function f(x) { return x }",
		"console.log(`x`)",
		"SELECT count(*) FROM t",
		"<b>x</b>",
		"== Title ==",
		"fn main() { println!(\"x\") }",
		"puts \"x\"",
		"x = f(1) ? 2 : 3",
		/* not whole */
		"print(",
		"x = f(1",
		"print('x",
		"s = '''x\nprint(1)",
		"print(1))",
		"def f(x)\n    return f(x)",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_shape(rows[i], SHAPE_OTHER);
}

/* Every beginning of a text is read without harm, whatever it breaks off in. */
static void test_beginnings(void **state)
{
	static const char text[] =
		"def f(a): return {'\\'': \"\"\"x\\\n\"\"\"}[a:].b ** .5\\\n; x = "
		"f'{a}' # c\n@d\nasync def g(): await f(x, *y) != -1; ...\n\\";

	(void)state;
	for (size_t size = 0; size < sizeof text; size++) {
		char *copy = test_malloc(size + 1);

		for (size_t i = 0; i < size; i++)
			copy[i] = text[i];
		shape_of(text_from(copy, size));
		test_free(copy);
	}
}

static clock_t time_of_calls(size_t size)
{
	static const char unit[] = "f();";
	char *text = test_malloc(size);
	clock_t start = clock();

	for (size_t i = 0; i < size; i++)
		text[i] = unit[i % strlen(unit)];
	assert_int_equal(shape_of(text_from(text, size - 1)), SHAPE_CALLS);
	test_free(text);
	return clock() - start;
}

/* A text that Python would read as a value, in one line; words of a sentence are none. */
static void test_expressions(void **state)
{
	static const char *const yes[] = {
		"n",         "größe",    "str(n)",  "f\"{n} of {m}\"", "rows[0]", "n + 1",
		"len(rows)", "-n",       "a.b.c()", "[x for x in y]",  "not n",   "a if b else c",
		"20",        "{'a': n}", "n, m",    "x == 1",          "答え",    "\"a\" + b"};
	static const char *const no[] = {
		"the end",   "n errors", "Paris (France)", "n = 1", "a: b", "",
		"import re", "n\nm",     "it's n",         "(n",    "n +",  "a b c",
		"n?",        "n)",       "return n"};

	(void)state;
	for (size_t i = 0; i < COUNT(yes); i++)
		if (!shape_is_expression(text_of(yes[i])))
			fail_msg("no expression: %s", yes[i]);
	for (size_t i = 0; i < COUNT(no); i++)
		if (shape_is_expression(text_of(no[i])))
			fail_msg("an expression: %s", no[i]);
}

static void test_one_long_line(void **state)
{
	clock_t little = time_of_calls(effort(1 << 18, 1 << 15)) + CLOCKS_PER_SEC / 1000;

	(void)state;
	/* Sixteen times as much text; in quadratic time it took 256 times as long. */
	assert_in_range(time_of_calls(effort(1 << 22, 1 << 19)), 0, 80 * little);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statements),    cmocka_unit_test(test_calls),
		cmocka_unit_test(test_others),        cmocka_unit_test(test_beginnings),
		cmocka_unit_test(test_one_long_line), cmocka_unit_test(test_expressions),
	};

	return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
