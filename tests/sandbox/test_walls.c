/* The powers of a worker, and their ends: tried from inside, one guarantee a test. */
#include <errno.h>
#include <fcntl.h>
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
#include "sandbox/launch.h"
#include "stage.h"

/* G1-G5, G7: each attempt is a PermissionError that code can catch, and it goes on. */
static void attempts_are_refused(void **state)
{
	static const char *const attempts[] = {
		"open('/etc/passwd')",
		"open('/proc/self/environ')",
		"open('/tmp/rlmd-escape', 'w')",
		"os.listdir('/')",
		"os.stat('/')",
		"os.unlink('/tmp/rlmd-escape')",
		"os.mkdir('/tmp/rlmd-escape')",
		"os.memfd_create('x')",
		"__import__('socket').socket()",
		"__import__('socket').create_connection(('127.0.0.1', 1))",
		"os.fork()",
		"os.posix_spawn('/bin/true', ['true'], {})",
		"os.execv('/bin/true', ['true'])",
		"__import__('subprocess').run(['true'])",
		"os.kill(os.getppid(), 9)",
		"os.kill(os.getpid(), 9)",
		"__import__('fcntl').fcntl(3, 8, os.getppid())", /* F_SETOWN */
		"os.setuid(12345)",
		"__import__('socket').sethostname('elsewhere')",
		"os.nice(-1)",
		"os.dup2(3, 9)",
		"__import__('mmap').mmap(-1, 4096)",
	};
	struct process_exit exit;
	size_t i;

	for (i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
		auto_free char *code = xasprintf("say(attempt(\"\"\"%s\"\"\"))", attempts[i]);
		auto_free char *heard = perform(*state, code, &exit);

		if (strcmp(heard, "PermissionError\n"))
			fail_msg("%s: %s", attempts[i], heard);
		assert_int_equal(exit.status, 0);
	}
}

/* G7: what only an attacker calls ends the process. */
static void attackers_are_killed(void **state)
{
	static const char *const calls[] = {
		"425",                                                         /* io_uring_setup */
		"__import__('platform').machine() == 'x86_64' and 321 or 280", /* bpf */
		"__import__('platform').machine() == 'x86_64' and 101 or 117", /* ptrace */
		"__import__('platform').machine() == 'x86_64' and 272 or 97",  /* unshare */
	};
	struct process_exit exit;
	size_t i;

	for (i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		auto_free char *code = xasprintf(
			"import ctypes\nctypes.CDLL(None).syscall(%s, 0, 0, 0)\nsay('alive')",
			calls[i]);
		auto_free char *heard = perform(*state, code, &exit);

		assert_string_equal(heard, "");
		assert_true(exit.signaled);
		assert_int_equal(exit.status, SIGSYS);
	}
}

/* G7: no way to executable memory, neither fresh nor by a change of mind. */
static void memory_is_never_executable(void **state)
{
	expect(*state,
	       "import ctypes\n"
	       "c = ctypes.CDLL(None, use_errno=True)\n"
	       "c.mmap.restype = ctypes.c_void_p\n"
	       "c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
	       "c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]\n"
	       "page = c.mmap(None, 4096, 3, 0x22, -1, 0)\n"
	       "say(page != 2 ** 64 - 1, c.mprotect(page, 4096, 5), ctypes.get_errno())\n"
	       "say(c.mmap(None, 4096, 7, 0x22, -1, 0) == 2 ** 64 - 1, ctypes.get_errno())\n",
	       "True -1 1\nTrue 1\n");
}

/* A worker that aborts may signal itself, and nobody else; alone in its pid namespace it crashes.
 */
static void abort_is_its_own(void **state)
{
	struct process_exit exit;
	auto_free char *heard = perform(*state, "os.abort()", &exit);

	assert_string_equal(heard, "");
	assert_true(exit.signaled);
	assert_int_equal(exit.status, stage_has(*state, "pid_namespace") ? SIGSEGV : SIGABRT);
}

