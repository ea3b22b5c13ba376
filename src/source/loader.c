#include "source/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "source/secret.h"
#include "source/walk.h"

enum {
	CHUNK_SIZE = 1 << 20, /* read at once */
	BINARY_PROBE = 8000,  /* a NUL within so many bytes makes a file binary, as git has it */
	NAMES_SHOWN = 5,      /* of skipped files, of one kind */
	SECRETS_SHOWN = 20,
	WINDOW_SIZE = 1 << 16, /* of a large file, searched at once */
};

enum skip { SKIP_SECRET, SKIP_BINARY, SKIP_SPECIAL, SKIP_LINK, SKIP_UNREADABLE, SKIP_KINDS };

struct loader {
	char *name;                            /* owned */
	struct memfile *file;                  /* owned */
	json_t *files;                         /* owned; NULL: a plain text without headers */
	json_t *notes;                         /* lent */
	const struct context_loading *loading; /* lent */
	const struct file_id *named;           /* lent; what is a source itself */
	size_t named_count;
	char *chunk;       /* owned, CHUNK_SIZE bytes */
	size_t characters; /* in `file` so far; counted only with headers */
	char *left_out;    /* owned; what was skipped so far, without names; or NULL */
	bool open_line;    /* the last entry did not end in a line feed */
	char *damaged; /* owned; the first files that are not UTF-8, ready to be shown; or NULL */
	size_t damaged_count;
	struct {
		size_t count;
		char *names; /* owned; the first few, ready to be shown */
	} skipped[SKIP_KINDS];
};

struct loader *loader_new(const char *name, bool with_headers,
			  const struct context_loading *loading, json_t *notes)
{
	struct loader *loader = xcalloc(1, sizeof *loader);

	loader->name = xstrdup(name);
	loader->file = memfile_new("rlmd-context");
	loader->files = with_headers ? json_array() : NULL;
	loader->notes = notes;
	loader->loading = loading;
	loader->chunk = xcalloc(CHUNK_SIZE, 1);
	return loader;
}

void loader_set_named(struct loader *loader, const struct file_id *files, size_t count)
{
	loader->named = files;
	loader->named_count = count;
}

void loader_free(struct loader *loader)
{
	if (!loader)
		return;
	for (size_t i = 0; i < SKIP_KINDS; i++)
		free(loader->skipped[i].names);
	memfile_unref(loader->file);
	json_decref(loader->files);
	free(loader->left_out);
	free(loader->damaged);
	free(loader->chunk);
	free(loader->name);
	free(loader);
}

/* `scan` counts the characters of one entry; NULL where nobody asks. */
static bool add_text(struct loader *loader, struct rlmd_text text, struct text_scan *scan,
		     struct rlmd_error *err)
{
	if (text.size > CONTEXT_SIZE_MAX - memfile_size(loader->file))
		return error_set(err, RLMD_ERROR_INPUT, "one variable can hold at most %zu GiB",
				 CONTEXT_SIZE_MAX >> 30);
	if (scan)
		text_scan_feed(scan, text);
	if (text.size)
		loader->open_line = text.bytes[text.size - 1] != '\n';
	return memfile_append(loader->file, text, err);
}

/* Fills the chunk as far as the file goes. */
static bool read_chunk(struct loader *loader, int fd, size_t *ret_size, struct rlmd_error *err)
{
	size_t size = 0, got;

	if (loader->loading->progress)
		loader->loading->progress(memfile_size(loader->file),
					  json_array_size(loader->files));
	do {
		if (!file_take_fd(fd, loader->chunk + size, CHUNK_SIZE - size,
				  loader->loading->deadline, &got, err))
			return false;
		size += got;
	} while (got && size < CHUNK_SIZE);
	*ret_size = size;
	return true;
}

/* `size` bytes of the chunk, and the rest of the file. A chunk that is not full was the last: a
 * terminal would have to be told of the end twice. */
static bool add_rest(struct loader *loader, int fd, size_t size, struct text_scan *scan,
		     struct rlmd_error *err)
{
	bool more;

	do {
		if (!add_text(loader, text_from(loader->chunk, size), scan, err))
			return false;
		more = size == CHUNK_SIZE;
		if (more && !read_chunk(loader, fd, &size, err))
			return false;
	} while (more);
	return true;
}

static bool add_header(struct loader *loader, const char *label, struct rlmd_error *err)
{
	auto_free char *header = xasprintf("%s===== %s =====\n", loader->open_line ? "\n" : "",
					   label);
	struct text_scan scan = {0};

	if (!add_text(loader, text_of(header), &scan, err))
		return false;
	text_scan_end(&scan);
	loader->characters += scan.characters;
	return true;
}

/* The first few are named. */
static void note_damaged(struct loader *loader, const char *label)
{
	auto_free char *before = take_pointer(&loader->damaged);
	bool shown = loader->damaged_count++ < NAMES_SHOWN;

	loader->damaged = xasprintf("%s%s%s", before ? before : "", before && shown ? ", " : "",
				    shown ? label : "");
}

