/* Code that a model wrote as a call of a tool, or between tags (ENG-1). */
#include "read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Code between tags, or in a tool's call, is cut where nothing closes it. */
static void test_cut_tags(void **state)
{
	static const struct {
		const char *input, *code;
		bool cut_fence;
	} rows[] = {
		{"<repl>\nprint(a)\nx = f(b)", "", true},
		{"<repl>\nprint(a)\n</repl>\nand th", "print(a)", false},
		{"<repl>\nprint(a)\n</repl>\n<repl>\nx = f(b)", "print(a)", true},
		{"<|python_tag|>print(a)\nprint('b", "", true},
		{"<tool_call>\n<function=python>\n<parameter=code>\nprint(a)\nremove", "", true},
		/* nothing of it is missing */
		{"<tool_call>\n<function=python>\n<parameter=code>\nprint(a)\n</parameter>\n</fun",
		 "print(a)", false},
		{"[TOOL_CALLS] [{\"name\": \"python\", \"arguments\": {\"code\": \"a\"}}]", "a",
		 false},
		{"<|python_tag|>{\"name\": \"python\", \"parameters\": {\"code\": \"a\"}}", "a",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct response response;

		assert_code(rows[i].input, true, rows[i].code);
		response_read(text_of(rows[i].input), true, &response);
		assert_int_equal(response.cut_fence, rows[i].cut_fence);
		response_done(&response);
	}
}

/* ENG-1: calls of tools, and code between tags. */
static void test_calls(void **state)
{
	static const struct reading rows[] = {
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
	ASSERT_READINGS(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_tags),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests_name("toolcall", tests, NULL, NULL);
}
