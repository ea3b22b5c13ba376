#include "source/context.h"

#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/json.h"
#include "source/skipped.h"
#include "source/sources.h"

enum {
	TYPE_PROBE = 1 << 20, /* bytes that decide on the type of content */
	TYPE_JSON_DEPTH = 512,
};

/* `name` is a good one. */
static bool from_text(const char *name, struct rlmd_text text, struct context *ret,
		      struct rlmd_error *err)
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
	*ret = (struct context){.count = 1, .notes = json_make_array()};
	ret->inputs = xcalloc(1, sizeof *ret->inputs);
	ret->inputs[0] = context_input_of(name, file);
	memfile_unref(file);
	return true;
}

bool context_from_text(struct rlmd_text text, struct context *ret, struct rlmd_error *err)
{
	return from_text("context", text, ret, err);
}

struct rlmd_context *rlmd_context_from_text(const char *name, struct rlmd_text text,
					    struct rlmd_error *err)
{
	struct context context;

	if (text.size && !text.bytes) {
		error_set(err, RLMD_ERROR_USAGE, "a text of %zu bytes is NULL", text.size);
		return NULL;
	}
	if ((name && !sources_check_name("context", name, err)) ||
	    !from_text(name ? name : "context", text, &context, err))
		return NULL;
	return context_publish(&context);
}

struct rlmd_context *context_publish(struct context *context)
{
	struct rlmd_context *published = xcalloc(1, sizeof *published);

	published->references = 1;
	published->context = *context;
	*context = (struct context){0};
	return published;
}

const struct context *context_of(const struct rlmd_context *published)
{
	return published ? &published->context : NULL;
}

struct rlmd_context *rlmd_context_ref(struct rlmd_context *published)
{
	if (published)
		published->references++;
	return published;
}

void rlmd_context_unref(struct rlmd_context *published)
{
	if (!published || --published->references)
		return;
	context_done(&published->context);
	free(published);
}

size_t rlmd_context_count(const struct rlmd_context *published)
{
	return published ? published->context.count : 0;
}

bool rlmd_context_get_input(const struct rlmd_context *published, size_t index,
			    struct rlmd_context_input *ret)
{
	const struct context_input *input;
	const struct text_scan *scan;
	struct rlmd_context_input info;

	if (index >= rlmd_context_count(published))
		return false;
	input = &published->context.inputs[index];
	scan = memfile_scan(input->file);
	info = (struct rlmd_context_input){
		.name = input->name,
		.content = memfile_text(input->file),
		.characters = scan->characters,
		.invalid_bytes = scan->invalid,
		.tokens = text_scan_tokens(scan),
		.type = input->type,
		.files = file_index_count(input->files),
		.left_out = input->left_out,
	};
	return abi_copy_out(ret, &info, sizeof info, sizeof info);
}

bool rlmd_context_get_file(const struct rlmd_context *published, size_t index, size_t file,
			   struct rlmd_context_file *ret)
{
	const struct context_input *input;
	struct rlmd_context_file info;
	struct file_entry entry;

	if (index >= rlmd_context_count(published))
		return false;
	input = &published->context.inputs[index];
	if (file >= file_index_count(input->files))
		return false;
	entry = file_index_get(input->files, file);
	info = (struct rlmd_context_file){
		.path = entry.path.bytes,
		.text = text_slice(memfile_text(input->file), entry.first_byte,
				   entry.first_byte + entry.bytes),
		.status = entry.status,
	};
	return abi_copy_out(ret, &info, sizeof info, sizeof info);
}

bool rlmd_context_get_skipped(const struct rlmd_context *published, size_t index, size_t number,
			      struct rlmd_context_skipped *ret)
{
	struct rlmd_context_skipped info = {0};

	if (index >= rlmd_context_count(published) ||
	    !skipped_get(published->context.inputs[index].skipped, number, &info.path,
			 &info.reason))
		return false;
	return abi_copy_out(ret, &info, sizeof info, sizeof info);
}

struct rlmd_text rlmd_context_changes(const struct rlmd_context *published, size_t index)
{
	const struct file_index *files = NULL;

	if (index < rlmd_context_count(published))
		files = published->context.inputs[index].files;
	return files ? file_index_changes(files) : text_of("");
}

const char *rlmd_context_note(const struct rlmd_context *published, size_t index)
{
	const json_t *notes = published ? published->context.notes : NULL;

	return json_string_value(json_array_get(notes, index));
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
	file_index_unref(input->files);
	free(input->left_out);
	json_decref(input->skipped);
}

void context_share(struct context *to, const struct context *from)
{
	to->inputs = xcalloc(from->count, sizeof *to->inputs);
	to->count = from->count;
	for (size_t i = 0; i < from->count; i++) {
		to->inputs[i] = from->inputs[i];
		to->inputs[i].name = xstrdup(from->inputs[i].name);
		memfile_ref(to->inputs[i].file);
		file_index_ref(to->inputs[i].files);
		json_incref(to->inputs[i].skipped);
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
