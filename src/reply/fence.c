#include "reply/fence.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum {
	TAB_STOP = 4,
	CLOSING_INDENT_MAX = 3,
	TRIPLE = 3,     /* quotes in a row that delimit a long string of Python */
	FENCE_MIN = 3,  /* backticks or tildes */
	TRIES_MAX = 32, /* fences behind words that were none, so that no text takes longer */
};

/* Three or more backticks or tildes. */
struct delimiter {
	char character;
	size_t length;
	size_t columns;        /* in front of it, or of the words that it stands behind */
	struct rlmd_text info; /* behind it, trimmed */
	size_t at;             /* in its line */
	bool behind_words;     /* a fence perhaps, but inline code, or talk about fences, as well */
};

struct fence_reader {
	struct rlmd_text text;
	struct fence *fences; /* owned */
	size_t count;
	bool open;
	size_t tries;
	bool in_span;   /* a line of this paragraph left three or more backticks open */
	size_t wrapped; /* length of a fence around other fences, which is none; 0: there is none */
};

/* Where a fence ends. */
struct ending {
	enum { NOWHERE, UNCLOSED, ON_CODE, ON_ITS_OWN } kind; /* NOWHERE: it was none */
	size_t body, whole;
};

/* Skips blanks from `at` on; `columns` moves on by the width that they have. */
static size_t skip_blanks(struct rlmd_text line, size_t at, size_t *columns)
{
	for (; at < line.size; at++)
		if (line.bytes[at] == ' ')
			*columns += 1;
		else if (line.bytes[at] == '\t')
			*columns += TAB_STOP - *columns % TAB_STOP;
		else
			break;
	return at;
}

/* How long the list marker at `at` is; 0 where there is none. */
static size_t list_marker(struct rlmd_text line, size_t at)
{
	size_t end = at;

	while (end < line.size && end - at < 9 && line.bytes[end] >= '0' && line.bytes[end] <= '9')
		end++;
	if (end < line.size && memchr(end > at ? ".)" : "-+*", line.bytes[end], end > at ? 2 : 3))
		end++;
	else
		return 0;
	return end < line.size && (line.bytes[end] == ' ' || line.bytes[end] == '\t') ? end - at
										      : 0;
}

/* The line without its end, be that a line feed or CRLF. */
static struct rlmd_text bare(struct rlmd_text line)
{
	if (line.size && line.bytes[line.size - 1] == '\n')
		line.size--;
	if (line.size && line.bytes[line.size - 1] == '\r')
		line.size--;
	return line;
}

/* Where the line's content begins, behind blanks and list markers; `columns` as above. */
static size_t content_start(struct rlmd_text line, bool in_list, size_t *columns)
{
	size_t at = skip_blanks(line, 0, columns), marker;

	while (in_list && (marker = list_marker(line, at))) {
		*columns += marker;
		at = skip_blanks(line, at + marker, columns);
	}
	return at;
}

static size_t run_length(struct rlmd_text line, size_t at)
{
	size_t end = at;

	while (end < line.size && line.bytes[end] == line.bytes[at])
		end++;
	return end - at;
}

static bool delimiter_read(struct rlmd_text line, bool in_list, struct delimiter *ret)
{
	size_t columns = 0, at = content_start(line, in_list, &columns), length;

	if (at == line.size || (line.bytes[at] != '`' && line.bytes[at] != '~'))
		return false;
	length = run_length(line, at);
	*ret = (struct delimiter){
		.character = line.bytes[at],
		.length = length,
		.columns = columns,
		.info = text_trim(text_slice(line, at + length, line.size)),
		.at = at,
	};
	return length >= FENCE_MIN;
}

/* Backticks behind the fence make the line a paragraph with an inline span. */
static bool opens(const struct delimiter *delimiter)
{
	return delimiter->character == '~' || !delimiter->info.size ||
	       !memchr(delimiter->info.bytes, '`', delimiter->info.size);
}

