#include "cli/log_format.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

enum {
	ID_SHOWN = 8,      /* characters of a run's id, for a person */
	TEXT_MAX = 8192,   /* bytes of one text, escaped */
	SHORT_FIELD = 200, /* bytes of a field, for a person */
};

enum log_format log_format_of(const char *word)
{
	return !strcmp(word, "json")       ? LOG_FORMAT_JSON
	       : !strcmp(word, "journald") ? LOG_FORMAT_JOURNALD
					   : LOG_FORMAT_TEXT;
}

static void add_escaped(struct evbuffer *out, struct rlmd_text text)
{
	char safe[TEXT_MAX];

	text_escape(text, safe, sizeof safe);
	buffer_add(out, safe, strlen(safe));
}

static const char *run_of(const struct rlmd_log_record *record)
{
	for (size_t i = 0; i < record->field_count; i++)
		if (!strcmp(record->fields[i].name, "run") && record->fields[i].text)
			return record->fields[i].text;
	return NULL;
}

/* Words with blanks in them are quoted, so that it can be told where each field ends. */
static void add_field(struct evbuffer *out, const struct rlmd_log_field *field)
{
	const char *quote;

	if (!field->text) {
		buffer_add_printf(out, "%s=%" PRId64, field->name, field->number);
		return;
	}
	quote = strpbrk(field->text, " ()=") ? "\"" : "";
	buffer_add_printf(out, "%s=%s", field->name, quote);
	add_escaped(out, text_clip(text_of(field->text), SHORT_FIELD));
	buffer_add_printf(out, "%s", quote);
}

/* The run in front, as in all that is told of runs; there is one job at most, which is not. */
static void add_words(struct evbuffer *out, const struct rlmd_log_record *record)
{
	const char *run = run_of(record), *before = " (";

	if (run)
		buffer_add_printf(out, "[%.*s] ", ID_SHOWN, run);
	add_escaped(out, text_of(record->message));
	for (size_t i = 0; i < record->field_count; i++) {
		const struct rlmd_log_field *field = &record->fields[i];

		if (!strcmp(field->name, "run") || !strcmp(field->name, "job"))
			continue;
		buffer_add_printf(out, "%s", before);
		add_field(out, field);
		before = " ";
	}
	buffer_add_printf(out, "%s\n", *before == ' ' && before[1] ? "" : ")");
}

static void write_text(const struct rlmd_log_record *record, bool color, struct evbuffer *out)
{
	bool error = record->level == RLMD_LOG_ERROR, warning = record->level == RLMD_LOG_WARNING;

	buffer_add_printf(out, "rlmd: ");
	if (error || warning)
		buffer_add_printf(out,
				  color ? "\033[%sm%s:\033[0m " : "%.0s%s: ", error ? "31" : "33",
				  error ? "error" : "warning");
	add_words(out, record);
}

static int priority(enum rlmd_log_level level)
{
	switch (level) {
	case RLMD_LOG_ERROR:
		return 3;
	case RLMD_LOG_DEFAULT:
	case RLMD_LOG_WARNING:
		return 4;
	case RLMD_LOG_NOTICE:
		return 5;
	case RLMD_LOG_INFO:
		return 6;
	case RLMD_LOG_DEBUG:
		return 7;
	}
	return 6;
}

static void write_json(const struct rlmd_log_record *record, struct evbuffer *out)
{
	json_auto_t *object = NULL;
	auto_free char *line = NULL;
	char now[CLOCK_DATE_SIZE];

	clock_format_date(clock_wall_ms(), now);
	object = json_pack("{s:s, s:s, s:s, s:s, s:o}", "time", now, "level",
			   log_level_name(record->level), "subject", record->subject, "event",
			   record->event, "message", json_from_text(text_of(record->message)));
	for (size_t i = 0; i < record->field_count; i++) {
		const struct rlmd_log_field *field = &record->fields[i];

		json_object_set_new(object, field->name,
				    field->text ? json_from_text(text_of(field->text))
						: json_integer(field->number));
	}
	line = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
	/* The one control character that ASCII leaves. */
	for (const char *at = line, *next; *at; at = next) {
		size_t span = strcspn(at, "\x7f");

		next = at + span + (at[span] != '\0');
		buffer_add(out, at, span);
		buffer_add_printf(out, "%s", at[span] ? "\\u007f" : "");
	}
	buffer_add(out, "\n", 1);
}

void log_format_write(enum log_format format, const struct rlmd_log_record *record, bool color,
		      struct evbuffer *out)
{
	switch (format) {
	case LOG_FORMAT_TEXT:
		write_text(record, color, out);
		return;
	case LOG_FORMAT_JSON:
		write_json(record, out);
		return;
	case LOG_FORMAT_JOURNALD:
		buffer_add_printf(out, "<%d>", priority(record->level));
		add_words(out, record);
		return;
	}
}
