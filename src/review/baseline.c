#include "review/baseline.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

enum {
	WIDER = 3, /* as many lines as those that both have; else it is another rule's, beside it */
	SIZE_MAX_READ = 64 << 20, /* bytes */
	DEPTH_MAX = 64,
};

/* "a%20b" -> "a b"; new. */
static char *name_of_uri(const char *uri)
{
	char *name = xstrdup(uri), *end = name;

	for (; *uri; uri++) {
		char digits[3] = {0}, *stop = digits;

		if (*uri == '%' && uri[1] && uri[2]) {
			memcpy(digits, uri + 1, 2);
			*end = (char)strtoul(digits, &stop, 16);
		}
		if (stop == digits + 2)
			uri += 2;
		else
			*end = *uri;
		end++;
	}
	*end = '\0';
	return name;
}

/* Of results that are not ours, or of a report before ours had prints, nothing can be known. */
static void add(struct baseline *baseline, const json_t *result)
{
	const json_t *prints = json_object_get(result, "partialFingerprints");
	const json_t *location = json_object_get(
		json_array_get(json_object_get(result, "locations"), 0), "physicalLocation");
	const json_t *file = json_object_get(location, "artifactLocation");
	int64_t line = json_get_integer(json_object_get(location, "region"), "startLine", 1);
	struct baseline_entry *entry = &baseline->entries[baseline->count];

	if (!fingerprint_read(json_get_text(prints, BASELINE_PRINT), &entry->print))
		return;
	baseline->count++;
	entry->fingerprint = text_copy(json_get_text(prints, BASELINE_FINGERPRINT));
	entry->rule = text_copy(json_get_text(result, "ruleId"));
	entry->name = name_of_uri(json_get_string(file, "uri"));
	entry->line = line > 0 ? (size_t)line : 1;
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
		free(baseline->entries[i].rule);
		free(baseline->entries[i].name);
	}
	free(baseline->entries);
	*baseline = (struct baseline){0};
}

/* --- use ------------------------------------------------------------------------------------ */

/* How alike two are, the best last. */
enum similarity { LIKE_NOTHING, LIKE_LINES, LIKE_LINES_AND_RULE, LIKE_ALL_LINES, LIKE_ALL };

/* Between the lines of a finding and those of an earlier one that stand in the same file. */
static enum similarity compare(struct code *code, const struct finding *finding,
			       const struct baseline_entry *entry, const struct print_match *match)
{
	size_t first, end = fingerprint_own(code, finding, &first), common = 0;
	size_t old = entry->print.end - entry->print.first, new = end - first;
	size_t narrow = old < new ? old : new, wide = old < new ? new : old;
	bool same_rule = !strcmp(entry->rule, finding->rule);

	for (size_t i = 0; i < match->count; i++)
		common += match->own[i] >= first && match->own[i] < end;
	if (!common || 2 * common < narrow + !same_rule || (!same_rule && WIDER * common < wide))
		return LIKE_NOTHING;
	if (common < wide)
		return same_rule ? LIKE_LINES_AND_RULE : LIKE_LINES;
	return same_rule ? LIKE_ALL : LIKE_ALL_LINES;
}

static void make_known(struct finding *finding, struct baseline_entry *entry)
{
	entry->used = true;
	finding->known = true;
	if (strlen(entry->fingerprint) + 1 == DIGEST_SIZE)
		memcpy(finding->fingerprint, entry->fingerprint, DIGEST_SIZE);
	if (!strcmp(entry->rule, finding->rule) || !*entry->rule)
		return;
	free(finding->named);
	finding->named = finding->rule;
	finding->rule = xstrdup(entry->rule);
}

static bool has_line(struct code *code, const struct finding *finding, const struct print *print)
{
	size_t first, end = fingerprint_own(code, finding, &first);
	const struct code_prints *prints = code_prints(code, finding->file);

	code->work++;
	for (size_t i = first; i < end; i++)
		for (size_t k = print->first; k < print->end; k++)
			if (prints->items[i].digest == print->lines[k])
				return true;
	return false;
}

/* Of one that is in its own file no more; by what is around it, and not where a copy may be. */
static enum similarity compare_moved(struct code *code, const struct finding *finding,
				     const struct baseline_entry *entry)
{
	struct print_match match;

	if (entry->file || code->work > CODE_WORK_MAX || code_is_as_it_was(code, entry->name) ||
	    !has_line(code, finding, &entry->print))
		return LIKE_NOTHING;
	match = fingerprint_find(code, finding->file, &entry->print, entry->line);
	return match.sure ? compare(code, finding, entry, &match) : LIKE_NOTHING;
}

static void use(struct baseline *baseline, struct code *code, struct finding *finding,
		enum similarity least, bool moved)
{
	for (size_t i = 0; i < baseline->count && !finding->known; i++) {
		struct baseline_entry *entry = &baseline->entries[i];
		enum similarity similarity = LIKE_NOTHING;

		if (entry->used)
			continue;
		if (moved)
			similarity = compare_moved(code, finding, entry);
		else if (entry->file == finding->file)
			similarity = compare(code, finding, entry, &entry->match);
		if (similarity >= least)
			make_known(finding, entry);
	}
}

static void find_matches(struct baseline *baseline, struct code *code)
{
	for (size_t i = 0; i < baseline->count; i++) {
		struct baseline_entry *entry = &baseline->entries[i];
		const struct code_file *file = code_find(code, text_of(entry->name));

		if (!file)
			continue;
		entry->match = fingerprint_find(code, file, &entry->print, entry->line);
		entry->file = entry->match.found ? file : NULL;
	}
}

void baseline_apply(struct baseline *baseline, struct code *code, struct findings *findings)
{
	find_matches(baseline, code);
	for (int moved = 0; moved < 2; moved++)
		for (enum similarity least = LIKE_ALL; least > LIKE_NOTHING; least--)
			for (size_t i = 0; i < findings->count; i++)
				if (findings->items[i].print && !findings->items[i].known)
					use(baseline, code, &findings->items[i], least, moved);
}
