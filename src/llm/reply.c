#include "llm/reply.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "llm/failure.h"
#include "llm/key.h"

enum {
	JSON_DEPTH = 64,
	JSON_VALUES =
		100000,    /* jansson takes tens of milliseconds for them; for their text little */
	LOOK_EVERY = 2048, /* bytes after which is looked whether an answer repeats itself */
	PIECE = 256,       /* bytes after which is looked whether an answer is too long */
	PART = 4 << 10,    /* bytes of a string that are taken in one go */
	COUNT_EVERY = 64 << 10, /* bytes whose tokens are counted together */
};

void reply_init(struct reply *reply)
{
	*reply = (struct reply){.cost_reported = -1};
}

void reply_done(struct reply *reply)
{
	bytes_done(&reply->text.bytes);
	bytes_done(&reply->thinking.bytes);
	free(take_pointer(&reply->waiting));
	event_pattern_done(&reply->pattern);
}

bool reply_scan(const struct reply *reply, struct rlmd_text text,
		const struct json_scan_field *fields, struct json_view *views, size_t view_count,
		struct rlmd_error *err)
{
	const struct json_scan_bounds bounds = {.depth = JSON_DEPTH,
						.values = JSON_VALUES,
						.any_number = true,
						.ahead = reply->ahead};

	return json_scan_fields(text, &bounds, fields, views, view_count, err);
}

bool reply_scan_each(struct reply *reply, const struct json_view *array,
		     const struct json_scan_field *fields, struct json_view *views,
		     size_t view_count, reply_element_fn *fn, struct rlmd_error *err)
{
	const struct json_scan_bounds bounds = {
		.depth = JSON_DEPTH, .any_number = true, .ahead = reply->ahead};
	struct json_scan scan;
	struct json_view element;
	bool ok = true;

	if (array->kind != JSON_VIEW_ARRAY)
		return true;
	json_scan_init(&scan, array->text, &bounds);
	json_scan_enter(&scan, JSON_VIEW_ARRAY);
	while (ok && json_scan_element(&scan) && json_scan_value(&scan, &element))
		ok = reply_scan(reply, element.text, fields, views, view_count, err) &&
		     fn(reply, views, err);
	/* Which says what is already known: it is JSON. */
	json_scan_end(&scan, NULL);
	return ok;
}

static struct rlmd_text unbounded(const struct reply_part *part)
{
	return text_slice(bytes_text(&part->bytes), part->bounded, part->bytes.size);
}

static void count_bound(struct reply_part *part)
{
	token_bound_feed(&part->bound, unbounded(part));
	part->bounded = part->bytes.size;
}

/* Nothing is more tokens than bytes: as long as those are not too many, nobody has to look. */
static bool may_be_beyond(const struct reply *reply, size_t more)
{
	const struct reply_part *text = &reply->text, *thinking = &reply->thinking;
	size_t bytes = text->bytes.size - text->bounded + thinking->bytes.size - thinking->bounded +
		       more;
	int64_t most = text->bound.tokens + thinking->bound.tokens + (int64_t)bytes;

	return reply->asked && token_bound_is_beyond(most, reply->asked);
}

/* How much of the text, which goes on with the part, comes before the point at which the reply is
 * clearly beyond what was asked. */
static struct rlmd_text within_asked(struct reply *reply, struct token_bound *bound,
				     struct rlmd_text text)
{
	size_t size = 0;

	count_bound(&reply->text);
	count_bound(&reply->thinking);
	while (reply->asked && size < text.size && !reply->overlong) {
		size_t piece = text.size - size < PIECE ? text.size - size : PIECE;

		token_bound_feed(bound, text_from(text.bytes + size, piece));
		size += piece;
		reply->overlong = token_bound_is_beyond(
			reply->text.bound.tokens + reply->thinking.bound.tokens, reply->asked);
	}
	return reply->overlong ? text_clip(text, size) : text;
}

/*
 * A bill needs the tokens of an answer where the provider counted none, which at the end of
 * megabytes would hold the loop. So what is long is counted while it comes.
 */
static void count_some(struct reply_part *part)
{
	struct rlmd_text text = bytes_text(&part->bytes);

	if (text.size - part->counted < COUNT_EVERY)
		return;
	count_bound(part);
	token_scan_feed(&part->tokens, text_slice(text, part->counted, text.size));
	part->counted = text.size;
}

static int64_t bound_of(const struct reply_part *part)
{
	struct token_bound bound = part->bound;

	token_bound_feed(&bound, unbounded(part));
	return bound.tokens;
}

