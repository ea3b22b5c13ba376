/* Messages of the worker's: a frame, and the texts too long for it. */
#include <string.h>

#include "codec.h"
#include "wire/bounds.h"

enum {
	SMALL = 2048,                     /* a message that takes no memory of its own */
	TEXTS_INLINE_MAX = FRAME_MAX / 4, /* bytes of JSON that the texts of one array may take */
	HEADER = 4,                       /* the frame's length */
};

struct out {
	char *bytes;
	size_t size, room;
	PyObject *attached; /* a list, or NULL as long as there are none */
	PyObject *attach;   /* lent: makes an attachment of a text */
	long long weight;   /* of them */
	char small[SMALL];
};

static bool refuse(const char *what)
{
	PyErr_SetString(codec_error, what);
	return false;
}

static bool make_room(struct out *out, size_t size)
{
	size_t room = out->room;
	char *bytes;

	if (out->room - out->size >= size)
		return true;
	while (room - out->size < size)
		room *= 2;
	bytes = PyMem_Realloc(out->bytes == out->small ? NULL : out->bytes, room);
	if (!bytes) {
		PyErr_NoMemory();
		return false;
	}
	if (out->bytes == out->small)
		memcpy(bytes, out->small, out->size);
	out->bytes = bytes;
	out->room = room;
	return true;
}

static bool put(struct out *out, const char *bytes, size_t size)
{
	if (!make_room(out, size))
		return false;
	memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
	return true;
}

static bool put_string(struct out *out, const char *string)
{
	return put(out, string, strlen(string));
}

static bool put_integer(struct out *out, long long value)
{
	char digits[24];

	return put(out, digits, (size_t)PyOS_snprintf(digits, sizeof digits, "%lld", value));
}

static bool quote(struct out *out, const char *text, size_t size)
{
	size_t start = 0;

	if (!put(out, "\"", 1))
		return false;
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];
		char escape[8];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		PyOS_snprintf(escape, sizeof escape, c >= 0x20 ? "\\%c" : "\\u%04x", c);
		if (!put(out, text + start, i - start) || !put_string(out, escape))
			return false;
		start = i + 1;
	}
	return put(out, text + start, size - start) && put(out, "\"", 1);
}

static bool encode_integer(struct out *out, PyObject *value)
{
	long long number = PyLong_CheckExact(value) ? PyLong_AsLongLong(value) : -1;

	if (PyErr_Occurred())
		PyErr_Clear(); /* too large for this, too */
	if (number < 0 || number > INTEGER_MAX)
		return refuse("not an integer that may be sent");
	return put_integer(out, number);
}

/* 1 where the text went out, 0 where it is too long or no Unicode, -1 with an exception. */
static int encode_short(struct out *out, PyObject *text, Py_ssize_t longest)
{
	PyObject *bytes;
	char *start;
	Py_ssize_t size;
	bool good = true;

	if (PyUnicode_GetLength(text) > longest)
		return 0;
	bytes = PyUnicode_AsUTF8String(text);
	if (!bytes) {
		good = PyErr_ExceptionMatches(PyExc_UnicodeEncodeError);
		if (good)
			PyErr_Clear();
		return good ? 0 : -1;
	}
	good = !PyBytes_AsStringAndSize(bytes, &start, &size);
	if (good && size > longest) {
		Py_DECREF(bytes);
		return 0;
	}
	good = good && quote(out, start, (size_t)size);
	Py_DECREF(bytes);
	return good ? 1 : -1;
}

static bool encode_string(struct out *out, PyObject *value)
{
	int sent = PyUnicode_CheckExact(value) ? encode_short(out, value, STRING_MAX) : 0;

	return sent > 0 || (!sent && refuse("not a string that may be sent"));
}

static long long size_of(PyObject *attachment)
{
	PyObject *size = PyObject_GetAttrString(attachment, "size");
	long long bytes = size ? PyLong_AsLongLong(size) : -1;

	Py_XDECREF(size);
	return bytes;
}

static bool encode_attached(struct out *out, PyObject *value)
{
	PyObject *attachment;
	long long size;
	int failed;

	if (!PyUnicode_CheckExact(value))
		return refuse("not a text");
	if (!out->attached && !(out->attached = PyList_New(0)))
		return false;
	attachment = PyObject_CallFunctionObjArgs(out->attach, value, NULL);
	if (!attachment)
		return false;
	size = size_of(attachment);
	failed = size < 0 || PyList_Append(out->attached, attachment);
	Py_DECREF(attachment);
	out->weight += size + ATTACHMENT_WEIGHT;
	return !failed && put_integer(out, PyList_Size(out->attached) - 1);
}

static bool encode_text(struct out *out, PyObject *value)
{
	int sent;

	if (!PyUnicode_CheckExact(value))
		return refuse("not a text");
	sent = encode_short(out, value, TEXT_INLINE_MAX);
	return sent > 0 || (!sent && encode_attached(out, value));
}

