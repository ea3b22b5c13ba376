#include "source/context.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "source/loader.h"

enum {
	TYPE_PROBE = 1 << 20, /* bytes that decide on the type of content */
	TYPE_JSON_DEPTH = 512,
};

struct source {
	char *name;       /* owned; NULL: part of `context` */
	const char *path; /* lent */
	bool directory;
	struct file_id file; /* zero: standard input or a directory */
};

static bool is_identifier(const char *string, size_t size)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	if (!size || !memchr(letters, string[0], sizeof letters - 1))
		return false;
	for (size_t i = 1; i < size; i++)
		if (!memchr(letters, string[i], sizeof letters - 1) &&
		    !(string[i] >= '0' && string[i] <= '9'))
			return false;
	return true;
}

static const struct {
	const char *name, *what;
} taken[] = {
#define KEYWORD(name) {name, "a keyword of Python"},
#define HELPER(name)  {name, "a function of the worker"},
#define BUILTIN(name) {name, "a builtin of Python, which the code needs"},
#include "source/names.def"
#undef BUILTIN
#undef HELPER
#undef KEYWORD
};

static bool check_name(const char *name, struct rlmd_error *err)
{
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (!strcmp(name, taken[i].name))
			return error_set(err, RLMD_ERROR_USAGE,
					 "a context cannot be named '%s': %s; choose another name",
					 name, taken[i].what);
	if (!strncmp(name, "__", 2) || strlen(name) > 200)
		return error_set(err, RLMD_ERROR_USAGE, "a context cannot be named '%s'", name);
	return true;
}

static bool no_file(const char *path, struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_INPUT,
			 "cannot read %s: it is no regular file; pipe it into standard input and "
			 "use -c -",
			 path);
}

static bool parse_source(const char *given, struct source *source, struct rlmd_error *err)
{
	const char *equals = strchr(given, '=');
	struct stat st;

	source->path = given;
	if (equals && is_identifier(given, (size_t)(equals - given))) {
		source->name = xstrndup(given, (size_t)(equals - given));
		source->path = equals + 1;
		if (!check_name(source->name, err))
			return false;
	}
	if (!*source->path)
		return error_set(err, RLMD_ERROR_USAGE, "a context '%s' names no file", given);
	if (!strcmp(source->path, "-"))
		return true;
	if (stat(source->path, &st))
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", source->path);
	source->directory = S_ISDIR(st.st_mode);
	if (!source->directory && !S_ISREG(st.st_mode))
		return no_file(source->path, err);
	if (!source->directory)
		source->file = (struct file_id){st.st_dev, st.st_ino};
	return true;
}

static bool parse_sources(const char *const *given, size_t count, struct source *sources,
			  struct rlmd_error *err)
{
	bool unnamed = false, standard_input = false;
	size_t variables = 0;

	for (size_t i = 0; i < count; i++) {
		if (!parse_source(given[i], &sources[i], err))
			return false;
		variables += sources[i].name || !unnamed;
		unnamed |= !sources[i].name;
		if (!strcmp(sources[i].path, "-") && standard_input)
			return error_set(err, RLMD_ERROR_USAGE,
					 "standard input can be read only once");
		standard_input |= !strcmp(sources[i].path, "-");
	}
	if (variables > CONTEXT_INPUTS_MAX)
		return error_set(err, RLMD_ERROR_USAGE,
				 "%zu contexts with names of their own; there may be %d (those "
				 "without a name are one)",
				 variables, CONTEXT_INPUTS_MAX);
	for (size_t i = 0; i < count; i++) {
		const char *name = sources[i].name;
		bool twice = name && unnamed && !strcmp(name, "context");

		for (size_t j = 0; name && j < i; j++)
			twice |= sources[j].name && !strcmp(name, sources[j].name);
		if (twice)
			return error_set(err, RLMD_ERROR_USAGE, "two contexts are named '%s'",
					 name);
	}
	return true;
}

static bool add_source(struct loader *loader, const struct source *source, bool prefixed,
		       struct rlmd_error *err)
{
	auto_close int opened = -1;
	int fd = STDIN_FILENO;
	struct stat st;

	if (source->directory)
		return loader_add_directory(loader, source->path, prefixed, err);
	if (strcmp(source->path, "-")) {
		fd = opened = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0 || fstat(fd, &st))
			return error_errno(err, RLMD_ERROR_INPUT, "cannot read %s", source->path);
		if (!S_ISREG(st.st_mode)) /* any more */
			return no_file(source->path, err);
		if ((size_t)st.st_size > CONTEXT_SIZE_MAX)
			return error_set(err, RLMD_ERROR_INPUT,
					 "%s is larger than the %zu GiB that one variable can hold",
					 source->path, CONTEXT_SIZE_MAX >> 30);
	}
	return loader_add_fd(loader, source->path, fd, err) ||
	       error_context(err, "%s", fd == STDIN_FILENO ? "standard input" : source->path);
}

/* Builds the variable `name` from the sources that bear it; NULL: from those without a name. */
static bool build_input(const char *name, const struct source *sources, size_t count,
			const struct context_loading *loading, struct context *context,
			struct rlmd_error *err)
{
	auto_free struct file_id *files = xcalloc(count, sizeof *files);
	bool together = false, ok = true;
	struct loader *loader;
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		files[i] = sources[i].file;
		if (name == sources[i].name) {
			found++;
			together |= sources[i].directory;
		}
	}
	if (!found)
		return true;
	loader = loader_new(name ? name : "context", together || found > 1, loading,
			    context->notes);
	loader_set_named(loader, files, count);
	for (size_t i = 0; ok && i < count; i++)
		if (name == sources[i].name)
			ok = add_source(loader, &sources[i], found > 1, err);
	if (ok && loader_finish(loader, &context->inputs[context->count], err))
		context->count++;
	else
		ok = false;
	loader_free(loader);
	return ok;
}

