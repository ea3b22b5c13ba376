/*
 * A program that claims to be a template and does not speak as one, or says that it failed: whoever
 * asked hears what was wrong, at the start and later.
 */
#include "sandbox/template.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "sandbox/sandbox_private.h"
#include "stage.h"

#define HELLO   "{\"hello\": \"3.11.0\"}\n"
#define NO_FORK "cannot fork a worker"
#define BROKE   "the template broke its protocol"

static char directory[] = "/tmp/rlmd-template-XXXXXX";
static char *path, *words_path; /* of the interpreter, and of what it says; owned */

static void will_say(const char *words)
{
	struct rlmd_error err;

	unlink(words_path);
	assert_true(file_write(words_path, text_of(words), &err));
}

static void on_ready(void *owner)
{
	++*(int *)owner;
}

/* Begun, and its words heard by the loop, before anybody waits for it. */
static struct rlmd_sandbox *begin_and_turn(struct stage *stage, const char *python)
{
	struct rlmd_error err = {0};
	int ready = 0;
	struct rlmd_sandbox *begun = sandbox_begin(stage->base,
						   &(struct sandbox_config){
							   .python = python,
							   .worker_memory = MEMORY,
							   .worker_dir = stage_directory,
						   },
						   &err);

	if (!begun)
		fail_msg("%s", err.text);
	sandbox_on_ready(begun, on_ready, &ready);
	while (!ready)
		event_base_loop(stage->base, EVLOOP_ONCE);
	assert_int_equal(ready, 1);
	return begun;
}

static void expect_error(const char *words, const struct rlmd_error *err, enum rlmd_error_kind kind,
			 const char *in_text)
{
	if (err->kind != kind || !strstr(err->text, in_text))
		fail_msg("%s: %s", words, err->text);
}

static void expect_refusal(struct stage *stage, const char *words, enum rlmd_error_kind kind,
			   const char *in_text)
{
	struct rlmd_error err = {0}, later = {0};
	struct rlmd_sandbox *begun;

	will_say(words);
	assert_null(sandbox_new(stage->base,
				&(struct sandbox_config){
					.python = path,
					.worker_memory = MEMORY,
					.worker_dir = stage_directory,
				},
				&err));
	expect_error(words, &err, kind, in_text);
	begun = begin_and_turn(stage, path);
	assert_false(sandbox_await(begun, &later));
	expect_error(words, &later, kind, in_text);
	sandbox_free(begun);
}

static void nonsense_at_the_start(void **state)
{
	static const char *const nonsense[] = {
		"nonsense\n",
		"{}\n",
		"{\"ready\": 1, \"mode\": 3, \"layers\": 0, \"failures\": []}\n",
		HELLO HELLO,
		HELLO "{\"ready\": 1, \"mode\": 99, \"layers\": 0, \"failures\": []}\n",
		HELLO "{\"ready\": 1, \"mode\": 0, \"layers\": 0, \"failures\": 7}\n",
		HELLO "{\"ready\": 1, \"mode\": 0, \"layers\": 0, \"failures\": [[0, 64, 1]]}\n",
		HELLO "{\"ready\": 1, \"mode\": 0, \"layers\": 0, \"failures\": [[9, 0, 1]]}\n",
		HELLO "{\"ready\": 1, \"mode\": 0, \"layers\": 0, \"failures\": [\"all\"]}\n",
		HELLO "{\"failed\": []}\n",
		HELLO "{\"failed\": [7]}\n",
		HELLO "{\"ready\": 1, \"mode\": 3, \"layers\": 0, \"failures\": []}\nno reply\n",
	};

	for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++)
		expect_refusal(*state, nonsense[i], RLMD_ERROR_SANDBOX, BROKE);
}

/* Its own words reach the user, with whose fault it is. */
static void failures_are_told(void **state)
{
	auto_free char *failed = xasprintf(HELLO "{\"failed\": [[%d, %d, %d]]}\n", MODE_plain,
					   STEP_privileges, EINVAL);

	expect_refusal(*state, "{\"error\": \"too old\", \"kind\": \"usage\"}\n", RLMD_ERROR_USAGE,
		       "too old");
	expect_refusal(*state, HELLO "{\"error\": \"no native half\", \"kind\": \"sandbox\"}\n",
		       RLMD_ERROR_SANDBOX, "no native half");
	expect_refusal(*state, failed, RLMD_ERROR_SANDBOX, strerror(EINVAL));
}

