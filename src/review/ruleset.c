#include "review/ruleset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "review/code.h"
#include "source/wildmatch.h"

/* --- one rule --------------------------------------------------------------------------- */

/* Where in its file the reading of a head is. */
struct rule_reader {
	const char *name;
	struct rlmd_text rest;
	size_t line;
	bool where; /* the value of `where` goes on, as a list of lines */
};

static bool refuse(const struct rule_reader *reader, const char *what, struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_INPUT, "the rule %s, line %zu: %s", reader->name,
			 reader->line, what);
}

static bool next_line(struct rule_reader *reader, struct rlmd_text *ret)
{
	size_t end;

	if (!reader->rest.size)
		return false;
	end = text_line_end(reader->rest, 0);
	*ret = text_trim(text_slice(reader->rest, 0, end));
	reader->rest = text_slice(reader->rest, end, reader->rest.size);
	reader->line++;
	return true;
}

static struct rlmd_text unquoted(struct rlmd_text text)
{
	text = text_trim(text);
	if (text.size >= 2 && (*text.bytes == '"' || *text.bytes == '\'') &&
	    text.bytes[text.size - 1] == *text.bytes)
		return text_slice(text, 1, text.size - 1);
	return text;
}

static void add_pattern(struct review_rule *rule, struct rlmd_text pattern)
{
	pattern = unquoted(pattern);
	if (!pattern.size)
		return;
	rule->where = array_grow(rule->where, rule->where_count, sizeof *rule->where);
	rule->where[rule->where_count++] = text_copy(pattern);
}

static void add_patterns(struct review_rule *rule, struct rlmd_text list)
{
	if (list.size >= 2 && *list.bytes == '[' && list.bytes[list.size - 1] == ']')
		list = text_slice(list, 1, list.size - 1);
	while (list.size) {
		const char *comma = memchr(list.bytes, ',', list.size);
		size_t size = comma ? (size_t)(comma - list.bytes) : list.size;

		add_pattern(rule, text_slice(list, 0, size));
		list = text_slice(list, comma ? size + 1 : size, list.size);
	}
}

static bool read_member(struct rule_reader *reader, struct rlmd_text line, struct review_rule *rule,
			struct rlmd_error *err)
{
	const char *colon = memchr(line.bytes, ':', line.size);
	struct rlmd_text key, value;

	if (reader->where && text_starts(line, "- ")) {
		add_pattern(rule, text_slice(line, 2, line.size));
		return true;
	}
	if (!colon)
		return refuse(reader, "is no 'id:', 'severity:' or 'where:'", err);
	key = text_trim(text_slice(line, 0, (size_t)(colon - line.bytes)));
	value = unquoted(text_slice(line, (size_t)(colon - line.bytes) + 1, line.size));
	reader->where = text_equal(key, "where");
	if (reader->where) {
		add_patterns(rule, value);
	} else if (text_equal(key, "id")) {
		free(rule->id);
		rule->id = text_copy(value);
	} else if (text_equal(key, "severity")) {
		if (!finding_severity_parse(value, &rule->severity) ||
		    rule->severity == SEVERITY_NONE)
			return refuse(reader, "severity is error, warning or note", err);
	} else {
		return refuse(reader, "is no 'id:', 'severity:' or 'where:'", err);
	}
	return true;
}

static bool read_head(struct rule_reader *reader, struct review_rule *rule, struct rlmd_error *err)
{
	struct rule_reader begin = *reader;
	struct rlmd_text line;

	if (!next_line(reader, &line) || !text_equal(line, "---")) {
		*reader = begin; /* it has none */
		return true;
	}
	while (next_line(reader, &line)) {
		if (text_equal(line, "---"))
			return true;
		if (line.size && *line.bytes != '#' && !read_member(reader, line, rule, err))
			return false;
	}
	return refuse(reader, "the head has no end: a line '---'", err);
}

static char *id_of(const char *name)
{
	size_t size = strlen(name);

	return xstrndup(name, size > 3 && !strcmp(name + size - 3, ".md") ? size - 3 : size);
}

bool ruleset_parse_rule(const char *name, struct rlmd_text text, struct review_rule *ret,
			struct rlmd_error *err)
{
	struct rule_reader reader = {.name = name, .rest = text};
	struct review_rule rule = {.id = id_of(name)};
	bool ok;

	if (text_starts(text, "\xef\xbb\xbf"))
		reader.rest = text_slice(text, 3, text.size);
	ok = read_head(&reader, &rule, err);
	rule.text = text_copy(text_trim(reader.rest));
	if (ok && (!*rule.id || strlen(rule.id) > FINDING_RULE_MAX))
		ok = refuse(&reader, "the id is empty, or longer than 200 bytes", err);
	if (ok && !*rule.text)
		ok = refuse(&reader, "nothing is said of what to look for", err);
	if (ok && !text_is_utf8(text))
		ok = refuse(&reader, "is not UTF-8", err);
	if (ok)
		*ret = rule;
	else
		ruleset_rule_done(&rule);
	return ok;
}

