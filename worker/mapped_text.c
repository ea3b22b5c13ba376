#include "mapped_text.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Public functions of every CPython since 3.5 that the limited API leaves out. Weak, for
 * another Python may lack them.
 */
struct allocator {
	void *context;
	void *(*malloc)(void *, size_t);
	void *(*calloc)(void *, size_t, size_t);
	void *(*realloc)(void *, void *, size_t);
	void (*free)(void *, void *);
};
enum { DOMAIN_OBJECTS = 2 };
extern void PyMem_GetAllocator(int domain, struct allocator *) __attribute__((weak));
extern void PyMem_SetAllocator(int domain, struct allocator *) __attribute__((weak));
extern PyObject *PyUnicode_New(Py_ssize_t size, Py_UCS4 highest) __attribute__((weak));

/* The mapped file, with a page before it for the head of the str, and one behind it for the
 * character that ends it. */
struct place {
	char *start;
	size_t size; /* of the file, in whole pages */
	size_t page;
};

/* Where the one object that is asked for shall lie; Python's lock is held throughout. */
static struct {
	struct allocator usual;
	char *characters;
	size_t size;  /* of the characters and the one that ends them */
	void *object; /* what was given, or NULL */
} placing;

static size_t width_of(Py_UCS4 highest)
{
	return highest < 0x100 ? 1 : highest < 0x10000 ? 2 : 4;
}

static char *characters_of(const struct place *place)
{
	return place->start + place->page;
}

static void forget(const struct place *place)
{
	munmap(place->start, place->size + 2 * place->page);
}

/*
 * What must be written to is as little as can be, for only that counts as this process's
 * memory: the page before, and the one where the text ends.
 */
static bool map_file(struct place *place, int fd, size_t size)
{
	char *characters, *last;

	place->page = (size_t)sysconf(_SC_PAGESIZE);
	place->size = (size + place->page - 1) / place->page * place->page;
	place->start = mmap(NULL, place->size + 2 * place->page, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (place->start == MAP_FAILED)
		return false;
	characters = characters_of(place);
	last = characters + size / place->page * place->page;
	if (mmap(characters, place->size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) !=
		    MAP_FAILED &&
	    !mprotect(place->start, place->page, PROT_READ | PROT_WRITE) &&
	    !mprotect(last, place->page, PROT_READ | PROT_WRITE))
		return true;
	forget(place);
	return false;
}

/* The head of a str stands right before its characters, so its size tells where that begins. */
static void *place_object(void *context, size_t size)
{
	if (placing.object || size < placing.size ||
	    size - placing.size > (size_t)sysconf(_SC_PAGESIZE) / 2)
		return placing.usual.malloc(context, size);
	placing.object = placing.characters - (size - placing.size);
	return placing.object;
}

/* Python's own way to make a str, with our memory; it writes the head and the end. */
static PyObject *make(const struct place *place, size_t size, Py_UCS4 highest)
{
	size_t width = width_of(highest);
	struct allocator ours;
	PyObject *text;

	PyMem_GetAllocator(DOMAIN_OBJECTS, &placing.usual);
	placing.characters = characters_of(place);
	placing.size = size + width;
	placing.object = NULL;
	ours = placing.usual;
	ours.malloc = place_object;
	PyMem_SetAllocator(DOMAIN_OBJECTS, &ours);
	text = PyUnicode_New((Py_ssize_t)(size / width), highest);
	PyMem_SetAllocator(DOMAIN_OBJECTS, &placing.usual);
	if (!text || (void *)text == placing.object)
		return text;
	Py_DECREF(text);
	PyErr_SetString(PyExc_ValueError, "this Python keeps the characters of a str elsewhere");
	return NULL;
}

static bool may_be(int fd, size_t size, Py_UCS4 highest)
{
	return size && size % width_of(highest) == 0 && lseek(fd, 0, SEEK_END) >= (off_t)size &&
	       PyMem_GetAllocator && PyMem_SetAllocator && PyUnicode_New;
}

/*
 * Never freed, for free() does not know its memory: one reference is nobody's. In front of an
 * instance of a class Python expects two words for its collector of cycles; the page has
 * zeros there, which mean that it does not look at this one.
 */
static PyObject *map(int fd, size_t size, Py_UCS4 highest, struct place *place)
{
	PyObject *text;

	if (!may_be(fd, size, highest)) {
		PyErr_SetString(PyExc_ValueError, "the file is no text that can be mapped");
		return NULL;
	}
	if (!map_file(place, fd, size))
		return PyErr_NoMemory();
	text = make(place, size, highest);
	if (!text)
		forget(place);
	Py_XINCREF(text);
	return text;
}

PyObject *mapped_text(int fd, size_t size, Py_UCS4 highest, PyTypeObject *type)
{
	struct place place;
	PyObject *text = map(fd, size, highest, &place);

	if (!text)
		return NULL;
	/* As long as it was one of ours: instances of a class count as its references. */
	if (type != Py_TYPE(text)) {
		Py_INCREF((PyObject *)type);
		text->ob_type = type;
	}
	return text;
}

/* One character and the end of it, in a file of its own; what comes of it is not kept. */
static bool try_one(Py_UCS4 character, Py_UCS4 highest)
{
	uint32_t four = character;
	uint16_t two = (uint16_t)character;
	uint8_t one = (uint8_t)character;
	size_t width = width_of(highest);
	const void *bytes = width == 1 ? (void *)&one : width == 2 ? (void *)&two : (void *)&four;
	int order = 0, fd = memfd_create("text", MFD_CLOEXEC);
	PyObject *wanted = PyUnicode_DecodeUTF32((const char *)&four, sizeof four, NULL, &order);
	PyObject *text = NULL;
	struct place place;
	bool same = false;

	if (fd >= 0 && wanted && write(fd, bytes, width) == (ssize_t)width)
		text = map(fd, width, highest, &place);
	if (text) {
		same = PyUnicode_Compare(text, wanted) == 0 && !PyErr_Occurred();
		forget(&place);
	}
	PyErr_Clear();
	Py_XDECREF(wanted);
	if (fd >= 0)
		close(fd);
	return same;
}

/* An interpreter for debugging fills what it allocates, and knows of each object that it made. */
bool mapped_text_works(void)
{
	return !PySys_GetObject("gettotalrefcount") && try_one('a', 0x7f) && try_one(0xe9, 0xff) &&
	       try_one(0x20ac, 0xffff) && try_one(0x1f642, 0x10ffff);
}