static int64_t tokens_of(const struct reply_part *part)
{
	struct rlmd_text text = bytes_text(&part->bytes);
	struct token_scan scan = part->tokens;

	token_scan_feed(&scan, text_slice(text, part->counted, text.size));
	return token_estimate(&scan.counts);
}

/* A byte of the text, counted from its end. */
static char back(struct rlmd_text text, size_t distance)
{
	return text.bytes[text.size - 1 - distance];
}

/* Whether some bytes of the end stand before it, too, no further than the longest period. */
static bool end_comes_twice(struct rlmd_text text)
{
	enum { SOME = 16, LONGEST = REPLY_REPEAT_TAIL / REPLY_REPEAT_TIMES };
	const char *end = text.bytes + text.size - SOME;

	return memmem(end - LONGEST, LONGEST + SOME - 1, end, SOME) != NULL;
}

/*
 * By the prefix function of the text read backwards (Knuth, Morris, Pratt): what of a prefix is
 * also its end says how far it can be shifted and stay the same.
 */
size_t reply_period(struct rlmd_text text)
{
	uint16_t border[REPLY_REPEAT_TAIL];
	size_t size = text.size < REPLY_REPEAT_TAIL ? text.size : REPLY_REPEAT_TAIL, shared = 0;

	if (size < REPLY_REPEAT_LEAST || !end_comes_twice(text))
		return 0;
	border[0] = 0;
	for (size_t i = 1; i < size; i++) {
		size_t period;

		while (shared && back(text, i) != back(text, shared))
			shared = border[shared - 1];
		shared += back(text, i) == back(text, shared);
		border[i] = (uint16_t)shared;
		period = i + 1 - shared;
		if (i + 1 >= REPLY_REPEAT_LEAST && period * REPLY_REPEAT_TIMES <= i + 1)
			return period;
	}
	return 0;
}

/* The line at which a text is cut is left whole. */
size_t reply_period_start(struct rlmd_text text, size_t period)
{
	size_t start = text.size - period, end;
	const char *line;

	while (start && text.bytes[start - 1] == text.bytes[start - 1 + period])
		start--;
	end = start + period;
	line = text.bytes[end - 1] == '\n' ? NULL : memchr(text.bytes + end, '\n', period);
	return line ? (size_t)(line + 1 - text.bytes) : text_clip(text, end).size;
}

/* Only the end is looked at, so that a long answer is not gone over again and again. */
static void end_repetition(struct reply *reply, struct reply_part *part)
{
	struct rlmd_text text = bytes_text(&part->bytes), kept;
	size_t before = text.size > REPLY_REPEAT_TAIL ? text.size - REPLY_REPEAT_TAIL : 0;
	size_t period = reply_period(text_slice(text, before, text.size));

	if (!period)
		return;
	reply->repeating = true;
	kept = text_clip(text, reply_period_start(text, period));
	reply->repeated += text_tokens(text_slice(text, kept.size, text.size));
	count_bound(part); /* for it is billed */
	bytes_cut(&part->bytes, kept.size);
	part->bounded = kept.size;
	if (part->counted > kept.size) {
		part->tokens = (struct token_scan){0};
		part->counted = 0;
	}
}

static bool reply_add(struct reply *reply, struct reply_part *part, struct rlmd_text text,
		      struct rlmd_error *err)
{
	size_t before = part->bytes.size;
	bool looked;

	if (reply->overlong || reply->repeating)
		return true;
	looked = may_be_beyond(reply, text.size);
	if (looked)
		text = within_asked(reply, &part->bound, text);
	if (text.size > REPLY_TEXT_MAX - before)
		return error_set(err, RLMD_ERROR_BAD_REPLY, "the answer is longer than %d MiB",
				 REPLY_TEXT_MAX >> 20);
	bytes_add(&part->bytes, text);
	if (looked)
		part->bounded = part->bytes.size;
	count_some(part);
	if (reply->watched && before / LOOK_EVERY < part->bytes.size / LOOK_EVERY)
		end_repetition(reply, part);
	return true;
}

void reply_end_repetition(struct reply *reply)
{
	end_repetition(reply, &reply->text);
	end_repetition(reply, &reply->thinking);
}

bool reply_add_text(struct reply *reply, struct rlmd_text text, struct rlmd_error *err)
{
	return reply_add(reply, &reply->text, text, err);
}

bool reply_add_thinking(struct reply *reply, struct rlmd_text text, struct rlmd_error *err)
{
	return reply_add(reply, &reply->thinking, text, err);
}

bool reply_waits(const struct reply *reply)
{
	return reply->taken < reply->waiting_count;
}