void ruleset_rule_done(struct review_rule *rule)
{
	for (size_t i = 0; i < rule->where_count; i++)
		free(rule->where[i]);
	free(rule->where);
	free(rule->id);
	free(rule->text);
	*rule = (struct review_rule){0};
}

/* --- a directory of them ---------------------------------------------------------------- */

static char *read_file(int directory, const char *name, size_t *ret_size, struct rlmd_error *err)
{
	auto_close int fd = openat(directory, name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_free char *bytes = xcalloc(RULE_SIZE_MAX + 2, 1);
	struct stat st;
	ssize_t got = 1;

	*ret_size = 0;
	if (fd < 0 || fstat(fd, &st)) {
		error_errno(err, RLMD_ERROR_INPUT, "the rule %s", name);
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		error_set(err, RLMD_ERROR_INPUT, "the rule %s is no file", name);
		return NULL;
	}
	for (; got > 0 && *ret_size <= RULE_SIZE_MAX; *ret_size += got > 0 ? (size_t)got : 0)
		got = read(fd, bytes + *ret_size, RULE_SIZE_MAX + 1 - *ret_size);
	if (got >= 0 && *ret_size <= RULE_SIZE_MAX)
		return take_pointer(&bytes);
	error_set(err, RLMD_ERROR_INPUT, "the rule %s cannot be read, or is longer than %d bytes",
		  name, RULE_SIZE_MAX);
	return NULL;
}

static bool add_rule(struct ruleset *set, int directory, const char *name, struct rlmd_error *err)
{
	size_t size;
	auto_free char *text = NULL;

	if (set->count == RULES_MAX)
		return error_set(err, RLMD_ERROR_INPUT, "there are more than %d rules", RULES_MAX);
	text = read_file(directory, name, &size, err);
	if (!text || !ruleset_parse_rule(name, text_from(text, size), &set->rules[set->count], err))
		return false;
	set->count++;
	return true;
}

static int compare(const void *left, const void *right)
{
	return strcmp(((const struct review_rule *)left)->id,
		      ((const struct review_rule *)right)->id);
}

static bool check_ids(const struct ruleset *set, struct rlmd_error *err)
{
	for (size_t i = 1; i < set->count; i++)
		if (!compare(&set->rules[i - 1], &set->rules[i]))
			return error_set(err, RLMD_ERROR_INPUT, "two rules have the id '%s'",
					 set->rules[i].id);
	return set->count || error_set(err, RLMD_ERROR_INPUT, "it has no rules: files *.md");
}

static bool is_rule(const char *name)
{
	size_t size = strlen(name);

	return *name != '.' && size > 3 && !strcmp(name + size - 3, ".md");
}

bool ruleset_read(const char *directory, struct ruleset *ret, struct rlmd_error *err)
{
	struct ruleset set = {.rules = xcalloc(RULES_MAX, sizeof *set.rules)};
	DIR *files = opendir(directory);
	struct dirent *entry;
	bool ok = files || error_errno(err, RLMD_ERROR_INPUT, "it cannot be read");

	while (ok && (entry = readdir(files)))
		if (is_rule(entry->d_name))
			ok = add_rule(&set, dirfd(files), entry->d_name, err);
	if (files)
		closedir(files);
	qsort(set.rules, set.count, sizeof *set.rules, compare);
	if (ok && check_ids(&set, err)) {
		*ret = set;
		return true;
	}
	ruleset_done(&set);
	return error_context(err, "the rules in %s", directory);
}

void ruleset_done(struct ruleset *set)
{
	for (size_t i = 0; i < set->count; i++)
		ruleset_rule_done(&set->rules[i]);
	free(set->rules);
	*set = (struct ruleset){0};
}

/* --- the usual rules ----------------------------------------------------------------------- */

static const struct {
	const char *id, *text;
	unsigned cwe;
} usual[] = {
#define RULE(id, cwe, what) {id, what, cwe},
#include "review/rules.def"
};

static const struct {
	const char *name, *id;
} synonyms[] = {
#define SYNONYM(name, id) {name, id},
#include "review/rules.def"
};

static const struct review_rule *find_exact(const struct ruleset *set, const char *id)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->rules[i].id, id))
			return &set->rules[i];
	return NULL;
}

void ruleset_add_usual(struct ruleset *set)
{
	size_t count = sizeof usual / sizeof *usual;

	set->rules = xreallocarray(set->rules, set->count + count, sizeof *set->rules);
	for (size_t i = 0; i < count; i++) {
		if (find_exact(set, usual[i].id))
			continue;
		set->rules[set->count++] = (struct review_rule){
			.id = xstrdup(usual[i].id),
			.text = xstrdup(usual[i].text),
			.cwe = usual[i].cwe,
			.usual = true,
		};
	}
}