/* The token by which a chat template ends a message, where a server has left it in the text. */
static bool ends_message(struct rlmd_text info)
{
	static const char *const endings[] = {
		"<|im_end|>",
		"<|eot_id|>",
		"<|eom_id|>", /* ChatML; Llama 3 */
		"<|end|>",
		"</s>",
		"<|endoftext|>", /* Phi; Mistral; GPT-2, Qwen */
		"<end_of_turn>",
		"<end_code>", /* Gemma; smolagents */
		"<\xef\xbd\x9ctool\xe2\x96\x81"
		"call\xe2\x96\x81"
		"end\xef\xbd\x9c>", /* DeepSeek V3, of a call */
	};

	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		if (text_starts(info, endings[i]))
			return true;
	return false;
}

static bool closes(const struct delimiter *delimiter, const struct delimiter *opening)
{
	return delimiter->character == opening->character && delimiter->length >= opening->length &&
	       (!delimiter->info.size || ends_message(delimiter->info)) &&
	       delimiter->columns <= opening->columns + CLOSING_INDENT_MAX;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '+' || c == '#' || c == '.';
}

/* The language's name: a word, or Quarto's {python} and Pandoc's {.python}. */
static struct rlmd_text name_of(struct rlmd_text info)
{
	size_t start = 0, size;

	while (start < info.size && start < 2 && info.bytes[start] == "{."[start])
		start++;
	for (size = start; size < info.size && is_word(info.bytes[size]);)
		size++;
	return text_slice(info, start, size);
}

/* python3.11, as prompts name the interpreter that runs */
static bool is_version(struct rlmd_text name)
{
	static const char python[] = "python3.";
	size_t at = strlen(python);

	if (name.size <= at || !text_starts_caseless(name, python))
		return false;
	while (at < name.size && name.bytes[at] >= '0' && name.bytes[at] <= '9')
		at++;
	return at == name.size;
}

static enum fence_language language_of(struct rlmd_text info)
{
	static const char *const names[] = {
		"repl",
		"python",
		"py",
		"python3",
		"py3",
		"ipython",
		"ipython3",
		"python-repl",
		"pycon",     /* highlighters' names of sessions
			      */
		"tool_code", /* Gemma and Gemini */
		"python_repl",
		"python-exec",
		"jupyter",
		"jupyter-python",
		"pyodide",
		"python_exec",
		"python_code",
		"code_interpreter",
		"python_interpreter",
	};
	struct rlmd_text name = name_of(info);

	if (array_has(names, sizeof names / sizeof *names, name) || is_version(name))
		return FENCE_PYTHON;
	return info.size && !text_equal_caseless(name, "code") ? FENCE_OTHER : FENCE_BARE;
}

/* How many times there are at least `least` and at most `most` backticks in a row. */
static size_t count_runs(struct rlmd_text line, size_t least, size_t most)
{
	size_t count = 0;

	for (size_t at = 0; at < line.size; at++) {
		size_t length;

		if (line.bytes[at] != '`')
			continue;
		length = run_length(line, at);
		count += length >= least && length <= most;
		at += length - 1;
	}
	return count;
}

/*
 * Backticks behind words: the last of the line, with nothing or one word behind them. Not in
 * quotes, in brackets, or escaped, as in talk about them; and no end of inline code.
 */
static bool delimiter_read_behind_words(struct rlmd_text line, struct delimiter *ret)
{
	size_t end = line.size, info, at, columns = 0;

	while (end && (line.bytes[end - 1] == ' ' || line.bytes[end - 1] == '\t'))
		end--;
	for (info = end; info && is_word(line.bytes[info - 1]);)
		info--;
	for (at = info; at && line.bytes[at - 1] == '`';)
		at--;
	if (info - at < FENCE_MIN || !at || strchr("\\\"'([{", line.bytes[at - 1]) ||
	    count_runs(text_from(line.bytes, at), info - at, info - at) % 2)
		return false;
	content_start(line, true, &columns);
	*ret = (struct delimiter){
		.character = '`',
		.length = info - at,
		.columns = columns,
		.info = text_slice(line, info, end),
		.at = at,
		.behind_words = true,
	};
	return true;
}

/* A call, an assignment or an import, which words have not. */
static bool looks_like_code(struct rlmd_text text)
{
	if (text_starts(text, "import ") || text_starts(text, "from "))
		return true;
	for (size_t at = 0; at < text.size; at++)
		if (text.bytes[at] == '=' ||
		    (text.bytes[at] == '(' && at && is_word(text.bytes[at - 1])))
			return true;
	return false;
}

/*
 * Strings and comments of Python, line by line: outside of them Python has no backticks, so one
 * that stands there is Markdown's. Zero at the beginning of the source.
 */
