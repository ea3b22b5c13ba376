/*
 * What tells Python from the rest is that no two operands stand beside each other: "the answer",
 * "ls -la file" and "const x" are none of its lines, whatever stands around them. Beyond that each
 * line must be a statement that a model writes: an expression that is no call may only be the last
 * one, whose value is printed.
 */
#include "reply/shape.h"

#include <string.h>

enum { BRACKETS_MAX = 64, PREFIX_MAX = 2, TRIPLE = 3 };

/* What a word is to the line that it stands in. */
enum word {
	WORD_NAME,
	WORD_OPERATOR,   /* between operands, or in front of one */
	WORD_SIMPLE,     /* begins a statement */
	WORD_BLOCK,      /* begins one that ends with a colon */
	WORD_DEFINITION, /* likewise, and no other text has it */
	WORD_IMPORT,     /* import */
	WORD_FROM,       /* from: of an import or of a yield */
};

static const struct {
	const char *name;
	enum word word;
} words[] = {
	{"and", WORD_OPERATOR},     {"or", WORD_OPERATOR},    {"not", WORD_OPERATOR},
	{"in", WORD_OPERATOR},      {"is", WORD_OPERATOR},    {"lambda", WORD_OPERATOR},
	{"await", WORD_OPERATOR},   {"as", WORD_OPERATOR},    {"else", WORD_BLOCK},
	{"if", WORD_BLOCK},         {"elif", WORD_BLOCK},     {"try", WORD_BLOCK},
	{"except", WORD_BLOCK},     {"finally", WORD_BLOCK},  {"for", WORD_DEFINITION},
	{"while", WORD_BLOCK},      {"with", WORD_BLOCK},     {"def", WORD_DEFINITION},
	{"class", WORD_DEFINITION}, {"async", WORD_OPERATOR}, {"return", WORD_SIMPLE},
	{"yield", WORD_SIMPLE},     {"raise", WORD_SIMPLE},   {"assert", WORD_SIMPLE},
	{"del", WORD_SIMPLE},       {"global", WORD_SIMPLE},  {"nonlocal", WORD_SIMPLE},
	{"pass", WORD_SIMPLE},      {"break", WORD_SIMPLE},   {"continue", WORD_SIMPLE},
	{"import", WORD_IMPORT},    {"from", WORD_FROM},
};

/* Calls that are there for what they do. */
static const char *const doers[] = {"print", "FINAL", "FINAL_VAR", "SUBMIT", "final_answer"};

/* One statement, as far as it was read. */
struct line {
	enum word lead; /* its first word */
	size_t tokens;
	bool operand; /* what was read last is one, or ends one */
	bool string;  /* it is a string */
	bool called;  /* it ends a call */
	bool chain;   /* nothing yet but a name with attributes, calls and subscripts */
	bool target;  /* it could be assigned to */
	bool works;   /* there is a call or a subscript in it */
	bool assigns, colon, imports, decorator, does;
	bool in; /* a for has it, and what needs none */
};

struct scan {
	struct rlmd_text text;
	size_t at;
	char brackets[BRACKETS_MAX]; /* that are open: what closes each */
	bool calls[BRACKETS_MAX];
	size_t depth;
	struct line line;
	bool loose; /* the last statement was an expression that is no call */
	enum shape shape;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
	       (unsigned char)c >= 0x80;
}

static char peek(const struct scan *scan, size_t ahead)
{
	return scan->at + ahead < scan->text.size ? scan->text.bytes[scan->at + ahead] : '\0';
}

static bool one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static void begin_line(struct scan *scan)
{
	scan->line = (struct line){.chain = true, .target = true};
}

/* Operands do not stand beside each other, but for strings. */
static bool add_operand(struct scan *scan, bool string)
{
	struct line *line = &scan->line;

	if (line->operand && !(string && line->string))
		return false;
	line->operand = true;
	line->string = string;
	line->called = false;
	if (string && !scan->depth)
		line->target = false;
	return true;
}

