/* Workers map large inputs, and all of them the same files. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memfile.h"
#include "pool/script.h"
#include "pool/stage.h"

#define LARGE ((size_t)1 << 20) /* bytes */

static struct stage stage;
static struct actor actors[2];

static int set_up(void **state)
{
	(void)state;
	stage_init(&stage);
	fake_sandbox_map(stage.sandbox, true);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	actor_done(&actors[0]);
	actor_done(&actors[1]);
	stage_done(&stage);
	return 0;
}

/* Of the pieces, one after the other. */
static struct memfile *file_of(const char *piece)
{
	struct memfile *file = memfile_new("test");

	while (memfile_size(file) < LARGE)
		assert_true(memfile_append(file, text_of(piece), NULL));
	assert_true(memfile_seal(file, NULL));
	return file;
}

static void start(struct actor *actor, fake_script_fn *script, struct memfile *file)
{
	struct worker_input inputs[] = {{"context", file, NULL, TEXT_UTF8},
					{"again", file, NULL, TEXT_UTF8}};
	struct worker_options options = {.inputs = inputs, .input_count = 2, .max_output = 1000};

	actor_start(actor, &stage, script, &options);
}

static int hears(int in, int out, const char *part)
{
	say(out, "{\"type\":\"ready\",\"python\":\"3\",\"layers\":[]}");
	expect(in, part);
	say(out, "{\"type\":\"started\",\"error\":null,\"no_memory\":false}");
	return hear(in) != NULL;
}

static int hears_ascii(int in, int out)
{
	return hears(in, out, "\"forms\":[\"ascii\",\"ascii\"],\"sizes\":[1048576,1048576]");
}

static int hears_ucs2(int in, int out)
{
	return hears(in, out, "\"forms\":[\"ucs-2\",\"ucs-2\"],\"sizes\":[1048576,1048576]");
}

static int hears_utf8(int in, int out)
{
	return hears(in, out, "\"forms\":[\"utf-8\",\"utf-8\"],\"sizes\":[1048576,1048576]");
}

/* ASCII stands as it is: no copy, and none of the worker's memory. */
static void test_ascii(void **state)
{
	struct memfile *file = file_of("0123456789abcdef");

	(void)state;
	start(&actors[0], hears_ascii, file);
	actor_await(&actors[0], WORKER_READY, 1);
	assert_int_equal(fake_sandbox_memory(stage.sandbox), 0);
	memfile_unref(file);
}

/* Of another text there is no copy; what a worker decodes of it is its memory. */
static void test_wide(void **state)
{
	struct memfile *file = file_of("\xc3\xbc\xc4\xb1");

	(void)state;
	start(&actors[0], hears_ucs2, file);
	start(&actors[1], hears_ucs2, file);
	actor_await(&actors[0], WORKER_READY, 1);
	actor_await(&actors[1], WORKER_READY, 1);
	assert_int_equal(fake_sandbox_memory(stage.sandbox), TEXT_WINDOW);
	actor_done(&actors[0]);
	start(&actors[0], hears_ucs2, file);
	actor_await(&actors[0], WORKER_READY, 1);
	assert_int_not_equal(fake_sandbox_file(stage.sandbox, 0), 0);
	assert_int_equal(fake_sandbox_file(stage.sandbox, 0), fake_sandbox_file(stage.sandbox, 1));
	assert_int_equal(fake_sandbox_file(stage.sandbox, 0), fake_sandbox_file(stage.sandbox, 2));
	memfile_unref(file);
}

/* A worker that goes before it has a process takes nothing along from those that wait too. */
static void test_freed_midway(void **state)
{
	struct memfile *file = file_of("\xc3\xbc\xc4\xb1");

	(void)state;
	start(&actors[0], hears_ucs2, file);
	start(&actors[1], hears_ucs2, file);
	memfile_unref(file);
	event_base_loop(stage.base, EVLOOP_ONCE);
	actor_done(&actors[0]);
	actor_await(&actors[1], WORKER_READY, 1);
}

/* A Python that cannot map them decodes, and pays for it. */
static void test_not_mapped(void **state)
{
	struct memfile *file = file_of("\xc3\xbc\xc4\xb1");

	(void)state;
	fake_sandbox_map(stage.sandbox, false);
	start(&actors[0], hears_utf8, file);
	actor_await(&actors[0], WORKER_READY, 1);
	assert_int_equal(fake_sandbox_memory(stage.sandbox), 2 * (LARGE + 2 * (LARGE + 80)));
	memfile_unref(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_ascii),
		TEST(test_wide),
		TEST(test_freed_midway),
		TEST(test_not_mapped),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("boot", tests, NULL, NULL);
}