struct quoting {
	char quote;  /* that closes the string which the next line begins in; NUL: none */
	bool triple; /* three of them do */
};

static bool has_three(struct rlmd_text line, size_t at)
{
	return line.size - at >= TRIPLE && line.bytes[at + 1] == line.bytes[at] &&
	       line.bytes[at + 2] == line.bytes[at];
}

/* Behind the quotes at `at`, which open a string, close the one that is open, or do neither. */
static size_t pass_quotes(struct quoting *quoting, struct rlmd_text line, size_t at)
{
	bool three = has_three(line, at);

	if (!quoting->quote) {
		*quoting = (struct quoting){line.bytes[at], three};
		return at + (three ? TRIPLE : 1);
	}
	if (quoting->quote != line.bytes[at] || (quoting->triple && !three))
		return at + 1;
	at += quoting->triple ? TRIPLE : 1;
	*quoting = (struct quoting){0};
	return at;
}

/* The offset in the next line, without its end, of the first backtick outside of strings and
 * comments; the line's size where it has none. */
static size_t find_backtick(struct quoting *quoting, struct rlmd_text line)
{
	size_t found = line.size, at = 0;

	while (at < line.size) {
		char c = line.bytes[at];

		if (c == '#' && !quoting->quote)
			break;
		if (c == '"' || c == '\'') {
			at = pass_quotes(quoting, line, at);
			continue;
		}
		if (c == '`' && !quoting->quote && found == line.size)
			found = at;
		at += c == '\\' ? 2 : 1;
	}
	/* Only three quotes, or a backslash at its end, take a string to the next line. */
	if (!quoting->triple && at <= line.size)
		*quoting = (struct quoting){0};
	return found;
}

/* Whether nothing but a closing fence is left of the line from `at` on. */
static bool closes_line(struct rlmd_text line, size_t at, const struct delimiter *opening)
{
	size_t length = run_length(line, at);

	return length >= opening->length &&
	       !text_trim(text_slice(line, at + length, line.size)).size;
}

/*
 * Whether a line of Python ends at its backticks at `at`, with words behind them, which are then
 * prose. On a line of their own one word would be another fence's language.
 */
static bool closes_before_words(struct rlmd_text line, size_t at, const struct delimiter *opening)
{
	size_t length = run_length(line, at), columns = 0;
	struct rlmd_text words = text_trim(text_slice(line, at + length, line.size));

	if (length < opening->length || opening->behind_words ||
	    (words.size && memchr(words.bytes, '`', words.size)))
		return false;
	return skip_blanks(line, 0, &columns) < at ||
	       (words.size && memchr(words.bytes, ' ', words.size));
}

/* The backticks that the line of a body ends with; its size where there are none. */
static size_t last_run(struct rlmd_text line)
{
	size_t end = line.size, at;

	while (end && (line.bytes[end - 1] == ' ' || line.bytes[end - 1] == '\t'))
		end--;
	for (at = end; at && line.bytes[at - 1] == '`';)
		at--;
	return at < end ? at : line.size;
}

/*
 * Of a line of the body that is no closing fence: does it end with one? In Python the first
 * backticks outside of strings and comments do, for they can be nothing else. In another
 * language they may be anything, so such an end counts only where there is no better one; and
 * behind words there is none, for that would be inline code.
 */
static void look_for_end(struct rlmd_text line, const struct delimiter *opening,
			 struct quoting *quoting, size_t start, size_t end, struct ending *ret)
{
	bool python = language_of(opening->info) == FENCE_PYTHON;
	size_t at = python ? find_backtick(quoting, line) : last_run(line);

	if (at < line.size && !(opening->behind_words && !python) &&
	    closes_line(line, at, opening)) {
		bool alone = !text_trim(text_from(line.bytes, at)).size;

		*ret = (struct ending){ON_CODE, alone ? start : start + at, end};
		return;
	}
	if (python && at < line.size && closes_before_words(line, at, opening)) {
		*ret = (struct ending){ON_CODE, start + at, start + at + run_length(line, at)};
		return;
	}
	if (opening->behind_words &&
	    (python ? at < line.size : count_runs(line, opening->length, SIZE_MAX) > 0))
		ret->kind = NOWHERE;
}

