/* One line of standard error in its three formats, whatever strangers wrote into it. */
#include "cli/log_format.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

static char *line_of(enum log_format format, enum rlmd_log_level level, const char *message,
		     const struct rlmd_log_field *fields, size_t count, bool color)
{
	struct rlmd_log_record record = {.size = sizeof record,
					 .level = level,
					 .subject = "worker",
					 .event = "worker_died",
					 .message = message,
					 .fields = fields,
					 .field_count = count};
	struct evbuffer *out = evbuffer_new();
	char *line;

	log_format_write(format, &record, color, out);
	line = text_drain(out, NULL);
	evbuffer_free(out);
	return line;
}

static const struct rlmd_log_field fields[] = {
	{.name = "job", .text = "0123456789abcdef"},
	{.name = "run", .text = "fedcba9876543210"},
	{.name = "pid", .number = 47},
	{.name = "remedy", .text = "two words"},
};

enum { FIELDS = sizeof fields / sizeof *fields };

static void test_text(void **state)
{
	static const struct {
		enum rlmd_log_level level;
		bool color;
		size_t count;
		const char *line;
	} cases[] = {
		{RLMD_LOG_WARNING, false, FIELDS,
		 "rlmd: warning: [fedcba98] it died (pid=47 remedy=\"two words\")\n"},
		{RLMD_LOG_ERROR, true, 0, "rlmd: \033[31merror:\033[0m it died\n"},
		{RLMD_LOG_WARNING, true, 2, "rlmd: \033[33mwarning:\033[0m [fedcba98] it died\n"},
		{RLMD_LOG_NOTICE, true, 0, "rlmd: it died\n"},
		{RLMD_LOG_INFO, false, 3, "rlmd: [fedcba98] it died (pid=47)\n"},
		{RLMD_LOG_DEBUG, false, 1, "rlmd: it died\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_free char *line = line_of(LOG_FORMAT_TEXT, cases[i].level, "it died", fields,
					       cases[i].count, cases[i].color);

		assert_string_equal(line, cases[i].line);
	}
}

/* sd-daemon(3): the priorities of syslog, and no words that say them again. */
static void test_journald(void **state)
{
	static const char *const priorities[] = {"<4>", "<3>", "<4>", "<5>", "<6>", "<7>"};

	(void)state;
	for (int level = RLMD_LOG_DEFAULT; level <= RLMD_LOG_DEBUG; level++) {
		auto_free char *line = line_of(LOG_FORMAT_JOURNALD, (enum rlmd_log_level)level,
					       "it died", fields, 3, true);
		auto_free char *wanted = xasprintf("%s[fedcba98] it died (pid=47)\n",
						   priorities[level]);

		assert_string_equal(line, wanted);
	}
}

static void test_json(void **state)
{
	auto_free char *line = line_of(LOG_FORMAT_JSON, RLMD_LOG_WARNING, "it died", fields, FIELDS,
				       true);
	json_auto_t *object = json_loads(line, 0, NULL);
	const char *names[] = {"level", "subject", "event", "message", "job", "run", "remedy"};
	const char *values[] = {
		"warning",          "worker",           "worker_died", "it died",
		"0123456789abcdef", "fedcba9876543210", "two words",
	};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_string_equal(json_string_value(json_object_get(object, names[i])),
				    values[i]);
	assert_int_equal(json_integer_value(json_object_get(object, "pid")), 47);
	assert_int_equal(strlen(json_string_value(json_object_get(object, "time"))),
			 strlen("2026-11-22T15:36:53.125Z"));
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

/* Control characters, marks that turn text around, bytes that are no UTF-8, and no end. */
static void test_strangers(void **state)
{
	static const char evil[] = "a\nb\r\033[31mc\xe2\x80\xae\xff\x7f\xc2\x9b";
	struct rlmd_log_field field = {.name = "path", .text = evil};
	auto_free char *endless = xcalloc(20001, 1);

	(void)state;
	memset(endless, 'x', 20000);
	for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JOURNALD; format++) {
		auto_free char *line = line_of((enum log_format)format, RLMD_LOG_INFO, evil, &field,
					       1, false);
		auto_free char *vast = line_of((enum log_format)format, RLMD_LOG_INFO, endless,
					       NULL, 0, false);

		assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
		assert_null(strpbrk(line, "\r\033\x7f\xe2\xff"));
		assert_null(strstr(line, "\xc2\x9b"));
		assert_ptr_equal(strchr(vast, '\n'), vast + strlen(vast) - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_journald),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_strangers),
	};

	alloc_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
