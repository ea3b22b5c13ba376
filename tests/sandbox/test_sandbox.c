/* Lives and deaths: of workers, of the template, of the supervisor. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "sandbox/launch.h"
#include "sandbox/sandbox_private.h"
#include "stage.h"

/* A block that takes too long is interrupted in Python, and killed where that does not help. */
static void interrupt_then_kill(void **state)
{
	struct cast cast;

	enter(&cast, *state);
	tell(&cast, "import time\n"
		    "try:\n"
		    "    say('sleeping')\n"
		    "    while True: time.sleep(0.1)\n" /* a signal may come right before it */
		    "except KeyboardInterrupt:\n"
		    "    say('interrupted')\n"
		    "while True: pass\n");
	expect_line(&cast, "here");
	expect_line(&cast, "sleeping");
	process_interrupt(cast.process);
	expect_line(&cast, "interrupted");
	process_kill(cast.process);
	await_exit(&cast);
	assert_true(cast.exit.signaled);
	assert_int_equal(cast.exit.status, SIGKILL);
	end(&cast);
}

/* An exit before anybody asked is told all the same, once. */
static void early_exit_is_told(void **state)
{
	struct cast cast;

	enter(&cast, *state);
	tell(&cast, "import time\n"
		    "while time.process_time() < 0.05: pass\n"
		    "os._exit(42)");
	await_death(process_pid(cast.process));
	await_exit(&cast);
	assert_false(cast.exit.signaled);
	assert_int_equal(cast.exit.status, 42);
	assert_true(cast.exit.cpu_ms >= 40);
	assert_null(process_exit_wall(&cast.exit));
	end(&cast);
}

/* The exit status of a worker whose walls did not stand names the wall. */
static void fallen_walls_are_named(void **state)
{
	struct process_exit exit = {.status = WALL_EXIT + WALL_filter};

	(void)state;
	assert_string_equal(process_exit_wall(&exit), "the sealed filter");
	exit.signaled = true;
	assert_null(process_exit_wall(&exit));
	exit = (struct process_exit){.status = WALL_EXIT + WALL_COUNT};
	assert_null(process_exit_wall(&exit));
}

static void kill_template(const struct cast *cast)
{
	pid_t template = getsid(process_pid(cast->process));

	assert_true(template > 1);
	kill(template, SIGKILL);
}

/* Nothing depends on the template's life: its workers go on, the next one gets a new template. */
static void template_may_die(void **state)
{
	struct cast first, second;

	enter(&first, *state);
	expect_line(&first, "here");
	kill_template(&first);
	await_death(getsid(process_pid(first.process)));
	event_base_loop(first.stage->base, EVLOOP_NONBLOCK);
	enter(&second, *state);
	expect_line(&second, "here");
	assert_int_not_equal(getsid(process_pid(first.process)),
			     getsid(process_pid(second.process)));
	tell(&first, "say('alive')");
	expect_line(&first, "alive");
	end(&first);
	end(&second);
}

/* One that is stopped does not die of itself: its answer has a deadline, and then another is asked.
 */
static void template_may_stop(void **state)
{
	struct stage *stage = *state;
	struct cast first, second;
	pid_t template;

	enter(&first, stage);
	expect_line(&first, "here");
	template = getsid(process_pid(first.process));
	kill(template, SIGSTOP);
	stage->sandbox->answer_ms = 300;
	begin(&second, stage, NULL, 0, 0);
	while (TAILQ_EMPTY(&stage->sandbox->sent))
		event_base_loop(stage->base, EVLOOP_ONCE);
	stage->sandbox->answer_ms = SOON;
	while (!second.spawns)
		event_base_loop(stage->base, EVLOOP_ONCE);
	if (!second.process)
		fail_msg("%s", second.error.text);
	expect_line(&second, "here");
	assert_int_equal(kill(template, 0), -1);
	assert_int_not_equal(getsid(process_pid(second.process)), template);
	tell(&first, "say('alive')");
	expect_line(&first, "alive");
	end(&first);
	end(&second);
}

/* Whatever the template was doing when it died, each spawn has one worker, by another template. */
static void spawns_survive_a_dying_template(void **state)
{
	struct cast first, casts[12];
	int round, i, answered;

	for (round = 0; round < 8; round++) {
		enter(&first, *state);
		for (i = 0; i < 12; i++)
			begin(&casts[i], *state, NULL, 0, 0);
		for (i = 0; i < round; i++)
			event_base_loop(first.stage->base, EVLOOP_ONCE);
		kill_template(&first);
		do {
			for (answered = i = 0; i < 12; i++)
				answered += casts[i].spawns;
			if (answered < 12)
				event_base_loop(first.stage->base, EVLOOP_ONCE);
		} while (answered < 12);
		for (i = 0; i < 12; i++) {
			assert_int_equal(casts[i].spawns, 1);
			if (!casts[i].process)
				fail_msg("%s", casts[i].error.text);
			end(&casts[i]);
		}
		end(&first);
	}
}

/* One that died with requests unread resets the connection: whoever asks next hears it first. */
static void the_dead_are_asked(void **state)
{
	struct stage *stage = *state;
	struct cast first, casts[2];
	pid_t template;

	enter(&first, stage);
	template = getsid(process_pid(first.process));
	kill(template, SIGSTOP);
	begin(&casts[0], stage, NULL, 0, 0);
	while (TAILQ_EMPTY(&stage->sandbox->sent))
		event_base_loop(stage->base, EVLOOP_ONCE);
	kill(template, SIGKILL);
	await_death(template);
	begin(&casts[1], stage, NULL, 0, 0);
	for (int i = 0; i < 2; i++) {
		while (!casts[i].spawns)
			event_base_loop(stage->base, EVLOOP_ONCE);
		if (!casts[i].process)
			fail_msg("%s", casts[i].error.text);
		expect_line(&casts[i], "here");
		end(&casts[i]);
	}
	end(&first);
}

