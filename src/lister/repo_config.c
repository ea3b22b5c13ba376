#include "lister/repo_config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/* One setting of a line in a section. */
struct setting {
	struct rlmd_text section, subsection, name;
	const char *value; /* NULL: it is only named, which is true */
};

static bool is_on(const char *value)
{
	return !value || !strcasecmp(value, "true") || !strcasecmp(value, "yes") ||
	       !strcasecmp(value, "on") || !strcmp(value, "1");
}

static bool is_boolean(const char *value)
{
	return is_on(value) || !strcasecmp(value, "false") || !strcasecmp(value, "no") ||
	       !strcasecmp(value, "off") || !strcmp(value, "0") || !*value;
}

/* Settings that lead to other files or to programs; of every subsection, as `filter.NAME.clean`. */
static bool leads_elsewhere(const struct setting *setting)
{
	static const char *const rows[][2] = {
		{"core", "excludesFile"}, {"core", "attributesFile"}, {"core", "hooksPath"},
		{"core", "sshCommand"},   {"core", "gitProxy"},       {"include", "path"},
		{"includeIf", "path"},    {"filter", "clean"},        {"filter", "smudge"},
		{"filter", "process"},    {"diff", "command"},        {"diff", "external"},
		{"diff", "textconv"},
	};

	if (text_equal_caseless(setting->section, "core") &&
	    text_equal_caseless(setting->name, "fsmonitor"))
		return !is_boolean(setting->value);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (text_equal_caseless(setting->section, rows[i][0]) &&
		    text_equal_caseless(setting->name, rows[i][1]))
			return true;
	return false;
}

static void note_ignored(struct repo_config *config, const struct setting *setting)
{
	auto_free char *before = take_pointer(&config->ignored);
	auto_free char *name = xasprintf(
		"%.*s%s%.*s.%.*s", (int)setting->section.size, setting->section.bytes,
		setting->subsection.size ? "." : "", (int)setting->subsection.size,
		setting->subsection.bytes, (int)setting->name.size, setting->name.bytes);
	char safe[128];

	text_escape(text_of(name), safe, sizeof safe);
	if (before && (strstr(before, safe) || strlen(before) > 1000))
		config->ignored = take_pointer(&before);
	else
		config->ignored = xasprintf("%s%s%s", before ? before : "", before ? ", " : "",
					    safe);
}

/* Forms of a repository that not everybody reads. */
static void take_extension(struct repo_config *config, const struct setting *setting)
{
	if (!setting->value)
		return;
	if (text_equal_caseless(setting->name, "objectformat"))
		config->sha256 = strcmp(setting->value, "sha1") != 0;
	if (text_equal_caseless(setting->name, "refstorage"))
		config->reftable = strcmp(setting->value, "files") != 0;
}

static void take_setting(struct repo_config *config, const struct setting *setting)
{
	if (leads_elsewhere(setting))
		note_ignored(config, setting);
	if (text_equal_caseless(setting->section, "extensions"))
		take_extension(config, setting);
	if (!text_equal_caseless(setting->section, "core"))
		return;
	if (text_equal_caseless(setting->name, "ignorecase"))
		config->fold = is_on(setting->value);
	if (text_equal_caseless(setting->name, "filemode"))
		config->modeless = !is_on(setting->value);
	if (text_equal_caseless(setting->name, "worktree") && setting->value) {
		free(config->worktree);
		config->worktree = xstrdup(setting->value);
	}
}

static void skip_blanks(struct rlmd_text *text)
{
	while (text->size && text_is_space(text->bytes[0]))
		*text = text_slice(*text, 1, text->size);
}

/* `[section "subsection"]` or `[section.subsection]`, behind the "[". */
static void take_header(struct rlmd_text *text, struct setting *setting)
{
	size_t size = 0;

	*setting = (struct setting){0};
	while (size < text->size && !strchr("]. \"\n", text->bytes[size]))
		size++;
	setting->section = text_slice(*text, 0, size);
	*text = text_slice(*text, size, text->size);
	while (text->size && strchr(". \"", text->bytes[0]))
		*text = text_slice(*text, 1, text->size);
	for (size = 0; size < text->size && !strchr("\"]\n", text->bytes[size]);)
		size += text->bytes[size] == '\\' && size + 1 < text->size ? 2 : 1;
	setting->subsection = text_slice(*text, 0, size);
	*text = text_slice(*text, size, text->size);
	while (text->size && strchr("\"]", text->bytes[0]))
		*text = text_slice(*text, 1, text->size);
}

/* A value to the end of its line, which may go on in the next: new, without quotes. */
static char *take_value(struct rlmd_text *text)
{
	char *value = xcalloc(text_line_end(*text, 0) + 1, 1);
	size_t size = 0, room = text_line_end(*text, 0), at = 0;
	bool quoted = false;

	for (; at < room && text->bytes[at] != '\n'; at++) {
		char c = text->bytes[at];

		if (!quoted && (c == '#' || c == ';'))
			break;
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\' && at + 1 < room)
			c = text->bytes[++at];
		value[size++] = c;
	}
	while (!quoted && size && text_is_space(value[size - 1]))
		size--;
	value[size] = '\0';
	*text = text_slice(*text, room, text->size);
	return value;
}

static void take_line(struct repo_config *config, struct rlmd_text *text, struct setting *setting)
{
	auto_free char *value = NULL;
	size_t size = 0;

	while (size < text->size && !strchr("= \t\r\n#;", text->bytes[size]))
		size++;
	setting->name = text_slice(*text, 0, size);
	*text = text_slice(*text, size, text->size);
	while (text->size && strchr(" \t\r", text->bytes[0]))
		*text = text_slice(*text, 1, text->size);
	if (text->size && text->bytes[0] == '=') {
		*text = text_slice(*text, 1, text->size);
		while (text->size && strchr(" \t", text->bytes[0]))
			*text = text_slice(*text, 1, text->size);
		value = take_value(text);
	} else {
		*text = text_slice(*text, text_line_end(*text, 0), text->size);
	}
	setting->value = value;
	if (setting->name.size)
		take_setting(config, setting);
	setting->value = NULL;
}

void repo_config_read(struct repo_config *config, struct rlmd_text text)
{
	struct setting setting = {0};

	if (text_starts(text, "\xef\xbb\xbf"))
		text = text_slice(text, 3, text.size);
	for (skip_blanks(&text); text.size; skip_blanks(&text)) {
		char c = text.bytes[0];

		if (c == '#' || c == ';') {
			text = text_slice(text, text_line_end(text, 0), text.size);
		} else if (c == '[') {
			text = text_slice(text, 1, text.size);
			take_header(&text, &setting);
		} else {
			take_line(config, &text, &setting);
		}
	}
}

void repo_config_done(struct repo_config *config)
{
	free(config->worktree);
	free(config->ignored);
}