/* LIB: the standard library is there, also what nobody has imported yet. */
static void late_imports_need_no_file(void **state)
{
	expect(*state,
	       "import asyncio, sqlite3, logging, xml.dom.minidom, email.message, concurrent.futures\n"
	       "import http.client, multiprocessing, zipfile, lzma, bz2, ctypes, pydoc, tarfile, sys\n"
	       "async def five():\n"
	       "    await asyncio.sleep(0)\n"
	       "    return await asyncio.get_running_loop().run_in_executor(None, int, 5)\n"
	       "say(asyncio.run(five()))\n"
	       "say(sqlite3.connect(':memory:').execute('select 1 + 1').fetchone()[0])\n"
	       "with concurrent.futures.ThreadPoolExecutor(8) as pool:\n"
	       "    say(sum(pool.map(abs, range(100))))\n"
	       "del sys.modules['json'], sys.modules['_json']\n"
	       "import json, _json\n"
	       "say(json.dumps([1]))\n"
	       "say(attempt('__import__(\"no_such_module\")'))\n",
	       "5\n2\n4950\n[1]\nModuleNotFoundError\n");
}

/* G6: nothing of ours but the pipes and the inputs, and no variable of our environment. */
static void nothing_is_inherited(void **state)
{
	int leak = open("/dev/null", O_RDONLY); /* not close-on-exec, on purpose */

	setenv("OPENAI_API_KEY", "secret", 1);
	expect(*state,
	       "say([fd for fd in range(1024) if attempt('__import__(\"fcntl\").fcntl(%d, 1)' % fd) != 'OSError'])\n"
	       "say('OPENAI_API_KEY' in os.environ, os.getcwd())\n"
	       "say(os.read(0, 1), os.write(1, b'x'), os.write(2, b'x'))\n",
	       "[0, 1, 2, 3, 4]\nFalse /\nb'' 1 1\n");
	unsetenv("OPENAI_API_KEY");
	close(leak);
}

/* The report of all workers is true of each one. */
static void report_names_what_stands(void **state)
{
	struct stage *stage = *state;
	auto_free char *text = rlmd_sandbox_report(stage->sandbox);
	auto_free char *layers = NULL, *code = NULL;
	json_t *report = json_loads(text, 0, NULL);

	assert_string_equal(json_string_value(json_object_get(report, "mode")), stage_mode->mode);
	assert_string_equal(json_string_value(json_object_get(report, "level")),
			    rlmd_sandbox_level(stage->sandbox));
	assert_true(strcmp(rlmd_sandbox_level(stage->sandbox), stage_mode->level) >= 0);
	assert_true(report_has(report, "seccomp"));
	layers = json_dumps(json_object_get(report, "layers"), 0);
	code = xasprintf(
		"ours = [name for name in %s if not name.endswith('_cgroup')]\n"
		"say([name for name in ours if name[-7:] not in ('y_watch', 'ed_uids')] == layers)",
		layers);
	expect(stage, code, "True\n");
	json_decref(report);
}

/* G8: each limit is there, hard, and memory beyond it is a MemoryError. */
static void limits_hold(void **state)
{
	expect(*state,
	       "from resource import *\n"
	       "hard = lambda *which: [getrlimit(limit) for limit in which]\n"
	       "say(hard(RLIMIT_CORE, RLIMIT_FSIZE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE))\n"
	       "say(getrlimit(RLIMIT_DATA), [a == b < 2 ** 40 for a, b in\n"
	       "    hard(RLIMIT_AS, RLIMIT_STACK, RLIMIT_NOFILE, RLIMIT_CPU)])\n"
	       "say(attempt('__import__(\"resource\").setrlimit(7, (1, 1))'))\n"
	       "say(attempt('len(bytearray(200 << 20))'), attempt('bytearray(300 << 20)'), 'goes on')\n",
	       "[(0, 0), (0, 0), (0, 0), (0, 0)]\n"
	       "(268435456, 268435456) [True, True, True, True]\n"
	       "ValueError\n"
	       "209715200 MemoryError goes on\n");
}

