#include "review/baseline.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

enum {
	SIZE_MAX_READ = 64 << 20, /* bytes */
	DEPTH_MAX = 64,
};

static void add(struct baseline *baseline, const json_t *result)
{
	const json_t *prints = json_object_get(result, "partialFingerprints");
	struct baseline_entry *entry = &baseline->entries[baseline->count++];

	entry->fingerprint = text_copy(json_get_text(prints, BASELINE_FINGERPRINT));
	entry->surroundings = text_copy(json_get_text(prints, BASELINE_SURROUNDINGS));
}

static void read_results(struct baseline *baseline, const json_t *runs)
{
	const json_t *run, *result;
	size_t i, k, count = 0;

	json_array_foreach (runs, i, run)
		count += json_array_size(json_object_get(run, "results"));
	baseline->entries = xcalloc(count + 1, sizeof *baseline->entries);
	json_array_foreach (runs, i, run)
		json_array_foreach (json_object_get(run, "results"), k, result)
			add(baseline, result);
}

bool baseline_parse(struct rlmd_text sarif, struct baseline *ret, struct rlmd_error *err)
{
	json_auto_t *log = json_read(sarif, DEPTH_MAX, err);
	const json_t *runs = json_object_get(log, "runs");

	if (!log) {
		if (err)
			err->kind = RLMD_ERROR_INPUT;
		return false;
	}
	if (!text_equal(json_get_text(log, "version"), "2.1.0") || !json_is_array(runs))
		return error_set(err, RLMD_ERROR_INPUT, "it is no SARIF file of version 2.1.0");
	read_results(ret, runs);
	return true;
}

bool baseline_read(const char *path, struct baseline *ret, struct rlmd_error *err)
{
	size_t size;
	auto_free char *text = file_read(path, SIZE_MAX_READ, &size, err);

	if (!text)
		return error_context(err, "the baseline");
	return baseline_parse(text_from(text, size), ret, err) ||
	       error_context(err, "the baseline %s", path);
}

void baseline_done(struct baseline *baseline)
{
	for (size_t i = 0; i < baseline->count; i++) {
		free(baseline->entries[i].fingerprint);
		free(baseline->entries[i].surroundings);
	}
	free(baseline->entries);
	*baseline = (struct baseline){0};
}

static bool use(struct baseline *baseline, const struct finding *finding, bool moved)
{
	for (size_t i = 0; i < baseline->count; i++) {
		struct baseline_entry *entry = &baseline->entries[i];

		if (!entry->used && !strcmp(moved ? entry->surroundings : entry->fingerprint,
					    moved ? finding->surroundings : finding->fingerprint))
			return entry->used = true;
	}
	return false;
}

void baseline_apply(struct baseline *baseline, struct findings *findings)
{
	for (int moved = 0; moved < 2; moved++)
		for (size_t i = 0; i < findings->count; i++) {
			struct finding *finding = &findings->items[i];

			if (finding->place == FINDING_ANCHORED && !finding->known)
				finding->known = use(baseline, finding, moved);
		}
}
