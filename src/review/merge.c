#include "review/merge.h"

#include <string.h>

enum { FEW_LINES = 8 }; /* a longer quote may well have two findings of a kind in it */

static bool within(const struct finding *inner, const struct finding *outer)
{
	return inner->first >= outer->first && inner->last <= outer->last &&
	       (inner->first == outer->first || outer->last - outer->first < FEW_LINES);
}

static bool are_same(const struct finding *a, const struct finding *b)
{
	if (a->place != b->place || strcmp(a->rule, b->rule) != 0)
		return false;
	if (a->place == FINDING_ANCHORED)
		return a->file == b->file && (within(a, b) || within(b, a));
	return !strcmp(a->path, b->path) && !strcmp(a->quote, b->quote);
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

/* `other` is freed. */
static void take_in(struct finding *finding, struct finding *other)
{
	finding->reports += other->reports;
	if (other->severity > finding->severity)
		finding->severity = other->severity;
	if (other->confidence > finding->confidence) {
		finding->confidence = other->confidence;
		swap(&finding->message, &other->message);
	}
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
