/* batch/contexts: what several jobs are about at a time is read once. */
#include "batch/contexts.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"

enum { HOLDERS = 3 };

struct holder {
	struct contexts_hold *hold;
	struct rlmd_context *context;
	struct rlmd_error error;
	int told;
};

static char path[] = "/tmp/test_contexts.XXXXXX";

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void on_context(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct holder *holder = owner;

	holder->told++;
	holder->context = context;
	if (err)
		holder->error = *err;
}

static void hold(struct event_base *base, struct contexts *contexts, const char *source,
		 struct holder *holders, int count)
{
	memset(holders, 0, (size_t)count * sizeof *holders);
	for (int i = 0; i < count; i++) {
		holders[i].hold = contexts_hold(contexts, source, on_context, &holders[i]);
		assert_int_equal(holders[i].told, 0);
	}
	for (int i = 0; i < count; i++)
		while (!holders[i].told)
			event_base_loop(base, EVLOOP_ONCE);
}

static const char *text_in(struct rlmd_context *context)
{
	struct rlmd_context_input input = {.size = sizeof input};

	assert_true(rlmd_context_get_input(context, 0, &input));
	return input.content.bytes;
}

static void test_shared(void **state)
{
	struct event_base *base = event_base_new();
	struct contexts *contexts = contexts_new(base, ".");
	struct holder holders[HOLDERS], late;

	(void)state;
	write_file("before");
	hold(base, contexts, path, holders, HOLDERS);
	write_file("after!");
	hold(base, contexts, path, &late, 1);
	assert_memory_equal(text_in(late.context), "before", 6);
	for (int i = 0; i < HOLDERS; i++) {
		assert_ptr_equal(holders[i].context, late.context);
		contexts_release(holders[i].hold);
	}
	contexts_release(late.hold);
	hold(base, contexts, path, &late, 1);
	assert_memory_equal(text_in(late.context), "after!", 6);
	contexts_release(late.hold);
	contexts_free(contexts);
	event_base_free(base);
}

/* A context that cannot be read is told to all that wait, and tried again later. */
static void test_failed(void **state)
{
	struct event_base *base = event_base_new();
	struct contexts *contexts = contexts_new(base, ".");
	struct holder holders[HOLDERS];

	(void)state;
	unlink(path);
	hold(base, contexts, path, holders, HOLDERS);
	for (int i = 0; i < HOLDERS; i++) {
		assert_null(holders[i].context);
		assert_int_equal(holders[i].error.kind, RLMD_ERROR_INPUT);
		assert_int_equal(holders[i].told, 1);
		contexts_release(holders[i].hold);
	}
	write_file("there");
	hold(base, contexts, path, holders, 1);
	assert_non_null(holders[0].context);
	contexts_release(holders[0].hold);
	contexts_free(contexts);
	event_base_free(base);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_failed),
	};

	close(mkstemp(path));
	return cmocka_run_group_tests_name("contexts", tests, NULL, NULL);
}
