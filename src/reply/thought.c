/*
 * 1. A tag opens a thought where it leads its line, outside of fences, code spans and of a FINAL(
 *    that is still open. Elsewhere it is a word that somebody writes about.
 * 2. The first closing tag of the same kind ends it, wherever it stands, but for one in quotes or
 *    backticks. Where there is none, all of the rest is thought.
 *    Harmony's marks, where a server has eaten them, leave "analysis" at the start of the reply and
 *    "assistantfinal" behind the thought; only both together are tags.
 * 3. Servers whose template already holds the opening tag send only the closing one. Where that
 *    leads or ends a line, and nothing was thought before it, all in front of it is thought.
 */
#include "reply/thought.h"

#include <string.h>

#include "reply/markdown.h"

enum { PARTS_MAX = 32 }; /* so that no text takes longer: of this one no end is looked for */

static const struct tags {
	const char *open, *close;
	bool swallowed; /* the opening one may be missing */
} tags[] = {
	{"<think>", "</think>", true},           /* DeepSeek-R1, QwQ, Qwen3, GLM, MiniMax */
	{"<thinking>", "</thinking>", true},     /* Claude, where a prompt asked for it */
	{"<thought>", "</thought>", true},       /* Gemma and Gemini's OpenAI protocol */
	{"<reasoning>", "</reasoning>", true},   /* models trained by the recipe of GRPO */
	{"<seed:think>", "</seed:think>", true}, /* Seed-OSS */
	{"[THINK]", "[/THINK]", true},           /* Magistral */
	{"\xe2\x97\x81think\xe2\x96\xb7", "\xe2\x97\x81/think\xe2\x96\xb7", true}, /* Kimi */
	{"<|START_THINKING|>", "<|END_THINKING|>", true},     /* Cohere's Command */
	{"<|begin_of_thought|>", "<|end_of_thought|>", true}, /* OpenThinker, Sky-T1 */
	{"<|channel|>analysis<|message|>", "<|end|>", false}, /* gpt-oss: harmony */
	{"<scratch_pad>", "</scratch_pad>", false},           /* Hermes 2 Pro */
	{"<scratchpad>", "</scratchpad>", false},        /* Claude, where a prompt asked for it */
	{"<reflection>", "</reflection>", false},        /* Reflection */
	{"<analysis>", "</analysis>", false},            /* Claude, as above */
	{"<|thinking|>", "<|/thinking|>", false},        /* Phi */
	{"<|inner_prefix|>", "<|inner_suffix|>", false}, /* Apertus */
	{"Here is my thought process:", "Here is my response:", false}, /* Granite 3.2 */
};

#define TAGS (sizeof tags / sizeof *tags)

static const char first_bytes[] = "<[\xe2Hha";

/* A tag in the text. */
struct found {
	const struct tags *tags; /* NULL: none */
	bool opens;
	size_t start, end;
};

static bool is_blank(struct rlmd_text text, size_t start, size_t end)
{
	return !text_trim(text_slice(text, start, end)).size;
}

/* Harmony's, without its marks. */
static const struct tags eaten = {"analysis", "assistantfinal", false};

static bool opens_at(struct rlmd_text text, size_t at, struct found *ret)
{
	for (size_t i = 0; i < TAGS; i++)
		if (text_starts_caseless(text_slice(text, at, text.size), tags[i].open)) {
			*ret = (struct found){&tags[i], true, at, at + strlen(tags[i].open)};
			return true;
		}
	if (at || !text_starts(text, eaten.open) || !text_find(text, eaten.close))
		return false;
	*ret = (struct found){&eaten, true, at, at + strlen(eaten.open)};
	return true;
}

static bool is_quote(char c)
{
	return c == '`' || c == '\'' || c == '"';
}

/* The place of the closing tag from `at` up to `end`; `end`: none. */
static size_t find_close(struct rlmd_text text, size_t at, size_t end, const struct tags *tag)
{
	size_t from = at;

	for (; at < end; at++) {
		const char *next = memchr(text.bytes + at, tag->close[0], end - at);

		if (!next)
			break;
		at = (size_t)(next - text.bytes);
		if (text_starts_caseless(text_slice(text, at, end), tag->close) &&
		    (at == from || !is_quote(text.bytes[at - 1])))
			return at;
	}
	return end;
}

/* Rule 3, of one line. */
static bool closes_on(struct rlmd_text text, struct range line, struct found *ret)
{
	for (size_t i = 0; i < TAGS; i++) {
		size_t at = tags[i].swallowed ? find_close(text, line.start, line.end, &tags[i])
					      : line.end;
		size_t end = at + strlen(tags[i].close);

		if (at == line.end)
			continue;
		if (!is_blank(text, line.start, at) &&
		    (!is_blank(text, end, line.end) || is_blank(text, end, text.size)))
			continue;
		*ret = (struct found){&tags[i], false, at, end};
		return true;
	}
	return false;
}

/* The first tag that counts. */
static struct found find_tag(struct rlmd_text text, bool first)
{
	struct markdown md;
	struct prose prose = {.text = text, .markdown = &md};
	struct found found = {0};
	struct range line;

	markdown_read(text, &md);
	while (!found.tags && markdown_prose_line(&prose, &line))
		if (!opens_at(text, markdown_line_start(text, line), &found) && first)
			closes_on(text, line, &found);
	markdown_done(&md);
	return found;
}

/* Whether there is anything to look for. */
static bool has_tags(struct rlmd_text text)
{
	for (size_t at = 0; at < text.size; at++)
		if (strchr(first_bytes, text.bytes[at]) && text.bytes[at]) {
			struct rlmd_text rest = text_slice(text, at, text.size);

			for (size_t i = 0; i < TAGS; i++)
				if (text_starts_caseless(rest, tags[i].open) ||
				    text_starts_caseless(rest, tags[i].close))
					return true;
			if (text_starts(rest, eaten.close))
				return true;
		}
	return false;
}

static void add(struct rlmd_text text, size_t start, size_t end, char *out, size_t *size)
{
	memcpy(out + *size, text.bytes + start, end - start);
	*size += end - start;
}

static void add_thought(struct rlmd_text text, size_t start, size_t end, char *out, size_t *size)
{
	if (is_blank(text, start, end))
		return;
	add(text, start, end, out, size);
	out[(*size)++] = '\n';
}

void thought_split(struct rlmd_text text, char *said, char *thoughts, struct thought *ret)
{
	size_t at = 0;

	*ret = (struct thought){0};
	for (int part = 0; part < PARTS_MAX && at < text.size; part++) {
		struct rlmd_text rest = text_slice(text, at, text.size);
		struct found tag = {0};

		if (has_tags(rest))
			tag = find_tag(rest, !part);
		if (!tag.tags)
			break;
		if (tag.opens) {
			bool last = part + 1 == PARTS_MAX;
			size_t end = last ? rest.size
					  : find_close(rest, tag.end, rest.size, tag.tags);

			add(rest, 0, tag.start, said, &ret->said);
			add_thought(rest, tag.end, end, thoughts, &ret->thought);
			ret->open = end == rest.size;
			at = ret->open ? text.size : at + end + strlen(tag.tags->close);
		} else {
			add_thought(rest, 0, tag.start, thoughts, &ret->thought);
			at += tag.end;
		}
	}
	if (at < text.size)
		add(text, at, text.size, said, &ret->said);
}