/* Cancelled after any number of events, a spawn leaves nothing and calls nobody. */
static void spawns_may_be_cancelled(void **state)
{
	struct cast cast;
	struct spawn *spawn;
	int events, i;

	for (events = 0; events < 6; events++) {
		spawn = begin(&cast, *state, NULL, 0, 0);
		for (i = 0; i < events && !cast.spawns; i++)
			event_base_loop(cast.stage->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		if (!cast.spawns)
			spawn_cancel(spawn);
		end(&cast);
	}
	enter(&cast, *state); /* and the sandbox goes on */
	assert_int_equal(cast.spawns, 1);
	end(&cast);
}

/* Freed with everything under way: the teardown sees that nothing is left. */
static void sandbox_may_go_any_time(void **state)
{
	struct stage *stage = *state;
	struct cast casts[12];
	struct spawn *spawns[12];
	int i;

	for (i = 0; i < 12; i++)
		spawns[i] = begin(&casts[i], stage, NULL, 0, 0);
	while (!casts[0].spawns)
		event_base_loop(stage->base, EVLOOP_ONCE);
	for (i = 0; i < 12; i++) {
		if (!casts[i].spawns)
			spawn_cancel(spawns[i]);
		end(&casts[i]);
	}
}

/* G9: a supervisor that is killed takes its template and its workers along. */
static void supervisor_takes_all_along(void **state)
{
	struct pollfd over[2];
	pid_t pids[2], helper;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	helper = fork();
	if (!helper) {
		struct stage stage = {.base = event_base_new()};
		struct cast cast;

		stage.sandbox = stage_sandbox(stage.base, NULL, NULL);
		enter(&cast, &stage);
		pids[0] = process_pid(cast.process);
		pids[1] = getsid(pids[0]);
		(void)!write(ends[1], pids, sizeof pids);
		pause();
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], pids, sizeof pids), sizeof pids);
	close(ends[0]);
	over[0] = (struct pollfd){.fd = pidfd_open(pids[0], 0), .events = POLLIN};
	over[1] = (struct pollfd){.fd = pidfd_open(pids[1], 0), .events = POLLIN};
	assert_true(over[0].fd >= 0 && over[1].fd >= 0);
	assert_int_equal(poll(over, 2, 0), 0);
	kill(helper, SIGKILL);
	assert_int_equal(waitpid(helper, NULL, 0), helper);
	assert_int_equal(poll(&over[0], 1, SOON), 1);
	assert_int_equal(poll(&over[1], 1, SOON), 1);
	close(over[0].fd);
	close(over[1].fd);
}

/* Where the host ignores SIGCHLD the kernel reaps: an end is heard, how is not known but where it
 * was ours to end, and the signal is left as it was. */
static void ignored_children_are_heard(void **state)
{
	struct stage *stage = *state;
	struct process_exit exit;
	struct rlmd_error err = {0};

	sandbox_free(stage->sandbox);
	signal(SIGCHLD, SIG_IGN);
	stage->sandbox = stage_sandbox(stage->base, NULL, &err);
	if (!stage->sandbox)
		fail_msg("%s", err.text);
	free(perform(stage, "os._exit(7)", &exit));
	assert_true(exit.unknown);
	assert_false(exit.signaled);
	sandbox_free(stage->sandbox);
	stage->sandbox = stage_sandbox(stage->base, NULL, NULL);
	assert_true(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
}

/* --preload: a module that is not there is named, at once. */
static void missing_preload_is_named(void **state)
{
	static const char *const preload[] = {"wave", "no_such_module", NULL};
	struct stage *stage = *state;
	struct rlmd_error err = {0};

	assert_null(stage_sandbox(stage->base, preload, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "no_such_module"));
}

/* sandbox_new() says which interpreter cannot become a template, with the path. */
static void useless_interpreters_are_refused(void **state)
{
	struct stage *stage = *state;
	struct sandbox_config config = {.worker_memory = MEMORY, .worker_dir = stage_directory};
	struct rlmd_error err = {0};

	config.python = "/bin/true";
	assert_null(sandbox_new(stage->base, &config, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "/bin/true"));

	config.python = "/bin/ls";
	assert_null(sandbox_new(stage->base, &config, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "utf8")); /* its standard error */

	config.python = "python3";
	config.worker_dir = "/nonexistent";
	assert_null(sandbox_new(stage->base, &config, &err));
	assert_int_equal(err.kind, RLMD_ERROR_SANDBOX);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
	const struct CMUnitTest tests[] = {
		TEST(interrupt_then_kill),
		TEST(early_exit_is_told),
		cmocka_unit_test(fallen_walls_are_named),
		TEST(template_may_die),
		TEST(template_may_stop),
		TEST(spawns_survive_a_dying_template),
		TEST(the_dead_are_asked),
		TEST(spawns_may_be_cancelled),
		TEST(sandbox_may_go_any_time),
		cmocka_unit_test(supervisor_takes_all_along),
		TEST(ignored_children_are_heard),
		TEST(missing_preload_is_named),
		TEST(useless_interpreters_are_refused),
	};

	stage_enter_mode(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests_name("sandbox", tests, stage_make_directory,
					   stage_remove_directory);
}
