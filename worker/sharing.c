#include "sharing.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum {
	/* Of Objects/obmalloc.c: small objects lie in pools, each for those of one size. Before
	 * Python 3.10 pools have a quarter of this, and every fourth is known. */
	POOL = 16 << 10,
	POOL_HEAD = 48,
	SMALL_MAX = 512,
	SMALL_STEP = 16,
	FILL_MAX = 1 << 20, /* bytes of one size; another allocator has no such pools */
	LARGE = 64 << 10,   /* bytes of an object; far larger ones are mappings of their own */
	HOLES_MAX = 256     /* for objects of one size, should it be another C library */
};

struct block {
	struct block *last;
};

static void free_all(struct block *block)
{
	while (block) {
		struct block *last = block->last;

		PyObject_Free(block);
		block = last;
	}
}

/* Whether it is the third, in a row, of a pool that nothing lay in before. */
static bool begins_pool(const struct block *block, size_t size)
{
	const char *place = (const char *)block;

	return (uintptr_t)place % POOL == POOL_HEAD + 2 * size && block->last &&
	       (const char *)block->last == place - size && block->last->last &&
	       (const char *)block->last->last == place - 2 * size;
}

/* Python's holes, until the pools in use are full. */
static void fill_pools(size_t size)
{
	struct block *last = NULL, *block;

	for (size_t filled = 0; filled < FILL_MAX; filled += size) {
		block = PyObject_Malloc(size);
		if (!block)
			break;
		block->last = last;
		last = block;
		if (begins_pool(block, size)) {
			last->last->last->last = NULL;
			free_all(last); /* the others fill holes, for good */
			return;
		}
	}
	free_all(last);
}

/* Where it lies; nobody has it. Volatile, or the compiler sees that and leaves the call out. */
static uintptr_t fill(size_t size)
{
	void *volatile filler = malloc(size);

	return (uintptr_t)filler;
}

/* The C library's holes, for larger ones, until each next one lies above all others; for good. */
static void fill_holes(void)
{
	uintptr_t top = 0, place;
	size_t size, i;

	for (i = 0; i < 4; i++) {
		place = fill(LARGE);
		top = place > top ? place : top;
	}
	for (size = LARGE; size > SMALL_MAX; size -= size / 8)
		for (i = 0; i < HOLES_MAX; i++) {
			place = fill(size);
			if (place > top) {
				top = place;
				break;
			}
		}
}

PyObject *sharing_tidy(PyObject *module, PyObject *none)
{
	(void)module;
	(void)none;
	malloc_trim(0); /* merges what lies beside each other; what is left is sorted below */
	fill_holes();
	for (size_t size = SMALL_STEP; size <= SMALL_MAX; size += SMALL_STEP)
		fill_pools(size);
	Py_RETURN_NONE;
}

PyObject *sharing_agree(PyObject *module, PyObject *dicts)
{
	PyObject *found, *wanted, *name, *value;
	Py_ssize_t at = 0;

	(void)module;
	if (!PyArg_ParseTuple(dicts, "O!O!", &PyDict_Type, &found, &PyDict_Type, &wanted))
		return NULL;
	while (PyDict_Next(wanted, &at, &name, &value))
		if (PyDict_GetItemWithError(found, name) != value)
			return PyErr_Occurred() ? NULL : PyBool_FromLong(0);
	Py_RETURN_TRUE;
}