/* From the line at `at` on. Another fence that begins before this one has ended says that it had
 * ended before, or was none. In Python, delimiters within a long string end it only where no others
 * behind that string do. */
static struct ending find_end(struct rlmd_text text, size_t at, const struct delimiter *opening)
{
	bool python = language_of(opening->info) == FENCE_PYTHON;
	struct ending ending = {UNCLOSED, text.size, text.size}, quoted = {0};
	struct quoting quoting = {0};

	for (size_t end; at < text.size; at = end) {
		struct rlmd_text line;
		struct delimiter delimiter;

		end = text_line_end(text, at);
		line = bare(text_slice(text, at, end));
		if (delimiter_read(line, false, &delimiter)) {
			if (closes(&delimiter, opening)) {
				if (!python || !quoting.triple || opening->behind_words)
					return (struct ending){ON_ITS_OWN, at, end};
				if (!quoted.kind)
					quoted = (struct ending){ON_ITS_OWN, at, end};
			}
			if (!quoting.triple && delimiter.info.size && opens(&delimiter) &&
			    delimiter.length >= opening->length) {
				if (opening->behind_words)
					return (struct ending){0};
				if (ending.kind == ON_CODE)
					return ending;
			}
		}
		if (opening->character != '`' || ending.kind == ON_CODE)
			continue;
		look_for_end(line, opening, &quoting, at, end, &ending);
		if (!ending.kind || (python && ending.kind == ON_CODE))
			return ending;
	}
	return quoted.kind ? quoted : ending;
}

/*
 * Inline code may look the same where no line of its own closes the fence, and so may words about
 * fences where nothing closes it: then its first line must be code.
 */
static bool is_fence(struct rlmd_text text, size_t body, const struct delimiter *opening,
		     const struct ending *ending)
{
	size_t end = ending->kind == UNCLOSED ? text_line_end(text, body) : ending->body;

	if (!opening->behind_words || ending->kind == ON_ITS_OWN)
		return ending->kind != NOWHERE;
	return ending->kind && language_of(opening->info) == FENCE_PYTHON &&
	       looks_like_code(text_slice(text, body, end));
}

/* The fence that the line at `start` opens, as far as it goes. Returns its end; 0: it opens none.
 */
static size_t read_fence(struct fence_reader *reader, size_t start, size_t body,
			 const struct delimiter *opening)
{
	struct ending ending = find_end(reader->text, body, opening);

	if (!is_fence(reader->text, body, opening, &ending))
		return 0;
	reader->fences = array_grow(reader->fences, reader->count, sizeof *reader->fences);
	reader->fences[reader->count++] = (struct fence){
		.whole = {opening->behind_words ? start + opening->at : start, ending.whole},
		.body = {body, ending.body},
		.columns = opening->columns,
		.language = language_of(opening->info),
	};
	reader->open = ending.kind == UNCLOSED;
	return ending.whole;
}

/* ```python print(1)``` on one line, which CommonMark calls a span. */
static bool read_one_line(struct fence_reader *reader, size_t start, size_t end,
			  const struct delimiter *delimiter)
{
	struct rlmd_text name = name_of(delimiter->info), code = delimiter->info;
	size_t at = (size_t)(code.bytes - reader->text.bytes);

	if (delimiter->character != '`' || language_of(delimiter->info) != FENCE_PYTHON ||
	    last_run(code) != code.size - delimiter->length ||
	    memchr(code.bytes, '`', code.size - delimiter->length) ||
	    name.bytes + name.size == code.bytes + code.size - delimiter->length)
		return false;
	reader->fences = array_grow(reader->fences, reader->count, sizeof *reader->fences);
	reader->fences[reader->count++] = (struct fence){
		.whole = {start, end},
		.body = {(size_t)(name.bytes - reader->text.bytes) + name.size,
			 at + code.size - delimiter->length},
		.columns = delimiter->columns,
		.language = FENCE_PYTHON,
	};
	return true;
}

