#include "review/finding.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "review/code.h"

enum {
	WIDER = 3,     /* as many lines as another one, of the same place, has at most */
	FEW_LINES = 8, /* a longer quote may well have two findings of a kind in it */
};

static const char *const severities[] = {
	[SEVERITY_NONE] = "none",
	[SEVERITY_NOTE] = "note",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_ERROR] = "error",
};

const char *finding_severity_name(enum severity severity)
{
	return severities[severity];
}

bool finding_severity_parse(struct rlmd_text name, enum severity *ret)
{
	for (size_t i = 0; i < sizeof severities / sizeof *severities; i++)
		if (text_equal(name, severities[i])) {
			*ret = (enum severity)i;
			return true;
		}
	return false;
}

/* --- lists ---------------------------------------------------------------------------- */

void finding_edits_done(struct patch_file *patch)
{
	for (size_t i = 0; i < patch->count; i++)
		evbuffer_free(patch->edits[i].added);
	free(patch->edits);
	*patch = (struct patch_file){0};
}

static void free_patch(struct patch *patch)
{
	for (size_t i = 0; patch && i < patch->count; i++)
		finding_edits_done(&patch->files[i]);
	if (patch)
		free(patch->files);
	free(patch);
}

void finding_done(struct finding *finding)
{
	free(finding->rule);
	free(finding->named);
	free(finding->message);
	free(finding->path);
	free(finding->quote);
	free(finding->patch);
	free_patch(finding->edits);
	free(finding->no_patch);
	free(finding->print);
	*finding = (struct finding){0};
}

void findings_done(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		finding_done(&findings->items[i]);
	free(findings->items);
	*findings = (struct findings){0};
}

static int order(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;
	int by = order(a->anchoring != FINDING_ANCHORED, b->anchoring != FINDING_ANCHORED);

	if (!by)
		by = strcmp(a->path, b->path);
	if (!by)
		by = order(a->first, b->first);
	if (!by)
		by = order(a->last, b->last);
	if (!by)
		by = order(b->severity, a->severity);
	if (!by)
		by = strcmp(a->rule, b->rule);
	if (!by)
		by = strcmp(a->quote, b->quote);
	return by ? by : strcmp(a->message, b->message);
}

void findings_sort(struct findings *findings)
{
	if (findings->count)
		qsort(findings->items, findings->count, sizeof *findings->items, compare);
}

/* --- merging --------------------------------------------------------------------------- */

static bool within(const struct finding *inner, const struct finding *outer)
{
	return inner->first >= outer->first && inner->last <= outer->last &&
	       (inner->first == outer->first || outer->last - outer->first < FEW_LINES);
}

static size_t lines_of(const struct finding *finding)
{
	return finding->last - finding->first + 1;
}

static bool are_same(const struct finding *a, const struct finding *b)
{
	bool same_rule = !strcmp(a->rule, b->rule);

	if (a->anchoring != b->anchoring || (!same_rule && a->own_rule && b->own_rule))
		return false;
	if (a->anchoring != FINDING_ANCHORED)
		return same_rule && !strcmp(a->path, b->path) && !strcmp(a->quote, b->quote);
	return a->file == b->file && (within(a, b) || within(b, a)) &&
	       (same_rule ||
		(lines_of(a) <= WIDER * lines_of(b) && lines_of(b) <= WIDER * lines_of(a)));
}

static void swap(char **a, char **b)
{
	char *kept = *a;

	*a = *b;
	*b = kept;
}

static void swap_patches(struct finding *a, struct finding *b)
{
	struct patch *kept = a->edits;

	a->edits = b->edits;
	b->edits = kept;
	swap(&a->patch, &b->patch);
	swap(&a->no_patch, &b->no_patch);
}

/* Under another rule a message may tell of another mistake on the same lines. */
static void add_message(struct finding *finding, const struct finding *other)
{
	char *both;

	if (strlen(finding->message) + strlen(other->message) > FINDING_TEXT_MAX)
		return;
	both = xasprintf("%s\n\nAlso (%s): %s", finding->message, other->rule, other->message);
	free(finding->message);
	finding->message = both;
}

/* A rule with a name says more than "other". */
static bool says_more(const struct finding *a, const struct finding *b)
{
	bool a_named = strcmp(a->rule, "other") != 0, b_named = strcmp(b->rule, "other") != 0;

	return a_named != b_named ? a_named : a->confidence > b->confidence;
}

/* `other` is freed. */
static void take_in(struct finding *finding, struct finding *other)
{
	finding->reports += other->reports;
	if (other->severity > finding->severity)
		finding->severity = other->severity;
	if (says_more(other, finding)) {
		swap(&finding->message, &other->message);
		swap(&finding->rule, &other->rule);
		swap(&finding->named, &other->named);
	}
	if (other->confidence > finding->confidence)
		finding->confidence = other->confidence;
	if (strcmp(finding->rule, other->rule) != 0)
		add_message(finding, other);
	if (!finding->patch && other->patch)
		swap_patches(finding, other);
	finding_done(other);
}

static struct finding *same_before(const struct findings *findings, size_t kept,
				   const struct finding *finding)
{
	for (size_t i = 0; i < kept; i++)
		if (are_same(&findings->items[i], finding))
			return &findings->items[i];
	return NULL;
}

void findings_merge(struct findings *findings)
{
	size_t kept = 0;

	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->items[i];
		struct finding *before = same_before(findings, kept, finding);

		if (before)
			take_in(before, finding);
		else
			findings->items[kept++] = *finding;
	}
	findings->count = kept;
}
