/* Functions of the host's: which are taken, what a worker and a model are told of them, what fits.
 */
#include "engine/function_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "source/context.h"

static void serve(void *owner, struct rlmd_function_call *call, struct rlmd_text arguments)
{
	(void)owner;
	(void)arguments;
	rlmd_function_reply(call, rlmd_text_of("1"));
}

static const char schema[] =
	"{\"type\":\"object\",\"required\":[\"key\"],\"properties\":{\"limit\":{\"type\":\"integer\"},"
	"\"key\":{\"type\":[\"string\",\"null\"]}}}";

static const struct rlmd_function lookup = {
	.size = sizeof lookup,
	.name = "lookup",
	.doc = " Looks a customer up. ",
	.schema = schema,
	.call = serve,
};

static void test_told(void **state)
{
	struct function_set *set = function_set_new(&lookup, 1, NULL, NULL);
	json_auto_t *told = NULL;

	(void)state;
	assert_non_null(set);
	told = json_read(function_set_json(set), 10, NULL);
	assert_string_equal(json_get_string(json_array_get(told, 0), "name"), "lookup");
	assert_true(text_equal(function_set_described(set),
			       "- lookup(key, limit: integer = ...): Looks a customer up.\n"));
	assert_string_equal(function_set_names(set)[0], "lookup");
	assert_null(function_set_names(set)[1]);
	assert_non_null(function_set_find(set, "lookup"));
	assert_null(function_set_find(set, "other"));
	function_set_free(set);
	set = function_set_new(NULL, 0, NULL, NULL);
	assert_int_equal(function_set_json(set).size, 0);
	assert_null(function_set_names(set)[0]);
	function_set_free(set);
	function_set_free(NULL);
}

/* The worker has it, and a model hears nothing of it. */
static void test_untold(void **state)
{
	struct rlmd_function functions[] = {lookup, lookup};
	struct function_set *set;

	(void)state;
	functions[1].name = "keep";
	functions[1].doc = NULL;
	functions[1].untold = true;
	set = function_set_new(functions, 2, NULL, NULL);
	assert_non_null(set);
	assert_non_null(function_set_find(set, "keep"));
	assert_non_null(strstr(function_set_json(set).bytes, "\"keep\""));
	assert_true(text_equal(function_set_described(set),
			       "- lookup(key, limit: integer = ...): Looks a customer up.\n"));
	function_set_free(set);
	set = function_set_new(&functions[1], 1, NULL, NULL);
	assert_int_equal(function_set_described(set).size, 0);
	function_set_free(set);
}

static void assert_refused(struct rlmd_function function, const char *why)
{
	struct rlmd_error err = {0};

	assert_null(function_set_new(&function, 1, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	if (!strstr(err.text, why))
		fail_msg("'%s' is not in '%s'", why, err.text);
}

/* Of a later version: taken where they ask for nothing that is not known, and wherever they lie. */
static void test_later_versions(void **state)
{
	struct {
		struct rlmd_function known;
		long more;
	} later[] = {{lookup, 0}, {lookup, 0}};
	struct function_set *set;
	struct rlmd_error err = {0};

	(void)state;
	later[0].known.size = later[1].known.size = sizeof later[0];
	later[1].known.name = "other";
	set = function_set_new(&later[0].known, 2, NULL, &err);
	assert_non_null(set);
	assert_non_null(function_set_find(set, "other"));
	function_set_free(set);
	later[1].more = 1;
	assert_null(function_set_new(&later[0].known, 2, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "struct rlmd_function asks for something"));
}

static void test_refused(void **state)
{
	static const char *const relative[] = {"cat", NULL};
	static const struct {
		const char *name, *why;
	} names[] = {{"for", "a keyword"}, {"print", "a builtin"}, {"llm_query", "of the worker"},
		     {"a b", "cannot be"}, {"__x", "cannot be"},   {"context", "of the input"},
		     {NULL, "a name"}};
	static const struct {
		const char *schema, *why;
	} schemas[] = {
		{"{", "no JSON"},
		{"[]", "JSON object"},
		{"{\"type\":\"array\"}", "JSON object"},
		{"{\"properties\":[]}", "no object"},
		{"{\"properties\":{\"a b\":{}}}", "no name in Python"},
		{"{\"properties\":{\"if\":{}}}", "keyword"},
		{"{\"properties\":{\"a\":1}}", "no object"},
		{"{\"required\":[\"a\"]}", "does not have"},
		{"{\"required\":1}", "no array"},
	};
	struct rlmd_function function;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		function = lookup;
		function.name = names[i].name;
		assert_refused(function, names[i].why);
	}
	for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
		function = lookup;
		function.schema = schemas[i].schema;
		assert_refused(function, schemas[i].why);
	}
	function = lookup;
	function.size = 0;
	assert_refused(function, "the size of struct rlmd_function is 0");
	function = lookup;
	function.doc = " ";
	assert_refused(function, "what it does");
	function = lookup;
	function.call = NULL;
	assert_refused(function, "either a callback or a program");
	function.argv = relative;
	assert_refused(function, "absolute path");
	function = lookup;
	function.max_calls = -1;
	assert_refused(function, "negative");
}

static void test_names_are_one_things(void **state)
{
	struct rlmd_function twice[2] = {lookup, lookup};
	struct rlmd_context *context = rlmd_context_from_text("lookup", rlmd_text_of("x"), NULL);
	struct rlmd_error err;

	(void)state;
	assert_null(function_set_new(twice, 2, NULL, &err));
	assert_non_null(strstr(err.text, "twice"));
	assert_null(function_set_new(&lookup, 1, context_of(context), &err));
	assert_non_null(strstr(err.text, "name of an input"));
	assert_null(function_set_new(NULL, 1, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	rlmd_context_unref(context);
}

static void test_arguments(void **state)
{
	static const struct {
		const char *arguments, *why; /* NULL: they suit */
	} rows[] = {
		{"{\"key\":\"a\"}", NULL},
		{"{\"key\":null,\"limit\":3}", NULL},
		{"{\"limit\":3}", "'key' is missing"},
		{"{\"key\":\"a\",\"other\":1}", "no argument 'other'"},
		{"{\"key\":1}", "key is an int, a str or None is wanted"},
		{"{\"key\":\"a\",\"limit\":1.5}", "limit is a float, an int is wanted"},
		{"{\"key\":\"a\",\"limit\":true}", "limit is a bool, an int is wanted"},
	};
	struct function_set *set = function_set_new(&lookup, 1, NULL, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_auto_t *arguments = json_read(text_of(rows[i].arguments), 4, NULL);
		struct rlmd_error err = {0};

		assert_int_equal(
			function_set_accepts(function_set_find(set, "lookup"), arguments, &err),
			!rows[i].why);
		if (rows[i].why)
			assert_non_null(strstr(err.text, rows[i].why));
	}
	function_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_untold),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_later_versions),
		cmocka_unit_test(test_names_are_one_things),
		cmocka_unit_test(test_arguments),
	};

	return cmocka_run_group_tests_name("function_set", tests, NULL, NULL);
}