/* Whether a fence without a language only stands around others: the first of them follows it. */
static bool wraps(const struct fence_reader *reader, size_t body, const struct delimiter *delimiter)
{
	struct rlmd_text text = reader->text;
	struct delimiter next;

	if (delimiter->info.size)
		return false;
	while (body < text.size && text_is_space(text.bytes[body]))
		body++;
	while (body && (text.bytes[body - 1] == ' ' || text.bytes[body - 1] == '\t'))
		body--;
	return delimiter_read(bare(text_slice(text, body, text_line_end(text, body))), false,
			      &next) &&
	       next.character == delimiter->character && next.length >= delimiter->length &&
	       opens(&next) && language_of(next.info) == FENCE_PYTHON;
}

/* The end of what begins at the line from `at` to `end`: of a fence, or the line's. */
static size_t read_line(struct fence_reader *reader, size_t at, size_t end)
{
	struct rlmd_text line = bare(text_slice(reader->text, at, end));
	struct delimiter delimiter;
	size_t after = 0;

	if (delimiter_read(line, true, &delimiter) && opens(&delimiter)) {
		if (reader->wrapped == delimiter.length && !delimiter.info.size)
			reader->wrapped = 0;
		else if (wraps(reader, end, &delimiter))
			reader->wrapped = delimiter.length;
		else
			after = read_fence(reader, at, end, &delimiter);
		after = after ? after : end;
	} else if (delimiter_read(line, true, &delimiter) &&
		   read_one_line(reader, at, end, &delimiter)) {
		after = end;
	} else if (!reader->in_span && reader->tries < TRIES_MAX &&
		   delimiter_read_behind_words(line, &delimiter)) {
		after = read_fence(reader, at, end, &delimiter);
		reader->tries += !after;
	}
	if (after || !text_trim(line).size)
		reader->in_span = false;
	else if (count_runs(line, FENCE_MIN, SIZE_MAX) % 2)
		reader->in_span = !reader->in_span;
	return after ? after : end;
}

struct fence *fences_read(struct rlmd_text text, size_t *ret_count, bool *ret_open)
{
	struct fence_reader reader = {.text = text};

	for (size_t at = 0; at < text.size;)
		at = read_line(&reader, at, text_line_end(text, at));
	*ret_count = reader.count;
	*ret_open = reader.open;
	return reader.fences;
}

/*
 * The columns to take off each line: the fence's own, as CommonMark has it; or
 * those that all lines have in common, for Python refuses a block that is
 * indented as a whole.
 */
static size_t common_columns(struct rlmd_text text, const struct fence *fence)
{
	struct rlmd_text body = text_from(text.bytes, fence->body.end);
	size_t least = SIZE_MAX;

	for (size_t at = fence->body.start, end; at < fence->body.end; at = end) {
		size_t columns = 0;
		struct rlmd_text line;

		end = text_line_end(body, at);
		line = bare(text_slice(body, at, end));
		if (skip_blanks(line, 0, &columns) < line.size && columns < least)
			least = columns;
	}
	return least == SIZE_MAX || least < fence->columns ? fence->columns : least;
}

/* Without its first `columns` columns, as far as they are blank; a tab is never split. */
static struct rlmd_text outdented(struct rlmd_text line, size_t columns)
{
	size_t at = 0, width = 0;

	while (at < line.size && width < columns) {
		size_t next = skip_blanks(text_from(line.bytes, at + 1), at, &width);

		if (next == at || width > columns)
			break;
		at = next;
	}
	return text_slice(line, at, line.size);
}

struct rlmd_text fence_info(struct rlmd_text text, const struct fence *fence)
{
	struct rlmd_text line = text_slice(text, fence->whole.start, fence->body.start);
	size_t at = 0;

	while (at < line.size && line.bytes[at] != '`' && line.bytes[at] != '~')
		at++;
	while (at < line.size && (line.bytes[at] == '`' || line.bytes[at] == '~'))
		at++;
	return name_of(text_trim(text_slice(line, at, line.size)));
}

size_t fence_code(struct rlmd_text text, const struct fence *fence, char *out)
{
	struct rlmd_text body = text_from(text.bytes, fence->body.end);
	size_t columns = common_columns(text, fence), used = 0;

	for (size_t at = fence->body.start, end; at < fence->body.end; at = end) {
		struct rlmd_text line;

		end = text_line_end(body, at);
		line = outdented(bare(text_slice(body, at, end)), columns);
		if (at > fence->body.start)
			out[used++] = '\n';
		memcpy(out + used, line.bytes, line.size);
		used += line.size;
	}
	while (used && out[used - 1] == '\n')
		used--;
	return used;
}
