/*
 * Replies as models and libraries have them written, each with its twin: what looks like it and is
 * something else. docs/replies.md has the rules.
 */
#include "reply/response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What is found in a reply: its blocks, joined by a line "--"; its answer; its thinking. */
struct row {
	const char *input, *code, *answer, *thinking;
};

static void assert_text(struct rlmd_text text, const char *expected, const char *input)
{
	if (text_equal(text, expected))
		return;
	print_error("in:   %s\nwant: [%s]\ngot:  [%.*s]\n", input, expected, (int)text.size,
		    text.bytes ? text.bytes : "");
	fail();
}

static void assert_row(const struct row *row)
{
	struct response response;
	char joined[1024] = "";

	response_read(text_of(row->input), false, &response);
	for (size_t i = 0; i < response.block_count; i++) {
		strcat(joined, i ? "\n--\n" : "");
		strncat(joined, response.blocks[i].bytes, response.blocks[i].size);
	}
	assert_text(text_of(joined), row->code, row->input);
	if (response.answer || row->answer)
		assert_text(response.value, row->answer ? row->answer : "(none)", row->input);
	if (row->thinking)
		assert_text(response.thinking, row->thinking, row->input);
	response_done(&response);
}

#define ASSERT_ROWS(rows)                                                                          \
	for (size_t i = 0; i < COUNT(rows); i++)                                                   \
	assert_row(&(rows)[i])

