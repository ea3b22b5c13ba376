/* batch/jobs_file: jobs as they come, and everything that a file of them can be. */
#include "batch/jobs_file.h"

#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "batch/job_line.h"

enum { TEXT_MAX = 4096 };

struct reading {
	struct event_base *base;
	struct jobs_file *file;
	struct jobs_file_summary summary;
	char told[TEXT_MAX]; /* "1:a 2:b " */
	char bad[TEXT_MAX];  /* of the last */
	struct rlmd_error error;
	uint64_t bad_told;
	bool pause, ended;
	void (*meanwhile)(struct reading *); /* at each job */
	char *path;
};

static bool on_job(void *owner, uint64_t number, const struct job_line *job, struct rlmd_text line)
{
	struct reading *reading = owner;
	size_t used = strlen(reading->told);

	assert_false(reading->ended);
	assert_true(line.size > 2 && line.bytes[0] == '{');
	if (used < TEXT_MAX - 100)
		snprintf(reading->told + used, TEXT_MAX - used, "%" PRIu64 ":%s ", number,
			 job->custom_id);
	if (reading->meanwhile)
		reading->meanwhile(reading);
	return !reading->pause;
}

static void on_bad(void *owner, uint64_t number, const struct rlmd_error *err)
{
	struct reading *reading = owner;

	(void)number;
	reading->bad_told++;
	snprintf(reading->bad, sizeof reading->bad, "%s", err->text);
}

static void on_end(void *owner, const struct jobs_file_summary *summary,
		   const struct rlmd_error *err)
{
	struct reading *reading = owner;

	assert_false(reading->ended);
	reading->ended = true;
	reading->summary = *summary;
	if (err)
		reading->error = *err;
	jobs_file_free(reading->file);
	reading->file = NULL;
}

static void start(struct reading *reading, const char *path, const char *shard)
{
	const struct jobs_file_hooks hooks = {on_job, NULL, on_bad, on_end, reading};
	struct jobs_file_shard which = {0};
	struct rlmd_error err;

	reading->base = loop_new();
	assert_true(!shard || jobs_file_parse_shard(shard, &which, &err));
	reading->file = jobs_file_new(reading->base, path, which, &hooks, &err);
	if (!reading->file)
		fail_msg("%s", err.text);
	assert_string_equal(reading->told, "");
}

static void finish(struct reading *reading)
{
	while (!reading->ended)
		assert_int_equal(event_base_loop(reading->base, EVLOOP_ONCE), 0);
	event_base_loop(reading->base, EVLOOP_NONBLOCK);
	event_base_free(reading->base);
}

static char *file_with(const char *bytes, size_t size)
{
	char *path = xstrdup("/tmp/rlmd-jobs-XXXXXX");
	int fd = mkostemp(path, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
	return path;
}

static struct reading read_text(const char *bytes, size_t size, const char *shard)
{
	auto_free char *path = file_with(bytes, size);
	struct reading reading = {.path = path};

	start(&reading, path, shard);
	finish(&reading);
	unlink(path);
	reading.path = NULL;
	return reading;
}

#define JOB(id) "{\"custom_id\":\"" id "\",\"task\":\"t\"}"

static void test_lines(void **state)
{
	static const char text[] = "\xef\xbb\xbf" JOB("a") "\r\n\n  \n" JOB("b") "\n" JOB("c");
	struct reading reading = read_text(text, sizeof text - 1, NULL);

	(void)state;
	assert_int_equal(reading.error.kind, RLMD_ERROR_NONE);
	assert_string_equal(reading.told, "1:a 4:b 5:c ");
	assert_int_equal(reading.summary.jobs, 3);
	assert_int_equal(reading.summary.lines, 5);
	assert_int_equal(reading.summary.bad, 0);
	assert_int_equal(reading.summary.bytes, sizeof text - 1);
	assert_int_equal(strlen(reading.summary.digest), DIGEST_SIZE - 1);
}

/* Nothing else is lost for them. */
static void test_bad_lines(void **state)
{
	static const char text[] = JOB("a") "\n{\"custom_id\":\"x\"}\n" JOB("b") "\n\0\0\0\n" JOB(
		"c") "\n{\"cus";
	struct reading reading = read_text(text, sizeof text - 1, NULL);

	(void)state;
	assert_string_equal(reading.told, "1:a 3:b 5:c ");
	assert_int_equal(reading.summary.bad, 3);
	assert_int_equal(reading.bad_told, 3);
	assert_non_null(strstr(reading.bad, ":6: not JSON"));
	assert_int_equal(reading.error.kind, RLMD_ERROR_NONE);
}

static void test_many_bad_lines(void **state)
{
	auto_free char *text = malloc(10001);
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < 5000; i++)
		memcpy(text + 2 * i, "x\n", 3);
	reading = read_text(text, 10000, NULL);
	assert_int_equal(reading.bad_told, JOBS_FILE_BAD_TOLD);
	assert_int_equal(reading.summary.bad, 5000);
}

