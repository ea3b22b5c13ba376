#include "lister/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "source/wildmatch.h"

enum { PATTERN_MAX = 8192 };

struct path_rule {
	struct wildmatch *match; /* owned */
	bool of_name;            /* of the last part of a path, not of all of it */
	bool of_directory;       /* of directories alone */
	bool negated;            /* of a .gitignore: it is not ignored after all */
	enum rules_state states[RULES_ATTRIBUTES];
};

struct group {
	char *base;              /* owned */
	struct path_rule *rules; /* owned */
	size_t count;
	size_t bytes; /* of its file */
};

struct rules {
	struct group *groups; /* owned */
	size_t count;
	size_t bytes; /* of all of them */
	bool fold;
};

struct rules *rules_new(bool fold)
{
	struct rules *rules = xcalloc(1, sizeof *rules);

	rules->fold = fold;
	return rules;
}

void rules_free(struct rules *rules)
{
	if (!rules)
		return;
	rules_cut(rules, 0);
	free(rules->groups);
	free(rules);
}

size_t rules_depth(const struct rules *rules)
{
	return rules->count;
}

void rules_cut(struct rules *rules, size_t depth)
{
	while (rules->count > depth) {
		struct group *group = &rules->groups[--rules->count];

		for (size_t i = 0; i < group->count; i++)
			wildmatch_free(group->rules[i].match);
		rules->bytes -= group->bytes;
		free(group->rules);
		free(group->base);
	}
}

/* --- reading ------------------------------------------------------------------------- */

/* NULL: `bytes` more would be too many. */
static struct group *add_group(struct rules *rules, const char *base, size_t bytes)
{
	struct group *group;

	if (bytes > RULES_MAX - rules->bytes)
		return NULL;
	rules->groups = array_grow(rules->groups, rules->count, sizeof *rules->groups);
	group = &rules->groups[rules->count++];
	*group = (struct group){.base = xstrdup(base), .bytes = bytes};
	rules->bytes += bytes;
	return group;
}

/* A pattern without the "!" before it. */
static struct path_rule *add_rule(const struct rules *rules, struct group *group,
				  struct rlmd_text text)
{
	int flags = rules->fold ? WILDMATCH_FOLD : 0;
	struct path_rule rule = {0};

	if (text.size && text.bytes[text.size - 1] == '/') {
		rule.of_directory = true;
		text.size--;
	}
	rule.of_name = !text.size || !memchr(text.bytes, '/', text.size);
	if (!rule.of_name && text.bytes[0] == '/')
		text = text_slice(text, 1, text.size);
	rule.match = wildmatch_new(text, rule.of_name ? flags : flags | WILDMATCH_PATH);
	group->rules = array_grow(group->rules, group->count, sizeof *group->rules);
	group->rules[group->count++] = rule;
	return &group->rules[group->count - 1];
}

/* The next line without its end, and up to a NUL, as git has it; false: there is none. */
static bool take_line(struct rlmd_text *file, struct rlmd_text *ret)
{
	size_t end = text_line_end(*file, 0);
	const char *nul;

	if (!file->size)
		return false;
	*ret = text_slice(*file, 0, end);
	*file = text_slice(*file, end, file->size);
	if (ret->size && ret->bytes[ret->size - 1] == '\n')
		ret->size--;
	if (ret->size && ret->bytes[ret->size - 1] == '\r')
		ret->size--;
	nul = memchr(ret->bytes, '\0', ret->size);
	if (nul)
		ret->size = (size_t)(nul - ret->bytes);
	return true;
}

static struct rlmd_text without_byte_order_mark(struct rlmd_text file)
{
	return text_starts(file, "\xef\xbb\xbf") ? text_slice(file, 3, file.size) : file;
}

/* Blanks at the end go, unless they are escaped. */
static struct rlmd_text trim_end(struct rlmd_text line)
{
	size_t end = 0;

	for (size_t i = 0; i < line.size; i++) {
		if (line.bytes[i] == '\\')
			i++;
		else if (line.bytes[i] == ' ')
			continue;
		end = i < line.size ? i + 1 : line.size;
	}
	return text_slice(line, 0, end);
}

