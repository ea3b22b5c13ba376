#include "base/memfile.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/loop.h"

enum { BLOCK_SIZE = 1 << 20 };

/* Bytes on their way to the file while the next ones gather on the heap. */
struct block {
	bool busy; /* a thread writes it: nobody else touches the rest, or the file */
	pthread_t thread;
	char *bytes; /* owned */
	size_t size, room;
	int error; /* of the thread: errno, or 0 */
};

struct memfile {
	int references;
	const char *name; /* lent */
	char *heap; /* owned: the bytes while they are few, or the last ones of a file; or NULL */
	size_t heap_size, heap_room;
	struct block block;
	int fd;    /* owned, or -1 */
	void *map; /* owned: of the file, or NULL before the first use; or the bytes themselves */
	size_t map_room;
	bool private; /* what outgrows the heap goes to `map`, up to MEMFILE_PRIVATE_MAX */
	bool sealed;
	size_t size;
	struct text_scan scan; /* of all of it, from the seal on */
	struct memfile *whole; /* referenced: of a slice, and none itself; or NULL */
	size_t start;          /* byte of that where it begins */
};

struct memfile *memfile_new(const char *name)
{
	struct memfile *file = xcalloc(1, sizeof *file);

	file->references = 1;
	file->name = name;
	file->fd = -1;
	return file;
}

struct memfile *memfile_new_private(const char *name)
{
	struct memfile *file = memfile_new(name);

	file->private = true;
	return file;
}

/* Copies the first bytes to a memory file. */
static bool spill(struct memfile *file, size_t size, struct rlmd_error *err)
{
	struct rlmd_text bytes = text_from(file->map ? file->map : file->heap, size);

	file->fd = memfd_create(file->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file->fd >= 0 && file_write_all(file->fd, bytes))
		return true;
	return error_errno(err, RLMD_ERROR_MACHINE, "no memory file for %zu bytes", file->size);
}

static void unmap(struct memfile *file)
{
	if (file->map)
		munmap(take_pointer(&file->map), file->map_room);
}

static void keep_on_heap(struct memfile *file, struct rlmd_text text)
{
	if (file->heap_size + text.size > file->heap_room) {
		file->heap_room = (file->heap_size + text.size) * 2;
		file->heap = xreallocarray(file->heap, file->heap_room, 1);
	}
	if (text.size)
		memcpy(file->heap + file->heap_size, text.bytes, text.size);
	file->heap_size += text.size;
}