/* A file that is none of lines is told as that, and how to mend it. */
static void test_other_forms(void **state)
{
	static const char *const table[][2] = {
		{"[\n" JOB("a") "]\n", ":1: begins an array"},
		{"\xff\xfe{", ":1: is UTF-16"},
		{"{\n  \"custom_id\"", ":2: not JSON"},
	};
	struct reading reading;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		reading = read_text(table[i][0], strlen(table[i][0]), NULL);
		assert_true(reading.summary.bad >= 1);
		if (reading.summary.bad == 1 && !strstr(reading.bad, table[i][1]))
			fail_msg("%s", reading.bad);
	}
	reading = read_text("", 0, NULL);
	assert_int_equal(reading.summary.lines, 0);
	assert_int_equal(reading.error.kind, RLMD_ERROR_NONE);
}

static void test_long_line(void **state)
{
	size_t size = JOBS_FILE_LINE_MAX + 100;
	auto_free char *text = calloc(1, size);
	struct reading reading;

	(void)state;
	memset(text, ' ', size);
	text[JOBS_FILE_LINE_MAX + 1] = '\n';
	memcpy(text + JOBS_FILE_LINE_MAX + 2, JOB("a"), strlen(JOB("a")));
	reading = read_text(text, size, NULL);
	assert_string_equal(reading.told, "2:a ");
	assert_int_equal(reading.summary.bad, 1);
	assert_non_null(strstr(reading.bad, ":1: is longer than 64 MiB; give what is long as"));
}

/* The digest is that of the jobs: it knows another job, and no other way to write one. */
static void test_digest(void **state)
{
	static const char one[] = JOB("a") "\n" JOB("b");
	static const char same[] = "{\"task\": \"t\", \"custom_id\": \"a\"}\r\n\n" JOB("b") "\n";
	static const char other[] = JOB("b") "\n" JOB("a");
	struct reading first = read_text(one, sizeof one - 1, NULL);
	struct reading again = read_text(same, sizeof same - 1, NULL);
	struct reading another = read_text(other, sizeof other - 1, NULL);

	(void)state;
	assert_string_equal(first.summary.digest, again.summary.digest);
	assert_string_not_equal(first.summary.digest, another.summary.digest);
}

/* Each job belongs to one shard. */
static void test_shards(void **state)
{
	char text[TEXT_MAX] = "", seen[TEXT_MAX] = "";
	size_t used = 0, jobs = 0;

	(void)state;
	for (int i = 0; i < 40; i++)
		used += (size_t)snprintf(text + used, sizeof text - used,
					 "{\"custom_id\":\"j%d\",\"task\":\"t\"}\n", i);
	for (int i = 1; i <= 3; i++) {
		char shard[8];
		struct reading reading;

		snprintf(shard, sizeof shard, "%d/3", i);
		reading = read_text(text, used, shard);
		assert_in_range(reading.summary.jobs, 5, 25);
		assert_int_equal(reading.summary.jobs + reading.summary.others, 40);
		jobs += reading.summary.jobs;
		snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s", reading.told);
	}
	assert_int_equal(jobs, 40);
	for (int i = 0; i < 40; i++) {
		char name[16];

		snprintf(name, sizeof name, "%d:j%d ", i + 1, i);
		assert_non_null(strstr(seen, name));
	}
}

static void test_shards_refused(void **state)
{
	static const char *const table[] = {"",
					    "1",
					    "0/3",
					    "4/3",
					    "1/0",
					    "-1/3",
					    "1/3x",
					    "/",
					    "1//3",
					    " 1/3",
					    "99999999999999999999/3",
					    "1/1000001"};
	struct jobs_file_shard shard;
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (jobs_file_parse_shard(table[i], &shard, &err))
			fail_msg("taken: %s", table[i]);
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_true(jobs_file_parse_shard("12/12", &shard, &err));
	assert_int_equal(shard.index, 12);
}

static void feed(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void append(struct reading *reading)
{
	auto_close int fd = open(reading->path, O_WRONLY | O_APPEND | O_CLOEXEC);

	feed(fd, "\n" JOB("z") "\n");
}

static void shorten(struct reading *reading)
{
	assert_int_equal(truncate(reading->path, 5), 0);
}

/* The same size, other bytes; the time is what tells. */
static void overwrite(struct reading *reading)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	auto_close int fd = open(reading->path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, "{", 1), 1);
	assert_int_equal(futimens(fd, times), 0);
}