/* ENG-1: names of the language. */
static void test_languages(void **state)
{
	static const struct row rows[] = {
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
	ASSERT_ROWS(rows);
}

/* ENG-1: fences without a language. */
static void test_bare(void **state)
{
	static const struct row rows[] = {
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
	ASSERT_ROWS(rows);
}

/* ENG-1: calls of tools, and code between tags. */
static void test_calls(void **state)
{
	static const struct row rows[] = {
		/* Hermes, Qwen 2.5 and 3 */
		{"<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"a\\nb\"}}\n"
		 "</tool_call>",
		 "a\nb", NULL, ""},
		{"I look.\n<tool_call>{\"name\": \"repl\", \"arguments\": \"{\\\"code\\\": \\\"a\\\"}\"}"
		 "</tool_call>\nFINAL_VAR(x)",
		 "a", "x", "I look."},
		{"<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"a\"}}\n</tool_call>\n"
		 "<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"b\"}}",
		 "a\n--\nb", NULL, ""},
		/* Qwen3-Coder */
		{"<tool_call>\n<function=python>\n<parameter=code>\nif a:\n    b\n</parameter>\n"
		 "</function>\n</tool_call>",
		 "if a:\n    b", NULL, ""},
		/* Mistral */
		{"[TOOL_CALLS] [{\"name\": \"python\", \"arguments\": {\"code\": \"a\"}}]", "a",
		 NULL, ""},
		/* Llama 3.1 */
		{"<|python_tag|>print(a)<|eom_id|>", "print(a)", NULL, ""},
		{"<|python_tag|>{\"name\": \"python\", \"parameters\": {\"code\": \"a\"}}", "a",
		 NULL, ""},
		/* OpenAI's form, as text; a list of them */
		{"{\"function\": {\"name\": \"execute_python\", \"arguments\": \"{\\\"code\\\": "
		 "\\\"a\\\"}\"}}",
		 "a", NULL, ""},
		{"[{\"name\": \"python\", \"arguments\": {\"code\": \"a\"}}, {\"name\": \"python\", "
		 "\"arguments\": {\"code\": \"b\"}}]",
		 "a\nb", NULL, ""},
		{"First:\n\n{\"tool\": \"python\", \"input\": \"a\"}", "a", NULL, "First:"},
		{"```json\n{\"name\": \"python\", \"arguments\": {\"code\": \"FINAL(1)\"}}\n```",
		 "FINAL(1)", NULL, ""},
		/* Gemini, CodeAct, smolagents */
		{"<tool_code>\na b\n</tool_code>", "a b", NULL, ""},
		{"<execute>\na\n</execute>", "a", NULL, ""},
		{"Thought: x\n<code>\nprint(a)\n</code>", "print(a)", NULL, "Thought: x"},
		{"<repl>print(a)</repl>", "print(a)", NULL, ""},
		/* a fence within the tags is the code */
		{"<code>\n```py\na\n```\n</code>", "a", NULL, "<code>\n</code>"},
		/* a line feed in JSON's string: Qwen 2.5 */
		{"<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"a = 'x'\nb\\n\"}}\n"
		 "</tool_call>",
		 "a = 'x'\nb\n", NULL, ""},
		/* LangChain's agents of JSON */
		{"```json\n{\"action\": \"python\", \"action_input\": \"a\"}\n```", "a", NULL, ""},
		{"{\"tool\": \"python_repl\", \"tool_input\": {\"code\": \"a\"}}", "a", NULL, ""},
		/* Claude */
		{"I look.\n<function_calls>\n<invoke name=\"python\">\n<parameter name=\"code\">a\n"
		 "b</parameter>\n</invoke>\n</function_calls>",
		 "a\nb", NULL, "I look."},
		{"<function_calls>\n<invoke name=\"repl\">\n<parameter name=\"timeout\">9</parameter>\n"
		 "<parameter name=\"code\">\na\n</parameter>\n</invoke>\n<invoke name=\"repl\">\n"
		 "<parameter name=\"code\">b</parameter>\n</invoke>\n</function_calls>",
		 "a\n--\nb", NULL, ""},
		/* DeepSeek V3, V3.1, V3.2 */
		{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>python\n```json\n"
		 "{\"code\": \"a\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		 "a", NULL, ""},
		{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>python<｜tool▁sep｜>{\"code\": \"a\"}"
		 "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		 "a", NULL, ""},
		{"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"python\">\n<｜DSML｜parameter "
		 "name=\"code\" string=\"true\">a\nb</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
		 "</｜DSML｜function_calls>",
		 "a\nb", NULL, ""},
		/* Mistral, since its version 11 of the tokenizer */
		{"[TOOL_CALLS]python[ARGS]{\"code\": \"a\"}", "a", NULL, ""},
		{"[TOOL_CALLS]python[CALL_ID]x1[ARGS]{\"code\": \"a\"}[TOOL_CALLS]python[ARGS]{\"code\": "
		 "\"b\"}</s>",
		 "a\n--\nb", NULL, ""},
		/* Llama 3.1, 3.2 and 4 */
		{"<function=python>{\"code\": \"a\"}</function>", "a", NULL, ""},
		{"<function=python>{\"code\": \"a\"}</function><|eom_id|>", "a", NULL, NULL},
		{"[python(code=\"a('x')\\nb \\\"y\\\"\")]", "a('x')\nb \"y\"", NULL, ""},
		{"<|python_start|>[python(code='a')]<|python_end|>", "a", NULL, ""},
		{"<|python_start|>print(a)<|python_end|>", "print(a)", NULL, ""},
		/* Qwen3-Coder, without its tags */
		{"<function=python>\n<parameter=code>\na\n</parameter>\n</function>\n</tool_call>",
		 "a", NULL, ""},
		/* GLM 4.5 and 4.7 */
		{"<tool_call>python\n<arg_key>code</arg_key>\n<arg_value>a\nb</arg_value>\n</tool_call>",
		 "a\nb", NULL, ""},
		{"<tool_call>python<arg_key>timeout</arg_key><arg_value>9</arg_value><arg_key>code</arg_key>"
		 "<arg_value>a</arg_value></tool_call>",
		 "a", NULL, ""},
		/* Kimi K2 */
		{"<|tool_calls_section_begin|><|tool_call_begin|>functions.python:0"
		 "<|tool_call_argument_begin|>{\"code\": \"a\"}<|tool_call_end|>"
		 "<|tool_calls_section_end|>",
		 "a", NULL, ""},
		/* gpt-oss */
		{"<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>commentary to=python "
		 "code<|message|>a\nb<|call|>",
		 "a\nb", NULL, "x"},
		{"<|channel|>commentary to=functions.python <|constrain|>json<|message|>{\"code\": \"a\"}"
		 "<|call|>",
		 "a", NULL, ""},
		/* ReAct */
		{"Thought: I look.\nAction: python\nAction Input: print(a)\nprint(b)",
		 "print(a)\nprint(b)", NULL, "Thought: I look."},
		{"Action: python\nAction Input: {\"code\": \"a\"}\nObservation: 3", "a", NULL,
		 NULL},
		{"Action: python\nAction Input:\n```json\n{\"code\": \"a\"}\n```", "a", NULL, ""},
		/* HTML */
		{"<pre><code>\nprint(a)\n</code></pre>", "print(a)", NULL, ""},
		{"<pre><code class=\"language-python\">print(a)\nb\n</code></pre>", "print(a)\nb",
		 NULL, ""},
		/* twins */
		{"<function_calls>\n<invoke name=\"search\">\n<parameter name=\"code\">a</parameter>\n"
		 "</invoke>\n</function_calls>",
		 "", NULL, NULL},
		{"[TOOL_CALLS]search[ARGS]{\"code\": \"a\"}", "", NULL, NULL},
		{"<invoke name=\"python\"> is what Claude writes.", "", NULL, NULL},
		{"[python(1)] is the index.", "", NULL, NULL},
		{"[python(code=\"a\"), python(code=\"b\")]", "", NULL, NULL},
		{"Action: python is slow here.\nFINAL(1)", "", "1", NULL},
		{"Action: python\nAction Input: look at the context", "", NULL, NULL},
		{"The flag to=python is set.", "", NULL, NULL},
		{"```json\n{\"code\": \"a\"}\n```", "", NULL, NULL},
		{"<tool_call>\n{\"name\": \"search\", \"arguments\": {\"code\": \"a\"}}\n"
		 "</tool_call>",
		 "", NULL, NULL},
		{"<tool_call>\n{\"name\": \"python\", \"arguments\": {\"quest\": \"a\"}}\n"
		 "</tool_call>",
		 "", NULL, NULL},
		{"{\"name\": \"python\", \"version\": 3}", "", NULL, NULL},
		{"I use <python>print(a)</python> here.", "", NULL, NULL},
		{"<code>f(x)</code> is what fails.", "", NULL, NULL},
		{"<execute>a plan</execute> is what I do.", "", NULL, NULL},
		{"<python> is a tag.", "", NULL, NULL},
		{"`<tool_call>` opens one.\nFINAL(1)", "", "1", NULL},
		{"FINAL(\n<repl>\na\n</repl>\n)", "", "<repl>\na\n</repl>", NULL},
		{"```text\n<repl>\na\n</repl>\n```", "", NULL, NULL},
		{"FINAL({\"name\": \"python\", \"arguments\": {\"code\": \"a\"}})", "",
		 "{\"name\": \"python\", \"arguments\": {\"code\": \"a\"}}", NULL},
	};

	(void)state;
	ASSERT_ROWS(rows);
}

/* ENG-1: fences that are written otherwise, and no fences at all. */
static void test_forms_of_fences(void **state)
{
	static const struct row rows[] = {
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
	ASSERT_ROWS(rows);
}

/* ENG-2: answers that no marker leads. */
static void test_informal(void **state)
{
	static const struct row rows[] = {
		{"`FINAL(20)`", "", "20", ""},
		{"It is clear.\n\n**`FINAL(20)`**", "", "20", NULL},
		{"`FINAL_VAR(n)`.", "", "n", NULL},
		{"```text\nFINAL(the capital is Paris)\n```", "", "the capital is Paris", ""},
		{"```\nFINAL(the capital is Paris)\n```", "", "the capital is Paris", ""},
		{"FINAL_var(n)", "", "n", ""},
		{"SUBMIT(answer=20)", "", "20", ""}, /* DSPy */
		{"So\nSUBMIT(\"a b\")", "", "a b", "So"},
		{"The answer is $\\boxed{20}$.", "", "20", NULL}, /* Qwen, DeepSeek */
		{"**Final Answer**\n\n\\boxed{\\text{the {x} one}}", "", "the {x} one", NULL},
		{"So it is.\n\n**Final Answer:** 20", "", "20", "So it is."},
		{"Final answer: **20**", "", "20", ""},
		{"### Final Answer\n\nIt is 20,\nand 21.", "", "It is 20,\nand 21.", ""},
		{"FINAL ANSWER: `a.c`", "", "a.c", ""},
		{"**Final answer: a *b* c**", "", "a *b* c", ""},
		{"**Final Answer:** **20**", "", "20", ""},
		/* twins */
		{"I end with `FINAL(20)` later.", "", NULL, NULL},
		{"`FINAL(your answer)`", "", NULL, NULL},
		{"`print(1); FINAL(20)`", "", NULL, NULL},
		{"```sql\nFINAL(20)\n```", "", NULL, NULL},
		{"```repl\na\n```\n`FINAL(20)`", "a", NULL, NULL},
		{"\\boxed{20} is what I guess, but I look.", "", NULL, NULL},
		{"\\boxed{20", "", NULL, NULL},
		{"\\boxed{...}", "", NULL, NULL},
		{"Final answer: 20\n\nBut I must look first.", "", NULL, NULL},
		{"The final answer: what could it be?", "", NULL, NULL},
		{"Final answers need code", "", NULL, NULL},
		{"Final answer:", "", NULL, NULL},
		{"`Final Answer: 20`", "", NULL, NULL},
		{"SUBMIT(20) is what I call next.", "", NULL, NULL},
	};

	(void)state;
	ASSERT_ROWS(rows);
}

/* ENG-4: thoughts in the text. */
static void test_thoughts(void **state)
{
	static const struct row rows[] = {
		/* DeepSeek-R1, QwQ, Qwen3 */
		{"<think>\nFINAL(1)\n</think>\n\nFINAL(2)", "", "2", "FINAL(1)"},
		{"<think></think>\n```repl\na\n```", "a", NULL, ""},
		{"<think>so\n```python\nb\n</think>\n```repl\na\n```", "a", NULL,
		 "so\n```python\nb"},
		{"<think>x</think>FINAL(2)", "", "2", "x"},
		{"<think>x</think>\nthen\n<think>y</think>\nFINAL(2)", "", "2", "x\ny\n\nthen"},
		{"<think>say `</think>` now</think>FINAL(2)", "", "2", "say `</think>` now"},
		/* a template that has the opening tag */
		{"x FINAL(1)\n</think>\n\nFINAL(2)", "", "2", "x FINAL(1)"},
		{"x so it is 2.</think>\n\nFINAL(2)", "", "2", "x so it is 2."},
		{"```repl\na\n```\n</think>\n", "", NULL, "```repl\na\n```"},
		/* others */
		{"<thinking>FINAL(1)</thinking>FINAL(2)", "", "2", "FINAL(1)"},
		{"<Reasoning>x</reasoning>\nFINAL(2)", "", "2", "x"},
		{"[THINK]x[/THINK]FINAL(2)", "", "2", "x"},                   /* Magistral */
		{"◁think▷x FINAL(1)◁/think▷FINAL(2)", "", "2", "x FINAL(1)"}, /* Kimi */
		{"<|START_THINKING|>x FINAL(1)<|END_THINKING|><|START_RESPONSE|>FINAL(2)"
		 "<|END_RESPONSE|>",
		 "", "2", NULL}, /* Cohere */
		{"<|begin_of_thought|>\n\nx FINAL(1)\n\n<|end_of_thought|>\n\n"
		 "<|begin_of_solution|>\n\nFINAL(2)\n\n<|end_of_solution|>",
		 "", "2", NULL}, /* OpenThinker */
		{"<|channel|>analysis<|message|>x FINAL(1)<|end|>FINAL(2)", "", "2",
		 "x FINAL(1)"}, /* gpt-oss */
		/* one that is never closed */
		{"<think>\nx FINAL(1)\n```repl\na\n```", "", NULL, "x FINAL(1)\n```repl\na\n```"},
		{"FINAL(2)\n<think>\nx", "", "2", "x"},
		/* twins */
		{"FINAL(It opens with <think>.)", "", "It opens with <think>.", ""},
		{"FINAL(\n<think>\nx\n</think>\n)", "", "<think>\nx\n</think>", ""},
		{"Models write <think> first.\nFINAL(2)", "", "2", "Models write <think> first."},
		{"The last is </think>.\nFINAL(2)", "", "2", "The last is </think>."},
		{"It is `</think>`\nFINAL(2)", "", "2", "It is `</think>`"},
		{"```repl\ns = '''\n<think>\n</think>\n'''\n```", "s = '''\n<think>\n</think>\n'''",
		 NULL, ""},
		{"`<think>` opens it\nFINAL(2)", "", "2", "`<think>` opens it"},
	};

	(void)state;
	ASSERT_ROWS(rows);
}

/* However many there are, none of them is read as anything else. */
static void test_many_thoughts(void **state)
{
	static const char thought[] = "<think>\nFINAL(1)\n</think>\nso\n";
	char text[100 * sizeof thought];
	struct response response;

	(void)state;
	for (size_t count = 1; count < 100; count++) {
		size_t size = count * (sizeof thought - 1);

		memcpy(text + size - sizeof thought + 1, thought, sizeof thought - 1);
		response_read(text_from(text, size), false, &response);
		assert_int_equal(response.answer, RLMD_ANSWER_NONE);
		response_done(&response);
	}
}

/* What a model makes up ends its reply. */
static void test_inventions(void **state)
{
	static const struct row rows[] = {
		{"```repl\na\n```\n<output>\n1\n</output>\nFINAL(1)", "a", NULL, ""},
		{"```repl\na\n```\n[block 1]\n[stdout]\n1\n```repl\nb\n```", "a", NULL, ""},
		{"```repl\na\n```\nx\n## Output:\n1\nFINAL(1)", "a", NULL, "x"},
		{"```repl\na\n```\n```output\n1\n```\nFINAL(1)", "a", NULL, ""},
		{"<repl>\na\n</repl>\nObservation: 1\nFINAL(1)", "a", NULL, ""},
		{"x\n\nTurn 2 of 4. Left: cost 1\n\nFINAL(1)", "", NULL, "x"},
		{"x\nWhat happened since your last response (data\nFINAL(1)", "", NULL, "x"},
		{"FINAL(2)\n<|im_start|>user\nFINAL(1)", "", "2", ""}, /* ChatML */
		{"```repl\na\n```\nTurn 2 of 4. Left: cost 1\n\nFINAL(1)", "a", NULL, ""},
		/* twins */
		{"Turn 2 of 4. Left: cost 1\n```repl\na\n```\nFINAL(1)", "a", "1", NULL},
		{"<output>\n1\n</output>\nFINAL(1)", "", "1", NULL},
		{"Output:\nFINAL(1)", "", "1", "Output:"},
		{"```repl\na\n```\nOutput: as you see.\nFINAL(1)", "a", "1", NULL},
		{"```repl\na\n```\nTurn 2 of the wheel.\nFINAL(1)", "a", "1", NULL},
		{"```repl\ns = '''\n<output>\n'''\n```\nFINAL(1)", "s = '''\n<output>\n'''", "1",
		 ""},
		{"```repl\na\n```\nFINAL(\n[stdout]\n1\n)", "a", "[stdout]\n1", ""},
		{"```repl\na\n```\nI see `<output>`\nFINAL(1)", "a", "1", NULL},
	};

	(void)state;
	ASSERT_ROWS(rows);
}

/* ENG-2, ENG-3: spellings, and words that are the form of an answer. */
static void test_answers(void **state)
{
	static const struct row rows[] = {
		{"Final(42)", "", "42", ""},
		{"FinalVar(x)", "", "x", ""},
		{"**FINALVAR(x)**", "", "x", NULL},
		{"final_var(\"x\")", "", "x", ""},
		{"final_answer(\"42\")", "", "42", ""}, /* smolagents */
		{"FINAL(\"the answer\")", "", "the answer", ""},
		{"FINAL(the answer is 42)", "", "the answer is 42", ""},
		{"FINAL(42)\nFINAL(the answer)", "", "42", NULL},
		/* twins */
		{"Final(s) in May.", "", NULL, NULL},
		{"so Final(42)", "", NULL, NULL},
		{"final_answer(42) is how", "", NULL, NULL},
		{"my_final_answer(42)", "", NULL, NULL},
		{"FINAL(the answer)", "", NULL, NULL},
		{"FINAL( Your Answer )", "", NULL, NULL},
		{"FINAL(<answer>)", "", NULL, NULL},
		{"FINAL([value])", "", NULL, NULL},
		{"FINAL(...)", "", NULL, NULL},
	};

	(void)state;
	ASSERT_ROWS(rows);
}

/* What passes for words, where no code runs any more. */
static void test_words(void **state)
{
	static const char *const words[] = {
		"42",
		"x = 42",
		"f(x)",
		"> 42",
		"So: ```repl\na\n```",
		"{\"a\": 1}",
		"FINAL(42)",
		"FINAL_VAR(x)",
		"```json\n[1]\n```",
		"It is FINAL() that I write.",
		"FINAL(f(x))",
	};
	static const char *const none[] = {
		"",
		"```repl\na\n```",
		"\xe2\x80\x8b```\na\n```",
		"> ```repl\n> a\n> ```",
		">```repl\n>a\n",
		"print(1)",
		"> print(1)",
		"<python>\na\n</python>",
		"FINAL(\n```repl\na\n```\n)",
		"FINAL(print(1))",
		"FINAL()",
		"**FINAL(the answer)**",
		"<think>42",
		"<think>42</think>",
		"<think>x</think>```repl\na\n```",
	};
	struct response response;

	(void)state;
	for (size_t i = 0; i < COUNT(words) + COUNT(none); i++) {
		bool has = i < COUNT(words);
		const char *input = has ? words[i] : none[i - COUNT(words)];

		response_read(text_of(input), false, &response);
		if (response_has_words(&response) != has)
			print_error("in: %s\n", input);
		assert_int_equal(response_has_words(&response), has);
		response_done(&response);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_languages),     cmocka_unit_test(test_bare),
		cmocka_unit_test(test_calls),         cmocka_unit_test(test_forms_of_fences),
		cmocka_unit_test(test_informal),      cmocka_unit_test(test_thoughts),
		cmocka_unit_test(test_many_thoughts), cmocka_unit_test(test_inventions),
		cmocka_unit_test(test_answers),       cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests_name("replies", tests, NULL, NULL);
}
