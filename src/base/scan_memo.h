/*
 * base/scan_memo.h - what texts consist of that begin like one before.
 *
 * What a model is told first is the same in most requests, up to a few figures near its end; to
 * count it anew was 8 % of a run. So the text that was scanned last is kept, with the state of the
 * scan after every few bytes of it: of the next one only what follows the common beginning is read.
 */
#pragma once

#include "base/text.h"

/* Embed it; zero knows no text. */
struct scan_memo {
	char *text;               /* owned: the last one, as far as it is kept */
	size_t size;              /* of it, in whole steps */
	struct text_scan *states; /* owned: after each step of it */
};

/* The same as a scan of the whole text, ended. */
struct text_scan scan_memo_scan(struct scan_memo *, struct rlmd_text);
void scan_memo_done(struct scan_memo *);
