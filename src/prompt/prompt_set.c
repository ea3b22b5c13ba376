#include "prompt/prompt_set.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"

#define SUFFIX ".txt"
#define DIGITS "0123456789"

enum {
	TEXT_SIZE_MAX = 64 << 10, /* bytes of one text */
	SMALL_WINDOW = 16384,     /* tokens; a model with no more gets the small profile ... */
	SMALL_SIZE = 80,          /* ... and one of no more tenths of billions of parameters */
};

/* Generated from share/prompts/ by tools/embed.py, the default first; the last name is NULL. */
extern const struct prompt_set prompt_shipped[];

enum {
	NONE = 0,
	RUN = 1 << 0,
	PARENT = 1 << 1,
	TASK = 1 << 2,
	CONTEXTS = 1 << 3,
	CODE = 1 << 4,
	OUTPUT = 1 << 5,
	REASON = 1 << 6,
	VARIABLES = 1 << 7,
	TURNS = 1 << 8,
	INPUT = 1 << 9,
	FUNCTIONS = 1 << 10,
	RULES = 1 << 11,
	SCHEMA = 1 << 12,
	STEP = 1 << 13,
};

static const struct {
	const char *name;
	int values;
} prompts[] = {
#define PROMPT(name, values, what) {#name, values},
#include "prompt/prompts.def"
};

static const struct {
	const char *name;
	int value;
} placeholders[] = {
#define PLACEHOLDER(name, value, what) {#name, value},
#include "prompt/prompts.def"
};

/* PROMPT_COUNT: there is none of that name. */
static size_t find(struct rlmd_text name)
{
	size_t i = 0;

	while (i < PROMPT_COUNT && !text_equal(name, prompts[i].name))
		i++;
	return i;
}

struct rlmd_text prompt_set_text(const struct prompt_set *set, const char *name)
{
	size_t i = find(text_of(name));

	assert(i < PROMPT_COUNT);
	return set->texts[i];
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/*
 * The tenths of a billion in a size mark that begins here, 15 of "1.5b", else 0. Gemma's e4b is one
 * too, which computes as four; the a3b of a mixture is not, which knows as much as all its parts.
 */
static int mark_at(const char *name, const char *at)
{
	const char *before = at;
	size_t whole = strspn(at, DIGITS), fraction = 0;
	int tenths = 0;

	if (before != name && (before[-1] == 'e' || before[-1] == 'E'))
		before--;
	if (!whole || whole > 4 || (before != name && (is_word(before[-1]) || before[-1] == '.')))
		return 0;
	for (size_t i = 0; i < whole; i++)
		tenths = tenths * 10 + (at[i] - '0');
	tenths *= 10;
	if (at[whole] == '.')
		fraction = strspn(at + whole + 1, DIGITS);
	if (fraction) {
		tenths += at[whole + 1] - '0';
		whole += 1 + fraction;
	}
	return (at[whole] == 'b' || at[whole] == 'B') && !is_word(at[whole + 1]) ? tenths : 0;
}

/* By the largest size mark of its name; 4b-it, 1.5B, :7b. */
static bool is_small(const char *model)
{
	int largest = 0;

	for (const char *at = model; *at; at++)
		if (mark_at(model, at) > largest)
			largest = mark_at(model, at);
	return largest > 0 && largest <= SMALL_SIZE;
}

const struct prompt_set *prompt_set_for(const char *model, int64_t window)
{
	const char *name = window <= SMALL_WINDOW || is_small(model) ? "small" : "default";
	const struct prompt_set *set = prompt_shipped;

	while (strcmp(set->name, name))
		set++;
	return set;
}

/* --- a directory --------------------------------------------------------------- */

static bool knows(int values, struct rlmd_text name)
{
	for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
		if ((values & placeholders[i].value) && text_equal(name, placeholders[i].name))
			return true;
	return false;
}

static bool unknown_placeholder(size_t prompt, struct rlmd_text name, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *known = buffer_new();
	auto_free char *list = NULL;

	for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
		if (prompts[prompt].values & placeholders[i].value)
			buffer_add_printf(known, "%s%s", evbuffer_get_length(known) ? ", " : "",
					  placeholders[i].name);
	list = text_drain(known, NULL);
	return error_set(err, RLMD_ERROR_USAGE, "there is no {{%.*s}} for it; %s%s",
			 (int)(name.size < 40 ? name.size : 40), name.bytes,
			 *list ? "there are " : "it has no placeholders", list);
}

/* Each {{name}} is one that the prompt may use. */
static bool check_placeholders(size_t prompt, struct rlmd_text text, struct rlmd_error *err)
{
	const char *at = text.bytes, *open, *close;

	for (; (open = strstr(at, "{{")); at = close + 2) {
		close = strstr(open, "}}");
		if (!close)
			return error_set(err, RLMD_ERROR_USAGE, "a {{ has no }} after it");
		if (!knows(prompts[prompt].values, text_from(open + 2, (size_t)(close - open - 2))))
			return unknown_placeholder(
				prompt, text_from(open + 2, (size_t)(close - open - 2)), err);
	}
	return true;
}

static bool check_text(size_t prompt, struct rlmd_text text, struct rlmd_error *err)
{
	if (memchr(text.bytes, '\0', text.size) || !text_is_utf8(text))
		return error_set(err, RLMD_ERROR_USAGE, "it is no text in UTF-8");
	return check_placeholders(prompt, text, err);
}

static bool unknown_file(const char *file, struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_USAGE,
			 "it has a file %.60s, which is no prompt: those are root" SUFFIX
			 ", turn" SUFFIX " and the others that the page on prompts lists",
			 file);
}

