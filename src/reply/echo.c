/*
 * All of it leads its line, outside of fences, code spans and an open FINAL(. Our headings end a
 * reply that has said anything before them; outputs only one with a block of code before them, for
 * which they pretend to be. A reply that begins with a heading has only repeated it.
 */
#include "reply/echo.h"

#include <string.h>

#include "base/array.h"
#include "reply/markdown.h"

/* The starts of our messages, and of the next message in chat templates. */
static const char *const headings[] = {
	"What happened since your last response", /* turn.txt */
	"If this output answers the task, write",
	"<|im_start|>user",        /* ChatML: Qwen, Yi */
	"<|start_header_id|>user", /* Llama 3 */
	"<|user|>",                /* Phi, Zephyr, GLM */
};

/* Lines that begin an output, whole but for Markdown's decoration. */
static const char *const outputs[] = {
	"<output>", "[stdout]",        "[stderr]",           "[no output]", /* ours */
	"Output:",  "**Output**",      "REPL output:",       "Execution output:",
	"[output]", "<tool_response>", "<execution_result>", /* Hermes, Qwen; CodeAct */
};

/* Languages of fences that hold outputs. */
static const char *const languages[] = {"output", "tool_output", "tool_outputs", "stdout"};

/* Skips digits from `at` on. */
static size_t skip_number(struct rlmd_text text, size_t at)
{
	while (at < text.size && text.bytes[at] >= '0' && text.bytes[at] <= '9')
		at++;
	return at;
}

/* "Turn 2 of 4. Left:", as turn.txt has it. */
static bool is_turn(struct rlmd_text line)
{
	size_t at = strlen("Turn "), end;

	if (!text_starts_caseless(line, "Turn "))
		return false;
	end = skip_number(line, at);
	if (end == at || !text_starts_caseless(text_slice(line, end, line.size), " of "))
		return false;
	at = end + strlen(" of ");
	end = skip_number(line, at);
	return end > at && text_starts_caseless(text_slice(line, end, line.size), ". Left:");
}

/* "[block 3]", as an output of ours begins. */
static bool is_block(struct rlmd_text line)
{
	size_t at = strlen("[block "), end;

	if (!text_starts_caseless(line, "[block "))
		return false;
	end = skip_number(line, at);
	return end > at && end + 1 == line.size && line.bytes[end] == ']';
}

static bool is_heading(struct rlmd_text line)
{
	if (is_turn(line))
		return true;
	for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
		if (text_starts_caseless(line, headings[i]))
			return true;
	return false;
}

static struct rlmd_text undecorated(struct rlmd_text line)
{
	while (line.size && (line.bytes[0] == '#' || line.bytes[0] == '*' || line.bytes[0] == ' '))
		line = text_slice(line, 1, line.size);
	while (line.size && line.bytes[line.size - 1] == '*')
		line.size--;
	return line;
}

static bool is_output(struct rlmd_text line)
{
	struct rlmd_text plain = undecorated(line);

	if (is_block(line) || text_starts_caseless(line, "Observation:")) /* ReAct */
		return true;
	return array_has(outputs, sizeof outputs / sizeof *outputs, line) ||
	       array_has(outputs, sizeof outputs / sizeof *outputs, plain);
}

/* The first fence of an output behind one of code. */
static size_t find_fence(struct rlmd_text text, const struct markdown *md)
{
	bool code = false;

	for (size_t i = 0; i < md->fence_count; i++) {
		const struct fence *fence = &md->fences[i];

		if (code && array_has(languages, sizeof languages / sizeof *languages,
				      fence_info(text, fence)))
			return fence->whole.start;
		code |= fence->language != FENCE_OTHER;
	}
	return text.size;
}

size_t echo_find(struct rlmd_text text, const struct markdown *md)
{
	struct prose prose = {.text = text, .markdown = md};
	size_t end = find_fence(text, md), fence = 0;
	bool code = false, said = false;
	struct range line;

	while (markdown_prose_line(&prose, &line) && line.start < end) {
		size_t start = markdown_line_start(text, line);
		struct rlmd_text words = text_trim(text_slice(text, start, line.end));

		for (; fence < md->fence_count && md->fences[fence].whole.start < start; fence++)
			code |= md->fences[fence].language != FENCE_OTHER;
		said |= fence > 0;
		if ((said && is_heading(words)) || (code && is_output(words)))
			return start;
		said |= words.size > 0;
	}
	return end;
}
