/* cli/attack: which end of an attack means that it got through. The workers are the test's. */
#include "cli/attack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/text.h"

enum { ATTACKS_MAX = 100, MEMORY = 12345678 };

/* The end of a block, or of its worker. */
struct ending {
	const char *printed, *traceback; /* NULL: not that */
	const char *death;               /* NULL: it lives */
};

/* Not a session: what attacks see of one. */
struct rlmd_repl {
	struct rlmd_repl_hooks hooks;
};

static struct {
	struct rlmd_repl *repl; /* the one that there is, or NULL */
	int starts, most;       /* `most`: starts that succeed */
	char *code;             /* owned: what it is to run, or NULL */
	int64_t ms;             /* for so long */
	const char *greeting;   /* what the first block prints */
	struct ending (*end)(const char *name, const char *code);
	struct attack_series *series;
	char python[100];
	struct attack_result results[ATTACKS_MAX];
	int count, done;
	char error[sizeof((struct rlmd_error *)0)->text];
} test;

static const char *const names[] = {
#define ATTACK(name, ...) name,
#include "cli/attacks.def"
#undef ATTACK
};

enum { ATTACKS = sizeof names / sizeof *names };

struct rlmd_repl *__wrap_rlmd_repl_start(struct rlmd_engine *, struct rlmd_sandbox *,
					 const struct rlmd_repl_options *, struct rlmd_error *);
bool __wrap_rlmd_repl_execute(struct rlmd_repl *, struct rlmd_text, int64_t, struct rlmd_error *);
void __wrap_rlmd_repl_free(struct rlmd_repl *);

struct rlmd_repl *__wrap_rlmd_repl_start(struct rlmd_engine *engine, struct rlmd_sandbox *sandbox,
					 const struct rlmd_repl_options *options,
					 struct rlmd_error *err)
{
	(void)engine;
	(void)sandbox;
	assert_null(test.repl); /* one at a time */
	if (test.starts++ == test.most) {
		error_set(err, RLMD_ERROR_SANDBOX, "no room");
		return NULL;
	}
	test.repl = xcalloc(1, sizeof *test.repl);
	test.repl->hooks = *options->hooks;
	return test.repl;
}

bool __wrap_rlmd_repl_execute(struct rlmd_repl *repl, struct rlmd_text code, int64_t timeout_ms,
			      struct rlmd_error *err)
{
	(void)err;
	assert_ptr_equal(repl, test.repl);
	assert_null(test.code);
	test.code = text_copy(code);
	test.ms = timeout_ms;
	return true;
}

void __wrap_rlmd_repl_free(struct rlmd_repl *repl)
{
	if (!repl)
		return;
	assert_ptr_equal(repl, test.repl);
	test.repl = NULL;
	free(repl);
}

/* --- its events -------------------------------------------------------------------------- */

static void on_python(void *owner, struct rlmd_text python)
{
	assert_ptr_equal(owner, &test);
	snprintf(test.python, sizeof test.python, "%.*s", (int)python.size, python.bytes);
}

static void on_result(void *owner, const struct attack_result *result)
{
	assert_ptr_equal(owner, &test);
	assert_true(test.count < ATTACKS_MAX);
	test.results[test.count++] = *result;
}

static void on_done(void *owner, const struct rlmd_error *err)
{
	assert_ptr_equal(owner, &test);
	test.done++;
	if (err)
		snprintf(test.error, sizeof test.error, "%s", err->text);
}

static const struct attack_events events = {on_python, on_result, on_done};

static void die(const char *why)
{
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_WORKER, "%s", why);
	test.repl->hooks.gone(test.repl->hooks.owner, test.repl, &err);
}

static void end_block(struct ending ending)
{
	const struct rlmd_repl_block block = {.size = sizeof block,
					      .standard_output = text_of(ending.printed),
					      .failed = ending.traceback,
					      .error = text_of(ending.traceback)};

	free(test.code);
	test.code = NULL;
	if (ending.death)
		die(ending.death);
	else
		test.repl->hooks.done(test.repl->hooks.owner, test.repl, &block);
}

/* Until it is over. */
static void play(void)
{
	while (!test.done) {
		test.repl->hooks.ready(test.repl->hooks.owner, test.repl);
		if (test.starts == 1) {
			assert_int_equal(test.ms, 20000);
			end_block((struct ending){.printed = test.greeting});
		}
		end_block(test.end(names[test.count], test.code));
	}
	assert_int_equal(test.done, 1);
}

