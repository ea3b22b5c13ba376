/* Records reach whoever listens at the root, with the ids of all between. */
#include "base/log.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct heard {
	size_t count;
	enum rlmd_log_level level;
	char event[40], subject[40], message[2000], fields[400];
};

static void on_record(void *owner, const struct rlmd_log_record *record)
{
	struct heard *heard = owner;
	size_t size = 0;

	assert_int_equal(record->size, sizeof *record);
	heard->count++;
	heard->level = record->level;
	snprintf(heard->event, sizeof heard->event, "%s", record->event);
	snprintf(heard->subject, sizeof heard->subject, "%s", record->subject);
	snprintf(heard->message, sizeof heard->message, "%s", record->message);
	*heard->fields = '\0';
	for (size_t i = 0; i < record->field_count && size < sizeof heard->fields; i++) {
		const struct rlmd_log_field *field = &record->fields[i];
		char number[24];

		snprintf(number, sizeof number, "%d", (int)field->number);
		size += (size_t)snprintf(heard->fields + size, sizeof heard->fields - size,
					 "%s=%s ", field->name, field->text ? field->text : number);
	}
}

static void test_ids(void **state)
{
	struct heard heard = {0};
	struct log root = log_root(RLMD_LOG_DEBUG, on_record, &heard);
	struct log job = log_child(&root), run = log_child(&job), worker = log_child(&run);

	(void)state;
	log_add_text(&job, "job", "j");
	log_add_text(&run, "run", "r");
	log_add_number(&worker, "pid", 47);
	log_write(&worker, LOG_WORKER_DIED,
		  LOG_FIELDS(LOG_NUMBER("block", 0), LOG_TEXT("error", "worker"),
			     LOG_TEXT("remedy", "")),
		  "it %s", "died");
	assert_string_equal(heard.fields, "job=j run=r pid=47 block=0 error=worker ");
	assert_string_equal(heard.message, "it died");
	assert_string_equal(heard.event, "worker_died");
	assert_string_equal(heard.subject, "worker");
	assert_int_equal(heard.level, RLMD_LOG_WARNING);
	log_write(&root, LOG_TEMPLATE_LOST, NULL, "gone");
	assert_string_equal(heard.fields, "");
	assert_int_equal(heard.count, 2);
}

/* A record above the level is not even formatted, and zero is a level. */
static void test_levels(void **state)
{
	struct heard heard = {0};
	struct log quiet = log_root(RLMD_LOG_DEFAULT, on_record, &heard);
	struct log nobody = {0}, child = log_child(NULL);

	(void)state;
	log_write(&quiet, LOG_CALL_RETRIED, NULL, "no");
	log_write(&quiet, LOG_WORKER_STARTED, NULL, "no");
	assert_int_equal(heard.count, 0);
	log_write(&quiet, LOG_WORKER_DIED, NULL, "yes");
	assert_int_equal(heard.count, 1);
	log_write(NULL, LOG_WORKER_DIED, NULL, "nobody");
	log_write(&nobody, LOG_WORKER_DIED, NULL, "nobody");
	log_write(&child, LOG_WORKER_DIED, NULL, "nobody");
	assert_int_equal(heard.count, 1);
}

/* More than there is room for is cut, and so are more fields than anybody needs. */
static void test_bounds(void **state)
{
	struct heard heard = {0};
	struct log root = log_root(RLMD_LOG_DEBUG, on_record, &heard);
	struct rlmd_log_field fields[100];
	char text[3000];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (size_t i = 0; i < 99; i++)
		fields[i] = (struct rlmd_log_field)LOG_NUMBER("n", 1);
	fields[99] = (struct rlmd_log_field){.name = NULL};
	log_write(&root, LOG_WORKER_DIED, fields, "%s", text);
	assert_int_equal(strlen(heard.message), 1023);
	assert_int_equal(strlen(heard.fields), 32 * strlen("n=1 "));
}

static void again(evutil_socket_t fd, short what, void *base)
{
	(void)fd;
	(void)what;
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* It warns of a loop in a loop. */
static void test_libevent(void **state)
{
	struct heard heard = {0};
	struct log root = log_root(RLMD_LOG_WARNING, on_record, &heard);
	struct event_base *base = event_base_new();

	(void)state;
	log_take_libevent(&root);
	event_base_once(base, -1, EV_TIMEOUT, again, base, NULL);
	event_base_dispatch(base);
	log_take_libevent(NULL);
	event_base_free(base);
	assert_int_equal(heard.count, 1);
	assert_string_equal(heard.event, "loop_trouble");
	assert_non_null(strstr(heard.message, "reentrant"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_libevent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
