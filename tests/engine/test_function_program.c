/* engine/function_program: a process for one call, what it is given, and how it ends. */
#include "engine/function_program.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

struct heard {
	struct event_base *base;
	int times;
	char *output; /* owned */
	size_t size;
	struct rlmd_error err;
};

static void on_end(void *owner, struct rlmd_text output, const struct rlmd_error *err)
{
	struct heard *heard = owner;

	heard->times++;
	heard->output = text_copy(output);
	heard->size = output.size;
	if (err)
		heard->err = *err;
	event_base_loopbreak(heard->base);
}

static struct function_program *start(struct heard *heard, const char *script,
				      struct rlmd_text input)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	struct rlmd_error err = {0};
	struct function_program *program;

	*heard = (struct heard){.base = event_base_new()};
	program = function_program_start(heard->base, argv, input, on_end, heard, &err);
	if (!program)
		fail_msg("%s", err.text);
	assert_int_equal(heard->times, 0);
	return program;
}

static void finish(struct heard *heard)
{
	free(heard->output);
	event_base_free(heard->base);
}

static struct heard run(const char *script, struct rlmd_text input)
{
	struct heard heard;
	struct function_program *program = start(&heard, script, input);

	event_base_dispatch(heard.base);
	assert_int_equal(heard.times, 1);
	function_program_free(program);
	return heard;
}

/* Bytes go in and come out as they are. */
static void test_bytes(void **state)
{
	struct heard heard = run("cat; printf end", text_from("a\0\xff", 3));

	(void)state;
	assert_int_equal(heard.err.kind, RLMD_ERROR_NONE);
	assert_int_equal(heard.size, 6);
	assert_memory_equal(heard.output,
			    "a\0\xff"
			    "end",
			    6);
	finish(&heard);
}

/* No key of ours, no descriptor but the three, and a session of its own. */
static void test_surroundings(void **state)
{
	int inherited = fcntl(STDIN_FILENO, F_DUPFD, 20);
	struct heard heard;

	(void)state;
	setenv("RLMD_TEST_KEY", "secret", 1);
	heard = run("printf '%s,%s,' \"${RLMD_TEST_KEY-none}\" \"${PATH:+path}\"; i=3; "
		    "while test $i -lt 64; do test -e /proc/$$/fd/$i && printf \"$i,\"; "
		    "i=$((i+1)); done; "
		    "test $$ = $(cut -d' ' -f6 /proc/$$/stat) && printf leader",
		    text_of(""));
	unsetenv("RLMD_TEST_KEY");
	close(inherited);
	assert_int_equal(heard.err.kind, RLMD_ERROR_NONE);
	assert_string_equal(heard.output, "none,path,leader");
	finish(&heard);
}

static void assert_failed(const char *script, const char *wanted)
{
	struct heard heard = run(script, text_of(""));

	assert_int_equal(heard.err.kind, RLMD_ERROR_FUNCTION);
	assert_string_equal(heard.err.text, wanted);
	assert_int_equal(heard.size, 0);
	finish(&heard);
}

static void test_failures(void **state)
{
	(void)state;
	assert_failed("printf half; exit 3", "its program ended with exit status 3");
	assert_failed("echo it is gone >&2; exit 1",
		      "its program ended with exit status 1: it is gone");
	assert_failed("kill -9 $$", "its program was killed by signal 9");
	assert_failed("head -c 17000000 /dev/zero; sleep 1000",
		      "its program wrote more than 16 MiB");
}

static void test_no_program(void **state)
{
	const char *const argv[] = {"/nowhere/at/all", NULL};
	struct event_base *base = event_base_new();
	struct rlmd_error err = {0};

	(void)state;
	assert_null(function_program_start(base, argv, text_of(""), on_end, NULL, &err));
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	event_base_free(base);
	function_program_free(NULL);
}

/* The processes that it left are killed, whether it has ended or is not waited for any more: the
 * other end of a pipe that all of them have is closed. */
static void test_nothing_is_left(void **state)
{
	static const char *const scripts[] = {"sleep 1000 >&9 & echo >&9",
					      "sleep 1000 >&9 & echo >&9; sleep 1000"};

	(void)state;
	for (int ended = 0; ended < 2; ended++) {
		char path[] = "/tmp/test_function_program-XXXXXX", script[128], byte;
		struct function_program *program;
		struct heard heard;
		auto_file FILE *fifo = NULL;

		assert_int_equal(close(mkstemp(path)) | unlink(path), 0);
		snprintf(script, sizeof script, "mkfifo %s; exec 9>%s; %s", path, path,
			 scripts[ended]);
		program = start(&heard, script, text_of(""));
		while (access(path, F_OK))
			usleep(1000);
		fifo = fopen(path, "re");
		assert_int_equal(fread(&byte, 1, 1, fifo), 1);
		if (!ended)
			event_base_dispatch(heard.base);
		function_program_free(program);
		assert_int_equal(fread(&byte, 1, 1, fifo), 0); /* nobody holds it open */
		unlink(path);
		finish(&heard);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),           cmocka_unit_test(test_surroundings),
		cmocka_unit_test(test_failures),        cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_nothing_is_left),
	};

	return cmocka_run_group_tests_name("function_program", tests, NULL, NULL);
}