/* Inputs come as descriptors from 5 on; who shares one does not share its position. */
static void inputs_are_ones_own(void **state)
{
	int files[2] = {memory_file("h\xc3\xa9llo"), memory_file("a\xff")};
	static const char code[] =
		"say(inputs, ascii(native.decode(5, 6)), ascii(native.decode(6, 2)))\n"
		"say(attempt('native.decode(5, 7)'), attempt('os.write(5, b\"x\")'))\n"
		"os.lseek(5, 0, 0)\n"
		"say(os.read(5, 1))";
	struct cast cast;
	int i;

	for (i = 0; i < 2; i++) {
		auto_free char *heard = NULL;

		begin(&cast, *state, files, 2, MEMORY);
		event_base_dispatch(cast.stage->base);
		assert_non_null(cast.process);
		tell(&cast, code);
		heard = hear(&cast, false);
		assert_string_equal(heard, "here\n[5, 6] 'h\\xe9llo' 'a\\udcff'\n"
					   "ValueError OSError\nb'h'\n");
		end(&cast);
	}
	assert_int_equal(lseek(files[0], 0, SEEK_CUR), 6);
	close(files[0]);
	close(files[1]);
}

/* G6: what two workers share they could talk by: the flags of a descriptor that leads nowhere. */
static void nulls_are_ones_own(void **state)
{
	struct cast first, second;

	enter(&first, *state);
	expect_line(&first, "here");
	tell(&first,
	     "import fcntl\n"
	     "fcntl.fcntl(0, fcntl.F_SETFL, os.O_APPEND)\n"
	     "say([bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND) for fd in range(3)])");
	expect_line(&first, "[True, True, True]");
	enter(&second, *state);
	expect_line(&second, "here");
	tell(&second,
	     "import fcntl\n"
	     "say([bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND) for fd in range(3)])");
	expect_line(&second, "[False, False, False]");
	end(&first);
	end(&second);
}

/* As many inputs as may be, and one more: refused by the callback, not before. */
static void inputs_are_counted(void **state)
{
	int files[LAUNCH_FILES_MAX + 1];
	auto_free char *heard = NULL;
	struct cast cast;
	size_t i;

	files[0] = memory_file("x");
	for (i = 1; i <= LAUNCH_FILES_MAX; i++)
		files[i] = files[0];

	begin(&cast, *state, files, LAUNCH_FILES_MAX, 0);
	event_base_dispatch(cast.stage->base);
	assert_non_null(cast.process);
	tell(&cast, "say(len(inputs), inputs[-1], os.read(inputs[-1], 1))");
	heard = hear(&cast, false);
	assert_string_equal(heard, "here\n96 100 b'x'\n");
	end(&cast);

	begin(&cast, *state, files, LAUNCH_FILES_MAX + 1, 0);
	assert_int_equal(cast.spawns, 0);
	event_base_dispatch(cast.stage->base);
	assert_int_equal(cast.spawns, 1);
	assert_null(cast.process);
	assert_int_equal(cast.error.kind, RLMD_ERROR_INPUT);
	end(&cast);
	close(files[0]);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
	const struct CMUnitTest tests[] = {
		TEST(attempts_are_refused),       TEST(attackers_are_killed),
		TEST(memory_is_never_executable), TEST(abort_is_its_own),
		TEST(late_imports_need_no_file),  TEST(nothing_is_inherited),
		TEST(report_names_what_stands),   TEST(limits_hold),
		TEST(nulls_are_ones_own),         TEST(inputs_are_ones_own),
		TEST(inputs_are_counted),
	};

	stage_enter_mode(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests_name("walls", tests, stage_make_directory,
					   stage_remove_directory);
}
