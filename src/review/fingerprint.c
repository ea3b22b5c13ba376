#include "review/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"

enum {
	NEAR = PRINT_AROUND + 2, /* lines that are looked at on either side, for a few may be new */
	LINES_AT_ONCE = 64,      /* that are compared in the time that CODE_WORK_MAX counts one */
};

size_t fingerprint_own(struct code *code, const struct finding *finding, size_t *ret_first)
{
	const struct code_prints *prints = code_prints(code, finding->file);
	size_t first = code_prints_from(prints, finding->first);
	size_t end = code_prints_from(prints, finding->last + 1);

	if (first == end && first)
		first--;
	else if (first == end && end < prints->count)
		end++;
	*ret_first = first;
	return end;
}

static bool is_alone(struct code *code, const struct code_prints *prints, size_t index)
{
	size_t count = 0;

	if (code->work > CODE_WORK_MAX)
		return false;
	code->work += prints->count / LINES_AT_ONCE + 1;
	for (size_t i = 0; i < prints->count && count < 2; i++)
		count += prints->items[i].digest == prints->items[index].digest;
	return count == 1;
}

static void set_print(struct code *code, struct finding *finding)
{
	const struct code_prints *prints = code_prints(code, finding->file);
	struct print *print = xcalloc(1, sizeof *print);
	size_t first, end = fingerprint_own(code, finding, &first), from, to;

	if (end - first > PRINT_LINES)
		end = first + PRINT_LINES;
	from = first > PRINT_AROUND ? first - PRINT_AROUND : 0;
	to = prints->count - end > PRINT_AROUND ? end + PRINT_AROUND : prints->count;
	for (size_t i = from; i < to; i++) {
		print->lines[print->count] = prints->items[i].digest;
		print->alone[print->count++] = i >= first && i < end && is_alone(code, prints, i);
	}
	print->first = first - from;
	print->end = end - from;
	free(finding->print);
	finding->print = print;
}

/* --- for services ------------------------------------------------------------------------- */

static uint64_t longest_line(struct code *code, const struct finding *finding)
{
	const struct code_prints *prints = code_prints(code, finding->file);
	size_t first, end = fingerprint_own(code, finding, &first), best = first;

	for (size_t i = first; i < end; i++)
		if (prints->items[i].size > prints->items[best].size)
			best = i;
	return first < end ? prints->items[best].digest : 0;
}

static size_t ordinal_of(const struct findings *findings, size_t index, const uint64_t *longest)
{
	size_t ordinal = 0;

	for (size_t i = index; i-- > 0 && findings->items[i].file == findings->items[index].file;)
		ordinal += longest[i] == longest[index];
	return ordinal;
}

void fingerprint_all(struct code *code, struct findings *findings)
{
	auto_free uint64_t *longest = xcalloc(findings->count + 1, sizeof *longest);

	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->items[i];
		char line[24], number[24];

		if (finding->anchoring != FINDING_ANCHORED)
			continue;
		set_print(code, finding);
		longest[i] = longest_line(code, finding);
		snprintf(line, sizeof line, "%016" PRIx64, longest[i]);
		snprintf(number, sizeof number, "%zu", ordinal_of(findings, i, longest));
		digest_texts((const struct rlmd_text[]){text_of(finding->file->path), text_of(line),
							text_of(number)},
			     3, finding->fingerprint);
	}
}

/* --- in a file ------------------------------------------------------------------------------ */

char *fingerprint_write(const struct print *print)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	for (size_t i = 0; i <= print->count; i++) {
		size_t edges = (i == print->first) + (i == print->end);

		buffer_add_printf(out, "%.*s", (int)edges, "||");
		if (i < print->count)
			buffer_add_printf(out, "%s%016" PRIx64 "%s", !edges && i ? "," : "",
					  print->lines[i], print->alone[i] ? "+" : "");
	}
	return text_drain(out, NULL);
}

static bool read_line(struct print *print, const char **at)
{
	uint64_t digest = 0;

	if (print->count == sizeof print->lines / sizeof *print->lines)
		return false;
	for (size_t i = 0; i < 16; i++, (*at)++) {
		const char *digits = "0123456789abcdef", *found = strchr(digits, **at);

		if (!**at || !found)
			return false;
		digest = digest << 4 | (uint64_t)(found - digits);
	}
	print->lines[print->count] = digest;
	print->alone[print->count++] = **at == '+';
	*at += **at == '+';
	return true;
}

bool fingerprint_read(struct rlmd_text text, struct print *ret)
{
	auto_free char *copy = text_copy(text);
	struct print print = {0};
	const char *at = copy;

	for (size_t part = 0; part < 3; part++) {
		while (*at && *at != '|') {
			if (!read_line(&print, &at))
				return false;
			at += *at == ',';
		}
		if (part == 0)
			print.first = print.count;
		if (part == 1)
			print.end = print.count;
		if (part < 2 && *at++ != '|')
			return false;
	}
	if (*at || print.end == print.first || print.end - print.first > PRINT_LINES)
		return false;
	*ret = print;
	return true;
}

