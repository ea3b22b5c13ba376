#include "review/placing.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "review/anchor.h"
#include "review/patch.h"

static void place(struct finding *finding, struct code *code, const struct ruleset *rules,
		  bool only_changed)
{
	anchor_find(code, finding);
	ruleset_apply(rules, finding);
	if (finding->place != FINDING_ANCHORED)
		return;
	finding->unchanged_lines = only_changed &&
				   !code_changed(finding->file, finding->first, finding->last);
	free(finding->path);
	finding->path = xstrdup(finding->file->path);
}

void findings_place(struct findings *findings, struct code *code, const struct ruleset *rules,
		    bool only_changed)
{
	for (size_t i = 0; i < findings->count; i++)
		ruleset_rate(rules, &findings->items[i]);
	for (enum severity severity = SEVERITY_ERROR; severity > SEVERITY_NONE; severity--)
		for (size_t i = 0; i < findings->count; i++)
			if (findings->items[i].severity == severity)
				place(&findings->items[i], code, rules, only_changed);
	for (size_t i = 0; i < findings->count; i++)
		patch_check(code, &findings->items[i]);
}