static void test_file_that_changes(void **state)
{
	static void (*const changes[])(struct reading *) = {append, shorten, overwrite};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		auto_free char *path = file_with(JOB("a"), strlen(JOB("a")));
		struct reading reading = {.path = path, .meanwhile = changes[i]};

		start(&reading, path, NULL);
		finish(&reading);
		unlink(path);
		assert_int_equal(reading.error.kind, RLMD_ERROR_INPUT);
		assert_non_null(strstr(reading.error.text, "was written to while it was read"));
	}
}

/* One that somebody writes to as fast as it is read comes to an end. */
static void test_file_that_grows(void **state)
{
	auto_free char *path = file_with(JOB("a") "\n", strlen(JOB("a")) + 1);
	struct reading reading = {.path = path, .meanwhile = append};

	(void)state;
	start(&reading, path, NULL);
	finish(&reading);
	unlink(path);
	assert_int_equal(reading.error.kind, RLMD_ERROR_INPUT);
	assert_int_equal(reading.summary.jobs, 1);
}

static void test_pause(void **state)
{
	static const char text[] = JOB("a") "\n" JOB("b") "\n";
	auto_free char *path = file_with(text, sizeof text - 1);
	struct reading reading = {.pause = true};

	(void)state;
	start(&reading, path, NULL);
	unlink(path);
	event_base_loop(reading.base, EVLOOP_NONBLOCK);
	assert_string_equal(reading.told, "1:a ");
	event_base_loop(reading.base, EVLOOP_NONBLOCK);
	assert_string_equal(reading.told, "1:a ");
	reading.pause = false;
	jobs_file_resume(reading.file);
	jobs_file_resume(reading.file);
	finish(&reading);
	assert_string_equal(reading.told, "1:a 2:b ");
}

/* A FIFO whose writer takes its time; the loop is never held. */
static void test_fifo(void **state)
{
	auto_free char *path = file_with("", 0);
	struct reading reading = {0};
	int fd;

	(void)state;
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	start(&reading, path, NULL);
	event_base_loop(reading.base, EVLOOP_NONBLOCK);
	assert_false(reading.ended);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	feed(fd, JOB("a") "\n{\"cust");
	while (!*reading.told)
		event_base_loop(reading.base, EVLOOP_ONCE);
	event_base_loop(reading.base, EVLOOP_NONBLOCK);
	assert_false(reading.ended);
	feed(fd, "om_id\":\"b\",\"task\":\"t\"}");
	close(fd);
	finish(&reading);
	unlink(path);
	assert_string_equal(reading.told, "1:a 2:b ");
	assert_int_equal(reading.error.kind, RLMD_ERROR_NONE);
}

/* Freed in the midst of it, nothing is told any more. */
static void test_freed(void **state)
{
	static const char text[] = JOB("a") "\n" JOB("b") "\n";
	auto_free char *path = file_with(text, sizeof text - 1);
	struct reading reading = {.pause = true};

	(void)state;
	start(&reading, path, NULL);
	unlink(path);
	event_base_loop(reading.base, EVLOOP_NONBLOCK);
	jobs_file_free(reading.file);
	event_base_loop(reading.base, EVLOOP_NONBLOCK);
	assert_string_equal(reading.told, "1:a ");
	assert_false(reading.ended);
	event_base_free(reading.base);
	jobs_file_free(NULL);
}

static void test_not_there(void **state)
{
	static const char *const table[][2] = {
		{"/nowhere/jobs", "cannot read /nowhere/jobs: No such"},
		{"/tmp", "it is a directory"}};
	const struct jobs_file_hooks hooks = {on_job, NULL, on_bad, on_end, NULL};
	struct event_base *base = loop_new();
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_null(jobs_file_new(base, table[i][0], (struct jobs_file_shard){0}, &hooks,
					  &err));
		assert_non_null(strstr(err.text, table[i][1]));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	}
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_many_bad_lines),
		cmocka_unit_test(test_other_forms),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_digest),
		cmocka_unit_test(test_shards),
		cmocka_unit_test(test_shards_refused),
		cmocka_unit_test(test_file_that_changes),
		cmocka_unit_test(test_file_that_grows),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_freed),
		cmocka_unit_test(test_not_there),
	};

	alloc_install();
	return cmocka_run_group_tests_name("jobs_file", tests, NULL, NULL);
}
