/*
 * worker/codec.h - messages made of Python objects, and Python objects of messages:
 * docs/protocol.md.
 *
 * One call for each, for in Python they took more than all the rest of what a short call needs.
 * Bytes and objects only: reading and writing them is worker/channel.py's.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>

enum codec_type {
	TYPE_INTEGER,
	TYPE_INTEGER_NULL,
	TYPE_BOOLEAN,
	TYPE_STRING,
	TYPE_STRING_NULL,
	TYPE_TEXT,
	TYPE_TEXT_NULL,
	TYPE_TEXTS,
	TYPE_STRINGS,
	TYPE_STRINGS_NULL,
	TYPE_INTEGERS,
};

struct codec_field {
	int message; /* its place in `codec_messages` */
	const char *key;
	enum codec_type type;
	PyObject *name; /* the key, interned */
};

struct codec_message {
	const char *name;
	bool is_ours; /* a worker says it */
	struct codec_field *fields;
	size_t field_count;
};

extern struct codec_field codec_fields[];
extern struct codec_message codec_messages[];
extern const size_t codec_field_count, codec_message_count;

extern PyObject *codec_error; /* ProtocolError */

/* Puts what channel.py uses into the module. */
bool codec_init(PyObject *module);

/* "(name, fields, attach)": see the table of the module's functions, as for the others. */
PyObject *codec_encode(PyObject *module, PyObject *args);
PyObject *codec_decode(PyObject *module, PyObject *unread);
PyObject *codec_place(PyObject *module, PyObject *args);
