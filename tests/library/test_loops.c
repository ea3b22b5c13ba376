/*
 * Engines inside loops of the host's: by a descriptor and a clock, with real workers, and jobs
 * that other threads post.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <rlmd/job.h>
#include <rlmd/provider.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

struct host {
	struct rlmd_engine *engine;     /* owned */
	struct rlmd_provider *provider; /* owned */
	struct rlmd_job *job;           /* lent */
	struct event *late;             /* owned: an answer after a while */
	uint64_t request;
	char answer[40], asked[400]; /* of each request: kind, depth, tenant */
	bool fans_out;               /* the code asks a model and a sub-run */
};

static void answer(struct host *host, const char *words)
{
	const struct rlmd_model_answer answer = {
		.size = sizeof answer, .text = rlmd_text_of(words), .input_tokens = 1};

	rlmd_provider_answer(host->provider, host->request, &answer);
}

static void on_late(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	answer(owner, "FINAL_VAR(product)");
}

static void note(struct host *host, const struct rlmd_model_request *request)
{
	static const char *const kinds[] = {"turn", "subcall", "forced", "operation"};
	size_t used = strlen(host->asked);

	assert_ptr_equal(request->job, host->job);
	assert_int_equal(strlen(request->run), 36);
	snprintf(host->asked + used, sizeof host->asked - used, "%s %d %s|", kinds[request->kind],
		 (int)request->depth, request->tenant);
}

/* A first answer at once, a second one by the clock. */
static void on_ask(void *owner, const struct rlmd_model_request *request)
{
	const struct timeval soon = {.tv_usec = 50000};
	struct host *host = owner;

	host->request = request->id;
	note(host, request);
	if (host->fans_out)
		answer(host, request->kind == RLMD_MODEL_TURN && !request->depth &&
					     request->message_count < 4
				     ? "```python\nx = llm_query('?') + rlm_query('?')\n```"
				     : "FINAL(it)");
	else if (request->message_count < 3)
		answer(host, "```python\nproduct = 6 * 7\nprint(product)\n```");
	else
		event_add(host->late, &soon);
}

static void on_end(void *owner, struct rlmd_job *job, const struct rlmd_result *result)
{
	struct rlmd_text output = rlmd_result_output(result);
	struct host *host = owner;

	(void)job;
	snprintf(host->answer, sizeof host->answer, "%.*s", (int)output.size, output.bytes);
}

static void start(void *owner)
{
	struct host *host = owner;
	const struct rlmd_hooks hooks = {.size = sizeof hooks, .end = on_end, .owner = host};
	struct rlmd_job_options options = {.size = sizeof options,
					   .task = rlmd_text_of("Multiply."),
					   .hooks = &hooks,
					   .tenant = "acme"};

	host->job = rlmd_job_start(host->engine, &options, NULL);
	assert_non_null(host->job);
}

static int set_up(void **state)
{
	struct rlmd_provider_options options = {
		.size = sizeof options, .name = "host", .ask = on_ask, .costs_nothing = true};
	struct host *host = calloc(1, sizeof *host);

	*state = host;
	options.owner = host;
	host->engine = rlmd_engine_new(NULL, NULL);
	host->provider = rlmd_provider_new(&options, NULL);
	host->late = evtimer_new(rlmd_engine_base(host->engine), on_late, host);
	return !rlmd_engine_add_provider(host->engine, NULL, host->provider, NULL);
}

static int tear_down(void **state)
{
	struct host *host = *state;

	event_free(host->late);
	rlmd_engine_free(host->engine);
	rlmd_provider_unref(host->provider);
	free(host);
	return 0;
}

/* Each wait ends by the descriptor or the clock, never by a guess. */
static void poll_until_answered(struct host *host, int fd)
{
	while (!*host->answer) {
		struct pollfd wait = {fd, POLLIN, 0};
		int64_t next = rlmd_engine_next_ms(host->engine);

		poll(&wait, 1, (int)next);
		assert_true(rlmd_engine_turn(host->engine, NULL));
	}
}

static void test_a_job_in_poll(void **state)
{
	struct host *host = *state;
	int fd = rlmd_engine_fd(host->engine);

	assert_true(fd >= 0);
	assert_int_equal(rlmd_engine_fd(host->engine), fd);
	start(host);
	assert_int_equal(rlmd_engine_next_ms(host->engine), 0);
	poll_until_answered(host, fd);
	assert_string_equal(host->answer, "42");
}

