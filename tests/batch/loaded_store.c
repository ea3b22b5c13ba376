#include "loaded_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/text.h"

enum { JOBS_MOST = 26, LONG_MS = 60000 };

void loaded_store_open(struct loaded_store *loaded)
{
	const struct store_options options = {.look_ms = -1, .owner = &loaded->told};
	struct rlmd_error err;

	*loaded = (struct loaded_store){.base = loop_new(), .directory = "/tmp/rlmd-batch-XXXXXX"};
	assert_non_null(mkdtemp(loaded->directory));
	loaded->place = xasprintf("%s/store", loaded->directory);
	loaded->store = store_open(loaded->base, loaded->place, &options, on_told, &err);
	assert_non_null(loaded->store);
	await(loaded->base, &loaded->told);
}

void loaded_store_close(struct loaded_store *loaded)
{
	auto_free char *command = xasprintf("rm -r %s", loaded->directory);

	store_free(loaded->store);
	event_base_free(loaded->base);
	free(loaded->place);
	assert_int_equal(system(command), 0);
}

int64_t loaded_store_add(struct loaded_store *loaded, const char *name, const char *tenant,
			 int jobs)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	struct store_line lines[JOBS_MOST];
	char texts[JOBS_MOST][64];
	struct store_load load;

	for (int i = 0; i < jobs; i++) {
		snprintf(texts[i], sizeof texts[i], "{\"custom_id\":\"%c\",\"task\":\"%c\"}",
			 letters[i], letters[i]);
		lines[i] = (struct store_line){i + 1, text_from(letters + i, 1), text_of(tenant),
					       text_of("00000000000000ab00"), text_of(texts[i])};
	}
	DO(loaded, load_begin, text_of(name), false);
	load = loaded->told.load;
	if (jobs)
		DO(loaded, load_add, &load, lines, (size_t)jobs);
	DO(loaded, load_end, &load, text_of("digest"));
	return load.batch;
}

void loaded_store_end_job(struct loaded_store *loaded, int64_t batch, bool succeeded,
			  const char *result)
{
	const struct store_outcome outcome = {
		.succeeded = succeeded,
		.result = text_of(result),
		.error = text_of(succeeded ? "" : "network"),
		.cost = 1000000,
		.tokens = 7,
		.trace = text_of(succeeded ? "" : "{\"event\":\"end\"}\n"),
	};
	struct store_claim claim;

	DO(loaded, claim, batch, NULL, text_of("host:7:x"), 1, LONG_MS);
	assert_int_equal(loaded->told.count, 1);
	claim = (struct store_claim){loaded->told.jobs[0].id, loaded->told.jobs[0].token};
	DO(loaded, finish, &claim, &outcome);
}
