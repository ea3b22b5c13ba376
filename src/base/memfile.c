#include "base/memfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"

struct memfile {
	int references;
	const char *name; /* lent */
	char *heap;       /* owned: the bytes while they are few, or NULL */
	size_t heap_size, heap_room;
	int fd;    /* owned, or -1 */
	void *map; /* owned mapping of `scan.bytes`, or NULL before the first use */
	bool sealed;
	struct text_scan scan;
};

struct memfile *memfile_new(const char *name)
{
	struct memfile *file = xcalloc(1, sizeof *file);

	file->references = 1;
	file->name = name;
	file->fd = -1;
	return file;
}

static bool write_all(int fd, struct text text)
{
	while (text.size) {
		ssize_t written = write(fd, text.bytes, text.size);

		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0)
			text = text_from(text.bytes + written, text.size - (size_t)written);
	}
	return true;
}

/* Moves to a memory file; the heap's bytes stay where they are lent. */
static bool spill(struct memfile *file, struct error *err)
{
	file->fd = memfd_create(file->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file->fd >= 0 && write_all(file->fd, text_from(file->heap, file->heap_size)))
		return true;
	return error_errno(err, ERROR_INPUT, "no memory file for %zu bytes", file->scan.bytes);
}

static void keep_on_heap(struct memfile *file, struct text text)
{
	if (file->heap_size + text.size > file->heap_room) {
		file->heap_room = (file->heap_size + text.size) * 2;
		file->heap = xreallocarray(file->heap, file->heap_room, 1);
	}
	if (text.size)
		memcpy(file->heap + file->heap_size, text.bytes, text.size);
	file->heap_size += text.size;
}

bool memfile_append(struct memfile *file, struct text text, struct error *err)
{
	assert(!file->sealed);
	text_scan_feed(&file->scan, text);
	if (file->fd < 0 && file->scan.bytes <= MEMFILE_HEAP_MAX) {
		keep_on_heap(file, text);
		return true;
	}
	if (file->fd < 0) {
		if (!spill(file, err))
			return false;
		free(file->heap);
		file->heap = NULL;
	}
	return write_all(file->fd, text) ||
	       error_errno(err, ERROR_INPUT, "no memory for %zu bytes of input", file->scan.bytes);
}

static bool seal(struct memfile *file, struct error *err)
{
	return !fcntl(file->fd, F_ADD_SEALS,
		      F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ||
	       error_errno(err, ERROR_INTERNAL, "cannot seal a memory file");
}

bool memfile_seal(struct memfile *file, struct error *err)
{
	text_scan_end(&file->scan);
	file->sealed = true;
	return file->fd < 0 || seal(file, err);
}

struct memfile *memfile_ref(struct memfile *file)
{
	if (file)
		file->references++;
	return file;
}

static void close_file(struct memfile *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

void memfile_unref(struct memfile *file)
{
	if (!file || --file->references)
		return;
	if (file->map)
		munmap(file->map, file->scan.bytes);
	close_file(file);
	free(file->heap);
	free(file);
}

int memfile_fd(struct memfile *file, struct error *err)
{
	assert(file->sealed);
	if (file->fd < 0 && (!spill(file, err) || !seal(file, err)))
		close_file(file);
	return file->fd;
}

size_t memfile_size(const struct memfile *file)
{
	return file->scan.bytes;
}

const struct text_scan *memfile_scan(const struct memfile *file)
{
	return &file->scan;
}

struct text memfile_text(struct memfile *file)
{
	void *map;

	if (file->scan.bytes <= MEMFILE_HEAP_MAX)
		return text_from(file->heap, file->scan.bytes);
	if (!file->map) {
		map = mmap(NULL, file->scan.bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);
		if (map == MAP_FAILED)
			return (struct text){0};
		file->map = map;
	}
	return text_from(file->map, file->scan.bytes);
}