/* One element; `start` is where those of its array began. */
static bool encode_element(struct out *out, const struct codec_field *field, PyObject *value,
			   size_t start)
{
	bool crowded = out->size - start > TEXTS_INLINE_MAX;

	if (field->type == TYPE_INTEGERS)
		return encode_integer(out, value);
	if (value == Py_None && field->type != TYPE_STRINGS)
		return put_string(out, "null");
	if (field->type != TYPE_TEXTS)
		return encode_string(out, value);
	/* Contexts: whatever their size, their bytes count. */
	if (crowded || !strcmp(field->key, "contexts"))
		return encode_attached(out, value);
	return encode_text(out, value);
}

static bool encode_elements(struct out *out, const struct codec_field *field, PyObject *list)
{
	size_t start = out->size;

	if (!PyList_CheckExact(list) || PyList_Size(list) > ELEMENTS_MAX)
		return refuse("no list, or too many in one message");
	for (Py_ssize_t i = 0; i < PyList_Size(list); i++)
		if (!put(out, i ? "," : "[", 1) ||
		    !encode_element(out, field, PyList_GetItem(list, i), start))
			return false;
	return put_string(out, PyList_Size(list) ? "]" : "[]");
}

static bool encode_value(struct out *out, const struct codec_field *field, PyObject *value)
{
	switch (field->type) {
	case TYPE_INTEGER_NULL:
	case TYPE_STRING_NULL:
	case TYPE_TEXT_NULL:
		if (value == Py_None)
			return put_string(out, "null");
		return field->type == TYPE_INTEGER_NULL  ? encode_integer(out, value)
		       : field->type == TYPE_STRING_NULL ? encode_string(out, value)
							 : encode_text(out, value);
	case TYPE_INTEGER:
		return encode_integer(out, value);
	case TYPE_BOOLEAN:
		if (value != Py_True && value != Py_False)
			return refuse("neither true nor false");
		return put_string(out, value == Py_True ? "true" : "false");
	case TYPE_STRING:
		return encode_string(out, value);
	case TYPE_TEXT:
		return encode_text(out, value);
	case TYPE_TEXTS:
	case TYPE_STRINGS:
	case TYPE_STRINGS_NULL:
	case TYPE_INTEGERS:
		break;
	}
	return encode_elements(out, field, value);
}

static bool encode_fields(struct out *out, const struct codec_message *message, PyObject *fields)
{
	if (!PyDict_CheckExact(fields) || PyDict_Size(fields) != (Py_ssize_t)message->field_count)
		return refuse("not the fields of that message");
	for (size_t i = 0; i < message->field_count; i++) {
		const struct codec_field *field = &message->fields[i];
		PyObject *value = PyDict_GetItemWithError(fields, field->name);

		if (!value)
			return PyErr_Occurred() ? false : refuse("not the fields of that message");
		if (!put_string(out, ",\"") || !put_string(out, field->key) ||
		    !put_string(out, "\":") || !encode_value(out, field, value))
			return false;
	}
	return true;
}

static bool encode_sizes(struct out *out)
{
	Py_ssize_t count = out->attached ? PyList_Size(out->attached) : 0;

	if (count > ATTACHMENTS_MAX)
		return refuse("too many attachments");
	if (out->weight > ATTACHED_MAX) {
		PyErr_Format(codec_error, "more than %d MiB of text in one call",
			     ATTACHED_MAX >> 20);
		return false;
	}
	for (Py_ssize_t i = 0; i < count; i++)
		if (!put_string(out, i ? "," : ",\"attachments\":[") ||
		    !put_integer(out, size_of(PyList_GetItem(out->attached, i))))
			return false;
	return !count || put_string(out, "]");
}

static const struct codec_message *find(PyObject *name)
{
	for (size_t i = 0; i < codec_message_count; i++)
		if (codec_messages[i].is_ours &&
		    !PyUnicode_CompareWithASCIIString(name, codec_messages[i].name))
			return &codec_messages[i];
	refuse("no message of a worker's is called that");
	return NULL;
}

static bool encode(struct out *out, PyObject *name, PyObject *fields)
{
	const struct codec_message *message = find(name);
	size_t size;

	if (!message || !put(out, "\0\0\0", HEADER) || !put_string(out, "{\"type\":\"") ||
	    !put_string(out, message->name) || !put_string(out, "\"") ||
	    !encode_fields(out, message, fields) || !encode_sizes(out) || !put_string(out, "}"))
		return false;
	size = out->size - HEADER;
	if (size > FRAME_MAX)
		return refuse("frame too large");
	for (int i = 0; i < HEADER; i++)
		out->bytes[i] = (char)(size >> (HEADER - 1 - i) * 8);
	return true;
}

PyObject *codec_encode(PyObject *module, PyObject *args)
{
	struct out out = {.room = SMALL};
	PyObject *name, *fields, *made = NULL;

	(void)module;
	out.bytes = out.small;
	if (!PyArg_ParseTuple(args, "UOO", &name, &fields, &out.attach))
		return NULL;
	if (encode(&out, name, fields))
		made = out.attached
			       ? Py_BuildValue("y#O", out.bytes, (Py_ssize_t)out.size, out.attached)
			       : Py_BuildValue("y#()", out.bytes, (Py_ssize_t)out.size);
	Py_XDECREF(out.attached);
	if (out.bytes != out.small)
		PyMem_Free(out.bytes);
	return made;
}