bool context_load(const char *const *given, size_t count, const struct context_loading *loading,
		  struct context *ret, struct rlmd_error *err)
{
	struct source *sources = xcalloc(count + 1, sizeof *sources);
	struct context context = {.notes = json_array()};
	bool ok = parse_sources(given, count, sources, err);

	context.inputs = xcalloc(count + 1, sizeof *context.inputs);
	ok = ok && build_input(NULL, sources, count, loading, &context, err);
	for (size_t i = 0; ok && i < count; i++)
		if (sources[i].name)
			ok = build_input(sources[i].name, sources, count, loading, &context, err);
	for (size_t i = 1; ok && i < context.count; i++)
		if (!strcmp(context.inputs[i].name, "context")) {
			struct context_input first = context.inputs[i];

			memmove(context.inputs + 1, context.inputs, i * sizeof first);
			context.inputs[0] = first;
		}
	for (size_t i = 0; i < count; i++)
		free(sources[i].name);
	free(sources);
	if (ok)
		*ret = context;
	else
		context_done(&context);
	return ok;
}

bool context_from_text(struct rlmd_text text, struct context *ret, struct rlmd_error *err)
{
	struct memfile *file;

	if (text.size > CONTEXT_SIZE_MAX)
		return error_set(err, RLMD_ERROR_INPUT, "one variable can hold at most %zu GiB",
				 CONTEXT_SIZE_MAX >> 30);
	file = memfile_new("rlmd-context");
	if (!memfile_append(file, text, err) || !memfile_seal(file, err)) {
		memfile_unref(file);
		return false;
	}
	*ret = (struct context){.count = 1, .notes = json_array()};
	ret->inputs = xcalloc(1, sizeof *ret->inputs);
	ret->inputs[0] = context_input_of("context", file);
	memfile_unref(file);
	return true;
}

struct context_input context_input_of(const char *name, struct memfile *file)
{
	return (struct context_input){
		.name = xstrdup(name),
		.file = memfile_ref(file),
		.type = context_type(memfile_text(file)),
	};
}

void context_input_done(struct context_input *input)
{
	free(input->name);
	memfile_unref(input->file);
	json_decref(input->files);
	free(input->left_out);
}

void context_share(struct context *to, const struct context *from)
{
	to->inputs = xcalloc(from->count, sizeof *to->inputs);
	to->count = from->count;
	for (size_t i = 0; i < from->count; i++) {
		to->inputs[i] = from->inputs[i];
		to->inputs[i].name = xstrdup(from->inputs[i].name);
		memfile_ref(to->inputs[i].file);
		json_incref(to->inputs[i].files);
		if (to->inputs[i].left_out)
			to->inputs[i].left_out = xstrdup(to->inputs[i].left_out);
	}
}

void context_done(struct context *context)
{
	for (size_t i = 0; i < context->count; i++)
		context_input_done(&context->inputs[i]);
	free(context->inputs);
	json_decref(context->notes);
	*context = (struct context){0};
}

static bool is_json(struct rlmd_text text)
{
	bool object, ok;
	json_t *value;

	text = text_trim(text);
	if (text.size < 2)
		return false;
	object = text.bytes[0] == '{' && text.bytes[text.size - 1] == '}';
	if (!object && !(text.bytes[0] == '[' && text.bytes[text.size - 1] == ']'))
		return false;
	if (text.size > TYPE_PROBE)
		return true;
	value = json_read(text, TYPE_JSON_DEPTH, NULL);
	ok = value;
	json_decref(value);
	return ok;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The text after `word` and white space, or nothing. */
static struct rlmd_text after_word(struct rlmd_text line, const char *word)
{
	size_t size = strlen(word);

	if (!text_starts(line, word) || line.size == size || !is_space(line.bytes[size]))
		return (struct rlmd_text){0};
	while (size < line.size && is_space(line.bytes[size]))
		size++;
	return text_from(line.bytes + size, line.size - size);
}

/* A line that begins as those of common programming languages do. */
static bool is_code(struct rlmd_text line)
{
	static const char *const words[] = {"import", "const", "function",
					    "class",  "def",   "package"};
	struct rlmd_text rest = after_word(line, "from");
	size_t size = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (after_word(line, words[i]).bytes)
			return true;
	while (size < rest.size && !is_space(rest.bytes[size]))
		size++;
	if (!size || size == rest.size)
		return false;
	return text_starts(text_trim(text_from(rest.bytes + size, rest.size - size)), "import");
}

/* A heading or an item of a list. */
static bool is_markdown(struct rlmd_text line)
{
	size_t size = 0;

	while (size < line.size && line.bytes[size] == '#')
		size++;
	if (size >= 1 && size <= 6)
		return size < line.size && is_space(line.bytes[size]);
	while (size < line.size && is_space(line.bytes[size]))
		size++;
	return size + 1 < line.size && (line.bytes[size] == '-' || line.bytes[size] == '*') &&
	       is_space(line.bytes[size + 1]);
}

const char *context_type(struct rlmd_text text)
{
	bool markdown = false;

	if (is_json(text))
		return "json";
	if (text.size > TYPE_PROBE)
		text.size = TYPE_PROBE;
	while (text.size) {
		const char *stop = memchr(text.bytes, '\n', text.size);
		size_t size = stop ? (size_t)(stop - text.bytes) + 1 : text.size;
		struct rlmd_text line = text_from(text.bytes, size);

		if (is_code(line))
			return "code";
		markdown |= is_markdown(line);
		text = text_from(text.bytes + size, text.size - size);
	}
	return markdown ? "markdown" : "plain";
}
