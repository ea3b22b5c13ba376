/* cli/progress: a line of parts, and when it is written. */
#include "cli/progress.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/loop.h"
#include "cli/tell.h"
#include "told.h"

static void assert_line(const struct progress_line *line, size_t width, const char *text)
{
	char out[PROGRESS_LINE_MAX];

	progress_format(line, width, out);
	assert_string_equal(out, text);
}

/* At each step something is shorter or gone; nothing is cut. */
static void test_parts(void **state)
{
	struct progress_line line = {.count = 0};

	(void)state;
	progress_add(&line, 4, "part %d", 1);
	progress_brief(&line, 2, "p%d", 1);
	progress_add(&line, 3, "%s", "");
	progress_add(&line, 1, "second");
	progress_add(&line, 3, "3rd");
	assert_line(&line, 80, "part 1 | second | 3rd");
	assert_line(&line, 21, "part 1 | second | 3rd");
	assert_line(&line, 20, "part 1 | 3rd");
	assert_line(&line, 11, "p1 | 3rd");
	assert_line(&line, 7, "p1");
	assert_line(&line, 1, "");
}

static void test_more_than_a_line(void **state)
{
	struct progress_line line = {.count = 0};
	char x[PROGRESS_PART_MAX];

	(void)state;
	memset(x, 'x', sizeof x);
	x[sizeof x - 1] = '\0';
	progress_add(&line, 9, "kept");
	for (int i = 0; i < 3; i++)
		progress_add(&line, 1, "%s", x);
	assert_line(&line, 1000, "kept");
}

/* Written once as long as it stays the same, and taken away before anything else is said. */
static void test_a_live_line(void **state)
{
	struct told told;

	(void)state;
	told_begin(&told);
	progress_setup(true, false);
	progress_show("one");
	progress_show("one");
	progress_show("two");
	tell("said");
	progress_clear();
	progress_show("two");
	progress_end();
	assert_string_equal(told_end(&told),
			    "\rone\033[K\rtwo\033[K\r\033[Krlmd: said\n\rtwo\033[K\r\033[K");
}

static void test_loading(void **state)
{
	struct told told;

	(void)state;
	told_begin(&told);
	progress_setup(true, true);
	assert_true(progress_loading(NULL, 2500, 1));
	assert_true(progress_loading(NULL, 5000, 2)); /* too soon */
	progress_end();
	progress_setup(false, false);
	assert_true(progress_loading(NULL, 5000, 0));
	assert_string_equal(told_end(&told),
			    "\r\033[2mreading: 2.5kB in 1 file\033[0m\033[K\r\033[K");
}

struct asked {
	struct event_base *base;
	int described, told;
};

static void describe(const void *owner, struct progress_line *line)
{
	struct asked *asked = (struct asked *)(uintptr_t)owner;

	progress_add(line, 9, "%d", ++asked->described);
	if (asked->described == 2)
		event_base_loopbreak(asked->base);
}

static void tell_one(void *owner)
{
	struct asked *asked = owner;

	asked->told++;
	event_base_loopbreak(asked->base);
}

/* It describes the line where that is rewritten, and else is asked to tell one. */
static void test_a_source(void **state)
{
	struct asked asked = {.base = loop_new()};
	const struct progress_source source = {describe, tell_one, &asked};
	struct told told;

	(void)state;
	told_begin(&told);
	progress_setup(true, false);
	progress_start(asked.base, &source);
	event_base_dispatch(asked.base);
	progress_end();
	assert_int_equal(event_base_dispatch(asked.base), 1); /* nothing waits */
	progress_setup(false, false);
	progress_start(asked.base, &source);
	event_base_dispatch(asked.base);
	progress_end();
	progress_start(asked.base, &(struct progress_source){describe, NULL, &asked});
	assert_int_equal(event_base_dispatch(asked.base), 1);
	progress_end();
	assert_string_equal(told_end(&told), "\r1\033[K\r2\033[K\r\033[K");
	assert_int_equal(asked.described, 2);
	assert_int_equal(asked.told, 1);
	event_base_free(asked.base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),       cmocka_unit_test(test_more_than_a_line),
		cmocka_unit_test(test_a_live_line), cmocka_unit_test(test_loading),
		cmocka_unit_test(test_a_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
