#include "losing_disk.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum { SECTOR = 512 };

struct change {
	int64_t offset; /* of the bytes; or the size that the file was cut to */
	size_t size;
	char *bytes; /* owned; NULL: it was cut */
};

/* The bytes of a file on the disk itself, and those that wait for the next sync. */
struct image {
	char *bytes;
	size_t size, room;
	struct change *changes;
	size_t count, change_room;
};

struct losing_file {
	sqlite3_file base;
	struct image *image; /* lent; NULL: what is lost of it does not matter */
	sqlite3_file *usual; /* behind this struct */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct image images[LOSING_DISK_FILES];
static sqlite3_vfs vfs;
static sqlite3_vfs *usual;

static struct {
	int left; /* until the cut; 0: there is none to come */
	unsigned seed;
	char path[256];
	const atomic_int *said;
	bool done;
	int said_then;
} cut;

/* --- images ------------------------------------------------------------------- */

static void resize(struct image *image, size_t size)
{
	if (size > image->room) {
		image->room = 2 * size;
		image->bytes = xreallocarray(image->bytes, image->room, 1);
	}
	if (size > image->size)
		memset(image->bytes + image->size, 0, size - image->size);
	image->size = size;
}

static void write_part(struct image *image, const struct change *change, size_t from, size_t size)
{
	size_t place = (size_t)change->offset + from;

	if (place + size > image->size)
		resize(image, place + size);
	memcpy(image->bytes + place, change->bytes + from, size);
}

static void apply(struct image *image, const struct change *change, unsigned *seed)
{
	if (!change->bytes) {
		if (!seed || rand_r(seed) % 2)
			resize(image, (size_t)change->offset);
		return;
	}
	for (size_t from = 0, size; from < change->size; from += size) {
		size = SECTOR - ((size_t)change->offset + from) % SECTOR;
		if (size > change->size - from)
			size = change->size - from;
		if (!seed || rand_r(seed) % 2)
			write_part(image, change, from, size);
	}
}

static void settle(struct image *image)
{
	for (size_t i = 0; i < image->count; i++) {
		apply(image, &image->changes[i], NULL);
		free(image->changes[i].bytes);
	}
	image->count = 0;
}

static void note(struct image *image, int64_t offset, const void *bytes, size_t size)
{
	struct change change = {.offset = offset, .size = size};

	if (bytes)
		change.bytes = memcpy(xcalloc(1, size), bytes, size);
	if (image->count == image->change_room) {
		image->change_room = 2 * image->count + 64;
		image->changes = xreallocarray(image->changes, image->change_room,
					       sizeof *image->changes);
	}
	image->changes[image->count++] = change;
}

static void write_left(const struct image *image, const char *path)
{
	struct image left = {0};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	resize(&left, image->size);
	if (image->size)
		memcpy(left.bytes, image->bytes, image->size);
	for (size_t i = 0; i < image->count; i++)
		apply(&left, &image->changes[i], &cut.seed);
	assert(fd >= 0 && write(fd, left.bytes, left.size) == (ssize_t)left.size);
	close(fd);
	free(left.bytes);
}

/* Before anything happens to a file. */
static void count(void)
{
	char log[sizeof cut.path + 8];

	if (!cut.left || --cut.left)
		return;
	snprintf(log, sizeof log, "%s-wal", cut.path);
	write_left(&images[0], cut.path);
	write_left(&images[1], log);
	cut.said_then = atomic_load(cut.said);
	cut.done = true;
}

/* --- files --------------------------------------------------------------------- */

static sqlite3_file *usual_of(sqlite3_file *file)
{
	return ((struct losing_file *)file)->usual;
}

static int on_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
	struct losing_file *losing = (struct losing_file *)file;

	pthread_mutex_lock(&mutex);
	count();
	note(losing->image, offset, bytes, (size_t)size);
	pthread_mutex_unlock(&mutex);
	return losing->usual->pMethods->xWrite(losing->usual, bytes, size, offset);
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct losing_file *losing = (struct losing_file *)file;

	pthread_mutex_lock(&mutex);
	count();
	note(losing->image, size, NULL, 0);
	pthread_mutex_unlock(&mutex);
	return losing->usual->pMethods->xTruncate(losing->usual, size);
}

static int on_sync(sqlite3_file *file, int flags)
{
	struct losing_file *losing = (struct losing_file *)file;

	(void)flags; /* the image is the disk: the real one has nothing to wait for */
	pthread_mutex_lock(&mutex);
	count();
	settle(losing->image);
	pthread_mutex_unlock(&mutex);
	return SQLITE_OK;
}