static void test_a_job_in_epoll(void **state)
{
	struct host *host = *state;
	int outer = epoll_create1(EPOLL_CLOEXEC), fd = rlmd_engine_fd(host->engine);
	struct epoll_event ready = {.events = EPOLLIN};

	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, fd, &ready), 0);
	start(host);
	while (!*host->answer) {
		epoll_wait(outer, &ready, 1, (int)rlmd_engine_next_ms(host->engine));
		assert_true(rlmd_engine_turn(host->engine, NULL));
	}
	close(outer);
	assert_string_equal(host->answer, "42");
}

static void test_a_provider_is_told_of_each_request(void **state)
{
	struct host *host = *state;

	host->fans_out = true;
	start(host);
	assert_true(rlmd_engine_wait(host->engine, NULL, NULL));
	assert_string_equal(host->answer, "it");
	assert_string_equal(host->asked, "turn 0 acme|subcall 0 acme|turn 1 acme|turn 0 acme|");
}

static void on_never(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	(void)owner;
}

static void test_when_something_is_due(void **state)
{
	struct host *host = *state;
	struct event *event = evtimer_new(rlmd_engine_base(host->engine), on_never, NULL);
	const struct timeval times[] = {{3600, 0}, {100000, 0}, {0, 0}};
	int64_t next;

	assert_int_equal(rlmd_engine_next_ms(host->engine), -1);
	for (size_t i = 0; i < 3; i++) {
		event_add(event, &times[i]);
		next = rlmd_engine_next_ms(host->engine);
		assert_in_range(next, times[i].tv_sec ? times[i].tv_sec * 1000 - 600000 : 0,
				times[i].tv_sec * 1000);
		event_del(event);
	}
	assert_int_equal(rlmd_engine_next_ms(host->engine), -1);
	event_active(event, EV_TIMEOUT, 0);
	assert_int_equal(rlmd_engine_next_ms(host->engine), 0);
	assert_true(rlmd_engine_turn(host->engine, NULL));
	assert_int_equal(rlmd_engine_next_ms(host->engine), -1);
	event_free(event);
}

/* --- posts ------------------------------------------------------------------------------ */

static void *post_start(void *owner)
{
	struct host *host = owner;

	return rlmd_engine_post(host->engine, start, host, NULL) ? NULL : owner;
}

static void test_a_post_starts_a_job(void **state)
{
	struct host *host = *state;
	pthread_t thread;

	pthread_create(&thread, NULL, post_start, host);
	pthread_join(thread, NULL);
	while (!host->job)
		assert_true(rlmd_engine_turn(host->engine, NULL));
	assert_true(rlmd_engine_wait(host->engine, NULL, NULL));
	assert_string_equal(host->answer, "42");
}

/* They are not called, and nothing of them is left. */
static void test_freed_with_posts(void **state)
{
	struct host *host = *state;

	for (int i = 0; i < 3; i++)
		assert_true(rlmd_engine_post(host->engine, start, host, NULL));
	rlmd_engine_turn(host->engine, NULL);
	assert_non_null(host->job);
}

/* --- wrong use -------------------------------------------------------------------------- */

static void on_inside(void *owner)
{
	struct host *host = owner;
	struct rlmd_error err = {0};

	assert_false(rlmd_engine_turn(host->engine, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	strcpy(host->answer, "refused");
}

static void test_refused(void **state)
{
	struct host *host = *state;
	struct event_base *base = event_base_new();
	struct rlmd_engine_options options = {.size = sizeof options, .base = base};
	struct rlmd_engine *guest = rlmd_engine_new(&options, NULL);
	struct rlmd_error err = {0};
	int status;
	pid_t child;

	assert_false(rlmd_engine_post(guest, start, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_int_equal(rlmd_engine_fd(guest), -1);
	assert_int_equal(rlmd_engine_next_ms(guest), -1);
	assert_int_equal(event_base_dispatch(base), 1); /* none of the engine's events is there */
	rlmd_engine_free(guest);
	event_base_free(base);
	assert_false(rlmd_engine_post(host->engine, NULL, NULL, NULL));
	rlmd_engine_post(host->engine, on_inside, host, NULL);
	rlmd_engine_turn(host->engine, NULL);
	assert_string_equal(host->answer, "refused");
	fflush(NULL);
	child = fork();
	if (!child)
		_exit(rlmd_engine_fd(host->engine) != -1 ||
		      rlmd_engine_next_ms(host->engine) != -1 ||
		      rlmd_engine_turn(host->engine, NULL) ||
		      rlmd_engine_post(host->engine, start, host, NULL));
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_job_in_poll),
		TEST(test_a_job_in_epoll),
		TEST(test_a_provider_is_told_of_each_request),
		TEST(test_when_something_is_due),
		TEST(test_a_post_starts_a_job),
		TEST(test_freed_with_posts),
		TEST(test_refused),
	};

	return cmocka_run_group_tests_name("loops", tests, NULL, NULL);
}
