/*
 * worker/sharing.h - for workers that write into few of the pages that they share with their
 * template: a page written to is copied, at 2 us and 4 KiB each. Functions of _rlmd.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/*
 * For the template, before it forks: puts something into each hole of its heap, for good. Freed
 * memory lies all over it, and would be merged, sorted and handed out again in each worker, some
 * bytes on each page: 110 pages of 490. So what a worker makes lies together.
 */
PyObject *sharing_tidy(PyObject *module, PyObject *none);

/*
 * Whether a dict has all that another one has, the same objects. A look in Python counts
 * references, and so writes to each object that it passes.
 */
PyObject *sharing_agree(PyObject *module, PyObject *dicts);
