#include "trace/trace.h"

#include <openssl/evp.h>
#include <rlmd/rlmd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "trace/lines.h"
#include "trace/tree.h"

enum {
	CALLS_MAX = 20000,    /* that the trace takes */
	TEXTS_MAX = 32 << 20, /* bytes of texts, as JSON; beyond them ... */
	TEXT_SHORT = 200,     /* ... so many characters are kept of each */
	ESCAPED = 6,          /* bytes of a control character in JSON */
};

struct trace {
	trace_kinds kinds; /* to `fn` */
	trace_kinds made;  /* for it and the tree */
	trace_fn *fn;
	void *owner;
	int64_t start;
	bool begun; /* an event was made */
	json_int_t seq;
	size_t calls, text_bytes;
	struct tree *tree; /* owned; NULL: nobody wants it */
};

static const char *const names[] = {
#define TRACE_EVENT(id, name) [TRACE_##id] = (name),
#include "trace/events.def"
#undef TRACE_EVENT
};

enum trace_kind trace_kind_of(const char *name)
{
	enum trace_kind kind = 0;

	while (kind < TRACE_KINDS && strcmp(names[kind], name) != 0)
		kind++;
	return kind;
}

struct trace *trace_new(bool tree, trace_kinds kinds, trace_fn *fn, void *owner)
{
	struct trace *trace = xcalloc(1, sizeof *trace);

	trace->kinds = kinds;
	trace->made = kinds | (tree ? tree_kinds() : 0);
	trace->fn = fn;
	trace->owner = owner;
	trace->start = clock_ms();
	trace->tree = tree ? tree_new() : NULL;
	return trace;
}

void trace_free(struct trace *trace)
{
	if (!trace)
		return;
	tree_free(trace->tree);
	free(trace);
}

bool trace_hears(struct trace *trace, enum trace_kind kind)
{
	bool heard = trace->made & trace_only(kind);

	trace->seq += !heard;
	return heard;
}

int64_t trace_ms(const struct trace *trace, int64_t clock)
{
	return clock - trace->start;
}

static void begin(struct trace *trace, json_t *event)
{
	char date[CLOCK_DATE_SIZE];

	clock_format_date(clock_wall_ms() - trace_ms(trace, clock_ms()), date);
	json_put(event, "formatVersion", json_make_integer(TRACE_FORMAT));
	json_put(event, "program", json_make_string("rlmd " RLMD_VERSION));
	json_put(event, "startedAt", json_make_string(date));
	trace->begun = true;
}

void trace_event(struct trace *trace, enum trace_kind kind, json_t *event)
{
	if (!trace->begun)
		begin(trace, event);
	json_put(event, "seq", json_make_integer(trace->seq++));
	json_put(event, "ms", json_make_integer(trace_ms(trace, clock_ms())));
	if (trace->tree)
		tree_feed(trace->tree, event);
	if (trace->kinds & trace_only(kind))
		trace->fn(trace->owner, kind, event);
	json_decref(event);
}

void trace_run(struct trace *trace, enum trace_kind kind, const char *run, const char *fmt, ...)
{
	json_t *object = json_make("{s:s, s:s}", "event", names[kind], "run", run);
	json_t *members;
	va_list args;

	va_start(args, fmt);
	members = json_vmake(fmt, args);
	va_end(args);
	json_update_missing(object, members);
	json_decref(members);
	trace_event(trace, kind, object);
}

bool trace_admit_call(struct trace *trace)
{
	return trace->calls < CALLS_MAX && ++trace->calls;
}

static size_t weight(struct rlmd_text text, int64_t max)
{
	size_t bytes = 0;

	for (size_t i = 0; i < text.size && (int64_t)i < max; i++)
		bytes += (unsigned char)text.bytes[i] < ' ' ? ESCAPED : 1;
	return bytes;
}

int64_t trace_admit_text(struct trace *trace, struct rlmd_text text, int64_t max)
{
	if (trace->text_bytes >= TEXTS_MAX)
		return max < TEXT_SHORT ? max : TEXT_SHORT;
	trace->text_bytes += weight(text, max);
	return max;
}

json_t *trace_tree(const struct trace *trace)
{
	return trace->tree ? tree_root(trace->tree) : NULL;
}

static void format_uuid(unsigned char b[static 16], int version, char out[static 37])
{
	b[6] = (unsigned char)((b[6] & 0x0f) | version << 4);
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
}

void trace_uuid(char out[static 37])
{
	unsigned char b[16];

	if (getrandom(b, sizeof b, 0) != sizeof b)
		abort();
	format_uuid(b, 4, out);
}

void trace_uuid_of(struct rlmd_text text, char out[static 37])
{
	unsigned char hash[EVP_MAX_MD_SIZE];

	if (!EVP_Digest(text.bytes, text.size, hash, NULL, EVP_sha256(), NULL))
		alloc_failed();
	format_uuid(hash, 8, out);
}