static bool read_file(struct prompt_set *set, const char *file, struct rlmd_error *err)
{
	auto_free char *path = xasprintf("%s/%s", set->name, file);
	size_t stem = strlen(file), prompt, size;
	char *bytes;

	stem -= stem > strlen(SUFFIX) ? strlen(SUFFIX) : 0;
	prompt = strcmp(file + stem, SUFFIX) ? PROMPT_COUNT : find(text_from(file, stem));
	if (prompt == PROMPT_COUNT)
		return unknown_file(file, err);
	bytes = file_read(path, TEXT_SIZE_MAX, &size, err);
	if (!bytes)
		return false;
	set->texts[prompt] = text_from(bytes, size);
	return check_text(prompt, set->texts[prompt], err) || error_context(err, "%s", file);
}

static bool read_files(struct prompt_set *set, DIR *directory, struct rlmd_error *err)
{
	const struct dirent *entry;

	while ((errno = 0, entry = readdir(directory)))
		if (*entry->d_name != '.' && !read_file(set, entry->d_name, err))
			return false;
	return !errno || error_errno(err, RLMD_ERROR_USAGE, "cannot read it");
}

static struct prompt_set *read_directory(const char *path, DIR *directory, struct rlmd_error *err)
{
	struct prompt_set *set = xcalloc(1, sizeof *set);

	*set = prompt_shipped[0];
	set->name = xstrdup(path);
	if (read_files(set, directory, err))
		return set;
	error_context(err, "the prompts in %.200s", path);
	err->kind = RLMD_ERROR_USAGE;
	prompt_set_free(set);
	return NULL;
}

static bool no_profile(const char *name, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *known = buffer_new();
	auto_free char *list = NULL;

	for (const struct prompt_set *set = prompt_shipped; set->name; set++)
		buffer_add_printf(known, "%s%s", set == prompt_shipped ? "" : ", ", set->name);
	list = text_drain(known, NULL);
	return error_errno(err, RLMD_ERROR_USAGE,
			   "there is no prompt profile '%.200s' (there are: %s), and no directory "
			   "of that name can be read",
			   name, list);
}

const struct prompt_set *prompt_set_open(const char *name, struct rlmd_error *err)
{
	const struct prompt_set *set = prompt_shipped;
	DIR *directory;

	while (set->name && strcmp(set->name, name))
		set++;
	if (set->name)
		return set;
	directory = opendir(name);
	if (!directory) {
		no_profile(name, err);
		return NULL;
	}
	set = read_directory(name, directory, err);
	closedir(directory);
	return set;
}

static bool is_shipped(const struct prompt_set *set)
{
	const struct prompt_set *shipped = prompt_shipped;

	while (shipped->name && shipped != set)
		shipped++;
	return shipped->name;
}

void prompt_set_free(const struct prompt_set *set)
{
	if (!set || is_shipped(set))
		return;
	for (size_t i = 0; i < PROMPT_COUNT; i++)
		if (set->texts[i].bytes != prompt_shipped[0].texts[i].bytes)
			free((char *)set->texts[i].bytes);
	free((char *)set->name);
	free((struct prompt_set *)set);
}