/* Behind an operator an operand is wanted. */
static void add_operator(struct scan *scan)
{
	scan->line.operand = scan->line.string = scan->line.called = false;
	if (!scan->depth)
		scan->line.chain = scan->line.target = false;
}

static bool read_string(struct scan *scan)
{
	char quote = peek(scan, 0);
	bool triple = peek(scan, 1) == quote && peek(scan, 2) == quote;

	if (!add_operand(scan, true))
		return false;
	for (scan->at += triple ? TRIPLE : 1; scan->at < scan->text.size; scan->at++) {
		char c = peek(scan, 0);

		if (c == '\\') {
			scan->at++;
		} else if (c == '\n' && !triple) {
			return false;
		} else if (c == quote && !triple) {
			scan->at++;
			return true;
		} else if (c == quote && peek(scan, 1) == quote && peek(scan, 2) == quote) {
			scan->at += TRIPLE;
			return true;
		}
	}
	return false;
}

static bool is_doer(struct rlmd_text name)
{
	for (size_t i = 0; i < sizeof doers / sizeof *doers; i++)
		if (text_equal(name, doers[i]))
			return true;
	return false;
}

static enum word word_of(struct rlmd_text name)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (text_equal(name, words[i].name))
			return words[i].word;
	return WORD_NAME;
}

/* A word that begins a statement: what is to come, and that no operand was there. */
static bool add_lead(struct line *line, enum word word)
{
	line->lead = word;
	line->chain = line->target = false;
	line->operand = false;
	return true;
}

static bool add_keyword(struct scan *scan, enum word word, struct rlmd_text name)
{
	struct line *line = &scan->line;
	bool leads = line->tokens == 1;

	switch (word) {
	case WORD_NAME:
		return add_operand(scan, false);
	case WORD_OPERATOR:
		line->in |= text_equal(name, "in");
		/* async def, and await in front of a call */
		if (leads && text_equal(name, "async"))
			line->tokens = 0;
		else if (!leads || !text_equal(name, "await"))
			add_operator(scan);
		return true;
	case WORD_IMPORT:
		if (!leads && line->lead != WORD_FROM)
			return false;
		line->imports = true;
		line->operand = false;
		return leads ? add_lead(line, word) : true;
	case WORD_FROM:
		if (leads)
			return add_lead(line, word);
		add_operator(scan);
		return line->lead == WORD_SIMPLE;
	case WORD_SIMPLE:
		return leads && add_lead(line, word);
	case WORD_BLOCK:
	case WORD_DEFINITION:
		line->in |= leads && !text_equal(name, "for");
		if (leads)
			return add_lead(line, word);
		add_operator(scan); /* within a comprehension, or a choice */
		return text_equal(name, "if") || text_equal(name, "else") ||
		       (text_equal(name, "for") && scan->depth);
	}
	return false;
}

static bool read_word(struct scan *scan)
{
	size_t start = scan->at;
	struct rlmd_text name;

	while (is_word(peek(scan, 0)))
		scan->at++;
	name = text_slice(scan->text, start, scan->at);
	if (one_of(peek(scan, 0), "'\"") && name.size <= PREFIX_MAX &&
	    one_of(name.bytes[0], "rRbBfFuU") && one_of(name.bytes[name.size - 1], "rRbBfFuU")) {
		scan->line.tokens--;
		return true; /* belongs to the string behind it */
	}
	if (is_digit(name.bytes[0])) {
		while (is_word(peek(scan, 0)) || (peek(scan, 0) == '.' && is_digit(peek(scan, 1))))
			scan->at++;
		if (!scan->depth)
			scan->line.target = scan->line.chain = false;
		return add_operand(scan, false);
	}
	if (scan->line.tokens == 1 && peek(scan, 0) == '(')
		scan->line.does = is_doer(name);
	return add_keyword(scan, word_of(name), name);
}

