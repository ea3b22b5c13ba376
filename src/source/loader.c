#include "source/loader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "sandbox/cgroup.h"
#include "source/notebook.h"
#include "source/secret.h"
#include "source/skipped.h"

enum {
	CHUNK_SIZE = 1 << 20, /* read at once */
	BINARY_PROBE = 8000,  /* a NUL within so many bytes makes a file binary, as git has it */
	NAMES_SHOWN = 5,      /* of files that are not UTF-8 */
	MEMORY_BESIDE =
		96 << 20, /* bytes: the programs at work need as much, or an eighth of all */
};

/* The changes of an input, as its code and its user are told of them. */
struct change_list {
	json_t *changes; /* owned; NULL: nothing is compared */
	size_t secrets;  /* changes whose hunks are kept back */
};

struct loader {
	char *name;               /* owned */
	struct memfile *file;     /* owned */
	struct file_index *files; /* owned; NULL: a plain text without headers */
	struct loader_options options;
	uint64_t memory;             /* bytes that there are for all */
	json_t *notes;               /* lent */
	const struct file_id *named; /* lent; what is a source itself */
	size_t named_count;
	char *chunk;       /* owned, CHUNK_SIZE bytes */
	size_t filled;     /* of it */
	size_t characters; /* in `file` so far; counted only with headers */
	char *left_out;    /* owned; what was skipped so far, without names; or NULL */
	bool open_line;    /* the last entry did not end in a line feed */
	char *damaged; /* owned; the first files that are not UTF-8, ready to be shown; or NULL */
	size_t damaged_count;
	struct skipped skipped;

	/* The stage that is under way. */
	enum { WALKS, READS_FIRST, SEARCHES, READS } stage;
	char *path;   /* owned: of the file in its directory; NULL: it is a source itself */
	char *label;  /* owned: as it is shown; escaped, where it has a header */
	bool first;   /* nothing of the file was taken yet */
	size_t start; /* of its text in `file` */
	struct text_scan scan; /* of the file */
	struct notebook notebook;
	struct origin *origin; /* owned; NULL: one file alone */
	struct file_content content;
	const char *status; /* of the file's change; or NULL */
	json_t *hunks;      /* lent: of its change; or NULL */
	struct change_list changes;
	char *root;   /* owned: of the walk, without a slash at its end, unless it is all */
	char *prefix; /* owned: of the labels: empty, or the root and a slash */
	size_t files_before, notes_before; /* the directory */
};

/* Of the machine, with its swap, or of the cgroup that limits this process most. */
static uint64_t memory_in_all(void)
{
	uint64_t above = cgroup_memory_above(), machine = UINT64_MAX;
	struct sysinfo info;

	if (!sysinfo(&info))
		machine = ((uint64_t)info.totalram + info.totalswap) * info.mem_unit;
	return above < machine ? above : machine;
}

struct loader *loader_new(const char *name, bool with_headers, const struct loader_options *options,
			  json_t *notes)
{
	struct loader *loader = xcalloc(1, sizeof *loader);

	loader->name = xstrdup(name);
	loader->file = memfile_new("rlmd-context");
	loader->files = with_headers ? file_index_new() : NULL;
	loader->options = *options;
	loader->memory = memory_in_all();
	loader->notes = notes;
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
	skipped_done(&loader->skipped);
	origin_free(loader->origin);
	json_decref(loader->changes.changes);
	free(loader->root);
	free(loader->prefix);
	free(loader->path);
	free(loader->label);
	memfile_unref(loader->file);
	file_index_unref(loader->files);
	free(loader->left_out);
	free(loader->damaged);
	free(loader->chunk);
	free(loader->name);
	free(loader);
}

