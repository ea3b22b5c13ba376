/* Fences: which are code, where they begin and end, and what their lines are (ENG-1). */
#include "read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ENG-1: which fences are code, and where they end. */
static void test_fences(void **state)
{
	static const struct row rows[] = {
		{"```repl\nprint(1)\n```", "print(1)"},
		{"```python\nprint(1)\n```\n", "print(1)"},
		{"```py\na\n```\n```python3\nb\n```\n```py3\nc\n```", "a\n--\nb\n--\nc"},
		{"```Python\na\n```\n``` REPL \nb\n```", "a\n--\nb"},
		{"```python title=\"x.py\" {1}\na\n```", "a"},
		{"```repl,hidden\na\n```", "a"},
		{"```python:main.py\na\n```", "a"},
		{"~~~repl\na\n~~~", "a"},
		{"~~~~ py\na\n~~~\nb\n~~~~~  \t\n", "a\n~~~\nb"},
		{"```repl\na\n~~~\nb\n```", "a\n~~~\nb"},
		{"````python\ns = '''\n```\nx\n```\n'''\n````", "s = '''\n```\nx\n```\n'''"},
		/* other languages, and none */
		{"```json\n{}\n```\n```\nx\n```\n```bash\nls\n```\n```text\nt\n```", ""},
		{"```pythonic\na\n```\n```replx\nb\n```\n```pyc\nd\n```", ""},
		/* a fence of another language hides one inside of it */
		{"````markdown\n```repl\na\n```\n````\n```repl\nb\n```", "b"},
		{"```text\n```repl\na\n```\n```repl\nb\n```", "b"},
		/* what looks like a closing fence but has text behind it, is shorter or deeper */
		{"```repl\na\n``` x\nb\n```", "a\n``` x\nb"},
		{"````repl\na\n```\nb\n````", "a\n```\nb"},
		{"```repl\ndef f():\n    '''\n    ```\n    '''\n```",
		 "def f():\n    '''\n    ```\n    '''"},
		{"```repl\na\n  ```\nb", "a"},
		/* no fences at all */
		{"``repl\na\n``", ""},
		{"```repl a``` and `b`\nc", ""},
		{"    ", ""},
		{"", ""},
		{"```", ""},
		/* an open one in a complete response */
		{"```repl\na\nb", "a\nb"},
		{"```repl\na\n``", "a\n``"},
		{"```repl", ""},
		{"```repl\n", ""},
		/* empty blocks are no blocks */
		{"```repl\n```\n```repl\n\n  \n```\n```repl\nx\n```", "x"},
		/* blank lines inside stay, so that line numbers hold */
		{"```repl\n\na\n\nb\n\n```", "\na\n\nb"},
		/* text around it */
		{"First\n```repl\na\n```\nthen\n```repl\nb\n```\nend", "a\n--\nb"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_code(rows[i].input, false, rows[i].expected);
}

/* ENG-1: a fence may stand behind words on its line, where nothing else can be meant. */
static void test_fences_behind_words(void **state)
{
	static const struct row rows[] = {
		{"Sure: ```python\nprint(1)\n```", "print(1)"},
		{"text ```repl\na\n```", "a"},
		{"Sure:```Python3  \r\na\r\n```\r\nFINAL_VAR(a)", "a"},
		{"Like `this`, then ````py\nx = '''\n```\n'''\n````\nend", "x = '''\n```\n'''"},
		{"a ```x``` b ```python\nc\n```", "c"},
		{"First: ```repl\na\n```\nand: ```repl\nb\n```", "a\n--\nb"},
		{"  Sure: ```repl\n    if x:\n        y\n  ```", "if x:\n    y"},
		{"* Look: ```repl\n  a\n  ```\n", "a"},
		/* other languages and bare ones hide what follows no more than they should */
		{"So: ```json\n{}\n```\n```repl\na\n```", "a"},
		{"So: ```\n42\n```\nNow:\n```repl\nprint(1)\n```", "print(1)"},
		/* it closes on its last line, or not at all: then it must look like code */
		{"Sure: ```python\nprint(1)```", "print(1)"},
		{"Sure: ```python\nx = 1\nx```\nand on", "x = 1\nx"},
		{"Sure: ```python\nprint(1)\n", "print(1)"},
		/* inline code, and talk about fences */
		{"use ```x``` here", ""},
		{"use ```python x``` here\nand\n```\ny\n```", ""},
		{"use ```python``` here\nand ```python``` there", ""},
		{"a block that opens with ```python\nand closes with ```.", ""},
		{"a block that opens with ```python\nand closes with ```", ""},
		{"a block that opens with ```python\nand closes with ``` then", ""},
		{"a block that opens with ```python\n\nThen I shall answer.", ""},
		{"a block that opens with ```python\n\nThen I write f(x).\nFINAL(42)", ""},
		{"So: ```python\nimport re\nprint(1)\n", "import re\nprint(1)"},
		{"opens with ```python\nas in\n```repl\na\n```", "a"},
		{"opens with ```python\nas `in` this\n```repl\na\n```", "a"},
		{"a ``` that is open\nhere ```python\nprint(1)\n```", ""},
		{"say \"```python\nprint(1)\n```", ""},
		{"say (```python\nprint(1)\n```", ""},
		{"an escaped \\```python\nprint(1)\n```", ""},
		{"behind ```python it goes on\nprint(1)\n```", ""},
		{"tildes ~~~python\nprint(1)\n~~~", ""},
		{"two ``python\nprint(1)\n``", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_code(rows[i].input, false, rows[i].expected);
}

/* ENG-1: a fence may close on the last line of its code, for Python has no backticks but in
 * strings and comments. */
static void test_fences_closed_on_the_last_line(void **state)
{
	static const struct row rows[] = {
		{"```python\nprint(1)```", "print(1)"},
		{"```python\nprint(1)```\n", "print(1)"},
		{"```python\nprint(1) ```  \r\nDone.\n```repl\nb\n```", "print(1) \n--\nb"},
		{"```python\nprint(1)```\nIt prints:\n```\n1\n```", "print(1)"},
		{"```repl\na\nb````\nc", "a\nb"},
		{"````repl\na```\nb\n````", "a```\nb"},
		{"```repl\ns = '''x```\ny'''\nprint(s)\n```", "s = '''x```\ny'''\nprint(s)"},
		{"```repl\ns = \"\"\"it's ```\n\"\"\"```\nend", "s = \"\"\"it's ```\n\"\"\""},
		{"```repl\n# ends with ```\na\n```", "# ends with ```\na"},
		{"```repl\ns = 'a\\' ```'\nb```", "s = 'a\\' ```'\nb"},
		{"```repl\ns = 'open ```\nb\n```", "s = 'open ```\nb"},
		{"```repl\na = '#'```", "a = '#'"},
		{"```repl\ns = 'a\\\nb ```'\nc```", "s = 'a\\\nb ```'\nc"},
		{"```repl\na\n        ```\nb", "a"},
		/* words behind it are prose; backticks and one word alone may open a fence */
		{"```python\nprint(1)``` That is it.", "print(1)"},
		{"```python\nprint(1)``` That's it.\nIt prints:\n```\n1\n```", "print(1)"},
		{"```python\nprint(1)\n``` That is it.\n", "print(1)"},
		{"```repl\na``` Then:\n```repl\nb\n```", "a\n--\nb"},
		{"````repl\na``` then\nb\n````", "a``` then\nb"},
		{"```repl\na``` is `b`\n```", "a``` is `b`"},
		{"```repl\na\n```b\n```", "a\n```b"},
		{"```repl\ns = '``` That is it.'\nb\n```", "s = '``` That is it.'\nb"},
		{"```repl\na # ``` That is it.\nb\n```", "a # ``` That is it.\nb"},
		{"```repl\ns = '''\n``` That is it.\n'''\n```", "s = '''\n``` That is it.\n'''"},
		{"Like ```python\nprint(1)``` that.\nYes.", ""},
		/* another language's closes so where it does not close in a better way */
		{"```json\n{}```\n```repl\na\n```", "a"},
		{"```text\nx```\n```\n```repl\na\n```", "a"},
		{"~~~text\nx~~~\n```repl\na\n```\n~~~", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_code(rows[i].input, false, rows[i].expected);
}

/* ENG-1: CRLF is no part of the code, and a lone carriage return is left alone. */
static void test_line_ends(void **state)
{
	(void)state;
	assert_code("```repl\r\na\r\n  b\r\n```\r\n", false, "a\n  b");
	assert_code("```repl\r\na\rb\r\n", false, "a\rb");
	assert_code("x\r\n~~~py\r\na\r\n~~~ \r\ny", false, "a");
}

/* ENG-1: a fence's indentation comes off all lines evenly, in lists too; a block that is
 * indented as a whole would be no Python, so that comes off as well. */
static void test_indentation(void **state)
{
	static const struct row rows[] = {
		{"  ```repl\n  if x:\n      y\n  ```", "if x:\n    y"},
		{"1. Look:\n\n   ```repl\n   a\n\n   b\n   ```", "a\n\nb"},
		{"- ```repl\n  a\n    b\n  ```\n", "a\n  b"},
		{"10) - ```repl\n      a\n      ```\n", "a"},
		{"      ```repl\n      a\n      ```\nafter", "a"},
		{"\t```repl\n\tif x:\n\t\ty\n\t```", "if x:\n\ty"},
		{"```repl\n    a\n      b\n    c\n```", "a\n  b\nc"},
		{"```repl\na\n  b\n```", "a\n  b"},
		{"    ```repl\na\n    b\n    ```", "a\nb"},
		{"   ```repl\n  a\n```\nx", "a"},
		{"  ```repl\n\ta\n  ```", "a"},
		{"-```repl\na\n```", "a"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_code(rows[i].input, false, rows[i].expected);
}

/* ENG-1: a block in which the provider cut the response is not run, the ones before it are. */
static void test_cut_fence(void **state)
{
	struct response response;

	(void)state;
	assert_code("```repl\na\n```\n```repl\nb\nc", true, "a");
	response_read(text_of("x\n```repl\nprint('FINAL(1)"), true, &response);
	assert_true(response.cut_fence);
	assert_int_equal(response.block_count, 0);
	assert_int_equal(response.answer, RLMD_ANSWER_NONE);
	assert_text(response.thinking, "x", "cut");
	response_done(&response);

	response_read(text_of("Sure: ```repl\nprint('FINAL(1)"), true, &response);
	assert_true(response.cut_fence);
	assert_int_equal(response.block_count, 0);
	assert_int_equal(response.answer, RLMD_ANSWER_NONE);
	response_done(&response);

	response_read(text_of("```repl\na\n```\nand then"), true, &response);
	assert_false(response.cut_fence);
	assert_int_equal(response.block_count, 1);
	response_done(&response);

	response_read(text_of("```repl\na"), false, &response);
	assert_false(response.cut_fence);
	response_done(&response);
}

/* ENG-1: names of the language. */
static void test_languages(void **state)
{
	static const struct reading rows[] = {
		{"```tool_code\na\n```", "a", NULL, ""}, /* Gemma, Gemini */
		{"```IPython\na\n```", "a", NULL, ""},
		{"```ipython3\na\n```", "a", NULL, ""},
		{"```python-repl\n>>> a\n```", ">>> a", NULL, ""},
		{"```pycon\n>>> a\n```", ">>> a", NULL, ""},
		{"```python3.11\na\n```", "a", NULL, ""},
		{"```python_repl\na\n```", "a", NULL, ""},
		{"```python-exec\na\n```", "a", NULL, ""},
		{"```jupyter\na\n```", "a", NULL, ""},
		{"```pyodide\na\n```", "a", NULL, ""},
		{"```{python}\na\n```", "a", NULL, ""},  /* Quarto */
		{"```{.python}\na\n```", "a", NULL, ""}, /* Pandoc */
		{"```code\nprint(a)\n```", "print(a)", NULL, ""},
		{"```code\nls -la\n```", "", NULL, ""},
		{"```python3.x\na\n```", "", NULL, ""},
		{"```ipynb\nprint(a)\n```", "", NULL, ""},
		{"```tool_output\nprint(a)\n```", "", NULL, ""},
	};

	(void)state;
	ASSERT_READINGS(rows);
}

/* ENG-1: fences without a language. */
static void test_bare(void **state)
{
	static const struct reading rows[] = {
		{"```\nprint(a)\n```", "print(a)", NULL, ""},
		{"```\nFINAL(a)\n```", "FINAL(a)", NULL, ""},
		{"```\npython\n\nprint(a)\n```", "\nprint(a)", NULL, ""},
		{"```\nx = f(1)\n```\nthen\n```\nprint(x)\n```", "x = f(1)\n--\nprint(x)", NULL,
		 "then"},
		/* calls may be what was printed, which an answer beside them tells */
		{"```\nCounter(a)\n```", "Counter(a)", NULL, ""},
		{"```\nCounter(a)\n```\nFINAL(42)", "", "42", ""},
		{"```\nx = f(1)\n```\nFINAL(42)", "x = f(1)", "42", ""},
		{"```\nf(x)\n```\nFINAL_VAR(x)", "f(x)", "x", ""},
		/* a tagged block wins */
		{"```repl\na\n```\n```\nprint(b)\n```", "a", NULL, ""},
		{"<python>\na\n</python>\n```\nprint(b)\n```", "a", NULL, ""},
		/* but not one that is part of the answer */
		{"```\nx = f(1)\n```\nFINAL(as in\n```python\ny\n```\n)", "x = f(1)",
		 "as in\n```python\ny\n```", ""},
		{"FINAL(as in\n```\nprint(a)\n```\n)", "", "as in\n```\nprint(a)\n```", ""},
		{"```\n$ pip install x\n```", "", NULL, ""},
		{"```\n{\"a\": 1}\n```", "", NULL, ""},
		{"```\nIt is done (see above).\n```", "", NULL, ""},
	};

	(void)state;
	ASSERT_READINGS(rows);
}

/* ENG-1: fences that are written otherwise, and no fences at all. */
static void test_forms_of_fences(void **state)
{
	static const struct reading rows[] = {
		{"```python print(a)```", "print(a)", NULL, ""},
		{"See:\n```py a = f(1); print(a)```\nFINAL_VAR(a)", "a = f(1); print(a)", "a",
		 "See:"},
		{"```\n```python\na\n```\n```", "a", NULL, NULL},
		{"```\n```python\na\n```\n```\nFINAL_VAR(a)", "a", "a", NULL},
		{"````\n```repl\na\n```\n````", "", NULL, NULL},
		{"```\n\n```repl\na\n```\n```repl\nb\n```\n```\nso", "a\n--\nb", NULL, NULL},
		/* a reply that is all Python */
		{"import re\nprint(len(context))", "import re\nprint(len(context))", NULL, ""},
		{"n = f(1)\nFINAL_VAR(n)", "n = f(1)", "n", ""},
		{"n = f(1)\nif n:\n    FINAL(n)\n", "n = f(1)\nif n:\n    FINAL(n)", NULL, ""},
		/* twins */
		{"```python```", "", NULL, NULL},
		{"```python print(a)``` is inline.", "", NULL, NULL},
		{"```text print(a)```", "", NULL, NULL},
		{"FINAL(20)", "", "20", ""},
		{"\nFINAL(f(20))", "", "f(20)", ""},
		{"I run it:\nprint(len(context))", "", NULL, NULL},
		{"Paris", "", NULL, "Paris"},
	};

	(void)state;
	ASSERT_READINGS(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fences),
		cmocka_unit_test(test_fences_behind_words),
		cmocka_unit_test(test_fences_closed_on_the_last_line),
		cmocka_unit_test(test_line_ends),
		cmocka_unit_test(test_indentation),
		cmocka_unit_test(test_cut_fence),
		cmocka_unit_test(test_languages),
		cmocka_unit_test(test_bare),
		cmocka_unit_test(test_forms_of_fences),
	};

	return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
