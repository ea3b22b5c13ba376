#include "review/omission.h"

#include <string.h>

#include "base/text.h"
#include "review/code.h"

static const char directive[] = "rlmd: ignore ";

/* Of the names, which commas part. */
static bool has_rule(struct rlmd_text names, const struct finding *finding)
{
	while (names.size) {
		const char *comma = memchr(names.bytes, ',', names.size);
		size_t size = comma ? (size_t)(comma - names.bytes) : names.size;
		struct rlmd_text name = text_slice(names, 0, size);

		if (text_equal(name, finding->rule) ||
		    (finding->named && text_equal(name, finding->named)))
			return true;
		names = text_slice(names, size + (comma != NULL), names.size);
	}
	return false;
}

static bool is_ignored_by(struct rlmd_text line, const struct finding *finding)
{
	const char *start = text_find(line, directive);
	struct rlmd_text rest;
	size_t size = 0;

	if (!start)
		return false;
	rest = text_slice(line, (size_t)(start - line.bytes) + strlen(directive), line.size);
	while (size < rest.size && !text_is_space(rest.bytes[size]))
		size++;
	return has_rule(text_slice(rest, 0, size), finding);
}

/* By a comment on its lines, or on the one before. */
static bool is_ignored(const struct finding *finding)
{
	size_t first = finding->first > 1 ? finding->first - 1 : 1;

	for (size_t line = first; line <= finding->last; line++)
		if (is_ignored_by(code_line(finding->file, line), finding))
			return true;
	return false;
}

static void omit_surplus(struct findings *findings, size_t max)
{
	size_t shown = 0;

	for (enum severity severity = SEVERITY_ERROR; severity > SEVERITY_NONE; severity--)
		for (size_t i = 0; i < findings->count; i++) {
			struct finding *finding = &findings->items[i];

			if (finding->severity == severity && !finding->known && !finding->omitted &&
			    finding->anchoring == FINDING_ANCHORED && ++shown > max)
				finding->omitted = OMITTED_SURPLUS;
		}
}

void omission_apply(struct findings *findings, const struct omission_limits *limits)
{
	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->items[i];

		if (finding->omitted)
			continue;
		if (finding->anchoring == FINDING_ANCHORED && is_ignored(finding))
			finding->omitted = OMITTED_IGNORED;
		else if (finding->confidence < limits->min_confidence)
			finding->omitted = OMITTED_UNSURE;
	}
	if (limits->max)
		omit_surplus(findings, limits->max);
}