/* Texts stay in memory. Where it ends the kernel would kill whatever process is largest. */
static bool has_memory(const struct loader *loader, size_t size, struct rlmd_error *err)
{
	uint64_t beside = loader->memory / 8 > MEMORY_BESIDE ? loader->memory / 8 : MEMORY_BESIDE;
	uint64_t most = loader->memory > 2 * beside ? loader->memory - beside : loader->memory / 2;

	return loader->options.taken + size <= most ||
	       error_set(err, RLMD_ERROR_INPUT,
			 "the input is larger than the %" PRIu64
			 " MiB that fit into memory: this machine, or the cgroup that it runs in "
			 "(memory.max), has %" PRIu64 " MiB. Allow more, or take less with include "
			 "and exclude",
			 most >> 20, loader->memory >> 20);
}

/* `scan` counts it: of one entry, or of its header; NULL: the memory file does. */
static bool add_text(struct loader *loader, struct rlmd_text text, struct text_scan *scan,
		     struct rlmd_error *err)
{
	size_t most = loader->options.max_size, used = memfile_size(loader->file);

	if (used > most || text.size > most - used) {
		if (most == CONTEXT_SIZE_MAX)
			return error_set(err, RLMD_ERROR_INPUT,
					 "one variable can hold at most %zu GiB", most >> 30);
		return error_set(err, RLMD_ERROR_INPUT,
				 "the context is larger than %zu bytes (max-context): allow "
				 "more, or take less with include and exclude",
				 most);
	}
	if (!has_memory(loader, used + text.size, err))
		return false;
	if (text.size)
		loader->open_line = text.bytes[text.size - 1] != '\n';
	if (!scan)
		return memfile_append(loader->file, text, err);
	text_scan_feed(scan, text);
	return memfile_append_uncounted(loader->file, text, err);
}

static void end_scan(struct loader *loader, struct text_scan *scan)
{
	text_scan_end(scan);
	memfile_count(loader->file, scan);
	loader->characters += scan->characters;
}

