/*
 * The cost of the layers at a worker's start: from asking for it until its walls stand and its
 * Python has said so, in each mode and without single layers. All are taken in turn. The floor is
 * the filter and what belongs to it, alone.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "bench/pool.h"

/* As of struct sandbox_config; the floor comes last. */
static struct variant {
	const char *what, *without;
	struct samples ready;
	struct pool pool;
} variants[] = {
	{.what = "all that this machine has"},
	{.what = "without Landlock", .without = "landlock"},
	{.what = "without MDWE", .without = "wx"},
	{.what = "without a low priority", .without = "priority"},
	{.what = "without cgroups", .without = "memory_group,pids_group,cpu_group"},
	{.what = "mode userns", .without = "namespaces"},
	{.what = "mode uid", .without = "namespaces,user_namespace"},
	{.what = "mode plain", .without = "namespaces,user_namespace,uid"},
	{.what = "floor: the filter alone",
	 .without = "namespaces,user_namespace,uid,landlock,wx,priority,memory_group,pids_group,"
		    "cpu_group"},
};
enum { COUNT = sizeof variants / sizeof variants[0] };

static void print_start(const struct variant *variant, double microseconds)
{
	json_t *report = sandbox_report(variant->pool.sandbox);

	printf("  %-28s %s, mode %-7s ready to serve after %6.1f ms\n", variant->what,
	       rlmd_sandbox_level(variant->pool.sandbox),
	       json_string_value(json_object_get(report, "mode")), microseconds / 1e3);
	json_decref(report);
}

int main(int argc, char **argv)
{
	int count;

	if (argc != 4)
		measure_fail("usage: layers PYTHON WORKER_DIR COUNT");
	count = measure_count(argv[3]);
	for (int i = 0; i < COUNT; i++) {
		double start = measure_now();

		pool_init(&variants[i].pool, argv[1], argv[2], variants[i].without);
		print_start(&variants[i], measure_now() - start);
		variants[i].ready.what = variants[i].what;
	}
	for (int i = -5; i < count; i++) /* the first are for warming up */
		for (int j = 0; j < COUNT; j++) {
			double start = measure_now();

			pool_start_worker(&variants[j].pool);
			if (i >= 0)
				samples_add(&variants[j].ready, measure_now() - start);
			pool_stop_worker(&variants[j].pool);
			pool_settle(&variants[j].pool, 5);
		}
	samples_print(&variants[COUNT - 1].ready, NULL);
	for (int j = 0; j < COUNT - 1; j++)
		printf("  %-52s %9.1f us  ratio %.2f\n", variants[j].what,
		       samples_median(&variants[j].ready),
		       samples_median(&variants[j].ready) /
			       samples_median(&variants[COUNT - 1].ready));
	for (int j = 0; j < COUNT; j++) {
		samples_done(&variants[j].ready);
		pool_done(&variants[j].pool);
	}
	return 0;
}
