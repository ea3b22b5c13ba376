/*
 * review/escape.h - a stranger's words in reports: they are seen as what they are, and do nothing.
 *
 * Texts of models and repositories go through escape_words() or escape_code() first, which no
 * report leaves out; then through what the report's own format takes for its own.
 */
#pragma once

#include <jansson.h>

#include "base/text.h"

struct evbuffer;

/*
 * New: without control characters and others that nobody sees (base/text.h), line feeds and tabs
 * aside; with no command of a CI service that would be one anywhere in a line (text_disarm()); of
 * words also with no "](", by which SARIF and Markdown know links and images.
 */
char *escape_words(const char *);
char *escape_code(const char *);
char *escape_line(const char *); /* names, on one line: a line feed is \\n */
char *escape_flat(const char *); /* words, on one line: a line feed is a blank */

/* All append. Their arguments have gone through one of the above. */
void escape_xml(const char *, struct evbuffer *out);      /* also between quotes */
void escape_command(const char *, struct evbuffer *out);  /* the data of a workflow command */
void escape_property(const char *, struct evbuffer *out); /* one of its properties */
void escape_uri(const char *path, struct evbuffer *out);  /* a relative reference */
/* In Markdown of GitHub and GitLab; nothing in it is a link or calls anybody. */
void escape_markdown(const char *, struct evbuffer *out);     /* as text of a paragraph */
void escape_preformatted(const char *, struct evbuffer *out); /* as lines of code, in Markdown */
void escape_span(const char *, struct evbuffer *out);         /* as code in a line of Markdown */

/* Appends JSON in which nothing ends a script of HTML, or is a command in a log. */
void escape_json(const json_t *, struct evbuffer *out);
