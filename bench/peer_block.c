/*
 * A trivial block in a live worker beside the same in Pyodide, and a call out of a block with 200
 * bytes each way beside the official library's, whose model is a function in its own process. The
 * peers are found in the directory that RLMD_PEERS names.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "bench/measure.h"
#include "bench/pool.h"
#include "bench/python.h"

enum { CALLS = 20 };

#define BLOCK          "x = 1 + 1"
#define BLOCK_OF_CALLS "for _ in range(20):\n    llm_query('x' * 200)"

static void on_call(void *owner, const struct worker_event *event)
{
	static const char answer[] =
		"The quick brown fox \"jumps\" over the lazy dog. The quick brown fox "
		"\"jumps\" over the lazy dog. The quick brown fox \"jumps\" over the "
		"lazy dog. The quick brown fox \"jumps\" over the lazy dog. The qui";
	const struct worker_result result = {.value = {answer, sizeof answer - 1}};
	struct pool *pool = owner;

	worker_reply(pool->worker, event->call->id, &result, 1);
}

static double block_time(struct pool *pool, const char *code)
{
	double start = measure_now();

	pool_exec(pool, code);
	return measure_now() - start;
}

#define HOW_RLMS                                                                                   \
	"python3 -m venv DIR, DIR/bin/pip install rlms; RLMD_PEERS=DIR tools/bench peer_block"
#define HOW_PYODIDE "npm install --prefix DIR pyodide; RLMD_PEERS=DIR tools/bench peer_block"

/* The peer's program in `peers`; NULL: it is not there, which is said. */
static char *find(const char *peers, const char *path, const char *row, const char *what,
		  const char *how)
{
	char *found = xasprintf("%s/%s", peers ? peers : "/dev/null", path);

	if (!access(found, F_OK))
		return found;
	free(found);
	measure_missing(row, what, how);
	return NULL;
}

static void beside_pyodide(struct pool *pool, const char *script, int count)
{
	struct samples ours = {.what = "a trivial block in a live worker"};
	struct samples theirs = {.what = "peer: in Pyodide, its output caught"};
	const char *peers = getenv("RLMD_PEERS");
	auto_free char *found = find(
		peers, "node_modules/pyodide", "4", "Pyodide",
		"npm install --prefix DIR pyodide; RLMD_PEERS=DIR tools/bench peer_block");
	struct python pyodide;

	if (!found)
		return;
	pyodide = python_start((const char *[]){"node", script, peers, NULL});
	for (int i = -20; i < count; i++) {
		double block = block_time(pool, BLOCK), peer = python_time(&pyodide, BLOCK);

		if (i < 0) /* warming up */
			continue;
		samples_add(&ours, block);
		samples_add(&theirs, peer);
	}
	measure_at_least("4", &ours, &theirs, 20);
	samples_done(&ours);
	samples_done(&theirs);
	python_stop(&pyodide);
}

static void beside_rlms(struct pool *pool, const char *script, int count)
{
	struct samples ours = {.what = "one call of 200 bytes each way, no model"};
	struct samples theirs = {.what = "peer: the official library's llm_query"};
	auto_free char *path = find(getenv("RLMD_PEERS"), "bin/python", "5", "the official library",
				    HOW_RLMS);
	struct python rlms;

	if (!path)
		return;
	rlms = python_start((const char *[]){path, script, "blocks", NULL});
	for (int i = -5; i < count; i++) {
		double calls = block_time(pool, BLOCK_OF_CALLS) / CALLS;
		double peer = python_time(&rlms, BLOCK_OF_CALLS) / CALLS;

		if (i < 0)
			continue;
		samples_add(&ours, calls);
		samples_add(&theirs, peer);
	}
	measure_at_least("5", &ours, &theirs, 10);
	samples_done(&ours);
	samples_done(&theirs);
	python_stop(&rlms);
}

int main(int argc, char **argv)
{
	struct pool pool;
	int count;

	if (argc != 6)
		measure_fail(
			"usage: peer_block PYTHON WORKER_DIR PYODIDE_SCRIPT RLMS_SCRIPT COUNT");
	count = measure_count(argv[5]);
	pool_init(&pool, argv[1], argv[2], NULL);
	pool.on_call = on_call;
	pool.owner = &pool;
	pool_start_worker(&pool);
	beside_pyodide(&pool, argv[3], count);
	beside_rlms(&pool, argv[4], count);
	pool_done(&pool);
	return measure_end();
}
