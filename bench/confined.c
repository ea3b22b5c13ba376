/*
 * The cost of the walls while code runs: the same block in a worker and in a python3 that nothing
 * confines, in turn. One that only computes, and one that asks the kernel for paths all the time.
 */
#include "bench/measure.h"
#include "bench/pool.h"
#include "bench/python.h"

/* Long enough that sending it counts for nothing. */
static const char computing[] = "import json, re\n"
				"text = 'key = value; ' * 4000\n"
				"found = re.findall('(\\\\w+) = (\\\\w+)', text)\n"
				"value = json.loads(json.dumps([dict(found), found]))\n"
				"total = 0\n"
				"for i in range(200000): total = total * 31 + i & 0xffffffff";
/* Not by `os`, whose functions know the session's own files before they ask the kernel. */
static const char asking[] = "import ctypes\n"
			     "access = ctypes.CDLL(None).access\n"
			     "for i in range(20000): access(b'/', 0)";

static double worker_time(struct pool *pool, const char *code)
{
	double start = measure_now();

	pool_exec(pool, code);
	return measure_now() - start;
}

static void compare(struct pool *pool, const struct python *python, const char *code, int count,
		    const char *what, double target)
{
	struct samples confined = {.what = what}, free = {.what = "floor: nothing confines it"};

	for (int i = -2; i < count; i++) {
		double in_worker = worker_time(pool, code), outside = python_time(python, code);

		if (i < 0) /* warming up */
			continue;
		samples_add(&confined, in_worker);
		samples_add(&free, outside);
	}
	measure_at_most("15", &confined, &free, target);
	samples_done(&confined);
	samples_done(&free);
}

int main(int argc, char **argv)
{
	struct python python;
	struct pool pool;
	int count;

	if (argc != 5)
		measure_fail("usage: confined PYTHON WORKER_DIR IN_PROCESS COUNT");
	count = measure_count(argv[4]);
	python = python_start_in_process(argv[1], argv[3]);
	pool_init(&pool, argv[1], argv[2], NULL);
	pool_start_worker(&pool);
	compare(&pool, &python, computing, count, "confined code that computes", 1.05);
	compare(&pool, &python, asking, count, "confined code that looks up paths", 1.2);
	pool_done(&pool);
	python_stop(&python);
	return measure_end();
}
