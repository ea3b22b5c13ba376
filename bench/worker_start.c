/*
 * A worker that is ready, beside what others do for each: a python3 that is started, with the same
 * modules, and the same in bubblewrap. All are taken in turn.
 */
#include "bench/forker.h"
#include "bench/measure.h"
#include "bench/pool.h"

enum { WORKERS = 10 }; /* a sample is their mean: a python3 takes that much longer */

static double worker_time(struct pool *pool)
{
	double took = 0;

	for (int i = 0; i < WORKERS; i++) {
		double start = measure_now();

		pool_start_worker(pool);
		took += measure_now() - start;
		pool_stop_worker(pool);
		pool_settle(pool, 5);
	}
	return took / WORKERS;
}

static double start_time(const struct forker_config *config)
{
	double start = measure_now();
	struct forker forker = forker_start(config);

	start = measure_now() - start;
	forker_stop(&forker);
	return start;
}

int main(int argc, char **argv)
{
	struct samples ready = {.what = "a worker is ready"};
	struct samples python = {.what = "peer: python3 -I -S is started, the same modules"};
	struct samples wrapped = {.what = "peer: the same in bubblewrap"};
	struct forker_config plain, in_bubblewrap;
	bool wraps = forker_has_bubblewrap();
	struct pool pool;
	int count;

	if (argc != 5)
		measure_fail("usage: worker_start PYTHON WORKER_DIR FORKER COUNT");
	count = measure_count(argv[4]);
	plain = (struct forker_config){argv[1], argv[3], argv[2], NULL, false};
	in_bubblewrap = plain;
	in_bubblewrap.in_bubblewrap = true;
	pool_init(&pool, argv[1], argv[2], NULL);
	worker_time(&pool);
	start_time(&plain);
	for (int i = 0; i < count; i++) {
		samples_add(&ready, worker_time(&pool));
		samples_add(&python, start_time(&plain));
		if (wraps)
			samples_add(&wrapped, start_time(&in_bubblewrap));
	}
	measure_at_least("2", &ready, &python, 20);
	if (wraps)
		measure_at_least("2", &ready, &wrapped, 30);
	else if (count > 1)
		measure_missing("2", "bubblewrap that works here",
				"apt-get install bubblewrap; it needs user namespaces");
	samples_done(&ready);
	samples_done(&python);
	samples_done(&wrapped);
	pool_done(&pool);
	return measure_end();
}
