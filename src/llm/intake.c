#include "llm/intake.h"

/*
 * What a callback finds at most: some hundred deltas, or a few milliseconds of parsing where they
 * are as short as can be. libcurl reads up to 16 KiB at once, and twice before it looks up, which
 * fits: who sends fast is held only where its words are not taken. To hold and to let go took a
 * tenth of the CPU of a stream that came at once, for libcurl copies what it may not hand over.
 */
enum { ROOM = 32 << 10, HANDED = CURL_MAX_WRITE_SIZE, CHAIN_HEAD = 64 };

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
	intake->held = evbuffer_get_length(intake->bytes) + size > ROOM;
	if (intake->held)
		return CURL_WRITEFUNC_PAUSE;
	/* Events of a stream come one by one, and are read as one piece: no chain of pieces. */
	if (!evbuffer_get_length(intake->bytes))
		evbuffer_expand(intake->bytes, HANDED - CHAIN_HEAD);
	evbuffer_add(intake->bytes, bytes, size);
	intake->size += size;
	*ret_taken = true;
	return size;
}

void intake_resume(struct intake *intake, CURL *easy)
{
	if (!intake->held || evbuffer_get_length(intake->bytes) + HANDED > ROOM)
		return;
	intake->held = false;
	curl_easy_pause(easy, CURLPAUSE_CONT);
}