static bool add_header(struct loader *loader, const char *label, struct rlmd_error *err)
{
	auto_free char *header = xasprintf("%s===== %s =====\n", loader->open_line ? "\n" : "",
					   label);
	struct text_scan scan = {0};

	if (!add_text(loader, text_of(header), &scan, err))
		return false;
	end_scan(loader, &scan);
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

/* The kind of secret that the file seems to be, or its beginning to hold; NULL: none. */
static const char *search_chunk(const struct loader *loader)
{
	struct rlmd_text text = text_from(loader->chunk, loader->filled);
	const char *what = secret_by_name(loader->path, text);

	return what ? what : secret_in_text(text);
}

/* `label` and `path` are taken. */
static void begin_file(struct loader *loader, struct file_content content, char *label, char *path)
{
	free(loader->label);
	free(loader->path);
	loader->label = label;
	loader->path = path;
	loader->content = content;
	loader->status = NULL;
	loader->hunks = NULL;
	loader->filled = 0;
	loader->first = true;
	loader->scan = (struct text_scan){0};
	loader->notebook = (struct notebook){0};
	loader->stage = path ? READS_FIRST : READS;
}

/* The next of the directory's, or what comes after one source. */
static enum loader_end end_file(struct loader *loader)
{
	loader->stage = WALKS;
	return loader->origin ? LOADER_GOES_ON : LOADER_DONE;
}

static bool holds_secret(json_t *hunks)
{
	const char *text;
	json_t *hunk;
	size_t i;

	json_array_foreach (hunks, i, hunk) {
		text = json_string_value(json_object_get(hunk, "text"));
		if (text && secret_in_text(text_of(text)))
			return true;
	}
	return false;
}

/* `path` is ready to be shown. Hunks in which a secret stands or stood are left out, unless they
 * are `allowed`; NULL: there are none. */
static void add_change(struct change_list *list, const char *path, const char *status,
		       json_t *hunks, bool allowed)
{
	bool kept = hunks && !allowed && holds_secret(hunks);

	list->secrets += kept;
	json_append(list->changes,
		    json_make("{s: s, s: s, s: o}", "path", path, "status", status, "hunks",
			      hunks && !kept ? json_incref(hunks) : json_make_array()));
}

static int compare_changes(const void *a, const void *b)
{
	return strcmp(json_string_value(json_object_get(*(json_t *const *)a, "path")),
		      json_string_value(json_object_get(*(json_t *const *)b, "path")));
}

/* Files that are gone come last, and belong between the others. */
static void sort_changes(struct change_list *list)
{
	size_t count = json_array_size(list->changes), i;
	json_t **changes = xcalloc(count + 1, sizeof(json_t *)), *change;

	json_array_foreach (list->changes, i, change)
		changes[i] = json_incref(change);
	qsort(changes, count, sizeof(json_t *), compare_changes);
	json_array_clear(list->changes);
	for (i = 0; i < count; i++)
		json_append(list->changes, changes[i]);
	free(changes);
}

/* `label` is ready to be shown. */
static void note_change(struct loader *loader, const char *label, const char *status, json_t *hunks)
{
	if (status && loader->changes.changes)
		add_change(&loader->changes, label, status, hunks, loader->options.allow_secrets);
}

/* Of a file that is not taken itself. */
static void note_change_alone(struct loader *loader, const char *label, const char *status)
{
	auto_free char *shown = file_index_key(label);

	note_change(loader, shown, status, NULL);
}

static enum loader_end end_entry(struct loader *loader)
{
	size_t first = loader->characters;

	if (!loader->files)
		return end_file(loader);
	end_scan(loader, &loader->scan);
	if (loader->scan.invalid)
		note_damaged(loader, loader->label);
	if (loader->notebook.dropped)
		skipped_add(&loader->skipped, SKIP_OUTPUTS, loader->label, NULL);
	file_index_add(loader->files, loader->label, loader->start, first, &loader->scan,
		       loader->status);
	note_change(loader, loader->label, loader->status, loader->hunks);
	return end_file(loader);
}

static bool begin_entry(struct loader *loader, struct rlmd_error *err)
{
	char *safe;

	loader->first = false;
	if (!loader->files) {
		note_damaged(loader, /* if it is */
			     strcmp(loader->label, "-") ? loader->label : "standard input");
		return true;
	}
	safe = file_index_key(loader->label);
	free(loader->label);
	loader->label = safe;
	if (!add_header(loader, safe, err))
		return false;
	loader->start = memfile_size(loader->file);
	loader->scan.tokens.of_many = loader->start > TOKEN_EXACT;
	return true;
}

/* A chunk that is not full was the last: a terminal would have to be told of the end twice. */
static enum loader_end take_chunk(struct loader *loader, struct rlmd_error *err)
{
	size_t size = loader->filled, left = size;

	loader->filled = 0;
	loader->stage = READS;
	if (loader->path && notebook_is_name(loader->path))
		left = notebook_filter(&loader->notebook, loader->chunk, size);
	if ((loader->first && !begin_entry(loader, err)) ||
	    !add_text(loader, text_from(loader->chunk, left), loader->files ? &loader->scan : NULL,
		      err)) {
		if (loader->path)
			error_context(err, "%s", loader->label);
		return LOADER_FAILED;
	}
	return size == CHUNK_SIZE ? LOADER_GOES_ON : end_entry(loader);
}

static enum loader_end pass_over(struct loader *loader, enum skip kind, const char *why)
{
	skipped_add(&loader->skipped, kind, loader->label, why);
	note_change_alone(loader, loader->label, loader->status);
	return end_file(loader);
}

/* Left out; or taken, where somebody insists, and told. */
static enum loader_end meet_secret(struct loader *loader, const char *what, struct rlmd_error *err)
{
	if (content_is_one_of(&loader->content, loader->named, loader->named_count))
		return end_file(loader);
	if (!loader->options.allow_secrets)
		return pass_over(loader, SKIP_SECRET, what);
	skipped_add(&loader->skipped, SENT_SECRET, loader->label, what);
	return take_chunk(loader, err);
}

/* The beginning of a file of a directory says whether it is wanted. */
static enum loader_end judge(struct loader *loader, struct rlmd_error *err)
{
	size_t probe = loader->filled < BINARY_PROBE ? loader->filled : BINARY_PROBE;
	const char *secret;

	if (memchr(loader->chunk, '\0', probe))
		return pass_over(loader, SKIP_BINARY, NULL);
	if (content_is_larger(&loader->content, loader->options.max_file_size))
		return pass_over(loader, SKIP_LARGE, NULL);
	secret = search_chunk(loader);
	if (secret)
		return meet_secret(loader, secret, err);
	if (loader->filled < CHUNK_SIZE)
		return take_chunk(loader, err);
	loader->stage = SEARCHES;
	return LOADER_GOES_ON;
}

static enum loader_end search_on(struct loader *loader, struct rlmd_error *err)
{
	const char *secret;

	if (!content_search(&loader->content, CHUNK_SIZE, &secret))
		return LOADER_GOES_ON;
	return secret ? meet_secret(loader, secret, err) : take_chunk(loader, err);
}

static enum loader_end fail_to_read(struct loader *loader, struct rlmd_error *err)
{
	if (loader->stage == READS_FIRST)
		return pass_over(loader, SKIP_UNREADABLE, NULL);
	error_errno(err, RLMD_ERROR_INPUT, "cannot read");
	if (loader->path)
		error_context(err, "%s", loader->label);
	return LOADER_FAILED;
}

/* As much as is there, up to a chunk. */
static enum loader_end read_on(struct loader *loader, struct rlmd_error *err)
{
	ssize_t got;

	if (content_waits(&loader->content))
		return LOADER_WAITS;
	got = content_take(&loader->content, loader->chunk + loader->filled,
			   CHUNK_SIZE - loader->filled);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return LOADER_GOES_ON;
	if (got < 0)
		return fail_to_read(loader, err);
	loader->filled += (size_t)got;
	if (got && loader->filled < CHUNK_SIZE && !content_ends(&loader->content))
		return LOADER_GOES_ON;
	return loader->stage == READS_FIRST ? judge(loader, err) : take_chunk(loader, err);
}

/* An empty directory may be due to skipped files: tells the first note. */
static enum loader_end end_directory(struct loader *loader, struct rlmd_error *err)
{
	const char *why;

	while ((why = origin_missing(loader->origin)))
		skipped_add(&loader->skipped, SKIP_MISSING, why, NULL);
	origin_free(take_pointer(&loader->origin));
	skipped_tell(&loader->skipped, loader->root, loader->notes, &loader->left_out);
	if (loader->changes.changes || file_index_count(loader->files) > loader->files_before)
		return LOADER_DONE;
	why = json_string_value(json_array_get(loader->notes, loader->notes_before));
	error_set(err, RLMD_ERROR_INPUT, "there is no text file in the directory %s%s%s",
		  loader->root, why ? "; " : "", why ? why : "");
	return LOADER_FAILED;
}

/* One thing that a directory, a revision or a comparison has. */
static enum loader_end meet_entry(struct loader *loader, const struct origin_entry *entry)
{
	auto_free char *label = xasprintf("%s%s", loader->prefix, entry->path);

	if (entry->kind == LISTING_FILE) {
		begin_file(loader,
			   entry->fd < 0 ? content_of_text(entry->text) : content_of_fd(entry->fd),
			   take_pointer(&label), xstrdup(entry->path));
		loader->status = entry->status;
		loader->hunks = entry->hunks;
		return LOADER_GOES_ON;
	}
	note_change_alone(loader, label, entry->status);
	if (entry->kind != LISTING_DELETED)
		skipped_add(&loader->skipped, skipped_kind(entry->kind), label, NULL);
	return LOADER_GOES_ON;
}

static enum loader_end walk_on(struct loader *loader, struct rlmd_error *err)
{
	struct origin_entry entry;

	if (!loader->origin)
		return LOADER_DONE;
	switch (origin_next(loader->origin, &entry, err)) {
	case ORIGIN_ENTRY:
		return meet_entry(loader, &entry);
	case ORIGIN_PASSED:
		return LOADER_GOES_ON;
	case ORIGIN_WAITS:
		return LOADER_WAITS;
	case ORIGIN_OVER:
		return end_directory(loader, err);
	case ORIGIN_FAILED:
		break;
	}
	return LOADER_FAILED;
}

enum loader_end loader_step(struct loader *loader, struct rlmd_error *err)
{
	switch (loader->stage) {
	case WALKS:
		return walk_on(loader, err);
	case READS_FIRST:
	case READS:
		return read_on(loader, err);
	case SEARCHES:
		return search_on(loader, err);
	}
	return LOADER_DONE;
}

void loader_begin_fd(struct loader *loader, const char *label, int fd)
{
	begin_file(loader, content_of_fd(fd), xstrdup(label), NULL);
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

/* Both are taken. */
static void begin_origin(struct loader *loader, char *root, char *prefix)
{
	free(loader->root);
	free(loader->prefix);
	loader->root = root;
	loader->prefix = prefix;
	loader->files_before = file_index_count(loader->files);
	loader->notes_before = json_array_size(loader->notes);
	loader->stage = WALKS;
}

bool loader_begin_directory(struct loader *loader, const char *path, bool prefixed,
			    struct rlmd_error *err)
{
	size_t size = strlen(path);
	char *root = xstrdup(path);

	while (size > 1 && root[size - 1] == '/')
		root[--size] = '\0';
	begin_origin(loader, root, prefix_of(root, prefixed));
	if (loader->options.origin.compares && !loader->changes.changes)
		loader->changes.changes = json_make_array();
	loader->origin = origin_directory(root, &loader->options.origin, loader->notes, err);
	return loader->origin;
}

bool loader_begin_revision(struct loader *loader, const char *revision, bool prefixed,
			   struct rlmd_error *err)
{
	int size = prefixed ? (int)strcspn(revision, ":") + 1 : 0;

	begin_origin(loader, xasprintf("git:%s", revision),
		     size ? xasprintf("%.*s:", size - 1, revision) : xstrdup(""));
	loader->origin = origin_revision(revision, &loader->options.origin, loader->notes, err);
	return loader->origin;
}

int loader_fd(const struct loader *loader)
{
	return loader->stage == WALKS && loader->origin ? origin_fd(loader->origin) : -1;
}

size_t loader_bytes(const struct loader *loader)
{
	return memfile_size(loader->file);
}

size_t loader_files(const struct loader *loader)
{
	return file_index_count(loader->files);
}

static void tell_changes(struct loader *loader)
{
	auto_free char *text = NULL;

	sort_changes(&loader->changes);
	text = json_to_string(loader->changes.changes);
	file_index_set_changes(loader->files, text_of(text));
	if (loader->changes.secrets) {
		auto_free char *note = xasprintf(
			"%s: the hunks of %zu changes are left out: what looks like a "
			"secret stands or stood in them",
			loader->name, loader->changes.secrets);

		json_append(loader->notes, json_from_text(text_of(note)));
	}
}

bool loader_seal(struct loader *loader, struct rlmd_error *err)
{
	return memfile_seal(loader->file, err);
}

bool loader_finish(struct loader *loader, struct context_input *ret, struct rlmd_error *err)
{
	size_t invalid = memfile_scan(loader->file)->invalid;

	if (loader->changes.changes)
		tell_changes(loader);
	if (loader->files && !file_index_seal(loader->files, err))
		return false;
	if (invalid) {
		auto_free char *note = xasprintf(
			"%s: %zu byte%s not UTF-8, in %s%s; Python sees surrogate escapes there",
			loader->name, invalid, invalid == 1 ? " is" : "s are",
			loader->damaged ? loader->damaged : loader->name,
			loader->damaged_count > NAMES_SHOWN ? ", ..." : "");

		json_append(loader->notes, json_from_text(text_of(note)));
	}
	*ret = context_input_of(loader->name, loader->file);
	ret->files = file_index_ref(loader->files);
	ret->left_out = take_pointer(&loader->left_out);
	ret->skipped = take_pointer(&loader->skipped.all);
	return true;
}
