#include "review/fingerprint.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "review/code.h"

enum { AROUND = 3 }; /* lines before and after */

static void add_line(struct evbuffer *out, struct rlmd_text line)
{
	buffer_add(out, line.bytes, line.size);
	buffer_add(out, "\n", 1);
}

static void add_lines(struct evbuffer *out, const struct finding *finding)
{
	for (size_t line = finding->first; line <= finding->last; line++)
		add_line(out, code_line_trimmed(finding->file, line));
}

static void add_before(struct evbuffer *out, const struct finding *finding)
{
	size_t found = 0;

	for (size_t line = finding->first; line > 1 && found < AROUND; line--) {
		struct rlmd_text text = code_line_trimmed(finding->file, line - 1);

		if (text.size && ++found)
			add_line(out, text);
	}
	add_line(out, text_of(""));
}

static void add_after(struct evbuffer *out, const struct finding *finding)
{
	size_t found = 0;

	for (size_t line = finding->last; line < finding->file->lines && found < AROUND; line++) {
		struct rlmd_text text = code_line_trimmed(finding->file, line + 1);

		if (text.size && ++found)
			add_line(out, text);
	}
}

static void set(struct finding *finding, size_t ordinal)
{
	auto_evbuffer struct evbuffer *lines = buffer_new(), *around = buffer_new();
	char number[24];

	snprintf(number, sizeof number, "%zu", ordinal);
	add_lines(lines, finding);
	add_before(around, finding);
	add_lines(around, finding);
	add_after(around, finding);
	digest_texts((const struct rlmd_text[]){text_of(finding->rule),
						text_of(finding->file->path), text_in(lines),
						text_of(number)},
		     4, finding->fingerprint);
	digest_texts((const struct rlmd_text[]){text_of(finding->rule), text_in(around)}, 2,
		     finding->surroundings);
}

/* How many before it in the list would have the same fingerprint without their number. */
static size_t ordinal_of(const struct findings *findings, size_t index, char (*plain)[DIGEST_SIZE])
{
	size_t ordinal = 0;

	for (size_t i = index; i-- > 0 && findings->items[i].file == findings->items[index].file;)
		ordinal += !memcmp(plain[i], plain[index], DIGEST_SIZE);
	return ordinal;
}

void fingerprint_all(struct findings *findings)
{
	auto_free char(*plain)[DIGEST_SIZE] = xcalloc(findings->count + 1, sizeof *plain);

	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->items[i];

		if (finding->place != FINDING_ANCHORED)
			continue;
		set(finding, 0);
		memcpy(plain[i], finding->fingerprint, DIGEST_SIZE);
		set(finding, ordinal_of(findings, i, plain));
	}
}
