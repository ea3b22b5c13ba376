/*
 * worker/huge_pages.h - a template's memory in huge pages. A fork copies an entry of a page table
 * for each page that was written to: of 4,300 small pages that is more than half of a fork. In a
 * worker that writes to a huge page it becomes small ones again, of which one is copied.
 *
 * Pages that the kernel refuses to change stay as they are.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* For the template, early: from here on Python's objects lie where huge pages can. None. */
PyObject *huge_pages_begin(PyObject *module, PyObject *none);

/* For a worker: what it adds to them lies elsewhere, and takes small pages. */
void huge_pages_end(void);

/*
 * For the template, when it has all that it will have: puts together what became small when a
 * worker was forked meanwhile. 2 MiB a call, half a millisecond; False when nothing is left.
 */
PyObject *huge_pages_merge(PyObject *module, PyObject *none);