/* --- its match ------------------------------------------------------------------------------ */

/* Lines as they follow each other in one direction, from the one behind a line on. */
struct print_side {
	const uint64_t *digests;         /* lent; NULL: those of `prints` */
	const struct code_print *prints; /* lent */
	size_t count;
	int step; /* 1 or -1 */
};

static uint64_t line_of(const struct print_side *lines, size_t i)
{
	ptrdiff_t at = ((ptrdiff_t)i + 1) * lines->step;

	return lines->digests ? lines->digests[at] : lines->prints[at].digest;
}

/* How many lines both have, in the same order. */
static size_t count_common(const struct print_side *a, const struct print_side *b)
{
	size_t best[NEAR + 1] = {0};

	for (size_t i = 0; i < a->count && i < NEAR; i++) {
		size_t corner = 0;

		for (size_t k = 0; k < b->count && k < NEAR; k++) {
			size_t above = best[k + 1];

			if (line_of(a, i) == line_of(b, k))
				best[k + 1] = corner + 1;
			else if (best[k] > above)
				best[k + 1] = best[k];
			corner = above;
		}
	}
	return best[b->count < NEAR ? b->count : NEAR];
}

static size_t at_most(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many of the few lines before and after are the same, of how many that could be. */
static size_t count_around(const struct print *print, size_t own, const struct code_prints *prints,
			   size_t at, size_t *ret_most)
{
	size_t after = print->count - own - 1, lines_after = prints->count - at - 1;
	struct print_side a = {print->lines + own, NULL, at_most(own, PRINT_AROUND), -1};
	struct print_side b = {NULL, prints->items + at, at_most(at, NEAR), -1};
	struct print_side c = {print->lines + own, NULL, at_most(after, PRINT_AROUND), 1};
	struct print_side d = {NULL, prints->items + at, at_most(lines_after, NEAR), 1};

	*ret_most = at_most(a.count, b.count) + at_most(c.count, d.count);
	return (a.count && b.count ? count_common(&a, &b) : 0) +
	       (c.count && d.count ? count_common(&c, &d) : 0);
}

/* A line of the print's own that stands there. */
struct candidate {
	size_t own, at, common, most, away;
};

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	size_t left = 2 * a->common + b->most, right = 2 * b->common + a->most;

	return left != right ? left > right : a->away < b->away;
}

static size_t count_of(const struct code_prints *prints, uint64_t digest)
{
	size_t count = 0;

	for (size_t i = 0; i < prints->count; i++)
		count += prints->items[i].digest == digest;
	return count;
}

static void try_line(struct code *code, const struct code_prints *prints, const struct print *print,
		     size_t own, size_t line, struct candidate *best, bool *ret_any)
{
	for (size_t at = 0; at < prints->count; at++) {
		struct candidate one = {.own = own, .at = at};
		size_t number = prints->items[at].line;

		if (prints->items[at].digest != print->lines[own])
			continue;
		code->work++;
		one.common = count_around(print, own, prints, at, &one.most);
		one.away = number > line ? number - line : line - number;
		if (!*ret_any || is_better(&one, best))
			*best = one;
		*ret_any = true;
	}
}

/* The others of its own lines, about as far from that one as they were. */
static void add_others(const struct print *print, const struct code_prints *prints,
		       const struct candidate *best, struct print_match *match)
{
	static const ptrdiff_t about[] = {0, 1, -1, 2, -2};

	for (size_t i = print->first; i < print->end; i++) {
		ptrdiff_t off = (ptrdiff_t)i - (ptrdiff_t)best->own;

		for (size_t k = 0; k < (off ? sizeof about / sizeof *about : 1); k++) {
			ptrdiff_t by = off + about[k];
			size_t at = best->at + (size_t)by;

			if ((off < 0) != (by < 0) || at >= prints->count ||
			    prints->items[at].digest != print->lines[i])
				continue;
			match->own[match->count++] = at;
			break;
		}
	}
}

struct print_match fingerprint_find(struct code *code, const struct code_file *file,
				    const struct print *print, size_t line)
{
	const struct code_prints *prints = code_prints(code, file);
	struct print_match match = {0};
	struct candidate best = {0};
	bool any = false;

	for (size_t own = print->first; own < print->end && code->work <= CODE_WORK_MAX; own++) {
		code->work += prints->count / LINES_AT_ONCE + 1;
		try_line(code, prints, print, own, line, &best, &any);
	}
	if (!any)
		return match;
	match.sure = best.most && 2 * best.common >= best.most;
	match.found = match.sure || !best.most ||
		      (print->alone[best.own] && count_of(prints, print->lines[best.own]) == 1);
	if (match.found)
		add_others(print, prints, &best, &match);
	return match;
}