static bool take_some(struct reply *reply, struct reply_string *string, struct rlmd_error *err)
{
	char room[PART];
	struct rlmd_text some = json_view_take(&string->rest, room, sizeof room);

	if (string->is_kept)
		return reply_add(reply, string->part, some, err);
	within_asked(reply, &string->part->bound, some);
	return true;
}

static bool take_long(struct reply *reply, struct reply_part *part, bool is_kept,
		      const struct json_view *view, struct rlmd_error *err)
{
	struct reply_string string = {*view, part, is_kept};
	bool fine = true;

	if (reply->at_once && (view->text.size > reply->at_once || reply_waits(reply))) {
		reply->waiting = xreallocarray(reply->waiting, reply->waiting_count + 1,
					       sizeof *reply->waiting);
		reply->waiting[reply->waiting_count++] = string;
		return true;
	}
	while (fine && string.rest.text.size)
		fine = take_some(reply, &string, err);
	return fine;
}

/* Nearly all are pieces of a stream, of a few bytes. */
static bool take(struct reply *reply, struct reply_part *part, const struct json_view *view,
		 struct rlmd_error *err)
{
	if (!json_view_has_text(view))
		return true;
	if (!view->escaped && view->text.size <= PART && !reply_waits(reply))
		return reply_add(reply, part, view->text, err);
	return take_long(reply, part, true, view, err);
}

bool reply_take_text(struct reply *reply, const struct json_view *view, struct rlmd_error *err)
{
	return take(reply, &reply->text, view, err);
}

bool reply_take_thinking(struct reply *reply, const struct json_view *view, struct rlmd_error *err)
{
	return take(reply, &reply->thinking, view, err);
}

static struct json_view as_string(struct rlmd_text text)
{
	return (struct json_view){.kind = JSON_VIEW_STRING, .text = text};
}

/* Streams give the name once, and then the arguments in pieces; some repeat it with each. */
static bool begins_call(struct reply *reply, const struct json_view *index,
			const struct json_view *name)
{
	int64_t number = json_view_integer(index, -1);
	bool same = number >= 0 && reply->calling && number == reply->call_index;

	reply->call_index = number;
	return json_view_has_text(name) && !same;
}

enum { CALL_INDEX, CALL_FUNCTION, CALL_NAME, CALL_ARGUMENTS, CALL_VIEWS };

static bool take_call(struct reply *reply, const struct json_view *views, struct rlmd_error *err)
{
	const struct json_view open = as_string(text_of("\n[TOOL_CALLS]"));
	const struct json_view behind = as_string(text_of("[ARGS]"));
	struct json_view body = views[CALL_ARGUMENTS];

	if (begins_call(reply, &views[CALL_INDEX], &views[CALL_NAME])) {
		reply->calling = true;
		if (!reply_take_text(reply, &open, err) ||
		    !reply_take_text(reply, &views[CALL_NAME], err) ||
		    !reply_take_text(reply, &behind, err))
			return false;
	}
	if (body.kind == JSON_VIEW_OBJECT)
		body = as_string(body.text);
	if (reply->calling)
		return reply_take_text(reply, &body, err);
	reply_pass(reply, &body);
	return true;
}

bool reply_take_calls(struct reply *reply, const struct json_view *calls, struct rlmd_error *err)
{
	static const struct json_scan_field function[] = {
		{"name", CALL_NAME}, {"arguments", CALL_ARGUMENTS}, {0}};
	static const struct json_scan_field fields[] = {
		{"index", CALL_INDEX}, {"function", CALL_FUNCTION, .inside = function}, {0}};
	struct json_view views[CALL_VIEWS];

	return reply_scan_each(reply, calls, fields, views, CALL_VIEWS, take_call, err);
}

void reply_pass(struct reply *reply, const struct json_view *view)
{
	if (json_view_has_text(view))
		take_long(reply, &reply->thinking, false, view, NULL);
}

bool reply_go_on(struct reply *reply, size_t bytes, struct rlmd_error *err)
{
	while (bytes && reply_waits(reply)) {
		struct reply_string *string = &reply->waiting[reply->taken];
		size_t before = string->rest.text.size, done;

		if (!take_some(reply, string, err))
			return false;
		done = before - string->rest.text.size;
		bytes -= done < bytes ? done : bytes;
		reply->taken += done == before;
	}
	return true;
}

void reply_expect(struct reply *reply, struct rlmd_text bytes, bool alone,
		  const struct json_view *text, const struct json_view *thinking,
		  const struct json_view *idle)
{
	bool thinks = json_view_has_text(thinking);

	event_pattern_forget(&reply->pattern);
	reply->pattern_thinks = thinks;
	if (alone && bytes.size && !(thinks && json_view_has_text(text)))
		event_pattern_keep(&reply->pattern, bytes, thinks ? thinking : text, idle);
}