static int set_up(void **state)
{
	(void)state;
	memset(&test, 0, sizeof test);
	test.most = ATTACKS_MAX;
	test.greeting = "3.11.2 /usr/bin/python3\nctypes\n";
	test.series = attack_start(NULL, NULL, MEMORY, &events, &test);
	assert_non_null(test.series);
	assert_int_equal(test.count + test.done, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	attack_free(test.series);
	assert_null(test.repl);
	free(test.code);
	return 0;
}

/* --- tests --------------------------------------------------------------------------------- */

static struct ending is_refused(const char *name, const char *code)
{
	assert_true(strstr(code, "MEMORY = 12345678\n"));
	if (!strncmp(name, "fs_", 3))
		return (struct ending){
			.traceback = "Traceback:\n ...\nPermissionError: [Errno 13]"};
	return (struct ending){.death = "it was killed for a reason of its own"};
}

/* Each once, in the order of the table, in a worker of its own. */
static void test_each_is_made(void **state)
{
	(void)state;
	test.end = is_refused;
	play();
	assert_string_equal(test.python, "3.11.2 /usr/bin/python3");
	assert_int_equal(test.count, ATTACKS);
	assert_int_equal(test.starts, ATTACKS);
	for (int i = 0; i < ATTACKS; i++)
		assert_string_equal(test.results[i].name, names[i]);
	assert_int_equal(test.results[0].verdict, ATTACK_REFUSED);
	assert_string_equal(test.results[0].guarantee, "G1");
	assert_string_equal(test.results[0].detail, "PermissionError: [Errno 13]");
	assert_string_equal(test.error, "");
}

static struct ending the_end;

static struct ending ends_so(const char *name, const char *code)
{
	(void)name;
	(void)code;
	return the_end;
}

/* Only the refusal that the table names is one: not any exception, death or silence. */
static void test_verdicts(void **state)
{
	static const struct {
		struct ending end;
		enum attack_verdict verdict; /* of reading /etc/passwd */
		const char *detail;
	} rows[] = {
		{{.traceback = "PermissionError: no"}, ATTACK_REFUSED, "PermissionError: no"},
		{{.traceback = "FileNotFoundError: no"},
		 ATTACK_GOT_THROUGH,
		 "FileNotFoundError: no"},
		{{.printed = "root:x:0:0\n"}, ATTACK_GOT_THROUGH, "root:x:0:0"},
		{{.printed = "PermissionError\n"}, ATTACK_GOT_THROUGH, "PermissionError"},
		{{.printed = ""}, ATTACK_GOT_THROUGH, ""},
		{{.death = "signal 11"}, ATTACK_GOT_THROUGH, "signal 11"},
		{{.traceback = "PermissionError: \033[2J"},
		 ATTACK_REFUSED,
		 "PermissionError: \\x1b[2J"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		the_end = rows[i].end;
		test.end = ends_so;
		play();
		assert_string_equal(test.results[0].name, "fs_read_passwd");
		assert_int_equal(test.results[0].verdict, rows[i].verdict);
		assert_string_equal(test.results[0].detail, rows[i].detail);
		tear_down(state);
		set_up(state);
	}
}

static int needs_ctypes(const char *name)
{
	static const char *const with[] = {
#define CTYPES(name) name,
#define PLAIN(name)
#define ATTACK(name, guarantee, what, needs, ...) needs(name)
#include "cli/attacks.def"
#undef ATTACK
#undef PLAIN
#undef CTYPES
	};

	for (size_t i = 0; i < sizeof with / sizeof *with; i++)
		if (!strcmp(name, with[i]))
			return 1;
	return 0;
}

/* A Python that lacks ctypes leaves some untried; that is none of the other two verdicts. */
static void test_without_ctypes(void **state)
{
	int tried = 0;

	(void)state;
	test.greeting = "3.11.2 /usr/bin/python3\nnone\n";
	test.end = is_refused;
	play();
	assert_int_equal(test.count, ATTACKS);
	for (int i = 0; i < ATTACKS; i++) {
		bool untried = test.results[i].verdict == ATTACK_UNTRIED;

		assert_int_equal(untried, needs_ctypes(names[i]));
		tried += !untried;
	}
	assert_int_equal(test.starts, tried);
	assert_in_range(tried, 5, ATTACKS - 5);
}

/* The first worker dies before it is ready: nothing was tried. */
static void test_no_worker(void **state)
{
	(void)state;
	die("no namespace");
	assert_int_equal(test.done, 1);
	assert_int_equal(test.count, 0);
	assert_string_equal(test.error, "no namespace");
}

/* A later one cannot be started: it ends with what there is. */
static void test_no_second_worker(void **state)
{
	(void)state;
	test.most = 1;
	test.end = is_refused;
	play();
	assert_int_equal(test.count, 1);
	assert_string_equal(test.error, "no room");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_is_made), TEST(test_verdicts),         TEST(test_without_ctypes),
		TEST(test_no_worker),    TEST(test_no_second_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
