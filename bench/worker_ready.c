/*
 * From asking for a worker until its Python, confined, has said that it is
 * ready; beside it what forks of an interpreter with the same things loaded
 * take, without walls and without a word. The three are taken in turn.
 */
#include "bench/forker.h"
#include "bench/measure.h"
#include "bench/pool.h"

int main(int argc, char **argv)
{
	struct samples ready = {.what = "worker ready: forked, confined, in touch"};
	struct samples python = {.what = "floor: os.fork + os.write, the same preloaded"};
	struct samples bare = {.what = "floor: bare fork of the same interpreter"};
	struct forker forker;
	struct pool pool;
	int count;

	if (argc != 6)
		measure_fail("usage: worker_ready PYTHON WORKER_DIR FORKER LIBRARY COUNT");
	count = measure_count(argv[5]);
	forker = forker_start(&(struct forker_config){argv[1], argv[3], argv[2], argv[4], false});
	pool_init(&pool, argv[1], argv[2], NULL);

	for (int i = -5; i < count; i++) {
		double start = measure_now(), worker, fork_python, fork_bare;

		pool_start_worker(&pool);
		worker = measure_now() - start;
		pool_stop_worker(&pool);
		pool_settle(&pool, 5);
		fork_python = forker_time(&forker, 'p');
		fork_bare = forker_time(&forker, 'b');
		if (i < 0) /* warming up */
			continue;
		samples_add(&ready, worker);
		samples_add(&python, fork_python);
		samples_add(&bare, fork_bare);
	}
	measure_at_most("1", &ready, &python, 2);
	measure_at_most("1", &ready, &bare, 4);

	samples_done(&ready);
	samples_done(&python);
	samples_done(&bare);
	pool_done(&pool);
	forker_stop(&forker);
	return measure_end();
}
