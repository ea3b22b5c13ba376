#include "cli/config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/money.h"

enum { ARGUMENTS_MAX = 32 };

static char *directory; /* owned; of the whole program */
static struct config config;

static int enter(void **state)
{
	(void)state;
	config_init(&config);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	config_done(&config);
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		auto_free char *name = xasprintf("RLMD_%s", option_table[i].name);

		for (char *c = name; *c; c++)
			*c = *c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
		unsetenv(name);
	}
	return 0;
}

static bool parse_for(enum command_id command, const char *const *arguments, int *ret_first,
		      struct rlmd_error *err)
{
	char *argv[ARGUMENTS_MAX] = {(char *)command_table[command].name};
	int argc = 1;

	for (; arguments[argc - 1]; argc++)
		argv[argc] = (char *)arguments[argc - 1];
	return config_arguments(&config, command, argc, argv, ret_first, err);
}

static bool parse(const char *const *arguments, int *ret_first, struct rlmd_error *err)
{
	return parse_for(COMMAND_EXEC, arguments, ret_first, err);
}

#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void assert_parses(const char *const *arguments)
{
	struct rlmd_error err;
	int first;

	if (!parse(arguments, &first, &err))
		fail_msg("%s", err.text);
}

static void assert_refused_by(enum command_id command, const char *words,
			      const char *const *arguments)
{
	struct rlmd_error err;
	int first;

	assert_false(parse_for(command, arguments, &first, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	if (!strstr(err.text, words))
		fail_msg("'%s' is not in '%s'", words, err.text);
}

static void assert_refused(const char *words, const char *const *arguments)
{
	assert_refused_by(COMMAND_EXEC, words, arguments);
}

static char *write_config(const char *content)
{
	char *path = xasprintf("%s/rlmd.conf", directory);

	assert_true(file_write(path, text_of(content), NULL));
	return path;
}

static void assert_bad_file(const char *words, const char *content)
{
	auto_free char *path = write_config(content);
	struct rlmd_error err;

	assert_false(config_file(&config, CONFIG_USER_FILE, path, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	if (!strstr(err.text, words) || !strstr(err.text, path))
		fail_msg("'%s' is not in '%s'", words, err.text);
}

/* The defaults are those of the specification (LIB-2, LIB-3). */
static void test_defaults(void **state)
{
	(void)state;
	assert_string_equal(config.python, "python3");
	assert_null(config.provider);
	assert_null(config.model);
	assert_int_equal(config.max_cost, 5 * MONEY_DOLLAR);
	assert_int_equal(config.max_tokens, 500000);
	assert_int_equal(config.max_time, 300000);
	assert_int_equal(config.max_depth, 2);
	assert_int_equal(config.max_iterations, 30);
	assert_int_equal(config.max_calls, 10000);
	assert_int_equal(config.max_subruns, 1000);
	assert_int_equal(config.max_workers, 8);
	assert_int_equal(config.downgrade, 20);
	assert_int_equal(config.block_timeout, 30000);
	assert_int_equal(config.max_output, 50000);
	assert_int_equal(config.worker_memory, 1 << 30);
	assert_int_equal(config.max_parallel, 4);
	assert_int_equal(config.grace, 15000);
	assert_false(config_given(&config, OPTION_max_cost));
}

/* Options of each type, before and after the task, and what is left over. */
static void test_arguments(void **state)
{
	struct rlmd_error err;
	int first;

	(void)state;
	assert_true(parse(ARGUMENTS("-c", "a", "task", "--context=b", "-vv", "--max-time", "1.5m",
				    "--max-cost=0", "--worker-memory", "512M", "-qj8", "--json",
				    "--preload", "numpy", "--", "-x"),
			  &first, &err));
	assert_int_equal(first, 15);
	assert_int_equal(config.contexts.count, 2);
	assert_string_equal(config.contexts.items[1], "b");
	assert_null(config.contexts.items[2]);
	assert_int_equal(config.verbose, 2);
	assert_int_equal(config.max_time, 90000);
	assert_int_equal(config.max_cost, 0);
	assert_true(config_given(&config, OPTION_max_cost));
	assert_int_equal(config.worker_memory, 512 << 20);
	assert_true(config.quiet && config.json && !config.jsonl);
	assert_int_equal(config.max_parallel, 8);
	assert_string_equal(config.preload.items[0], "numpy");
}

/* Numbers that are none, too small, too large or broken are refused with the range. */
static void test_bad_values(void **state)
{
	(void)state;
	assert_refused("--max-depth: '-1' is no whole number from 0 to 16",
		       ARGUMENTS("--max-depth", "-1"));
	assert_refused("'17' is no whole number from 0 to 16", ARGUMENTS("--max-depth", "17"));
	assert_refused("--max-tokens", ARGUMENTS("--max-tokens", "1.5"));
	assert_refused("--max-tokens", ARGUMENTS("--max-tokens", "99999999999999999999"));
	assert_refused("--max-tokens", ARGUMENTS("--max-tokens", ""));
	assert_refused("--max-tokens", ARGUMENTS("--max-tokens", " 5"));
	assert_refused("--max-tokens", ARGUMENTS("--max-tokens", "0x10"));
	assert_refused("--max-time", ARGUMENTS("--max-time", "-5s"));
	assert_refused("--max-time", ARGUMENTS("--max-time", "0"));
	assert_refused("--max-time", ARGUMENTS("--max-time", "5 parsecs"));
	assert_refused("from 1ms to 720h", ARGUMENTS("--max-time", "99999999999999999999h"));
	assert_refused("--max-cost", ARGUMENTS("--max-cost", "-1"));
	assert_refused("--max-cost", ARGUMENTS("--max-cost", "nan"));
	assert_refused("--max-cost", ARGUMENTS("--max-cost", "1e300"));
	assert_refused("more than 12 decimals", ARGUMENTS("--max-cost", "0.0000000000001"));
	assert_refused("--worker-memory", ARGUMENTS("--worker-memory", "1X"));
	assert_refused("--worker-memory", ARGUMENTS("--worker-memory", "1.5G"));
	assert_refused("--worker-memory", ARGUMENTS("--worker-memory", "9999999999T"));
	assert_refused("--worker-memory", ARGUMENTS("--worker-memory", "1M"));
	assert_refused("'L9' is none of L1|L2|L3|L4", ARGUMENTS("--require", "L9"));
	assert_refused("'L' is none of", ARGUMENTS("--require", "L"));
	assert_refused("--color", ARGUMENTS("--color", ""));
	assert_refused("the NAME is empty", ARGUMENTS("-m", ""));
	assert_refused("--model: 'caf\\xe9' is not UTF-8", ARGUMENTS("-m", "caf\xe9"));
	assert_refused("is not UTF-8", ARGUMENTS("--subcall-model", "\xff"));
	assert_refused("is not UTF-8", ARGUMENTS("-p", "open\xc3"));
	assert_refused("neither yes nor no", ARGUMENTS("--strict=perhaps"));
}

/* Every number of a budget: refused in the same words, and what to write instead. */
static void test_bad_counts(void **state)
{
	static const char *const names[] = {
		"--max-tokens",  "--max-iterations", "--max-depth",    "--max-calls",
		"--max-subruns", "--max-workers",    "--max-parallel", "--downgrade",
	};
	static const char *const bad[] = {
		"-1", "+1", "1.5", "1e9",   "inf", "nan", " 1",  "1 ",
		"",   "k",  "1x",  "1,000", "0x1", "20%", "1kk", "1 k",
	};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		for (size_t j = 0; j < sizeof bad / sizeof *bad; j++)
			assert_refused("write digits, or 100k", ARGUMENTS(names[i], bad[j]));
		assert_refused("is no whole number from",
			       ARGUMENTS(names[i], "9223372036854775808"));
		assert_refused("is no whole number from", ARGUMENTS(names[i], "1000000000001"));
	}
}

/* Thousands and millions are written as people write them, of sizes and of counts. */
static void test_scaled_counts(void **state)
{
	(void)state;
	assert_parses(ARGUMENTS("--max-tokens", "100k", "--max-calls", "2M"));
	assert_int_equal(config.max_tokens, 100000);
	assert_int_equal(config.max_calls, 2000000);
	assert_parses(ARGUMENTS("--max-tokens", "3G", "--max-output", "5K"));
	assert_int_equal(config.max_tokens, INT64_C(3000000000));
	assert_int_equal(config.max_output, 5000);
	assert_refused("is no whole number from 0 to 16", ARGUMENTS("--max-depth", "1k"));
	assert_refused("is no whole number", ARGUMENTS("--max-tokens", "9000000000000000000G"));
	assert_refused("it does not mean no limit", ARGUMENTS("--max-tokens", "0k"));
}

/* Decimal fractions; and texts in which commas and blanks part nothing. */
static void test_sampling(void **state)
{
	auto_free char *path = write_config("temperature = 0.25\nstop = a, b\nstop = c\n");

	(void)state;
	assert_false(config_given(&config, OPTION_temperature));
	assert_true(config_file(&config, CONFIG_USER_FILE, path, NULL));
	assert_true(config.temperature == 0.25);
	assert_int_equal(config.stop.count, 2);
	assert_string_equal(config.stop.items[0], "a, b");
	assert_parses(ARGUMENTS("--temperature", "1.5", "--stop", "x, y", "--stop", "z\n"));
	assert_true(config.temperature == 1.5);
	assert_int_equal(config.stop.count, 2);
	assert_string_equal(config.stop.items[0], "x, y");
	assert_string_equal(config.stop.items[1], "z\n");
	assert_refused("is no number from 0 to 2", ARGUMENTS("--temperature", "2.01"));
	assert_refused("is no number from 0 to 2", ARGUMENTS("--temperature", "inf"));
	assert_refused("is no number from 0 to 2", ARGUMENTS("--temperature", "1.2.3"));
	assert_refused("write the TEXT in UTF-8", ARGUMENTS("--stop", "\xff"));
}

/* Zero where something is needed is not "no limit", and says so; where it means none, it is fine.
 */
static void test_zero(void **state)
{
	static const char *const needed[] = {
		"--max-tokens",   "--max-iterations", "--max-calls",     "--max-workers",
		"--max-parallel", "--max-time",       "--block-timeout",
	};

	(void)state;
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		assert_refused("it does not mean no limit", ARGUMENTS(needed[i], "0"));
	assert_parses(ARGUMENTS("--max-cost", "0", "--max-depth", "0", "--max-subruns", "0",
				"--downgrade", "0", "--grace", "0"));
	assert_int_equal(config.max_cost + config.max_depth + config.max_subruns + config.downgrade,
			 0);
	assert_true(config_given(&config, OPTION_max_subruns));
}

/* An option that is not in the table is named, with those that are near. */
/* Options of other commands are neither taken, nor thought of, nor suggested. */
static void test_options_of_a_command(void **state)
{
	struct rlmd_error err;
	int first;

	(void)state;
	assert_refused_by(COMMAND_DOCTOR, "--p may mean --provider, --python, --preload, --policy",
			  ARGUMENTS("--p"));
	assert_refused_by(COMMAND_PLAN, "--co may mean --color, --config", ARGUMENTS("--co", "x"));
	assert_refused_by(COMMAND_PLAN, "plan has no use for --context", ARGUMENTS("-c", "x"));
	assert_refused_by(COMMAND_PLAN, "plan has no use for --context", ARGUMENTS("--context=x"));
	assert_refused_by(COMMAND_EXEC, "exec has no use for --metrics", ARGUMENTS("--metrics"));
	assert_refused_by(COMMAND_TRACE, "there is no option --modle", ARGUMENTS("--modle"));
	assert_refused_by(COMMAND_TRACE, "trace has no use for --model", ARGUMENTS("-m", "x"));
	assert_false(parse_for(COMMAND_EXEC, ARGUMENTS("--met"), &first, &err));
	assert_null(strstr(err.text, "--metrics"));
	assert_true(parse_for(COMMAND_TRACE, ARGUMENTS("-v", "--j", "--t"), &first, &err));
	assert_true(config.json && config.verbose && config.tree_text);
	assert_int_equal(config.max_parallel, 4);
}

/* Understood for one version, with a note that says what to write. */
static void test_former_options(void **state)
{
	struct rlmd_error err;
	int first;

	(void)state;
	assert_true(parse_for(COMMAND_BATCH, ARGUMENTS("--journal=s", "x", "--fail-fast"), &first,
			      &err));
	assert_string_equal(config.store, "s");
	assert_string_equal(config.halt, "1");
	assert_int_equal(json_array_size(config.notes), 2);
	assert_string_equal(json_string_value(json_array_get(config.notes, 0)),
			    "--journal goes with the next version: write --store FILE");
	assert_refused_by(COMMAND_BATCH, "there is no option --journal", ARGUMENTS("--journal"));
	assert_refused_by(COMMAND_BATCH, "--journal: the STORE is empty", ARGUMENTS("--journal="));
	assert_refused_by(COMMAND_EXEC, "there is no option --journal", ARGUMENTS("--journal=s"));
	assert_refused_by(COMMAND_TRACE, "there is no option -j: write --json", ARGUMENTS("-j"));
	assert_refused_by(COMMAND_EXEC, "there is no option --version: 'rlmd --version' shows it",
			  ARGUMENTS("--version"));
}

static void test_unknown_options(void **state)
{
	(void)state;
	assert_refused("there is no option --modle; did you mean --model?",
		       ARGUMENTS("--modle", "x"));
	assert_refused("there is no option --modle;", ARGUMENTS("task", "--modle=x"));
	assert_refused("there is no option -Z", ARGUMENTS("-Z"));
	assert_refused("there is no option -Z", ARGUMENTS("-qZ"));
	assert_refused("--max-t may mean --max-tokens, --max-time", ARGUMENTS("--max-t", "1"));
	assert_refused("--re may mean --recurse-submodules, --require, --record, --replay",
		       ARGUMENTS("--re=x"));
	assert_refused("--model needs a value: NAME", ARGUMENTS("--model"));
	assert_refused("--context needs a value: SRC", ARGUMENTS("-c"));
	assert_refused("--verbose takes no value", ARGUMENTS("--verbose=2"));
	assert_refused("there is no option --\\x1b[31m", ARGUMENTS("--\033[31m"));
}

/* Argument over environment over file over default, list by list and value by value. */
static void test_precedence(void **state)
{
	auto_free char *path = write_config("model = of-file\nmax-depth = 7\nstrict = yes\n"
					    "preload = a\npreload = b, c\nprovider = openai\n");

	(void)state;
	assert_parses(ARGUMENTS("-m", "of-argument", "--strict=no"));
	setenv("RLMD_MODEL", "of-environment", 1);
	setenv("RLMD_MAX_DEPTH", "8", 1);
	setenv("RLMD_SUBCALL_MODEL", "", 1);
	assert_true(config_environment(&config, NULL));
	assert_true(config_file(&config, CONFIG_USER_FILE, path, NULL));
	assert_string_equal(config.model, "of-argument");
	assert_int_equal(config.max_depth, 8);
	assert_string_equal(config.provider, "openai");
	assert_null(config.subcall_model);
	assert_false(config.strict);
	assert_int_equal(config.preload.count, 3);
	assert_string_equal(config.preload.items[2], "c");
	assert_true(config_set(&config, CONFIG_ENVIRONMENT, OPTION_preload, "d", NULL));
	assert_int_equal(config.preload.count, 1);
}

/* Every setting has its variable; what belongs to one command line has none. */
static void test_environment(void **state)
{
	struct rlmd_error err;

	(void)state;
	setenv("RLMD_TRACE", "/nowhere/x", 1);
	assert_true(config_environment(&config, &err));
	assert_null(config.trace);
	unsetenv("RLMD_TRACE");
	setenv("RLMD_MAX_ITERATIONS", "none", 1);
	assert_false(config_environment(&config, &err));
	assert_non_null(strstr(err.text, "RLMD_MAX_ITERATIONS: 'none' is no whole number"));
	unsetenv("RLMD_MAX_ITERATIONS");
	setenv("RLMD_MAX_CALLS", "1e3", 1);
	assert_false(config_environment(&config, &err));
	assert_non_null(strstr(err.text, "RLMD_MAX_CALLS: '1e3' is no whole number"));
}

/* The user's file wins over the system's; --config stands in for both. */
static void test_which_files(void **state)
{
	auto_free char *rlmd = xasprintf("%s/rlmd", directory);
	auto_free char *user = xasprintf("%s/rlmd.conf", rlmd);
	auto_free char *other = write_config("model = other\n");

	(void)state;
	mkdir(rlmd, 0700);
	assert_true(file_write(user, text_of("[exec]\n\tmodel = mine ; a comment\n"), NULL));
	setenv("XDG_CONFIG_HOME", directory, 1);
	assert_true(config_set(&config, CONFIG_SYSTEM_FILE, OPTION_model, "everybody's", NULL));
	assert_true(config_files(&config, NULL));
	assert_string_equal(config.model, "mine");
	config.config = xstrdup(other);
	assert_true(config_files(&config, NULL));
	assert_string_equal(config.model, "other");
	unsetenv("XDG_CONFIG_HOME");
	unlink(user);
	rmdir(rlmd);
}

/* Tenants have sections of their own, among settings that are for all; a later file wins. */
static void test_tenants(void **state)
{
	auto_free char *path = write_config("model = x\n[tenant acme]\nweight = 3\nmodels = a, b\n"
					    "[exec]\nmodel = y\n[tenant b]\nrequire = L2\n");

	(void)state;
	assert_true(config_file(&config, CONFIG_SYSTEM_FILE, path, NULL));
	assert_string_equal(config.model, "y");
	assert_int_equal(config.tenants.count, 2);
	assert_string_equal(config.tenants.items[0].name, "acme");
	assert_int_equal(config.tenants.items[0].models.count, 2);
	assert_int_equal(config.tenants.items[1].require, 2);
	free(path);
	path = write_config("[tenant acme]\nweight = 4\n");
	assert_true(config_file(&config, CONFIG_USER_FILE, path, NULL));
	assert_int_equal(config.tenants.count, 2);
	assert_int_equal(config.tenants.items[0].weight, 4);
	assert_int_equal(config.tenants.items[0].models.count, 2);
}

/* A file with anything wrong in it is refused, with the line. */
static void test_bad_files(void **state)
{
	auto_free char *lengthy = xcalloc(1000, 1);
	auto_free char *missing = xasprintf("%s/missing", directory);
	struct rlmd_error err;

	(void)state;
	assert_bad_file(":2: there is no setting 'modle'; did you mean 'model'?",
			"# comment\nmodle = x\n");
	assert_bad_file(":1: 'output' can stand on the command line only", "output = x\n");
	assert_bad_file(":3: there is no section [batch]", "[exec]\n[batch]\nmodel = x\n");
	assert_bad_file(":3: there is no section [tenants a]", "\n[tenants a]\nweight = 1\n");
	assert_bad_file(":2: [tenant a]: weight: '0' is no number", "[tenant a]\nweight = 0\n");
	assert_bad_file(":2: [tenant a]: a tenant has no 'model'", "[tenant a]\nmodel = x\n");
	assert_bad_file(":2: [tenant ]: no tenant can be named ''", "[tenant ]\nweight = 1\n");
	assert_bad_file(
		":2: [tenant aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]: no tenant can be",
		"[tenant aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\nweight = 1\n");
	assert_bad_file(":2: max-depth: 'deep' is no whole number", "\nmax-depth = deep\n");
	assert_bad_file(":1: model: 'caf\\xe9' is not UTF-8", "model = caf\xe9\n");
	assert_bad_file(":1: max-calls: '0' is no whole number", "max-calls = 0\n");
	assert_bad_file(":1: max-cost: '-1' is no amount", "max-cost = -1\n");
	assert_bad_file(":1: neither", "model\n");
	assert_bad_file(":2: there is no setting", "model = x\n  an indented = line\n");
	memset(lengthy, 'x', 999);
	memcpy(lengthy, "model=", 6);
	assert_bad_file(":1: the line is longer", lengthy);
	assert_false(config_file(&config, CONFIG_USER_FILE, missing, &err));
	assert_non_null(strstr(err.text, missing));
	assert_false(config_file(&config, CONFIG_USER_FILE, directory, &err));
	assert_non_null(strstr(err.text, "not a regular file"));
}

/* A writer of the configuration chooses the interpreter and where keys are sent. */
static void test_untrusted_file(void **state)
{
	auto_free char *path = write_config("model = mine\n");
	struct rlmd_error err;

	(void)state;
	assert_int_equal(chmod(path, 0620), 0);
	assert_false(config_file(&config, CONFIG_USER_FILE, path, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "chmod go-w"));
	assert_null(config.model);
	assert_int_equal(chmod(path, 0644), 0);
	assert_true(config_file(&config, CONFIG_USER_FILE, path, &err));
}

static int make_directory(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	directory = xasprintf("%s/test_config.XXXXXX", tmp ? tmp : "/tmp");
	return !mkdtemp(directory);
}

static int remove_directory(void **state)
{
	auto_free char *path = xasprintf("%s/rlmd.conf", directory);

	(void)state;
	unlink(path);
	rmdir(directory);
	free(directory);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, enter, leave),
		cmocka_unit_test_setup_teardown(test_arguments, enter, leave),
		cmocka_unit_test_setup_teardown(test_bad_values, enter, leave),
		cmocka_unit_test_setup_teardown(test_bad_counts, enter, leave),
		cmocka_unit_test_setup_teardown(test_scaled_counts, enter, leave),
		cmocka_unit_test_setup_teardown(test_sampling, enter, leave),
		cmocka_unit_test_setup_teardown(test_zero, enter, leave),
		cmocka_unit_test_setup_teardown(test_options_of_a_command, enter, leave),
		cmocka_unit_test_setup_teardown(test_former_options, enter, leave),
		cmocka_unit_test_setup_teardown(test_unknown_options, enter, leave),
		cmocka_unit_test_setup_teardown(test_precedence, enter, leave),
		cmocka_unit_test_setup_teardown(test_environment, enter, leave),
		cmocka_unit_test_setup_teardown(test_which_files, enter, leave),
		cmocka_unit_test_setup_teardown(test_tenants, enter, leave),
		cmocka_unit_test_setup_teardown(test_bad_files, enter, leave),
		cmocka_unit_test_setup_teardown(test_untrusted_file, enter, leave),
	};

	umask(022);
	alloc_install();
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
