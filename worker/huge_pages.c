#include "huge_pages.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE /* of Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

enum {
	HUGE = 2 << 20,
	ARENA_MIN = 256 << 10, /* of Python's arenas; its stack is made of smaller chunks */
	RANGE = 4 * HUGE,      /* mapped at once */
	RANGES_MAX = 64,       /* what comes then lies anywhere */
};

/* The argument of PyObject_SetArenaAllocator(); not of the limited API, but the same since 3.4. */
struct allocator {
	void *owner;
	void *(*alloc)(void *owner, size_t size);
	void (*free)(void *owner, void *arena, size_t size);
};

static char *ranges[RANGES_MAX]; /* their starts, aligned */
static size_t range_count;
static char *next;    /* what is not given out begins there, in the last range or at its end */
static bool complete; /* nothing more is put there */
static size_t merged; /* areas of ranges that were seen to */
static char *heap;    /* of the C library's heap: its huge pages begin there */

static char *map(size_t size)
{
	char *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return place == MAP_FAILED ? NULL : place;
}

static void unmap(char *start, const char *end)
{
	if (start < end)
		munmap(start, (size_t)(end - start));
}

static char *round_up(char *place)
{
	return place + (HUGE - (uintptr_t)place % HUGE) % HUGE;
}

static bool add_range(void)
{
	char *place = range_count < RANGES_MAX ? map(RANGE + HUGE) : NULL, *start;

	if (!place)
		return false;
	start = round_up(place);
	unmap(place, start);
	unmap(start + RANGE, place + RANGE + HUGE);
	madvise(start, RANGE, MADV_HUGEPAGE);
	ranges[range_count++] = next = start;
	return true;
}

static bool has_room(size_t size)
{
	return range_count && size <= (size_t)(ranges[range_count - 1] + RANGE - next);
}

/* Since 3.11 Python takes chunks of its stack here, too: they come and go, and lie elsewhere. */
static void *alloc_arena(void *owner, size_t size)
{
	char *arena;

	(void)owner;
	if (complete || size < ARENA_MIN || size > HUGE || HUGE % size)
		return map(size);
	if (!has_room(size) && !add_range())
		return map(size);
	arena = next;
	next += size;
	return arena;
}

/* Also one that Python mapped before this was here. */
static void free_arena(void *owner, void *arena, size_t size)
{
	(void)owner;
	munmap(arena, size);
}

PyObject *huge_pages_begin(PyObject *module, PyObject *none)
{
	struct allocator ours = {NULL, alloc_arena, free_arena};
	void *symbol = dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");
	void (*set)(struct allocator *);

	(void)module;
	(void)none;
	memcpy(&set, &symbol, sizeof set);
	if (set)
		set(&ours);
	Py_RETURN_NONE;
}

/* False also where there is nothing, or some of it is not mapped. */
static bool merge(char *place)
{
	return !madvise(place, HUGE, MADV_HUGEPAGE) && !madvise(place, HUGE, MADV_COLLAPSE);
}

void huge_pages_end(void)
{
	complete = true;
}

static void give_back_rest(void)
{
	char *rest = round_up(next);

	if (range_count)
		unmap(rest, ranges[range_count - 1] + RANGE);
	next = rest;
	complete = true;
}

static bool merge_next(void)
{
	size_t range = merged / (RANGE / HUGE);
	char *place = range < range_count ? ranges[range] + merged % (RANGE / HUGE) * HUGE : next;

	if (place != next) {
		merged++;
		merge(place);
		return true;
	}
	if (!heap)
		heap = round_up((char *)sbrk(0) - HUGE + 1);
	if (!merge(heap - HUGE))
		return false;
	heap -= HUGE;
	return true;
}

PyObject *huge_pages_merge(PyObject *module, PyObject *none)
{
	(void)module;
	(void)none;
	if (!complete)
		give_back_rest();
	return PyBool_FromLong(merge_next());
}
