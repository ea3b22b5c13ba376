#include "prompt/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "prompt/brief.h"

enum {
	SHARE = 50,        /* per cent of the window, beyond which a conversation is cut down ... */
	TARGET = 25,       /* ... to this much */
	OBSERVATIONS = 20, /* per cent of the window for what one turn tells */
	SUMMARY = 8,       /* likewise for the summary */
	FRAME = 4,         /* tokens of a message beside its text */
	RESPONSE_MAX =
		4000,     /* characters kept of a long response: the first, and at need the last */
	TURN_MAX = 600,   /* bytes after which a turn's summary takes no further block */
	CODE_MAX = 120,   /* bytes of a block's first lines */
	OUTPUT_MAX = 200, /* bytes of its output's beginning, and of its error's end */
	STEPS = 8,        /* an eighth of the turns that are left is forgotten at a time */
};

enum { BARE = 2 }; /* messages before the first response: the system prompt, the first turn */

void history_init(struct history *history, const struct prompt_set *prompts, const char *model,
		  int64_t window)
{
	*history = (struct history){.head = BARE, .prompts = prompts, .window = window};
	token_estimator_begin(&history->estimator, model);
}

void history_begin(struct history *history, const struct conversation *conversation)
{
	history->head = conversation->count + 1;
}

void history_done(struct history *history)
{
	for (size_t i = 0; i < history->count; i++)
		evbuffer_free(history->turns[i]);
	free(history->turns);
	*history = (struct history){0};
}

void history_add_turn(struct history *history)
{
	history->turns = array_grow(history->turns, history->count, sizeof *history->turns);
	history->turns[history->count] = buffer_new();
	buffer_add_printf(history->turns[history->count], "Turn %zu\n", history->count + 1);
	history->count++;
}

/* The beginning of a text in one line: " | " stands for an end of line. */
static void add_head(struct rlmd_text text, size_t max, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *clean = buffer_new();
	struct rlmd_text head;

	text = text_trim(text);
	text_repair(text_clip(text, max), clean);
	head = text_in(clean);
	for (size_t i = 0, next; i < head.size; i = next) {
		bool space = text_is_space(head.bytes[i]), line = head.bytes[i] == '\n';

		for (next = i + 1; next < head.size && text_is_space(head.bytes[next]) == space;
		     next++)
			line |= head.bytes[next] == '\n';
		if (space)
			buffer_add_printf(out, "%s", line ? " | " : " ");
		else
			buffer_add(out, head.bytes + i, next - i);
	}
	buffer_add_printf(out, "%s\n", text.size > max ? " ..." : "");
}

static size_t lines_of(struct rlmd_text text)
{
	size_t lines = text.size > 0;

	for (size_t i = 0; i < text.size; i++)
		lines += text.bytes[i] == '\n';
	return lines;
}

static void add_output(const char *name, struct rlmd_text text, struct evbuffer *out)
{
	if (!text.size)
		return;
	buffer_add_printf(out, "  %s, %zu bytes: ", name, text.size);
	add_head(text, OUTPUT_MAX, out);
}

void history_add_block(struct history *history, int64_t number, struct rlmd_text code,
		       const struct worker_block *block)
{
	struct evbuffer *turn = history->turns[history->count - 1];

	code = text_trim(code);
	if (evbuffer_get_length(turn) > TURN_MAX)
		return;
	buffer_add_printf(turn, "- block %" PRId64 ", lines of code: %zu: ", number,
			  lines_of(code));
	add_head(code, CODE_MAX, turn);
	add_output("output", block->stdout_text, turn);
	add_output("standard error", block->stderr_text, turn);
	if (block->failed)
		add_output("failed", text_error_line(block->error), turn);
	if (evbuffer_get_length(turn) > TURN_MAX)
		buffer_add_printf(turn, "- (blocks after it are not listed)\n");
}

void history_add_note(struct history *history, struct rlmd_text text)
{
	buffer_add_printf(history->turns[history->count - 1], "- %.*s\n", (int)text.size,
			  text.bytes);
}

static int64_t share_of(const struct history *history, int64_t percent)
{
	return history->window / 100 * percent;
}

/* The token counts of messages. */
static struct token_counts counts_of(const struct conversation *conversation, size_t first,
				     size_t count)
{
	struct token_counts counts = {0};

	for (size_t i = first; i < first + count; i++) {
		struct text_scan scan = conversation_scan(&conversation->messages[i]);

		token_counts_add(&counts, &scan.tokens.counts);
	}
	return counts;
}

/* As counted by the model. */
static int64_t tokens_of(const struct history *history, const struct conversation *conversation,
			 size_t first, size_t count)
{
	struct token_counts counts = counts_of(conversation, first, count);

	return token_estimator_tokens(&history->estimator, &counts) + (int64_t)count * FRAME;
}

