/*
 * A trivial block in a live worker, beside one that a python3 runs in itself; and
 * one call out of a block with 200 bytes each way, beside a byte that two C
 * programs hand each other over pipes. The four are taken in turn.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/pool.h"
#include "bench/python.h"

/* A child that sends every byte back. */
struct echo {
	pid_t pid;
	int in, out;
};

static struct echo echo_start(void)
{
	struct echo echo;
	int in[2], out[2];
	char byte;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		measure_fail("no pipes");
	echo.pid = fork();
	if (echo.pid == 0) {
		close(in[1]);
		close(out[0]);
		while (read(in[0], &byte, 1) == 1 && write(out[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	echo.in = in[1];
	echo.out = out[0];
	return echo;
}

static double echo_time(const struct echo *echo)
{
	double start = measure_now();
	char byte = '.';

	if (write(echo->in, &byte, 1) != 1 || read(echo->out, &byte, 1) != 1)
		measure_fail("the echo is gone");
	return measure_now() - start;
}

static void echo_stop(struct echo *echo)
{
	close(echo->in);
	close(echo->out);
	waitpid(echo->pid, NULL, 0);
}

struct calls {
	struct pool *pool; /* lent */
	double last;       /* when the last reply was sent; 0: there was none in this block */
	struct samples samples;
};

/* From one reply to the next call: the worker reads it, goes on, and asks again. */
static void on_call(void *owner, const struct worker_event *event)
{
	static const char sentence[] = "The quick brown fox \"jumps\" over the lazy dog. ";
	struct calls *calls = owner;
	struct worker_result result;
	char answer[200];
	double now = measure_now();

	for (size_t i = 0; i < sizeof answer; i++)
		answer[i] = sentence[i % (sizeof sentence - 1)];
	result = (struct worker_result){.value = text_from(answer, sizeof answer)};

	if (calls->last > 0)
		samples_add(&calls->samples, now - calls->last);
	calls->last = now;
	worker_reply(calls->pool->worker, event->call->id, &result, 1);
}

int main(int argc, char **argv)
{
	struct samples block = {.what = "a trivial block in a live worker"};
	struct samples in_process = {.what = "floor: in the process that wants it, no walls"};
	struct samples floor = {.what = "floor: one byte to and fro, C to C, pipes"};
	struct calls calls = {.samples = {.what = "one call of 200 bytes each way, no model"}};
	struct python python;
	struct echo echo;
	struct pool pool;
	int count;

	if (argc != 5)
		measure_fail("usage: worker_block PYTHON WORKER_DIR IN_PROCESS COUNT");
	count = measure_count(argv[4]);
	echo = echo_start();
	python = python_start_in_process(argv[1], argv[3]);
	pool_init(&pool, argv[1], argv[2], NULL);
	pool.on_call = on_call;
	pool.owner = &calls;
	calls.pool = &pool;
	pool_start_worker(&pool);
	for (int i = 0; i < 20; i++) { /* warming up */
		pool_exec(&pool, "x = 1 + 1");
		echo_time(&echo);
		python_time(&python, "x = 1 + 1");
	}
	for (int i = 0; i < count; i++) {
		double start = measure_now();

		pool_exec(&pool, "x = 1 + 1");
		samples_add(&block, measure_now() - start);
		samples_add(&in_process, python_time(&python, "x = 1 + 1"));
		samples_add(&floor, echo_time(&echo));
		calls.last = 0;
		pool_exec(&pool, "for _ in range(20):\n    llm_query('x' * 200)");
	}
	measure_at_most("4", &block, &in_process, 2);
	measure_at_most("5", &calls.samples, &floor, 5);

	samples_done(&block);
	samples_done(&in_process);
	samples_done(&floor);
	samples_done(&calls.samples);
	pool_done(&pool);
	echo_stop(&echo);
	python_stop(&python);
	return measure_end();
}
