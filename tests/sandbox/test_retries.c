/*
 * Bad luck on the way to a worker: what is killed or slow gets another try, and whoever asked
 * hears of it only where that does not help either.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "sandbox/sandbox_private.h"
#include "stage.h"

static char odd_directory[] = "/tmp/rlmd-retries-XXXXXX";
static char *python; /* that the others here become; owned */

/* One that starts as its name says (odd_python.c); new. */
static char *odd_python(const char *name)
{
	auto_free char *path = xasprintf("%s/%s", odd_directory, name);
	auto_free char *link = xasprintf("%s.python", path), *tried = xasprintf("%s.tried", path);

	unlink(tried);
	assert_true(!symlink(getenv("ODD_PYTHON"), path) || !access(path, X_OK));
	assert_true(!symlink(python, link) || !access(link, X_OK));
	return take_pointer(&path);
}

static struct rlmd_sandbox *start(struct stage *stage, const char *path, int patience_ms,
				  struct rlmd_error *err)
{
	return sandbox_new(stage->base,
			   &(struct sandbox_config){
				   .python = path,
				   .worker_memory = MEMORY,
				   .worker_dir = stage_directory,
				   .patience_ms = patience_ms,
			   },
			   err);
}

/* Enough for a start as this machine makes them now, and as short as that allows. */
static int patience(struct stage *stage)
{
	int64_t begin = clock_ms();

	sandbox_free(take_pointer(&stage->sandbox));
	stage->sandbox = start(stage, "python3", 0, NULL);
	assert_non_null(stage->sandbox);
	sandbox_free(take_pointer(&stage->sandbox));
	return 200 + 3 * (int)(clock_ms() - begin);
}

static void expect_start(struct stage *stage, const char *name, int patience_ms)
{
	auto_free char *path = odd_python(name);
	struct rlmd_error err = {0};

	sandbox_free(take_pointer(&stage->sandbox));
	stage->sandbox = start(stage, path, patience_ms, &err);
	if (!stage->sandbox)
		fail_msg("%s: %s", name, err.text);
	expect(stage, "say('alive')", "alive\n");
}

static void expect_refusal(struct stage *stage, const char *name, int patience_ms,
			   const char *in_text)
{
	auto_free char *path = odd_python(name);
	struct rlmd_error err = {0};

	assert_null(start(stage, path, patience_ms, &err));
	assert_int_equal(err.kind, RLMD_ERROR_SANDBOX);
	if (!strstr(err.text, in_text) || !strstr(err.text, path))
		fail_msg("%s: %s", name, err.text);
}

/* Killed at its start, say for want of memory: again, and what it was is told where it is for good.
 */
static void killed_at_the_start(void **state)
{
	expect_start(*state, "dies-once", 0);
	expect_refusal(*state, "dies", 0, "ended at its start (signal 9)");
}

/* Slow at its start. */
static void slow_at_the_start(void **state)
{
	int ms = patience(*state);

	expect_start(*state, "hangs-once", ms);
	expect_refusal(*state, "hangs", ms / 4, "did not start within");
}

/* The same of a template that takes another's place. */
static void slow_or_killed_later(void **state)
{
	static const char *const names[] = {"dies-once", "hangs-once"};
	struct stage *stage = *state;
	int ms = patience(stage);
	size_t i;

	for (i = 0; i < 2; i++) {
		auto_free char *path = odd_python(names[i]);
		auto_free char *before = NULL;
		struct cast first, second;

		stage->sandbox = start(stage, "python3", 0, NULL);
		enter(&first, stage);
		expect_line(&first, "here");
		before = (char *)stage->sandbox->config.python;
		stage->sandbox->config.python = take_pointer(&path);
		stage->sandbox->config.patience_ms = ms;
		kill(getsid(process_pid(first.process)), SIGKILL);
		enter(&second, stage);
		expect_line(&second, "here");
		end(&second);
		end(&first);
		sandbox_free(take_pointer(&stage->sandbox));
	}
}

/*
 * Templates that die of a request for a worker: all that take the first one's place, each at its
 * first or second request. They look at it before it is served, see serve() in worker/_rlmd.c.
 */