/* Pages that nothing was written to cost nothing, so there may be more of them than bytes. */
static bool make_room(struct memfile *file, size_t size)
{
	void *map = file->map;

	if (size <= file->map_room)
		return true;
	if (map)
		map = mremap(map, file->map_room, size * 2, MREMAP_MAYMOVE);
	else
		map = mmap(NULL, size * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	if (map == MAP_FAILED)
		return false;
	file->map = map;
	file->map_room = size * 2;
	return true;
}

static bool keep_in_map(struct memfile *file, struct rlmd_text text, struct rlmd_error *err)
{
	size_t before = file->size - text.size;

	if (!make_room(file, file->size))
		return error_errno(err, RLMD_ERROR_MACHINE, "no memory for %zu bytes", file->size);
	if (file->heap) {
		memcpy(file->map, file->heap, before);
		free(take_pointer(&file->heap));
		file->heap_room = 0;
	}
	memcpy((char *)file->map + before, text.bytes, text.size);
	return true;
}

static bool fail_to_write(const struct memfile *file, struct rlmd_error *err)
{
	return error_errno(err, RLMD_ERROR_MACHINE, "no memory for %zu bytes of input", file->size);
}

static bool write_out(const struct memfile *file, struct rlmd_text bytes, struct rlmd_error *err)
{
	return file_write_all(file->fd, bytes) || fail_to_write(file, err);
}

/* Writes the gathered bytes to the file. */
static bool flush(struct memfile *file, struct rlmd_error *err)
{
	struct rlmd_text bytes = text_from(file->heap, file->heap_size);

	file->heap_size = 0;
	return write_out(file, bytes, err);
}

static void *write_block(void *owner)
{
	struct memfile *file = owner;
	struct block *block = &file->block;

	block->error = file_write_all(file->fd, text_from(block->bytes, block->size)) ? 0 : errno;
	return NULL;
}

static bool end_block(struct memfile *file, struct rlmd_error *err)
{
	if (!file->block.busy)
		return true;
	file->block.busy = false;
	pthread_join(file->block.thread, NULL);
	errno = file->block.error;
	return !errno || fail_to_write(file, err);
}

/* By a thread: to write them takes the kernel a third of what it takes us to read and to scan
 * the next ones. */
static bool flush_apart(struct memfile *file, struct rlmd_error *err)
{
	struct block *block = &file->block, written;

	if (!end_block(file, err))
		return false;
	written = *block;
	block->bytes = file->heap;
	block->size = file->heap_size;
	block->room = file->heap_room;
	file->heap = written.bytes;
	file->heap_size = 0;
	file->heap_room = written.room;
	block->busy = loop_start_thread(&block->thread, write_block, file, NULL);
	return block->busy || write_out(file, text_from(block->bytes, block->size), err);
}

/* Files of a directory and their headers are small: a call to the kernel for each is a tenth of
 * what they cost. */
static bool write_on(struct memfile *file, struct rlmd_text text, struct rlmd_error *err)
{
	size_t most = file->private ? MEMFILE_HEAP_MAX : BLOCK_SIZE;

	if (text.size > most)
		return end_block(file, err) && flush(file, err) && write_out(file, text, err);
	if (text.size > most - file->heap_size &&
	    !(file->private ? flush(file, err) : flush_apart(file, err)))
		return false;
	keep_on_heap(file, text);
	return true;
}

bool memfile_append_uncounted(struct memfile *file, struct rlmd_text text, struct rlmd_error *err)
{
	assert(!file->sealed);
	file->size += text.size;
	if (file->fd < 0 && file->size <= MEMFILE_HEAP_MAX) {
		keep_on_heap(file, text);
		return true;
	}
	if (file->private && file->size <= MEMFILE_PRIVATE_MAX)
		return keep_in_map(file, text, err);
	if (file->fd < 0) {
		if (!spill(file, file->size - text.size, err))
			return false;
		file->heap_size = 0;
		unmap(file);
	}
	return write_on(file, text, err);
}

bool memfile_append(struct memfile *file, struct rlmd_text text, struct rlmd_error *err)
{
	text_scan_feed(&file->scan, text);
	return memfile_append_uncounted(file, text, err);
}

void memfile_count(struct memfile *file, const struct text_scan *scan)
{
	assert(!file->sealed);
	text_scan_add(&file->scan, scan);
}

static bool seal(struct memfile *file, struct rlmd_error *err)
{
	return file_seal(file->fd) ||
	       error_errno(err, RLMD_ERROR_INTERNAL, "cannot seal a memory file");
}

bool memfile_seal(struct memfile *file, struct rlmd_error *err)
{
	text_scan_end(&file->scan);
	assert(file->scan.bytes == file->size);
	file->sealed = true;
	if (file->fd < 0)
		return true;
	if (!end_block(file, err) || !flush(file, err))
		return false;
	free(take_pointer(&file->block.bytes));
	free(take_pointer(&file->heap));
	return seal(file, err);
}

struct memfile *memfile_ref(struct memfile *file)
{
	if (file)
		file->references++;
	return file;
}

struct memfile *memfile_slice(struct memfile *whole, size_t start, const struct text_scan *scan)
{
	struct memfile *slice = memfile_new(whole->name);

	assert(whole->sealed && start + scan->bytes <= whole->size);
	slice->start = start + whole->start;
	slice->whole = memfile_ref(whole->whole ? whole->whole : whole);
	slice->private = whole->private;
	slice->size = scan->bytes;
	slice->scan = *scan;
	slice->sealed = true;
	return slice;
}

static size_t page_end(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

static void close_file(struct memfile *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

static void destroy(struct memfile *file)
{
	end_block(file, NULL);
	unmap(file);
	close_file(file);
	free(file->block.bytes);
	free(file->heap);
	free(file);
}

static void *destroy_apart(void *owner)
{
	destroy(owner);
	return NULL;
}

/* The kernel takes 0.1 to 0.2 ms a megabyte to free the pages: no loop waits for that. */
void memfile_unref(struct memfile *file)
{
	pthread_t thread;

	if (!file || --file->references)
		return;
	memfile_unref(file->whole);
	if (file->fd >= 0 && file->size > MEMFILE_PRIVATE_MAX &&
	    loop_start_thread(&thread, destroy_apart, file, NULL))
		pthread_detach(thread);
	else
		destroy(file);
}

/*
 * The file takes the place of the bytes that it was copied from: they stay at
 * their address, and in memory once. There is no way back from a failure in the
 * midst of that, and it means that the kernel has no memory for its own.
 */
static void map_in_place(struct memfile *file)
{
	size_t size = file->size;

	munmap((char *)file->map + page_end(size), file->map_room - page_end(size));
	file->map_room = page_end(size);
	if (mmap(file->map, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file->fd, 0) != file->map)
		abort();
}

int memfile_fd(struct memfile *file, struct rlmd_error *err)
{
	assert(file->sealed);
	if (file->whole)
		return memfile_fd(file->whole, err);
	if (file->fd >= 0)
		return file->fd;
	if (!spill(file, file->size, err) || !seal(file, err))
		close_file(file);
	else if (file->map)
		map_in_place(file);
	return file->fd;
}

enum text_form memfile_form(const struct memfile *file)
{
	assert(file->sealed);
	return file->size <= MEMFILE_HEAP_MAX ? TEXT_UTF8 : text_form_of(file->scan.highest);
}

size_t memfile_form_size(const struct memfile *file, enum text_form form)
{
	return form == TEXT_UTF8 ? file->size : file->scan.characters * text_form_width(form);
}

size_t memfile_start(const struct memfile *file)
{
	return file->start;
}

size_t memfile_size(const struct memfile *file)
{
	return file->size;
}

const struct text_scan *memfile_scan(const struct memfile *file)
{
	return &file->scan;
}

struct rlmd_text memfile_text(struct memfile *file)
{
	void *map;

	if (file->whole) {
		struct rlmd_text all = memfile_text(file->whole);

		return all.bytes ? text_slice(all, file->start, file->start + file->size)
				 : (struct rlmd_text){0};
	}
	if (file->size <= MEMFILE_HEAP_MAX)
		return text_from(file->heap, file->size);
	assert(file->sealed); /* else some of it is not in the file yet */
	if (!file->map) {
		map = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, file->fd, 0);
		if (map == MAP_FAILED)
			return (struct rlmd_text){0};
		file->map = map;
		file->map_room = file->size;
	}
	return text_from(file->map, file->size);
}