/* A worker that is not as its mode promises is none, also where no step of its way was refused. */
static void a_wall_that_does_not_stand(void **state)
{
	auto_free char *ready = xasprintf(
		HELLO "{\"ready\": 1, \"mode\": %d, \"layers\": 0, \"failures\": []}\n",
		MODE_plain);
	auto_free char *fallen = xasprintf("%sfallen\n", ready);
	auto_free char *unwatched = xasprintf("%sunwatched\n", ready);

	expect_refusal(*state, fallen, RLMD_ERROR_SANDBOX, "a wall does not stand: Landlock");
	expect_refusal(*state, unwatched, RLMD_ERROR_SANDBOX,
		       "a wall does not stand: what it uses can be told by /proc");
}

/* The mode that does not stand is not tried again: to be stuck in it once more makes no sense. */
static void stuck_in_one_mode(void **state)
{
	auto_free char *failed = xasprintf(HELLO "{\"failed\": [[%d, %d, %d]]}\n", MODE_root,
					   STEP_tmpfs, EACCES);

	expect_refusal(*state, failed, RLMD_ERROR_SANDBOX, BROKE);
}

/* One takes the place of the sandbox's template, and a worker is asked for. */
static void expect_failure(struct stage *stage, const char *words, const char *in_text)
{
	struct cast first, second;
	const char *before;

	will_say(words);
	enter(&first, stage);
	expect_line(&first, "here");
	before = stage->sandbox->config.python;
	stage->sandbox->config.python = path;
	kill(getsid(process_pid(first.process)), SIGKILL);
	begin(&second, stage, NULL, 0, 0);
	while (!second.spawns)
		event_base_loop(stage->base, EVLOOP_ONCE);
	stage->sandbox->config.python = before;
	assert_null(second.process);
	assert_int_equal(second.error.kind,
			 strcmp(in_text, NO_FORK) != 0 ? RLMD_ERROR_SANDBOX : RLMD_ERROR_MACHINE);
	if (!strstr(second.error.text, in_text))
		fail_msg("%s: %s", words, second.error.text);
	tell(&first, "say('alive')");
	expect_line(&first, "alive");
	end(&first);
}

/* The sandbox as it is; what is said in `then` comes after it is ready with all its layers. */
static void expect_failure_of(struct stage *stage, const char *then, const char *in_text)
{
	auto_free char *words = xasprintf(
		HELLO "{\"ready\": 1, \"mode\": %d, \"layers\": %u, \"failures\": []}\n%s",
		stage->sandbox->status.mode, stage->sandbox->template_layers, then);

	expect_failure(stage, words, in_text);
}

static void nonsense_later(void **state)
{
	expect_failure(*state, "nonsense\n", BROKE);
	stage_reopen(*state, NULL, 0);
	expect_failure_of(*state, "no reply\n", BROKE);
}

/* A template of fewer layers would make workers that are weaker than was told. */
static void fewer_layers_later(void **state)
{
	struct stage *stage = *state;
	auto_free char *words = xasprintf(
		HELLO "{\"ready\": 1, \"mode\": %d, \"layers\": 0, \"failures\": []}\n",
		stage->sandbox->status.mode);

	expect_failure(stage, words, "fewer layers");
}

/* A fork that the kernel refused is told; an answer that nobody asked for is passed over. */
static void refused_forks(void **state)
{
	expect_failure_of(*state, "refuse\n", NO_FORK);
	stage_reopen(*state, NULL, 0);
	expect_failure_of(*state, "mistake\nrefuse\n", NO_FORK);
}

/* One that the loop has heard of is as good as any; and one that nobody waits for is gone. */
static void begun_before(void **state)
{
	struct stage *stage = *state;
	struct rlmd_sandbox *usual = stage->sandbox;
	struct rlmd_error err = {0};
	struct cast cast;

	stage->sandbox = begin_and_turn(stage, "python3");
	if (!sandbox_await(stage->sandbox, &err))
		fail_msg("%s", err.text);
	enter(&cast, stage);
	expect_line(&cast, "here");
	end(&cast);
	sandbox_free(stage->sandbox);
	sandbox_free(begin_and_turn(stage, "python3"));
	stage->sandbox = usual;
}

static int make_directories(void **state)
{
	assert_non_null(mkdtemp(directory));
	path = xasprintf("%s/says", directory);
	words_path = xasprintf("%s.words", path);
	return symlink(getenv("ODD_PYTHON"), path) | stage_make_directory(state);
}

static int remove_directories(void **state)
{
	unlink(path);
	unlink(words_path);
	free(path);
	free(words_path);
	return rmdir(directory) | stage_remove_directory(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
	const struct CMUnitTest tests[] = {
		TEST(begun_before),      TEST(nonsense_at_the_start),
		TEST(failures_are_told), TEST(stuck_in_one_mode),
		TEST(nonsense_later),    TEST(fewer_layers_later),
		TEST(refused_forks),     TEST(a_wall_that_does_not_stand),
	};

	stage_enter_mode(NULL);
	return cmocka_run_group_tests_name("template", tests, make_directories, remove_directories);
}