static int on_close(sqlite3_file *file)
{
	return usual_of(file)->pMethods->xClose(usual_of(file));
}

static int on_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset)
{
	return usual_of(file)->pMethods->xRead(usual_of(file), bytes, size, offset);
}

static int on_size(sqlite3_file *file, sqlite3_int64 *ret)
{
	return usual_of(file)->pMethods->xFileSize(usual_of(file), ret);
}

static int on_lock(sqlite3_file *file, int how)
{
	return usual_of(file)->pMethods->xLock(usual_of(file), how);
}

static int on_unlock(sqlite3_file *file, int how)
{
	return usual_of(file)->pMethods->xUnlock(usual_of(file), how);
}

static int on_check(sqlite3_file *file, int *ret)
{
	return usual_of(file)->pMethods->xCheckReservedLock(usual_of(file), ret);
}

static int on_control(sqlite3_file *file, int what, void *arg)
{
	return usual_of(file)->pMethods->xFileControl(usual_of(file), what, arg);
}

static int on_sector(sqlite3_file *file)
{
	(void)file;
	return SECTOR;
}

static int on_traits(sqlite3_file *file)
{
	(void)file;
	return 0; /* none that would let SQLite sync less */
}

static int on_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
	return usual_of(file)->pMethods->xShmMap(usual_of(file), page, size, extend, ret);
}

static int on_shared_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return usual_of(file)->pMethods->xShmLock(usual_of(file), offset, n, flags);
}

static void on_barrier(sqlite3_file *file)
{
	usual_of(file)->pMethods->xShmBarrier(usual_of(file));
}

static int on_unmap(sqlite3_file *file, int delete)
{
	return usual_of(file)->pMethods->xShmUnmap(usual_of(file), delete);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = on_close,
	.xRead = on_read,
	.xWrite = on_write,
	.xTruncate = on_truncate,
	.xSync = on_sync,
	.xFileSize = on_size,
	.xLock = on_lock,
	.xUnlock = on_unlock,
	.xCheckReservedLock = on_check,
	.xFileControl = on_control,
	.xSectorSize = on_sector,
	.xDeviceCharacteristics = on_traits,
	.xShmMap = on_map,
	.xShmLock = on_shared_lock,
	.xShmBarrier = on_barrier,
	.xShmUnmap = on_unmap,
};

/* --- the disk ------------------------------------------------------------------- */

static int on_open(sqlite3_vfs *self, const char *path, sqlite3_file *file, int flags, int *ret)
{
	struct losing_file *losing = (struct losing_file *)file;
	int code;

	(void)self;
	if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
		return usual->xOpen(usual, path, file, flags, ret);
	losing->usual = (sqlite3_file *)(losing + 1);
	losing->image = &images[flags & SQLITE_OPEN_WAL ? 1 : 0];
	code = usual->xOpen(usual, path, losing->usual, flags, ret);
	losing->base.pMethods = code == SQLITE_OK ? &methods : NULL;
	return code;
}

void losing_disk_begin(void)
{
	usual = sqlite3_vfs_find(NULL);
	vfs = *usual;
	vfs.zName = "losing";
	vfs.szOsFile = (int)sizeof(struct losing_file) + usual->szOsFile;
	vfs.xOpen = on_open;
	assert(sqlite3_vfs_register(&vfs, true) == SQLITE_OK);
}

void losing_disk_end(void)
{
	sqlite3_vfs_unregister(&vfs);
	sqlite3_vfs_register(usual, true);
	for (int i = 0; i < LOSING_DISK_FILES; i++) {
		settle(&images[i]);
		free(images[i].bytes);
		free(images[i].changes);
		images[i] = (struct image){0};
	}
}

void losing_disk_cut(int after, unsigned seed, const char *path, const atomic_int *said)
{
	pthread_mutex_lock(&mutex);
	snprintf(cut.path, sizeof cut.path, "%s", path);
	cut.left = after;
	cut.seed = seed;
	cut.said = said;
	cut.done = false;
	pthread_mutex_unlock(&mutex);
}

bool losing_disk_was_cut(int *ret_said)
{
	bool done;

	pthread_mutex_lock(&mutex);
	done = cut.done;
	*ret_said = cut.said_then;
	pthread_mutex_unlock(&mutex);
	return done;
}