/* --- names ---------------------------------------------------------------------------------- */

static bool is_letter_or_digit(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c >= 0x80;
}

/* " Memory_Leak" -> "memory-leak"; new. */
static char *fold(const char *name)
{
	char *folded = xstrdup(name);
	size_t size = 0;

	for (; *name; name++) {
		if (is_letter_or_digit((unsigned char)*name))
			folded[size++] = (char)(*name >= 'A' && *name <= 'Z' ? *name | 0x20
									     : *name);
		else if (size && folded[size - 1] != '-')
			folded[size++] = '-';
	}
	folded[size - (size && folded[size - 1] == '-')] = '\0';
	return folded;
}

static const struct review_rule *find_folded(const struct ruleset *set, const char *folded)
{
	for (size_t i = 0; i < set->count; i++) {
		auto_free char *id = fold(set->rules[i].id);

		if (*folded && !strcmp(id, folded))
			return &set->rules[i];
	}
	return NULL;
}

static const struct review_rule *find_synonym(const struct ruleset *set, const char *folded)
{
	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
		if (!strcmp(synonyms[i].name, folded))
			return find_exact(set, synonyms[i].id);
	return NULL;
}

/* "cwe-401-memory-leak", too. */
static const struct review_rule *find_weakness(const struct ruleset *set, const char *folded)
{
	unsigned long number = strncmp(folded, "cwe-", 4) ? 0 : strtoul(folded + 4, NULL, 10);
	auto_free char *name = xasprintf("cwe-%lu", number);

	for (size_t i = 0; number && i < set->count; i++)
		if (set->rules[i].cwe == number)
			return &set->rules[i];
	return number ? find_synonym(set, name) : NULL;
}

const struct review_rule *ruleset_find(const struct ruleset *set, const char *id)
{
	const struct review_rule *found = find_exact(set, id);
	auto_free char *folded = fold(id);

	if (!found)
		found = find_folded(set, folded);
	if (!found)
		found = find_synonym(set, folded);
	if (!found)
		found = find_weakness(set, folded);
	if (!found && set->count && set->rules[set->count - 1].usual)
		found = find_exact(set, "other");
	return found;
}

/* --- use ---------------------------------------------------------------------------------- */

void ruleset_describe(const struct ruleset *set, struct evbuffer *out)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct review_rule *rule = &set->rules[i];

		if (rule->usual) {
			buffer_add_printf(out, "%s- %s: %s\n",
					  i && !set->rules[i - 1].usual ? "\n" : "", rule->id,
					  rule->text);
			continue;
		}
		buffer_add_printf(out, "%sRule \"%s\"", i ? "\n" : "", rule->id);
		if (rule->severity)
			buffer_add_printf(out, ", severity \"%s\"",
					  finding_severity_name(rule->severity));
		for (size_t k = 0; k < rule->where_count; k++)
			buffer_add_printf(out, "%s%s", k ? ", " : ", only in files that match ",
					  rule->where[k]);
		buffer_add_printf(out, ":\n%s\n", rule->text);
	}
}

/* A pattern without a slash is for names anywhere, one that ends with it for all that is below. */
static bool matches(const char *pattern, const char *path)
{
	size_t size = strlen(pattern);
	auto_free char *whole = xasprintf("%s%s%s", strchr(pattern, '/') ? "" : "**/",
					  pattern + (*pattern == '/'),
					  size && pattern[size - 1] == '/' ? "**" : "");
	struct wildmatch *match = wildmatch_new(text_of(whole), WILDMATCH_PATH);
	bool is_match = wildmatch_matches(match, text_of(path));

	wildmatch_free(match);
	return is_match;
}

static bool is_for(const struct review_rule *rule, const char *path)
{
	for (size_t i = 0; i < rule->where_count; i++)
		if (matches(rule->where[i], path))
			return true;
	return !rule->where_count;
}

void ruleset_rate(const struct ruleset *set, struct finding *finding)
{
	const struct review_rule *rule = ruleset_find(set, finding->rule);

	if (!rule)
		return;
	finding->own_rule = !rule->usual;
	if (rule->severity)
		finding->severity = rule->severity;
	if (!strcmp(rule->id, finding->rule))
		return;
	free(finding->named);
	finding->named = finding->rule;
	finding->rule = xstrdup(rule->id);
}

void ruleset_apply(const struct ruleset *set, struct finding *finding)
{
	const struct review_rule *rule = ruleset_find(set, finding->rule);

	if (rule && finding->anchoring == FINDING_ANCHORED && !is_for(rule, finding->file->path))
		finding->anchoring = FINDING_OUT_OF_SCOPE;
}
