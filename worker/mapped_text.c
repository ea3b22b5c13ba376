#include "mapped_text.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "demand_paging.h"

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
enum { DOMAIN_MEMORY = 1, DOMAIN_OBJECTS = 2 };
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
 * As little as can be is written to, for only that counts as this process's memory: the page
 * before, and the one where the text ends.
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

static bool may_be(size_t size, Py_UCS4 highest)
{
	return size && size % width_of(highest) == 0 && PyMem_GetAllocator && PyMem_SetAllocator &&
	       PyUnicode_New;
}

static bool is_in_file(int fd, size_t end)
{
	return lseek(fd, 0, SEEK_END) >= (off_t)end;
}

/*
 * Never freed, for free() does not know its memory: one reference is nobody's. In front of an
 * instance of a class Python expects two words for its collector of cycles; the page has
 * zeros there, which mean that it does not look at this one.
 */
static PyObject *map(int fd, size_t size, Py_UCS4 highest, struct place *place)
{
	PyObject *text;

	if (!may_be(size, highest) || !is_in_file(fd, size)) {
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

/*
 * A part of a file begins anywhere in a page, so no head can stand right before it. But an instance
 * of a subclass of str has its characters elsewhere, and a pointer to them. So one is made of
 * PATTERN characters, and where it has their number and their place it is told others. The old
 * values can be seen: the place by what was asked of the allocator, the number because nothing else
 * in a head is like it. mapped_text_works() tries it.
 */
enum { PATTERN = 4660 };

static struct {
	struct allocator usual[DOMAIN_OBJECTS + 1];
	size_t size;
	void *found;
} watching;

static void *watch(int domain, size_t size)
{
	const struct allocator *usual = &watching.usual[domain];
	void *memory = usual->malloc(usual->context, size);

	if (size == watching.size)
		watching.found = memory;
	return memory;
}

static void *watch_memory(void *context, size_t size)
{
	(void)context;
	return watch(DOMAIN_MEMORY, size);
}

static void *watch_objects(void *context, size_t size)
{
	(void)context;
	return watch(DOMAIN_OBJECTS, size);
}

/* An instance of the class, and where its characters are. */
static PyObject *make_pattern(PyTypeObject *type, Py_UCS4 highest, void **ret_characters)
{
	PyObject *plain = PyUnicode_New(PATTERN, highest), *text = NULL;
	struct allocator memory, objects;
	Py_ssize_t i;

	for (i = 0; plain && i < PATTERN; i++)
		if (PyUnicode_WriteChar(plain, i, highest))
			Py_CLEAR(plain);
	if (!plain)
		return NULL;
	watching.size = (PATTERN + 1) * width_of(highest);
	watching.found = NULL;
	PyMem_GetAllocator(DOMAIN_MEMORY, &watching.usual[DOMAIN_MEMORY]);
	PyMem_GetAllocator(DOMAIN_OBJECTS, &watching.usual[DOMAIN_OBJECTS]);
	memory = watching.usual[DOMAIN_MEMORY];
	objects = watching.usual[DOMAIN_OBJECTS];
	memory.malloc = watch_memory;
	objects.malloc = watch_objects;
	PyMem_SetAllocator(DOMAIN_MEMORY, &memory);
	PyMem_SetAllocator(DOMAIN_OBJECTS, &objects);
	text = PyObject_CallFunctionObjArgs((PyObject *)type, plain, NULL);
	PyMem_SetAllocator(DOMAIN_MEMORY, &watching.usual[DOMAIN_MEMORY]);
	PyMem_SetAllocator(DOMAIN_OBJECTS, &watching.usual[DOMAIN_OBJECTS]);
	Py_DECREF(plain);
	*ret_characters = watching.found;
	return text;
}

static size_t head_size(PyTypeObject *type)
{
	PyObject *size = PyObject_GetAttrString((PyObject *)type, "__basicsize__");
	size_t bytes = size ? PyLong_AsSize_t(size) : 0;

	Py_XDECREF(size);
	PyErr_Clear();
	return bytes;
}

/* Of what it has of the pattern nothing stays; false: it is not laid out like that. */
static bool turn(PyObject *text, size_t head, const void *from, char *to, size_t count)
{
	uintptr_t *words = (uintptr_t *)(void *)text;
	size_t places = 0, counts = 0, i;

	for (i = sizeof(PyObject) / sizeof *words; i < head / sizeof *words; i++) {
		if (words[i] == (uintptr_t)from) {
			words[i] = (uintptr_t)to;
			places++;
		} else if (words[i] == PATTERN) {
			words[i] = count;
			counts++;
		}
	}
	return places && counts;
}

/* The pages with the part; the character behind it becomes the end of it, for this process. */
static bool map_part(struct place *place, int fd, size_t start, size_t size, size_t width)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before = start % page;
	size_t pages = (before + size + page) / page * page;
	char *last;

	place->page = page;
	place->size = pages;
	place->start = mmap(NULL, pages, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (place->start == MAP_FAILED)
		return false;
	last = place->start + (before + size) / page * page;
	if (mmap(place->start, before + size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		 (off_t)(start - before)) != MAP_FAILED &&
	    !mprotect(last, page, PROT_READ | PROT_WRITE)) {
		memset(place->start + before + size, 0, width);
		return true;
	}
	munmap(place->start, pages);
	return false;
}

/* Never freed either, with the pattern's characters. */
static PyObject *map_within(int fd, size_t start, size_t size, Py_UCS4 highest, PyTypeObject *type,
			    struct place *place)
{
	size_t width = width_of(highest), head = head_size(type);
	PyObject *text;
	void *from;

	if (type == &PyUnicode_Type || !head || start % width || !may_be(size, highest) ||
	    !is_in_file(fd, start + size)) {
		PyErr_SetString(PyExc_ValueError, "the file has no such part");
		return NULL;
	}
	if (!map_part(place, fd, start, size, width))
		return PyErr_NoMemory();
	text = make_pattern(type, highest, &from);
	if (text && from &&
	    turn(text, head, from, place->start + start % place->page, size / width)) {
		Py_INCREF(text);
		return text;
	}
	if (!PyErr_Occurred())
		PyErr_SetString(PyExc_ValueError, "this Python has the characters elsewhere");
	return NULL; /* what was made is half of something: it stays */
}

/* --- UTF-8, decoded where it is touched ------------------------------------------------------ */

static const uint8_t *map_bytes(int fd, size_t start, const uint8_t **ret_end)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before = start % page;
	size_t size = (size_t)lseek(fd, 0, SEEK_END) - start;
	const uint8_t *bytes = mmap(NULL, before + size, PROT_READ, MAP_PRIVATE, fd,
				    (off_t)(start - before));

	if ((const void *)bytes == MAP_FAILED)
		return NULL;
	*ret_end = bytes + before + size;
	return bytes + before;
}

/* Aligned room for the characters, with a page before it for the head. */
static bool reserve(struct place *place, size_t size)
{
	size_t parts = (size + PAGING_PART - 1) / PAGING_PART * PAGING_PART;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *room = mmap(NULL, page + PAGING_PART + parts + page, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t left;

	if (room == MAP_FAILED)
		return false;
	left = -(uintptr_t)(room + page) & (PAGING_PART - 1);
	*place = (struct place){.start = room + left, .size = parts, .page = page};
	if (left)
		munmap(room, left);
	munmap(place->start + page + parts + page, PAGING_PART - left);
	if (!mprotect(place->start, place->page, PROT_READ | PROT_WRITE))
		return true;
	forget(place);
	return false;
}

/* Python writes the character that ends them as it makes the head; the last part has it too. */
static PyObject *make_untouched(const struct place *place, size_t size, Py_UCS4 highest)
{
	char *last = characters_of(place) + size / place->page * place->page;
	PyObject *text = NULL;

	if (mprotect(last, place->page, PROT_READ | PROT_WRITE))
		return PyErr_NoMemory();
	text = make(place, size, highest);
	if (mmap(last, place->page, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != last)
		return PyErr_NoMemory();
	return text;
}

/* `size` bytes of characters, decoded from `start` on. Never freed. */
static PyObject *map_utf8(int fd, size_t start, size_t size, Py_UCS4 highest, struct place *place)
{
	size_t width = width_of(highest);
	const uint8_t *bytes, *end = NULL;
	PyObject *text;

	if (!may_be(size, highest) || !is_in_file(fd, start + 1)) {
		PyErr_SetString(PyExc_ValueError, "the file is no text that can be mapped");
		return NULL;
	}
	if (!paging_begin() || !reserve(place, size + width))
		return PyErr_NoMemory();
	bytes = map_bytes(fd, start, &end);
	text = bytes ? make_untouched(place, size, highest) : PyErr_NoMemory();
	if (text && !paging_add(characters_of(place), place->size, text_form_of(highest),
				size / width, bytes, end))
		text = PyErr_NoMemory();
	if (text)
		Py_INCREF(text);
	else
		forget(place);
	return text;
}

PyObject *mapped_text(int fd, size_t start, size_t size, Py_UCS4 highest, PyTypeObject *type)
{
	struct place place;
	PyObject *text;

	if (start && highest < 0x80)
		return map_within(fd, start, size, highest, type, &place);
	text = highest < 0x80 ? map(fd, size, highest, &place)
			      : map_utf8(fd, start, size, highest, &place);
	if (!text)
		return NULL;
	/* As long as it was one of ours: instances of a class count as its references. */
	if (type != Py_TYPE(text)) {
		Py_INCREF((PyObject *)type);
		text->ob_type = type;
	}
	return text;
}

/* Of a file with an ASCII text, once the whole and once a part; what comes of it is not kept. */
static bool try_ascii(PyObject *part)
{
	int fd = memfd_create("text", MFD_CLOEXEC);
	PyObject *wanted = PyUnicode_FromString("a"), *text = NULL, *within = NULL;
	struct place place, part_of;
	bool same = false;

	if (fd >= 0 && wanted && write(fd, "aaa", 3) == 3) {
		text = map(fd, 1, 0x7f, &place);
		within = map_within(fd, 1, 1, 0x7f, (PyTypeObject *)part, &part_of);
	}
	if (text && within)
		same = PyUnicode_Compare(text, wanted) == 0 &&
		       PyUnicode_Compare(within, wanted) == 0 &&
		       PyObject_Hash(within) == PyObject_Hash(wanted) &&
		       PyUnicode_GetLength(within) == 1 && !PyErr_Occurred();
	if (text)
		forget(&place);
	if (within) /* nobody has it: only its mapping would be left, for each fork to copy */
		munmap(part_of.start, part_of.size);
	PyErr_Clear();
	Py_XDECREF(wanted);
	if (fd >= 0)
		close(fd);
	return same;
}

/* Of a file with the character twice, the second one. */
static bool try_utf8(const char *twice, Py_UCS4 highest)
{
	size_t size = strlen(twice) / 2;
	int fd = memfd_create("text", MFD_CLOEXEC);
	PyObject *wanted = PyUnicode_FromString(twice + size), *text = NULL;
	struct place place;
	bool same = false;

	if (fd >= 0 && wanted && write(fd, twice, 2 * size) == (ssize_t)(2 * size))
		text = map_utf8(fd, size, width_of(highest), highest, &place);
	if (text) {
		same = PyUnicode_Compare(text, wanted) == 0 && !PyErr_Occurred();
		paging_remove(characters_of(&place));
		forget(&place);
	}
	PyErr_Clear();
	Py_XDECREF(wanted);
	if (fd >= 0)
		close(fd);
	return same;
}

/* A subclass of str without fields of its own, as source.py has one. */
static PyObject *part_type(void)
{
	return PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s()}", "Part", &PyUnicode_Type,
				     "__slots__");
}

/* An interpreter for debugging fills what it allocates, and knows of each object that it made. */
bool mapped_text_works(void)
{
	PyObject *part = part_type();
	bool works = part && !PySys_GetObject("gettotalrefcount") && try_ascii(part) &&
		     try_utf8("\xc3\xa9\xc3\xa9", 0xff) &&
		     try_utf8("\xe2\x82\xac\xe2\x82\xac", 0xffff) &&
		     try_utf8("\xf0\x9f\x99\x82\xf0\x9f\x99\x82", 0x10ffff);

	PyErr_Clear();
	Py_XDECREF(part);
	return works;
}
