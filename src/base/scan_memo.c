#include "base/scan_memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
	STEP = 128,
	KEPT_MAX = 16 << 10, /* bytes of a text: its states take twice as much */
};

/* Steps that the text has in common with the last one. */
static size_t common(const struct scan_memo *memo, struct rlmd_text text)
{
	size_t size = memo->size < text.size ? memo->size : text.size, steps = 0;

	while ((steps + 1) * STEP <= size &&
	       !memcmp(memo->text + steps * STEP, text.bytes + steps * STEP, STEP))
		steps++;
	return steps;
}

static void keep(struct scan_memo *memo, size_t at, const char *bytes, const struct text_scan *scan)
{
	if (!memo->text) {
		memo->text = xcalloc(KEPT_MAX, 1);
		memo->states = xcalloc(KEPT_MAX / STEP, sizeof *memo->states);
	}
	memcpy(memo->text + at, bytes, STEP);
	memo->states[at / STEP] = *scan;
	memo->size = at + STEP;
}

struct text_scan scan_memo_scan(struct scan_memo *memo, struct rlmd_text text)
{
	size_t known = common(memo, text), at = known * STEP;
	size_t most = text.size < KEPT_MAX ? text.size : KEPT_MAX;
	struct text_scan scan = {0};

	if (known)
		scan = memo->states[known - 1];
	for (; at + STEP <= most; at += STEP) {
		text_scan_feed(&scan, text_slice(text, at, at + STEP));
		keep(memo, at, text.bytes + at, &scan);
	}
	text_scan_feed(&scan, text_slice(text, at, text.size));
	text_scan_end(&scan);
	return scan;
}

void scan_memo_done(struct scan_memo *memo)
{
	free(memo->text);
	free(memo->states);
	*memo = (struct scan_memo){0};
}
