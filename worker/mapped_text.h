/*
 * worker/mapped_text.h - a Python str whose characters lie in a memory file.
 *
 * An ASCII text lies in its file as Python keeps it (PEP 393), so a str can be put in front of the
 * mapped file: nothing is decoded or copied, whatever its size, and all processes that map the file
 * share its pages. Of another text the str has its characters decoded where they are touched
 * (demand_paging.h).
 */
#pragma once

#include <Python.h>

#include <stdbool.h>

/*
 * The text of `fd`, sealed, from the byte `start` on, as an instance of `type`, which is str or a
 * subclass without a field of its own. `size`: bytes of the str's characters. `highest` is 0x7f,
 * 0xff, 0xffff or 0x10ffff, and no character is beyond it, and one needs as many bytes. ASCII that
 * does not begin the file has to be of a subclass. Lives as long as the process. NULL with an
 * exception; a ValueError where this interpreter's str is not laid out like that.
 */
PyObject *mapped_text(int fd, size_t start, size_t size, Py_UCS4 highest, PyTypeObject *type);

/* Whether this interpreter can have such texts at all: by making some, which are gone then. */
bool mapped_text_works(void);
