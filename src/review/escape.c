#include "review/escape.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"

enum { COMMIT_DIGITS = 7 }; /* GitHub and GitLab take so many for a commit */

/* --- words ------------------------------------------------------------------------------ */

/* `feed` and `tab`: what stands in their places. */
static char *escape(const char *text, bool words, const char *feed, const char *tab)
{
	auto_evbuffer struct evbuffer *seen = buffer_new(), *safe = buffer_new();
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct rlmd_text rest;

	text_escape_lines(text_of(text), seen);
	text_disarm(text_in(seen), "\\x5b", safe);
	for (rest = text_in(safe); rest.size; rest = text_slice(rest, 1, rest.size)) {
		if (*rest.bytes == '\n' || *rest.bytes == '\t')
			buffer_add_printf(out, "%s", *rest.bytes == '\n' ? feed : tab);
		else
			buffer_add(out, rest.bytes, 1);
		if (words && text_starts(rest, "]("))
			buffer_add_printf(out, " ");
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
			buffer_add_printf(out, "&#%d;", *text);
		else
			buffer_add(out, text, 1);
}

static void add_encoded(const char *text, const char *special, struct evbuffer *out)
{
	for (; *text; text++)
		if (strchr(special, *text))
			buffer_add_printf(out, "%%%02X", (unsigned char)*text);
		else
			buffer_add(out, text, 1);
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
			buffer_add(out, path, 1);
		else
			buffer_add_printf(out, "%%%02X", (unsigned char)*path);
}

/* Whether what stands before it on its line makes a list or a heading of it. */
static bool means_something(const char *line, const char *at)
{
	size_t before = (size_t)(at - line);
	size_t digits = strspn(line, " 0123456789");

	return strspn(line, " ") == before || (strchr(".)", *at) && digits == before);
}

/*
 * Services make links without any markup: of what looks like a host (www.a.example), an address
 * (http://..., a@b.example), a name of somebody (@a), a number of theirs (#1, !1, GH-1) or a commit
 * (7 digits or more of hexadecimal). They decode entities before they look, but never look across
 * a comment, which nobody sees. `hex`: how many such digits were before.
 */
static void keep_apart(const char *text, const char *at, size_t *hex, struct evbuffer *out)
{
	size_t before = (size_t)(at - text);
	bool letter = isalnum((unsigned char)*at);
	bool joined = before > 1 && isalnum((unsigned char)at[-2]);

	*hex = isxdigit((unsigned char)*at) ? *hex + 1 : 0;
	if ((before && *at != ' ' && strchr("@#!$%~&^:", at[-1])) ||
	    (joined && letter && at[-1] == '.') ||
	    (*at == '.' && before > 2 && !strncasecmp(at - 3, "www", 3)) ||
	    (joined && isdigit((unsigned char)*at) && at[-1] == '-') || *hex >= COMMIT_DIGITS) {
		buffer_add_printf(out, "<!-- -->");
		*hex = *hex > 0;
	}
}

void escape_markdown(const char *text, struct evbuffer *out)
{
	const char *line = text;
	size_t hex = 0;

	for (; *text; text++) {
		keep_apart(line, text, &hex, out);
		if (*text == '\n') {
			buffer_add_printf(out, "<br>\n");
			line = text + 1;
		} else if (ispunct((unsigned char)*text) &&
			   (!strchr(".,()-'\";?/=+", *text) || means_something(line, text))) {
			buffer_add_printf(out, "&#%d;", *text);
		} else if (*text != ' ' || text != line) {
			buffer_add(out, text, 1);
		}
	}
}

static void add_entity(const char *at, struct evbuffer *out)
{
	if (strchr("&<>\"'[]!`:@#|\\$~*_{}", *at))
		buffer_add_printf(out, "&#%d;", *at);
	else
		buffer_add(out, at, 1);
}

/* In it nobody looks for links: not GitHub, not GitLab, and Markdown ends only behind it. */
void escape_preformatted(const char *text, struct evbuffer *out)
{
	buffer_add_printf(out, "<pre>");
	for (; *text; text++)
		add_entity(text, out);
	buffer_add_printf(out, "</pre>\n");
}

void escape_span(const char *text, struct evbuffer *out)
{
	bool plain = *text;
	size_t hex = 0;

	for (const char *at = text; *at; at++)
		plain = plain && (isalnum((unsigned char)*at) || strchr("_./+-", *at));
	if (plain) {
		buffer_add_printf(out, "`%s`", text);
		return;
	}
	buffer_add_printf(out, "<code>");
	for (const char *at = text; *at; at++) {
		keep_apart(text, at, &hex, out);
		add_entity(at, out);
	}
	buffer_add_printf(out, "</code>");
}

void escape_json(const json_t *value, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *json = buffer_new(), *safe = buffer_new();
	struct rlmd_text text;

	json_write_line(value, json);
	text_disarm(text_in(json), "\\u005b", safe);
	text = text_in(safe);
	for (size_t i = 0; i < text.size; i++)
		if (strchr("<>&", text.bytes[i]))
			buffer_add_printf(out, "\\u%04x", (unsigned)text.bytes[i]);
		else
			buffer_add(out, text.bytes + i, 1);
}
