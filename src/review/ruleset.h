/*
 * review/ruleset.h - rules: what to look for, where, and how bad it is.
 *
 * Those of review/rules.def are the usual ones. Rules of one's own take their place or stand before
 * them: a directory of Markdown files, each with a head and what to look for, in words for the
 * model; `where` has patterns as gitignore(5) reads them, with commas between:
 *
 *     ---
 *     id: no-strcpy
 *     severity: error
 *     where: lib/, *.h
 *     ---
 *     Calls of strcpy() and strcat(), whose ...
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "review/finding.h"

enum {
	RULES_MAX = 500,
	RULE_SIZE_MAX = 64 << 10, /* bytes of a file */
};

struct review_rule {
	char *id;               /* owned: of the head, or the file's name without ".md" */
	enum severity severity; /* SEVERITY_NONE: the model says */
	char **where;           /* owned: patterns of paths, any of which is enough */
	size_t where_count;     /* 0: everywhere */
	char *text;             /* owned: what to look for */
	unsigned cwe;           /* its number there; 0: none */
	bool usual;             /* it is one of review/rules.def */
};

struct ruleset {
	struct review_rule *rules; /* owned: those of one's own, sorted by id, then the usual */
	size_t count;
};

/* Every file *.md of the directory; no link is followed. RLMD_ERROR_INPUT names file and line. */
bool ruleset_read(const char *directory, struct ruleset *ret, struct rlmd_error *);
void ruleset_done(struct ruleset *);

/* Adds the usual ones, but for ids that are taken. */
void ruleset_add_usual(struct ruleset *);

/* The rule of that id, or NULL. Where none has it as it is, letters count in either case, all that
 * is neither letter nor digit for "-", a synonym (review/rules.def) for its rule, "CWE-401" for the
 * rule with that number, and, where there are usual rules, anything else for "other". */
const struct review_rule *ruleset_find(const struct ruleset *, const char *id);

/* One rule of a text, whose `name` is that of its file. */
bool ruleset_parse_rule(const char *name, struct rlmd_text, struct review_rule *ret,
			struct rlmd_error *);
void ruleset_rule_done(struct review_rule *);

/* Appends the rules, for the model. */
void ruleset_describe(const struct ruleset *, struct evbuffer *out);

/* Gives a finding its rule's id and severity. */
void ruleset_rate(const struct ruleset *, struct finding *);

/* A finding in a file that its rule is not for is out of scope. */
void ruleset_apply(const struct ruleset *, struct finding *);
