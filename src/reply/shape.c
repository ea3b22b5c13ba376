/*
 * Python differs from other text in that no two operands stand beside each other: "the answer",
 * "ls -la file" and "const x" are none of its lines, whatever stands around them. Beyond that
 * each line must be a statement that a model writes: an expression that is no call may only be
 * the last one, whose value is printed.
 */
#include "reply/shape.h"

#include <string.h>

#include "base/array.h"

enum { BRACKETS_MAX = 64, PREFIX_MAX = 2, TRIPLE = 3 };

/* The role of a word in its line. */
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

struct lexer {
	struct rlmd_text text;
	size_t at;
	char brackets[BRACKETS_MAX]; /* that are open: what closes each */
	bool calls[BRACKETS_MAX];
	size_t depth;
	struct line line;
	bool loose; /* the last statement was an expression that is no call */
	enum shape shape;
};

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || text_is_digit(c) || c == '_' ||
	       (unsigned char)c >= 0x80;
}

static char peek(const struct lexer *lexer, size_t ahead)
{
	return lexer->at + ahead < lexer->text.size ? lexer->text.bytes[lexer->at + ahead] : '\0';
}

static void begin_line(struct lexer *lexer)
{
	lexer->line = (struct line){.chain = true, .target = true};
}

/* Operands do not stand beside each other, but for strings. */
static bool add_operand(struct lexer *lexer, bool string)
{
	struct line *line = &lexer->line;

	if (line->operand && !(string && line->string))
		return false;
	line->operand = true;
	line->string = string;
	line->called = false;
	if (string && !lexer->depth)
		line->target = false;
	return true;
}

/* Behind an operator an operand is wanted. */
static void add_operator(struct lexer *lexer)
{
	lexer->line.operand = lexer->line.string = lexer->line.called = false;
	if (!lexer->depth)
		lexer->line.chain = lexer->line.target = false;
}

