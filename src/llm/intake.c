#include "llm/intake.h"

/* libcurl hands over at most 16 KiB at once, so that a callback finds at most twice as much: some
 * hundred deltas, or a few milliseconds of parsing where they are as short as can be. */
enum { ENOUGH = 16 << 10 };

void intake_init(struct intake *intake, size_t max)
{
	*intake = (struct intake){.bytes = evbuffer_new(), .max = max};
}

void intake_done(struct intake *intake)
{
	evbuffer_free(intake->bytes);
}

size_t intake_add(struct intake *intake, const char *bytes, size_t size, bool *ret_taken)
{
	*ret_taken = false;
	if (size > intake->max - intake->size)
		return 0;
	intake->held = evbuffer_get_length(intake->bytes) >= ENOUGH;
	if (intake->held)
		return CURL_WRITEFUNC_PAUSE;
	evbuffer_add(intake->bytes, bytes, size);
	intake->size += size;
	*ret_taken = true;
	return size;
}

void intake_resume(struct intake *intake, CURL *easy)
{
	if (!intake->held || evbuffer_get_length(intake->bytes) >= ENOUGH)
		return;
	intake->held = false;
	curl_easy_pause(easy, CURLPAUSE_CONT);
}