static void make_mortal(int number)
{
	auto_free char *repl = xasprintf("%s/repl.py", stage_directory);
	auto_free char *began = xasprintf("%s/began", stage_directory);
	auto_free char *code = NULL;
	struct rlmd_error err;

	code = xasprintf("import os, runpy, socket, _rlmd\n"
			 "serve, control, left = _rlmd.serve, socket.socket(fileno=3), %d\n"
			 "def look():\n"
			 "    global left\n"
			 "    left -= bool(control.recv(1, socket.MSG_PEEK))\n"
			 "    if not left: os.kill(os.getpid(), 9)\n"
			 "    return True\n"
			 "if os.path.exists('%s'):\n"
			 "    _rlmd.serve = lambda rest: look() and serve(iter(look, None))\n"
			 "open('%s', 'w').close()\n"
			 "globals().update(runpy.run_path('%s'))\n",
			 number, began, began, getenv("PROBE_REPL"));
	unlink(repl);
	unlink(began);
	assert_true(file_write(repl, text_of(code), &err));
}

static void make_immortal(void)
{
	auto_free char *repl = xasprintf("%s/repl.py", stage_directory);
	auto_free char *began = xasprintf("%s/began", stage_directory);

	unlink(began);
	unlink(repl);
	assert_int_equal(symlink(getenv("PROBE_REPL"), repl), 0);
}

/* Loses the first template to a signal, so that the next request has to do with mortal ones. */
static void begin_mortal(struct stage *stage, int number)
{
	make_mortal(number);
	stage_reopen(stage, NULL, 0);
	expect(stage, "say('alive')", "alive\n");
	kill(sandbox_template_pid(stage->sandbox), SIGKILL);
}

/* Each spawn kills a template and has its worker from the next; its input is read from its start.
 */
static void templates_die_of_requests(void **state)
{
	struct stage *stage = *state;
	struct cast cast;
	pid_t template;
	int file, i;

	begin_mortal(stage, 2);
	for (i = 0; i < 4; i++) {
		template = sandbox_template_pid(stage->sandbox);
		file = memory_file("input");
		begin(&cast, stage, &file, 1, 0);
		close(file);
		event_base_dispatch(stage->base);
		if (!cast.process)
			fail_msg("%s", cast.error.text);
		assert_int_not_equal(sandbox_template_pid(stage->sandbox), template);
		tell(&cast, "say(os.read(inputs[0], 100))");
		expect_line(&cast, "here");
		expect_line(&cast, "b'input'");
		end(&cast);
	}
	make_immortal();
}

/* Where every template dies of it, whoever asked is told. */
static void templates_die_for_ever(void **state)
{
	struct stage *stage = *state;
	struct cast cast;

	begin_mortal(stage, 1);
	begin(&cast, stage, NULL, 0, 0);
	event_base_dispatch(stage->base);
	end(&cast);
	assert_null(cast.process);
	assert_int_equal(cast.error.kind, RLMD_ERROR_SANDBOX);
	assert_non_null(strstr(cast.error.text, "ended unexpectedly (signal 9)"));
	make_immortal();
}

static int make_directories(void **state)
{
	char path[PATH_MAX] = "";
	FILE *answer;

	assert_non_null(mkdtemp(odd_directory));
	answer = popen("python3 -c 'import sys; print(sys.executable)'", "re");
	assert_non_null(answer);
	assert_non_null(fgets(path, sizeof path, answer));
	pclose(answer);
	python = xstrndup(path, strcspn(path, "\n"));
	return stage_make_directory(state);
}

static int remove_directories(void **state)
{
	DIR *directory = opendir(odd_directory);
	const struct dirent *entry;

	while ((entry = readdir(directory)))
		unlinkat(dirfd(directory), entry->d_name, 0);
	closedir(directory);
	free(python);
	return rmdir(odd_directory) | stage_remove_directory(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
	const struct CMUnitTest tests[] = {
		TEST(killed_at_the_start),    TEST(slow_at_the_start),
		TEST(slow_or_killed_later),   TEST(templates_die_of_requests),
		TEST(templates_die_for_ever),
	};

	stage_enter_mode(NULL);
	return cmocka_run_group_tests_name("retries", tests, make_directories, remove_directories);
}