static int64_t tokens_in(const struct history *history, struct rlmd_text text)
{
	struct token_scan scan = {0};

	token_scan_feed(&scan, text);
	return token_estimator_tokens(&history->estimator, &scan.counts);
}

static int64_t all_tokens(const struct history *history, const struct conversation *conversation)
{
	return tokens_of(history, conversation, 0, conversation->count);
}

int64_t history_measure(struct history *history, const struct conversation *conversation)
{
	history->counts = counts_of(conversation, 0, conversation->count);
	history->frames = (int64_t)conversation->count * FRAME;
	history->estimate = token_estimator_tokens(&history->estimator, &history->counts) +
			    history->frames;
	return history->estimate;
}

void history_learn(struct history *history, int64_t billed)
{
	token_estimator_learn(&history->estimator, &history->counts, billed - history->frames);
}

void history_clip(const struct history *history, struct rlmd_text observations,
		  struct evbuffer *out)
{
	int64_t tokens, most = share_of(history, OBSERVATIONS);
	struct text_scan scan = {0};

	text_scan_feed(&scan, observations);
	text_scan_end(&scan);
	tokens = token_estimator_tokens(&history->estimator, &scan.tokens.counts);
	brief_clip(observations,
		   tokens > most ? (int64_t)scan.characters * most / tokens : INT64_MAX / 2, out);
}

/* The first response, and behind it the summary, or what it will stand for. From there on the
 * conversation goes on in pairs: a response, the turn after it. */
static size_t summed(const struct history *history)
{
	return history->head + 1;
}

/* Where the response to a turn stands, from 1: the first always behind the head. */
static size_t index_of(const struct history *history, size_t turn)
{
	return history->head + 2 * (turn - (history->taken ? history->taken : 1));
}

/* How many turns must go, so that those after them fit into the target. */
static size_t choose(const struct history *history, const struct conversation *conversation)
{
	size_t take = history->count - 1;
	int64_t room = share_of(history, TARGET) - share_of(history, SUMMARY) -
		       tokens_of(history, conversation, 0, summed(history)) -
		       tokens_of(history, conversation, index_of(history, history->count), 2);

	while (take > history->taken + 1) {
		room -= tokens_of(history, conversation, index_of(history, take), 2);
		if (room < 0)
			break;
		take--;
	}
	return take;
}

/* The latest that fit are told of; what is older, only counted. */
static void sum_up(const struct history *history, size_t take, struct evbuffer *out)
{
	int64_t room = share_of(history, SUMMARY);
	size_t first = take;

	while (first) {
		room -= tokens_in(history, text_in(history->turns[first - 1]));
		if (room < 0)
			break;
		first--;
	}
	if (first)
		buffer_add_printf(out, "Turns 1 to %zu: not listed any more\n", first);
	for (; first < take; first++) {
		struct rlmd_text turn = text_in(history->turns[first]);

		buffer_add(out, turn.bytes, turn.size);
	}
}

static void shorten(struct conversation *conversation, size_t index)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	brief_clip(conversation->messages[index].text, RESPONSE_MAX, out);
	conversation_replace(conversation, index, 1, LLM_ASSISTANT, text_in(out));
}

static void take_out(struct history *history, struct conversation *conversation, size_t take)
{
	auto_evbuffer struct evbuffer *turns = buffer_new(), *summary = buffer_new();

	sum_up(history, take, turns);
	brief_summary(history->prompts, (int64_t)take, text_in(turns), summary);
	conversation_replace(conversation, summed(history),
			     index_of(history, take + 1) - summed(history), LLM_USER,
			     text_in(summary));
	history->taken = take;
	shorten(conversation, history->head);
}

/* There is a turn before the last one that could be taken out. */
static bool has_older(const struct history *history)
{
	return history->count >= 2 && history->count - 1 != history->taken;
}

bool history_compact(struct history *history, struct conversation *conversation)
{
	if (all_tokens(history, conversation) <= share_of(history, SHARE) || !has_older(history))
		return false;
	take_out(history, conversation, choose(history, conversation));
	if (all_tokens(history, conversation) > share_of(history, SHARE))
		shorten(conversation, conversation->count - 2);
	return true;
}

bool history_forget(struct history *history, struct conversation *conversation)
{
	size_t rest;

	if (!has_older(history))
		return false;
	rest = history->count - 1 - history->taken;
	take_out(history, conversation, history->taken + (rest + STEPS - 1) / STEPS);
	return true;
}

void history_shrink(struct history *history)
{
	if (history->window > history->estimate)
		history->window = history->estimate;
}