static bool add_entry(struct loader *loader, const char *label, int fd, size_t size,
		      struct rlmd_error *err)
{
	size_t room = strlen(label) * 6 + 1; /* the longest escape of a byte, or of a character */
	auto_free char *safe = xcalloc(room, 1);
	struct text_scan scan = {0};

	text_escape(text_of(label), safe, room);
	if (!add_header(loader, safe, err) || !add_rest(loader, fd, size, &scan, err))
		return false;
	text_scan_end(&scan);
	if (scan.invalid)
		note_damaged(loader, safe);
	json_array_append_new(loader->files,
			      json_pack("[s, I, I]", safe, (json_int_t)loader->characters,
					(json_int_t)scan.characters));
	loader->characters += scan.characters;
	return true;
}

bool loader_add_fd(struct loader *loader, const char *label, int fd, struct rlmd_error *err)
{
	size_t size;

	if (!read_chunk(loader, fd, &size, err))
		return false;
	if (loader->files)
		return add_entry(loader, label, fd, size, err);
	note_damaged(loader, strcmp(label, "-") ? label : "standard input"); /* if it is */
	return add_rest(loader, fd, size, NULL, err);
}

static const struct {
	const char *one, *many, *advice;
	size_t shown; /* names, at most */
} skips[] = {
	[SKIP_SECRET] = {"file that looks like a secret", "files that look like secrets",
			 "; to send one, name it itself with -c", SECRETS_SHOWN},
	[SKIP_BINARY] = {"binary file", "binary files", "", NAMES_SHOWN},
	[SKIP_SPECIAL] = {"socket, device or FIFO", "sockets, devices or FIFOs", "", NAMES_SHOWN},
	[SKIP_LINK] = {"link that leads out of it or nowhere",
		       "links that lead out of it or nowhere", "", NAMES_SHOWN},
	[SKIP_UNREADABLE] = {"entry that cannot be read", "entries that cannot be read", "",
			     NAMES_SHOWN},
};

/* `why` may be NULL. */
static void skip(struct loader *loader, enum skip kind, const char *label, const char *why)
{
	char **names = &loader->skipped[kind].names;
	size_t count = loader->skipped[kind].count++;
	char safe[256];
	char *longer;

	if (count >= skips[kind].shown)
		return;
	text_escape(text_of(label), safe, sizeof safe);
	longer = xasprintf("%s%s%s%s%s%s", *names ? *names : "", *names ? ", " : "", safe,
			   why ? " (" : "", why ? why : "", why ? ")" : "");
	free(*names);
	*names = longer;
}

static void leave_out(struct loader *loader, size_t count, const char *what)
{
	auto_free char *before = take_pointer(&loader->left_out);

	loader->left_out = xasprintf("%s%s%zu %s", before ? before : "", before ? ", " : "", count,
				     what);
}

static void note_skipped(struct loader *loader, const char *directory)
{
	for (size_t i = 0; i < SKIP_KINDS; i++) {
		size_t count = loader->skipped[i].count;
		auto_free char *names = take_pointer(&loader->skipped[i].names);
		auto_free char *note = NULL;

		loader->skipped[i].count = 0;
		if (!count)
			continue;
		note = xasprintf("%s: skipped %zu %s: %s%s%s", directory, count,
				 count == 1 ? skips[i].one : skips[i].many, names,
				 count > skips[i].shown ? ", ..." : "", skips[i].advice);
		json_array_append_new(loader->notes, json_from_text(text_of(note)));
		leave_out(loader, count, count == 1 ? skips[i].one : skips[i].many);
	}
}

/* A link to what is in the directory needs no mention: its target is read itself. Nothing is
 * opened for this. */
static bool link_stays(const char *path, const char *root)
{
	auto_free char *target = realpath(path, NULL);
	auto_free char *top = realpath(root, NULL);
	size_t size = top ? strlen(top) : 0;

	if (!target || !top)
		return false;
	return !strcmp(top, "/") || (!strncmp(target, top, size) && target[size] == '/');
}

/* One walk through a directory. All lent. */
struct visit {
	struct loader *loader;
	const char *root;   /* without a slash at its end, unless it is all */
	const char *prefix; /* of the paths that are shown: empty, or the root and a slash */
};

/* In what comes behind the chunk; it is read once more then. */
static bool search_rest(struct loader *loader, int fd, const char **ret_what,
			struct rlmd_error *err)
{
	auto_free char *window = xcalloc(WINDOW_SIZE, 1);
	off_t offset = CHUNK_SIZE - SECRET_SPAN;
	ssize_t got;

	do {
		if (!file_may_go_on(loader->loading->deadline, err))
			return false;
		got = pread(fd, window, WINDOW_SIZE, offset);
		if (got > 0)
			*ret_what = secret_in_text(text_from(window, (size_t)got));
		offset += WINDOW_SIZE - SECRET_SPAN;
	} while (got == WINDOW_SIZE && !*ret_what);
	return true;
}