bool rules_add_ignores(struct rules *rules, const char *base, struct rlmd_text file)
{
	struct group *group = add_group(rules, base, file.size);
	struct rlmd_text line;

	if (!group)
		return false;
	file = without_byte_order_mark(file);
	while (take_line(&file, &line)) {
		bool negated;

		if (!line.size || line.bytes[0] == '#' || line.size > PATTERN_MAX)
			continue;
		line = trim_end(line);
		negated = text_starts(line, "!");
		add_rule(rules, group, text_slice(line, negated, line.size))->negated = negated;
	}
	return true;
}

static struct rlmd_text take_word(struct rlmd_text *line)
{
	size_t start = 0, end;

	while (start < line->size && strchr(" \t", line->bytes[start]))
		start++;
	end = start;
	while (end < line->size && !strchr(" \t", line->bytes[end]))
		end++;
	*line = text_slice(*line, start, line->size);
	*line = text_slice(*line, end - start, line->size);
	return text_from(line->bytes - (end - start), end - start);
}

static void take_state(struct path_rule *rule, struct rlmd_text word)
{
	static const char *const names[] = {
		[RULES_GENERATED] = "linguist-generated",
		[RULES_VENDORED] = "linguist-vendored",
	};
	bool off = word.size && strchr("-!", word.bytes[0]);

	word = text_slice(word, off, word.size);
	for (size_t i = 0; i < RULES_ATTRIBUTES; i++) {
		struct rlmd_text value;

		if (!text_starts(word, names[i]))
			continue;
		value = text_slice(word, strlen(names[i]), word.size);
		if (!value.size || text_equal(value, "=true"))
			rule->states[i] = off ? RULES_FALSE : RULES_TRUE;
		else if (value.bytes[0] == '=')
			rule->states[i] = RULES_FALSE;
	}
}

bool rules_add_attributes(struct rules *rules, const char *base, struct rlmd_text file)
{
	struct group *group = add_group(rules, base, file.size);
	struct rlmd_text line;

	if (!group)
		return false;
	file = without_byte_order_mark(file);
	while (take_line(&file, &line)) {
		struct rlmd_text pattern = take_word(&line);
		struct path_rule *rule;

		if (!pattern.size || strchr("#!", pattern.bytes[0]) ||
		    text_starts(pattern, "[attr]") || pattern.size > PATTERN_MAX)
			continue;
		rule = add_rule(rules, group, pattern);
		while (line.size)
			take_state(rule, take_word(&line));
	}
	return true;
}

/* --- asking -------------------------------------------------------------------------- */

static bool applies(const struct group *group, const struct path_rule *rule, const char *path,
		    bool directory)
{
	const char *slash = strrchr(path, '/');

	if (rule->of_directory && !directory)
		return false;
	if (rule->of_name)
		return wildmatch_matches(rule->match, text_of(slash ? slash + 1 : path));
	return wildmatch_matches(rule->match, text_of(path + strlen(group->base)));
}

static bool is_below(const struct group *group, const char *path)
{
	return text_starts(text_of(path), group->base);
}

bool rules_ignore(const struct rules *rules, const char *path, bool directory)
{
	for (size_t i = rules->count; i > 0; i--) {
		const struct group *group = &rules->groups[i - 1];

		for (size_t j = group->count; j > 0 && is_below(group, path); j--)
			if (applies(group, &group->rules[j - 1], path, directory))
				return !group->rules[j - 1].negated;
	}
	return false;
}

enum rules_state rules_state(const struct rules *rules, const char *path,
			     enum rules_attribute attribute)
{
	for (size_t i = rules->count; i > 0; i--) {
		const struct group *group = &rules->groups[i - 1];

		for (size_t j = group->count; j > 0 && is_below(group, path); j--)
			if (group->rules[j - 1].states[attribute] &&
			    applies(group, &group->rules[j - 1], path, false))
				return group->rules[j - 1].states[attribute];
	}
	return RULES_UNSPECIFIED;
}