bool reply_take_expected(struct reply *reply, struct rlmd_text bytes, size_t *ret_taken,
			 struct rlmd_error *err)
{
	struct reply_part *part = reply->pattern_thinks ? &reply->thinking : &reply->text;
	size_t taken = 0, used, size;
	char strings[PART];
	struct json_view string;
	bool ok;

	*ret_taken = 0;
	if (reply->finished)
		return true;
	/* Near its bound a reply ends with a whole string. */
	do {
		used = 0;
		while ((size = event_pattern_find(&reply->pattern,
						  text_slice(bytes, taken, bytes.size), &string)) &&
		       string.text.size <= sizeof strings - used &&
		       (!used || !may_be_beyond(reply, used + string.text.size))) {
			used += json_view_copy(&string, strings + used);
			taken += size;
		}
		ok = !used || reply_add(reply, part, text_from(strings, used), err);
	} while (ok && used && size);
	*ret_taken = taken;
	return ok;
}

void reply_refuse(struct reply *reply, const struct json_view *why)
{
	size_t used = strlen(reply->refusal);
	auto_free char *owned = NULL;

	reply_pass(reply, why);
	reply->refused = true;
	text_escape(json_view_text(why, &owned), reply->refusal + used,
		    sizeof reply->refusal - used);
}

/* All events of a stream name it, and most of them as the one before. */
void reply_take_model(struct reply *reply, const struct json_view *view)
{
	bool same = !view->escaped && text_equal(view->text, reply->model);
	auto_free char *owned = NULL;

	if (view->kind == JSON_VIEW_STRING && view->text.size && !same)
		text_escape(json_view_text(view, &owned), reply->model, sizeof reply->model);
}

bool reply_error(struct rlmd_text body, struct rlmd_error *err)
{
	struct failure failure;

	failure_of_body(body, &failure);
	return error_set(err, failure.kind, "%s",
			 *failure.message ? failure.message : rlmd_error_meaning(failure.kind));
}

static double number_of(const struct json_view *view)
{
	double number = -1;

	if (view->kind == JSON_VIEW_INTEGER)
		return (double)json_view_integer(view, 0);
	json_view_number(view, &number);
	return number;
}

bool reply_count(struct reply *reply, const struct json_view *view, int64_t *ret)
{
	double count;

	*ret = 0;
	if (view->kind == JSON_VIEW_NONE || view->kind == JSON_VIEW_NULL)
		return false;
	count = number_of(view);
	if (!(count >= 0 && count <= LLM_COUNT_MAX) || count != floor(count)) {
		reply->usage_absurd = true;
		return false;
	}
	*ret = (int64_t)count;
	return true;
}

/* Some servers count in every event of a stream: of one that was cut, that was not all. */
static bool counted_input(const struct reply *reply)
{
	return reply->usage_seen && reply->usage.input && reply->complete;
}

bool reply_counted(const struct reply *reply)
{
	return counted_input(reply) && reply->usage.output;
}

struct llm_usage reply_usage(const struct reply *reply, int64_t input_estimate)
{
	struct llm_usage usage = reply->usage;
	bool counted = counted_input(reply);
	int64_t output;

	if (reply_counted(reply))
		return usage;
	output = tokens_of(&reply->text) + tokens_of(&reply->thinking) + reply->repeated;
	if (output < bound_of(&reply->text) + bound_of(&reply->thinking))
		output = bound_of(&reply->text) + bound_of(&reply->thinking);
	if (counted && !output)
		return usage;
	if (!usage.input || (reply->usage_absurd && usage.input < input_estimate))
		usage.input = input_estimate;
	if (usage.output < output)
		usage.output = output;
	usage.estimated = true;
	return usage;
}

void reply_tell(struct reply_delta *delta, struct rlmd_text reply, bool whole)
{
	auto_evbuffer struct evbuffer *out = NULL;

	if (!delta->fn || reply.size <= delta->reported)
		return;
	out = buffer_new();
	delta->reported += key_redact_piece(
		delta->key, text_slice(reply, delta->reported, reply.size), whole, out);
	if (evbuffer_get_length(out))
		delta->fn(delta->owner, text_in(out));
}

void reply_tell_again(struct reply_delta *delta)
{
	if (delta->fn && delta->reported)
		delta->fn(delta->owner, (struct rlmd_text){0});
	delta->reported = 0;
}