static bool read_string(struct lexer *lexer)
{
	char quote = peek(lexer, 0);
	bool triple = peek(lexer, 1) == quote && peek(lexer, 2) == quote;

	if (!add_operand(lexer, true))
		return false;
	for (lexer->at += triple ? TRIPLE : 1; lexer->at < lexer->text.size; lexer->at++) {
		char c = peek(lexer, 0);

		if (c == '\\') {
			lexer->at++;
		} else if (c == '\n' && !triple) {
			return false;
		} else if (c == quote && !triple) {
			lexer->at++;
			return true;
		} else if (c == quote && peek(lexer, 1) == quote && peek(lexer, 2) == quote) {
			lexer->at += TRIPLE;
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

static bool add_keyword(struct lexer *lexer, enum word word, struct rlmd_text name)
{
	struct line *line = &lexer->line;
	bool leads = line->tokens == 1;

	switch (word) {
	case WORD_NAME:
		return add_operand(lexer, false);
	case WORD_OPERATOR:
		line->in |= text_equal(name, "in");
		/* async def, and await in front of a call */
		if (leads && text_equal(name, "async"))
			line->tokens = 0;
		else if (!leads || !text_equal(name, "await"))
			add_operator(lexer);
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
		add_operator(lexer);
		return line->lead == WORD_SIMPLE;
	case WORD_SIMPLE:
		return leads && add_lead(line, word);
	case WORD_BLOCK:
	case WORD_DEFINITION:
		line->in |= leads && !text_equal(name, "for");
		if (leads)
			return add_lead(line, word);
		add_operator(lexer); /* within a comprehension, or a choice */
		return text_equal(name, "if") || text_equal(name, "else") ||
		       (text_equal(name, "for") && lexer->depth);
	}
	return false;
}

static bool read_word(struct lexer *lexer)
{
	size_t start = lexer->at;
	struct rlmd_text name;

	while (is_word(peek(lexer, 0)))
		lexer->at++;
	name = text_slice(lexer->text, start, lexer->at);
	if (text_is_one_of(peek(lexer, 0), "'\"") && name.size <= PREFIX_MAX &&
	    text_is_one_of(name.bytes[0], "rRbBfFuU") &&
	    text_is_one_of(name.bytes[name.size - 1], "rRbBfFuU")) {
		lexer->line.tokens--;
		return true; /* belongs to the string behind it */
	}
	if (text_is_digit(name.bytes[0])) {
		while (is_word(peek(lexer, 0)) ||
		       (peek(lexer, 0) == '.' && text_is_digit(peek(lexer, 1))))
			lexer->at++;
		if (!lexer->depth)
			lexer->line.target = lexer->line.chain = false;
		return add_operand(lexer, false);
	}
	if (lexer->line.tokens == 1 && peek(lexer, 0) == '(')
		lexer->line.does = is_doer(name);
	return add_keyword(lexer, word_of(name), name);
}

static bool read_open(struct lexer *lexer)
{
	char c = peek(lexer, 0);
	struct line *line = &lexer->line;
	bool behind = line->operand;
	bool spaced = lexer->at && text_is_one_of(lexer->text.bytes[lexer->at - 1], " \t");

	if (lexer->depth == BRACKETS_MAX || (behind && (spaced || c == '{')))
		return false;
	if (!behind && !lexer->depth && c != '(')
		line->target = line->target && c == '[';
	if (!behind && !lexer->depth)
		line->chain = line->chain && line->tokens == 1;
	line->works |= behind;
	lexer->calls[lexer->depth] = behind && c == '(';
	lexer->brackets[lexer->depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
	line->operand = line->string = line->called = false;
	lexer->at++;
	return true;
}

static bool read_close(struct lexer *lexer)
{
	struct line *line = &lexer->line;

	if (!lexer->depth || lexer->brackets[lexer->depth - 1] != peek(lexer, 0))
		return false;
	line->called = lexer->calls[--lexer->depth];
	line->operand = true;
	line->string = false;
	lexer->at++;
	return true;
}

/* A statement's end: is it one that a model writes? */
static bool end_line(struct lexer *lexer)
{
	struct line line = lexer->line;
	bool was_loose = lexer->loose;
	enum shape shape = SHAPE_OTHER;

	begin_line(lexer);
	if (!line.tokens)
		return true;
	lexer->loose = false;
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
			lexer->loose = !(line.string && line.tokens == 1);
	}
	if (shape > lexer->shape)
		lexer->shape = shape;
	return !was_loose;
}

static bool read_colon(struct lexer *lexer)
{
	struct line *line = &lexer->line;

	lexer->at++;
	if (peek(lexer, 0) == '=') {
		lexer->at++;
		add_operator(lexer);
		return lexer->depth > 0; /* := outside of parentheses is another language's */
	}
	if (!lexer->depth && line->colon && line->lead == WORD_NAME)
		return false;
	line->colon |= !lexer->depth;
	line->operand = line->string = line->called = false;
	if (!lexer->depth && line->lead != WORD_NAME && line->lead != WORD_OPERATOR) {
		size_t end = lexer->at;

		/* The rest of the line is a statement of its own. */
		while (end < lexer->text.size && text_is_one_of(lexer->text.bytes[end], " \t"))
			end++;
		if (end < lexer->text.size && !text_is_one_of(lexer->text.bytes[end], "\r\n#"))
			return end_line(lexer);
	}
	return true;
}

/* = and the likes of +=: something is assigned, or passed by its name. */
static bool assign(struct lexer *lexer)
{
	struct line *line = &lexer->line;

	if (!line->operand || (!lexer->depth && !line->target))
		return false;
	line->operand = line->string = line->called = false;
	if (lexer->depth)
		return true;
	line->assigns = true;
	line->chain = false;
	return true;
}

static bool read_operator(struct lexer *lexer)
{
	char c = peek(lexer, 0), next = peek(lexer, 1);
	struct line *line = &lexer->line;
	bool leads = line->tokens == 1;

	lexer->at++;
	if (c == '=' && next != '=')
		return assign(lexer);
	if (c == '-' && next == '>') {
		lexer->at++;
		add_operator(lexer);
		return line->lead == WORD_DEFINITION;
	}
	if (c == '!' && next != '=')
		return false;
	while (text_is_one_of(peek(lexer, 0), "*/<>") && peek(lexer, 0) == c)
		lexer->at++;
	if (peek(lexer, 0) == '=') {
		lexer->at++;
		if (!line->operand)
			return false;
		if (!text_is_one_of(c, "<>=!") || lexer->text.bytes[lexer->at - 2] != c ||
		    (text_is_one_of(c, "<>") && next == c))
			return assign(lexer);
	} else if (!line->operand) {
		/* Characters that may stand in front of an operand. */
		line->decorator = c == '@' && leads;
		if (!line->decorator && !text_is_one_of(c, "+-~*") &&
		    !(text_is_one_of(c, "*/") && lexer->depth))
			return false;
		if (c == '*' && !lexer->depth) {
			line->chain = false;
			return true;
		}
	}
	add_operator(lexer);
	return true;
}

static bool read_dot(struct lexer *lexer)
{
	if (peek(lexer, 1) == '.' && peek(lexer, 2) == '.') {
		lexer->at += 3;
		return add_operand(lexer, true);
	}
	lexer->at++;
	if (lexer->line.lead == WORD_FROM && !lexer->line.operand)
		return true;
	if (!lexer->line.operand)
		return text_is_digit(peek(lexer, 0));
	if (!is_word(peek(lexer, 0)) || text_is_digit(peek(lexer, 0)))
		return false;
	lexer->line.operand = lexer->line.string = false;
	return true;
}

static bool read_token(struct lexer *lexer)
{
	char c = peek(lexer, 0);

	lexer->line.tokens++;
	if (is_word(c))
		return read_word(lexer);
	switch (c) {
	case '"':
	case '\'':
		return read_string(lexer);
	case '(':
	case '[':
	case '{':
		return read_open(lexer);
	case ')':
	case ']':
	case '}':
		return read_close(lexer);
	case ':':
		return read_colon(lexer);
	case '.':
		return read_dot(lexer);
	case ',':
		lexer->at++;
		lexer->line.operand = lexer->line.string = lexer->line.called = false;
		lexer->line.chain &= lexer->depth > 0;
		return true;
	default:
		return text_is_one_of(c, "=+-*/%@&|^~<>!") && read_operator(lexer);
	}
}

static size_t comment_end(const struct lexer *lexer)
{
	size_t end = lexer->at;

	while (end < lexer->text.size && lexer->text.bytes[end] != '\n')
		end++;
	return end;
}

static size_t skip_blanks(const struct lexer *lexer, size_t at)
{
	while (at < lexer->text.size && text_is_one_of(lexer->text.bytes[at], " \t\r"))
		at++;
	return at;
}

/* Goes on by one token, or what stands between two. */
static bool step(struct lexer *lexer)
{
	char c = peek(lexer, 0);

	if (c == '#') {
		lexer->at = comment_end(lexer);
	} else if (c == '\n') {
		lexer->at++;
		return lexer->depth || end_line(lexer);
	} else if (c == ';') {
		lexer->at = skip_blanks(lexer, lexer->at + 1);
		/* Behind the last statement of a line it is another language's. */
		return !lexer->depth && peek(lexer, 0) && peek(lexer, 0) != '\n' && end_line(lexer);
	} else if (text_is_one_of(c, " \t\r")) {
		lexer->at++;
	} else if (c == '\\' && text_is_one_of(peek(lexer, 1), "\r\n")) {
		lexer->at += peek(lexer, 1) == '\r' ? 3 : 2;
	} else {
		return read_token(lexer);
	}
	return true;
}

struct rlmd_text shape_code(struct rlmd_text text)
{
	static const char *const names[] = {"python", "python3", "repl", "py", "ipython"};
	size_t end = text_line_end(text, 0);
	struct rlmd_text first = text_trim(text_slice(text, 0, end));

	return end < text.size && array_has(names, sizeof names / sizeof *names, first)
		       ? text_slice(text, end, text.size)
		       : text;
}

enum shape shape_of(struct rlmd_text text)
{
	struct lexer lexer = {.text = text_trim(shape_code(text_trim(text)))};

	if (text_starts(lexer.text, ">>> "))
		return SHAPE_CALLS; /* a session that was copied */
	begin_line(&lexer);
	while (lexer.at < lexer.text.size)
		if (!step(&lexer))
			return SHAPE_OTHER;
	if (lexer.depth || !end_line(&lexer))
		return SHAPE_OTHER;
	return lexer.shape;
}

bool shape_is_expression(struct rlmd_text text)
{
	struct lexer lexer = {.text = text};
	const struct line *line = &lexer.line;

	begin_line(&lexer);
	while (lexer.at < text.size)
		if (peek(&lexer, 0) == '\n' || !step(&lexer))
			return false;
	return !lexer.depth && line->operand && line->lead == WORD_NAME && !line->assigns &&
	       !line->colon;
}
