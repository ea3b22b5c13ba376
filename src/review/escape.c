#include "review/escape.h"

#include <ctype.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

/* --- words ------------------------------------------------------------------------------ */

/* `feed` and `tab`: what stands in their places. */
static char *escape(const char *text, bool words, const char *feed, const char *tab)
{
	auto_evbuffer struct evbuffer *seen = evbuffer_new(), *safe = evbuffer_new();
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	struct rlmd_text rest;

	text_escape_lines(text_of(text), seen);
	text_disarm(text_in(seen), "\\x5b", safe);
	for (rest = text_in(safe); rest.size; rest = text_slice(rest, 1, rest.size)) {
		if (*rest.bytes == '\n' || *rest.bytes == '\t')
			evbuffer_add_printf(out, "%s", *rest.bytes == '\n' ? feed : tab);
		else
			evbuffer_add(out, rest.bytes, 1);
		if (words && text_starts(rest, "]("))
			evbuffer_add_printf(out, " ");
	}
	return text_drain(out, NULL);
}

char *escape_words(const char *text)
{
	return escape(text, true, "\n", "\t");
}

char *escape_code(const char *text)
{
	return escape(text, false, "\n", "\t");
}

char *escape_line(const char *text)
{
	return escape(text, true, "\\n", "\\t");
}

char *escape_flat(const char *text)
{
	return escape(text, true, " ", " ");
}

/* --- formats ---------------------------------------------------------------------------- */

void escape_xml(const char *text, struct evbuffer *out)
{
	for (; *text; text++)
		if (strchr("&<>\"'\n\t", *text))
			evbuffer_add_printf(out, "&#%d;", *text);
		else
			evbuffer_add(out, text, 1);
}

static void add_encoded(const char *text, const char *special, struct evbuffer *out)
{
	for (; *text; text++)
		if (strchr(special, *text))
			evbuffer_add_printf(out, "%%%02X", (unsigned char)*text);
		else
			evbuffer_add(out, text, 1);
}

void escape_command(const char *text, struct evbuffer *out)
{
	add_encoded(text, "%\r\n", out);
}

void escape_property(const char *text, struct evbuffer *out)
{
	add_encoded(text, "%\r\n:,", out);
}

void escape_uri(const char *path, struct evbuffer *out)
{
	for (; *path; path++)
		if (isalnum((unsigned char)*path) || strchr("-._~/+@=,", *path))
			evbuffer_add(out, path, 1);
		else
			evbuffer_add_printf(out, "%%%02X", (unsigned char)*path);
}

/* Whether what stands before it on its line makes a list, a heading or an address of it. */
static bool means_something(const char *line, const char *at)
{
	size_t before = (size_t)(at - line);
	size_t digits = strspn(line, " 0123456789");

	return strspn(line, " ") == before || (strchr(".)", *at) && digits == before) ||
	       (*at == '.' && before >= 3 && !strncasecmp(at - 3, "www", 3));
}

void escape_markdown(const char *text, struct evbuffer *out)
{
	const char *line = text;

	for (; *text; text++) {
		if (*text == '\n') {
			evbuffer_add_printf(out, "<br>\n");
			line = text + 1;
		} else if (*text == '@' || *text == '#') { /* nobody is called by it */
			evbuffer_add_printf(out, "&#%d;<!-- -->", *text);
		} else if (ispunct((unsigned char)*text) &&
			   (!strchr(".,()-'\";?/=%+", *text) || means_something(line, text))) {
			evbuffer_add_printf(out, "&#%d;", *text);
		} else if (*text != ' ' || text != line) {
			evbuffer_add(out, text, 1);
		}
	}
}

static void add_entities(const char *text, struct evbuffer *out)
{
	for (; *text; text++)
		if (strchr("&<>\"'[]!`:@#|\\$~*_{}", *text))
			evbuffer_add_printf(out, "&#%d;", *text);
		else
			evbuffer_add(out, text, 1);
}

void escape_preformatted(const char *text, struct evbuffer *out)
{
	evbuffer_add_printf(out, "<pre>");
	add_entities(text, out);
	evbuffer_add_printf(out, "</pre>\n");
}

void escape_span(const char *text, struct evbuffer *out)
{
	bool plain = *text;

	for (const char *at = text; *at; at++)
		plain = plain && (isalnum((unsigned char)*at) || strchr("_./+-", *at));
	evbuffer_add_printf(out, plain ? "`" : "<code>");
	if (plain)
		evbuffer_add_printf(out, "%s", text);
	else
		add_entities(text, out);
	evbuffer_add_printf(out, plain ? "`" : "</code>");
}

void escape_json(const json_t *value, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *json = evbuffer_new(), *safe = evbuffer_new();
	struct rlmd_text text;

	json_write_line(value, json);
	text_disarm(text_in(json), "\\u005b", safe);
	text = text_in(safe);
	for (size_t i = 0; i < text.size; i++)
		if (strchr("<>&", text.bytes[i]))
			evbuffer_add_printf(out, "\\u%04x", (unsigned)text.bytes[i]);
		else
			evbuffer_add(out, text.bytes + i, 1);
}