static bool read_open(struct scan *scan)
{
	char c = peek(scan, 0);
	struct line *line = &scan->line;
	bool behind = line->operand;
	bool spaced = scan->at && one_of(scan->text.bytes[scan->at - 1], " \t");

	if (scan->depth == BRACKETS_MAX || (behind && (spaced || c == '{')))
		return false;
	if (!behind && !scan->depth && c != '(')
		line->target = line->target && c == '[';
	if (!behind && !scan->depth)
		line->chain = line->chain && line->tokens == 1;
	line->works |= behind;
	scan->calls[scan->depth] = behind && c == '(';
	scan->brackets[scan->depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
	line->operand = line->string = line->called = false;
	scan->at++;
	return true;
}

static bool read_close(struct scan *scan)
{
	struct line *line = &scan->line;

	if (!scan->depth || scan->brackets[scan->depth - 1] != peek(scan, 0))
		return false;
	line->called = scan->calls[--scan->depth];
	line->operand = true;
	line->string = false;
	scan->at++;
	return true;
}

/* A statement's end: is it one that a model writes? */
static bool end_line(struct scan *scan)
{
	struct line line = scan->line;
	bool was_loose = scan->loose;
	enum shape shape = SHAPE_OTHER;

	begin_line(scan);
	if (!line.tokens)
		return true;
	scan->loose = false;
	if (line.lead == WORD_BLOCK || line.lead == WORD_DEFINITION) {
		if (!line.colon || !line.in)
			return false;
		if (line.lead == WORD_DEFINITION)
			shape = SHAPE_STATEMENTS;
	} else if (line.imports) {
		shape = SHAPE_STATEMENTS;
	} else if (line.lead == WORD_FROM || (line.colon && !line.assigns)) {
		return false;
	} else if (line.lead != WORD_SIMPLE && !line.decorator) {
		bool call = line.chain && line.called;

		if (call || line.assigns)
			shape = line.does || (line.assigns && line.works) ? SHAPE_STATEMENTS
				: call                                    ? SHAPE_CALLS
									  : SHAPE_OTHER;
		else
			scan->loose = !(line.string && line.tokens == 1);
	}
	if (shape > scan->shape)
		scan->shape = shape;
	return !was_loose;
}

static bool read_colon(struct scan *scan)
{
	struct line *line = &scan->line;

	scan->at++;
	if (peek(scan, 0) == '=') {
		scan->at++;
		add_operator(scan);
		return scan->depth > 0; /* := outside of parentheses is another language's */
	}
	if (!scan->depth && line->colon && line->lead == WORD_NAME)
		return false;
	line->colon |= !scan->depth;
	line->operand = line->string = line->called = false;
	if (!scan->depth && line->lead != WORD_NAME && line->lead != WORD_OPERATOR) {
		size_t end = scan->at;

		/* What follows on the line is a statement of its own. */
		while (end < scan->text.size && one_of(scan->text.bytes[end], " \t"))
			end++;
		if (end < scan->text.size && !one_of(scan->text.bytes[end], "\r\n#"))
			return end_line(scan);
	}
	return true;
}

/* = and the likes of +=: something is assigned, or passed by its name. */
static bool assign(struct scan *scan)
{
	struct line *line = &scan->line;

	if (!line->operand || (!scan->depth && !line->target))
		return false;
	line->operand = line->string = line->called = false;
	if (scan->depth)
		return true;
	line->assigns = true;
	line->chain = false;
	return true;
}

static bool read_operator(struct scan *scan)
{
	char c = peek(scan, 0), next = peek(scan, 1);
	struct line *line = &scan->line;
	bool leads = line->tokens == 1;

	scan->at++;
	if (c == '=' && next != '=')
		return assign(scan);
	if (c == '-' && next == '>') {
		scan->at++;
		add_operator(scan);
		return line->lead == WORD_DEFINITION;
	}
	if (c == '!' && next != '=')
		return false;
	while (one_of(peek(scan, 0), "*/<>") && peek(scan, 0) == c)
		scan->at++;
	if (peek(scan, 0) == '=') {
		scan->at++;
		if (!line->operand)
			return false;
		if (!one_of(c, "<>=!") || scan->text.bytes[scan->at - 2] != c ||
		    (one_of(c, "<>") && next == c))
			return assign(scan);
	} else if (!line->operand) {
		/* What may stand in front of an operand. */
		line->decorator = c == '@' && leads;
		if (!line->decorator && !one_of(c, "+-~*") && !(one_of(c, "*/") && scan->depth))
			return false;
		if (c == '*' && !scan->depth) {
			line->chain = false;
			return true;
		}
	}
	add_operator(scan);
	return true;
}

static bool read_dot(struct scan *scan)
{
	if (peek(scan, 1) == '.' && peek(scan, 2) == '.') {
		scan->at += 3;
		return add_operand(scan, true);
	}
	scan->at++;
	if (scan->line.lead == WORD_FROM && !scan->line.operand)
		return true;
	if (!scan->line.operand)
		return is_digit(peek(scan, 0));
	if (!is_word(peek(scan, 0)) || is_digit(peek(scan, 0)))
		return false;
	scan->line.operand = scan->line.string = false;
	return true;
}

static bool read_token(struct scan *scan)
{
	char c = peek(scan, 0);

	scan->line.tokens++;
	if (is_word(c))
		return read_word(scan);
	switch (c) {
	case '"':
	case '\'':
		return read_string(scan);
	case '(':
	case '[':
	case '{':
		return read_open(scan);
	case ')':
	case ']':
	case '}':
		return read_close(scan);
	case ':':
		return read_colon(scan);
	case '.':
		return read_dot(scan);
	case ',':
		scan->at++;
		scan->line.operand = scan->line.string = scan->line.called = false;
		scan->line.chain &= scan->depth > 0;
		return true;
	default:
		return one_of(c, "=+-*/%@&|^~<>!") && read_operator(scan);
	}
}

static size_t comment_end(const struct scan *scan)
{
	size_t end = scan->at;

	while (end < scan->text.size && scan->text.bytes[end] != '\n')
		end++;
	return end;
}

static size_t skip_blanks(const struct scan *scan, size_t at)
{
	while (at < scan->text.size && one_of(scan->text.bytes[at], " \t\r"))
		at++;
	return at;
}

/* Goes on by one token, or what stands between two. */
static bool step(struct scan *scan)
{
	char c = peek(scan, 0);

	if (c == '#') {
		scan->at = comment_end(scan);
	} else if (c == '\n') {
		scan->at++;
		return scan->depth || end_line(scan);
	} else if (c == ';') {
		scan->at = skip_blanks(scan, scan->at + 1);
		/* Behind the last statement of a line it is another language's. */
		return !scan->depth && peek(scan, 0) && peek(scan, 0) != '\n' && end_line(scan);
	} else if (one_of(c, " \t\r")) {
		scan->at++;
	} else if (c == '\\' && one_of(peek(scan, 1), "\r\n")) {
		scan->at += peek(scan, 1) == '\r' ? 3 : 2;
	} else {
		return read_token(scan);
	}
	return true;
}

struct rlmd_text shape_code(struct rlmd_text text)
{
	static const char *const names[] = {"python", "python3", "repl", "py", "ipython"};
	size_t end = text_line_end(text, 0);
	struct rlmd_text first = text_trim(text_slice(text, 0, end));

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (end < text.size && text_equal_caseless(first, names[i]))
			return text_slice(text, end, text.size);
	return text;
}

enum shape shape_of(struct rlmd_text text)
{
	struct scan scan = {.text = text_trim(shape_code(text_trim(text)))};

	if (text_starts(scan.text, ">>> "))
		return SHAPE_CALLS; /* a session that was copied */
	begin_line(&scan);
	while (scan.at < scan.text.size)
		if (!step(&scan))
			return SHAPE_OTHER;
	if (scan.depth || !end_line(&scan))
		return SHAPE_OTHER;
	return scan.shape;
}