/* `ret_what`: what secret the file seems to be, or to hold; NULL: none. */
static bool search_secrets(struct loader *loader, const char *path, int fd, size_t size,
			   const char **ret_what, struct rlmd_error *err)
{
	struct rlmd_text text = text_from(loader->chunk, size);

	*ret_what = secret_by_name(path, text);
	if (!*ret_what)
		*ret_what = secret_in_text(text);
	return *ret_what || size < CHUNK_SIZE || search_rest(loader, fd, ret_what, err);
}

static bool is_named(const struct loader *loader, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	for (size_t i = 0; i < loader->named_count; i++)
		if (loader->named[i].device == st.st_dev && loader->named[i].number == st.st_ino)
			return true;
	return false;
}

/* `path` is that in the directory, `label` what is shown. */
static bool add_found(struct loader *loader, const char *path, const char *label, int fd,
		      struct rlmd_error *err)
{
	const char *secret;
	size_t size;

	if (!file_may_go_on(loader->loading->deadline, err))
		return false;
	if (!read_chunk(loader, fd, &size, NULL)) {
		skip(loader, SKIP_UNREADABLE, label, NULL);
		return true;
	}
	if (memchr(loader->chunk, '\0', size < BINARY_PROBE ? size : BINARY_PROBE)) {
		skip(loader, SKIP_BINARY, label, NULL);
		return true;
	}
	if (!search_secrets(loader, path, fd, size, &secret, err))
		return error_context(err, "%s", label);
	if (secret) {
		if (!is_named(loader, fd))
			skip(loader, SKIP_SECRET, label, secret);
		return true;
	}
	return add_entry(loader, label, fd, size, err) || error_context(err, "%s", label);
}

static bool add_visited(void *owner, const struct walk_entry *entry, struct rlmd_error *err)
{
	const struct visit *visit = owner;
	auto_free char *label = xasprintf("%s%s", visit->prefix, entry->path);
	auto_free char *path = NULL;

	switch (entry->kind) {
	case WALK_FILE:
		return add_found(visit->loader, entry->path, label, entry->fd, err);
	case WALK_LINK:
		path = xasprintf("%s/%s", visit->root, entry->path);
		if (!link_stays(path, visit->root))
			skip(visit->loader, SKIP_LINK, label, NULL);
		return true;
	case WALK_SPECIAL:
		skip(visit->loader, SKIP_SPECIAL, label, NULL);
		return true;
	case WALK_UNREADABLE:
		skip(visit->loader, SKIP_UNREADABLE, label, NULL);
		return true;
	}
	return true;
}

/* Before the paths in a directory: nothing, or its own. */
static char *prefix_of(const char *root, bool prefixed)
{
	if (!prefixed || !strcmp(root, "."))
		return xstrdup("");
	if (!strncmp(root, "./", 2))
		root += 2;
	return xasprintf("%s%s", root, strcmp(root, "/") ? "/" : "");
}

/* What was skipped may be why: the first note since `noted`. */
static bool no_file(const struct loader *loader, const char *root, size_t noted,
		    struct rlmd_error *err)
{
	const char *why = json_string_value(json_array_get(loader->notes, noted));

	return error_set(err, RLMD_ERROR_INPUT, "there is no text file in the directory %s%s%s",
			 root, why ? "; " : "", why ? why : "");
}

bool loader_add_directory(struct loader *loader, const char *path, bool prefixed,
			  struct rlmd_error *err)
{
	auto_free char *root = xstrdup(path), *prefix = NULL;
	struct visit visit = {.loader = loader, .root = root};
	size_t before = json_array_size(loader->files), noted = json_array_size(loader->notes);
	size_t size = strlen(root);
	bool ok;

	while (size > 1 && root[size - 1] == '/')
		root[--size] = '\0';
	visit.prefix = prefix = prefix_of(root, prefixed);
	ok = walk_directory(root, add_visited, &visit, err);
	note_skipped(loader, root);
	if (ok && json_array_size(loader->files) == before)
		return no_file(loader, root, noted, err);
	return ok;
}

bool loader_finish(struct loader *loader, struct context_input *ret, struct rlmd_error *err)
{
	size_t invalid;

	if (!memfile_seal(loader->file, err))
		return false;
	invalid = memfile_scan(loader->file)->invalid;
	if (invalid) {
		auto_free char *note = xasprintf(
			"%s: %zu byte%s not UTF-8, in %s%s; Python sees surrogate escapes there",
			loader->name, invalid, invalid == 1 ? " is" : "s are",
			loader->damaged ? loader->damaged : loader->name,
			loader->damaged_count > NAMES_SHOWN ? ", ..." : "");

		json_array_append_new(loader->notes, json_from_text(text_of(note)));
	}
	*ret = context_input_of(loader->name, loader->file);
	ret->files = json_incref(loader->files);
	ret->left_out = take_pointer(&loader->left_out);
	return true;
}
