/*
 * Messages of the supervisor's: strict JSON, of one object whose members are scalars and
 * arrays of scalars, checked against the table.
 */
#include <stdint.h>
#include <string.h>

#include "codec.h"
#include "wire/bounds.h"

enum { HEADER = 4 }; /* the frame's length */

struct in {
	const unsigned char *at, *end;
};

static PyObject *refuse(const char *what)
{
	if (!PyErr_Occurred())
		PyErr_SetString(codec_error, what);
	return NULL;
}

static void skip_space(struct in *in)
{
	while (in->at < in->end &&
	       (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t'))
		in->at++;
}

/* Goes over `c` and the spaces before it, if it comes next. */
static bool next_is(struct in *in, char c)
{
	skip_space(in);
	if (in->at == in->end || *in->at != (unsigned char)c)
		return false;
	in->at++;
	return true;
}

static bool skip_word(struct in *in, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size) != 0)
		return false;
	in->at += size;
	return true;
}

static int hex(unsigned char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* The unit behind a backslash and `u`; -1 where it is none. */
static int32_t read_unit(struct in *in)
{
	int32_t unit = 0;

	if (in->end - in->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex(*in->at++);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static char *write_point(char *out, int32_t point)
{
	if (point < 0x80) {
		*out++ = (char)point;
	} else if (point < 0x800) {
		*out++ = (char)(0xc0 | point >> 6);
		*out++ = (char)(0x80 | (point & 0x3f));
	} else if (point < 0x10000) { /* a lone surrogate too, which no UTF-8 reader takes */
		*out++ = (char)(0xe0 | point >> 12);
		*out++ = (char)(0x80 | (point >> 6 & 0x3f));
		*out++ = (char)(0x80 | (point & 0x3f));
	} else {
		*out++ = (char)(0xf0 | point >> 18);
		*out++ = (char)(0x80 | (point >> 12 & 0x3f));
		*out++ = (char)(0x80 | (point >> 6 & 0x3f));
		*out++ = (char)(0x80 | (point & 0x3f));
	}
	return out;
}

/* `in` is behind the backslash. NULL where it is no escape. */
static char *read_escape(struct in *in, char *out)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	unsigned char c = in->at < in->end ? *in->at++ : 0;
	const char *name = c ? strchr(names, c) : NULL;
	int32_t point, low;

	if (name) {
		*out++ = meant[name - names];
		return out;
	}
	point = c == 'u' ? read_unit(in) : -1;
	if (point < 0)
		return NULL;
	if (point >= 0xd800 && point < 0xdc00) {
		if (!skip_word(in, "\\u"))
			return NULL;
		low = read_unit(in);
		if (low < 0xdc00 || low > 0xdfff)
			return NULL;
		point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
	}
	return write_point(out, point);
}

/* With its escapes replaced: never longer than they are. */
static PyObject *read_escaped(struct in *in)
{
	char *bytes = PyMem_Malloc((size_t)(in->end - in->at) + 1), *out = bytes;
	PyObject *text = NULL;

	if (!bytes)
		return PyErr_NoMemory();
	while (out && in->at < in->end && *in->at >= 0x20 && *in->at != '"') {
		unsigned char c = *in->at++;

		if (c == '\\')
			out = read_escape(in, out);
		else
			*out++ = (char)c;
	}
	if (out && in->at < in->end && *in->at++ == '"')
		text = PyUnicode_DecodeUTF8(bytes, out - bytes, NULL);
	PyMem_Free(bytes);
	return text ? text : refuse("no string");
}

/* `in` is behind the quote. */
static PyObject *read_string(struct in *in)
{
	const unsigned char *start = in->at;

	while (in->at < in->end && *in->at >= 0x20 && *in->at != '"' && *in->at != '\\')
		in->at++;
	if (in->at == in->end || *in->at < 0x20)
		return refuse("a string without an end");
	if (*in->at == '\\') {
		in->at = start;
		return read_escaped(in);
	}
	return PyUnicode_DecodeUTF8((const char *)start, in->at++ - start, NULL);
}

/* No other numbers are in any message. */
static PyObject *read_integer(struct in *in)
{
	const unsigned char *start = in->at;
	long long value = 0;

	while (in->at < in->end && *in->at >= '0' && *in->at <= '9' && value <= INTEGER_MAX)
		value = value * 10 + (*in->at++ - '0');
	if (in->at == start || value > INTEGER_MAX || (*start == '0' && in->at - start > 1))
		return refuse("not an integer");
	return PyLong_FromLongLong(value);
}

static PyObject *shared(PyObject *object)
{
	Py_INCREF(object);
	return object;
}

static PyObject *read_scalar(struct in *in)
{
	if (next_is(in, '"'))
		return read_string(in);
	if (skip_word(in, "null"))
		return shared(Py_None);
	if (skip_word(in, "true"))
		return shared(Py_True);
	if (skip_word(in, "false"))
		return shared(Py_False);
	return read_integer(in);
}

/* `in` is behind the bracket. */
static PyObject *read_array(struct in *in)
{
	PyObject *list = PyList_New(0);
	bool more = list && !next_is(in, ']');

	while (more) {
		PyObject *element = PyList_Size(list) < ELEMENTS_MAX ? read_scalar(in)
								     : refuse("too many elements");
		bool good = element && !PyList_Append(list, element);

		Py_XDECREF(element);
		more = good && next_is(in, ',');
		if (!more && (!good || !next_is(in, ']'))) {
			Py_DECREF(list);
			return refuse("an array without an end");
		}
	}
	return list;
}

/* The one string of that name that there is already, so that nobody makes another. */
static PyObject *known_key(const unsigned char *start, size_t size)
{
	for (size_t i = 0; i < codec_field_count; i++) {
		const char *key = codec_fields[i].key;

		if (strlen(key) == size && !memcmp(key, start, size))
			return shared(codec_fields[i].name);
	}
	return NULL;
}

static PyObject *read_key(struct in *in)
{
	const unsigned char *start = in->at, *end = memchr(start, '"', (size_t)(in->end - start));
	PyObject *key = end ? known_key(start, (size_t)(end - start)) : NULL;

	if (!key)
		return read_string(in);
	in->at = end + 1;
	return key;
}

/* `in` is behind the quote of the key. */
static bool read_member(struct in *in, PyObject *message)
{
	PyObject *key = read_key(in), *value = NULL;
	bool good = key && !PyDict_Contains(message, key) && next_is(in, ':');

	if (good)
		value = next_is(in, '[') ? read_array(in) : read_scalar(in);
	good = value && !PyDict_SetItem(message, key, value);
	Py_XDECREF(key);
	Py_XDECREF(value);
	return good;
}

static PyObject *read_object(struct in *in)
{
	PyObject *message = PyDict_New();
	bool more = message && next_is(in, '{'), good = true;

	while (more && good) {
		good = next_is(in, '"') && read_member(in, message);
		more = next_is(in, ',');
	}
	good = message && good && next_is(in, '}');
	skip_space(in);
	if (good && in->at == in->end)
		return message;
	Py_XDECREF(message);
	return refuse("no JSON object, or with more in it than any message has");
}

/* --- against the table ------------------------------------------------------------ */

static bool may_be_null(enum codec_type type)
{
	return type == TYPE_INTEGER_NULL || type == TYPE_STRING_NULL || type == TYPE_TEXT_NULL ||
	       type == TYPE_STRINGS_NULL || type == TYPE_TEXTS;
}

/* The meaning of a value, lent, or NULL. `texts`: of the attachments, a list or NULL. */
static PyObject *mean(enum codec_type type, PyObject *value, PyObject *texts)
{
	bool is_string = PyUnicode_CheckExact(value), is_integer = PyLong_CheckExact(value);

	if (value == Py_None)
		return may_be_null(type) ? value : NULL;
	switch (type) {
	case TYPE_INTEGER:
	case TYPE_INTEGER_NULL:
	case TYPE_INTEGERS:
		return is_integer ? value : NULL;
	case TYPE_BOOLEAN:
		return value == Py_True || value == Py_False ? value : NULL;
	case TYPE_STRING:
	case TYPE_STRING_NULL:
	case TYPE_STRINGS:
	case TYPE_STRINGS_NULL:
		return is_string ? value : NULL;
	case TYPE_TEXT:
	case TYPE_TEXT_NULL:
	case TYPE_TEXTS:
		break;
	}
	if (is_integer && texts && PyLong_AsSsize_t(value) < PyList_Size(texts))
		return PyList_GetItem(texts, PyLong_AsSsize_t(value));
	return is_string ? value : NULL;
}

static bool check_elements(enum codec_type type, PyObject *list, PyObject *texts)
{
	if (!PyList_CheckExact(list))
		return false;
	for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
		PyObject *element = PyList_GetItem(list, i), *meant = mean(type, element, texts);

		if (!meant || (meant != element && PyList_SetItem(list, i, shared(meant))))
			return false;
	}
	return true;
}

static bool check_field(const struct codec_field *field, PyObject *message, PyObject *texts)
{
	PyObject *value = PyDict_GetItemWithError(message, field->name), *meant;

	if (!value)
		return false;
	if (field->type == TYPE_TEXTS || field->type == TYPE_STRINGS ||
	    field->type == TYPE_STRINGS_NULL || field->type == TYPE_INTEGERS)
		return check_elements(field->type, value, texts);
	meant = mean(field->type, value, texts);
	return meant && (meant == value || !PyDict_SetItem(message, field->name, meant));
}

/* Whether the supervisor may say it; its texts are put in place. */
static bool check(PyObject *message, PyObject *texts)
{
	PyObject *name = PyDict_GetItemString(message, "type");
	const struct codec_message *found = NULL;

	for (size_t i = 0; name && PyUnicode_CheckExact(name) && i < codec_message_count; i++)
		if (!codec_messages[i].is_ours &&
		    !PyUnicode_CompareWithASCIIString(name, codec_messages[i].name))
			found = &codec_messages[i];
	if (!found || PyDict_Size(message) != (Py_ssize_t)found->field_count + 1)
		return refuse("no such message, or not its fields") != NULL;
	for (size_t i = 0; i < found->field_count; i++)
		if (!check_field(&found->fields[i], message, texts))
			return refuse("a message without one of its fields, or with a wrong one") !=
			       NULL;
	return true;
}

/* Takes the member "attachments" away: the sizes, new, or None. NULL where they are none. */
static PyObject *take_sizes(PyObject *message)
{
	PyObject *sizes = PyDict_GetItemString(message, "attachments");

	if (!sizes)
		return shared(Py_None);
	Py_INCREF(sizes);
	if (PyDict_DelItemString(message, "attachments") ||
	    !check_elements(TYPE_INTEGERS, sizes, NULL)) {
		Py_DECREF(sizes);
		return refuse("'attachments' that are no sizes");
	}
	return sizes;
}

static PyObject *decode(struct in *in, size_t frame)
{
	PyObject *message = read_object(in), *sizes = message ? take_sizes(message) : NULL;

	if (sizes && (sizes != Py_None || check(message, NULL)))
		return Py_BuildValue("NNn", message, sizes, (Py_ssize_t)frame);
	Py_XDECREF(message);
	Py_XDECREF(sizes);
	return NULL;
}

PyObject *codec_decode(PyObject *module, PyObject *unread)
{
	struct in in;
	char *bytes;
	Py_ssize_t size;
	uint32_t length = 0;

	(void)module;
	if (PyBytes_AsStringAndSize(unread, &bytes, &size))
		return NULL;
	if (size < HEADER)
		return shared(Py_None);
	for (int i = 0; i < HEADER; i++)
		length = length << 8 | (unsigned char)bytes[i];
	if (length > FRAME_MAX)
		return refuse("frame too large");
	if (size - HEADER < (Py_ssize_t)length)
		return shared(Py_None);
	in.at = (const unsigned char *)bytes + HEADER;
	in.end = in.at + length;
	return decode(&in, HEADER + length);
}

PyObject *codec_place(PyObject *module, PyObject *args)
{
	PyObject *message, *texts;

	(void)module;
	if (!PyArg_ParseTuple(args, "OO", &message, &texts))
		return NULL;
	if (!PyDict_CheckExact(message) || !PyList_CheckExact(texts))
		return refuse("no message, or no texts");
	return check(message, texts) ? shared(message) : NULL;
}
