#include "codec.h"

#include "wire/bounds.h"

enum {
#define MESSAGE(name, wire, from, states, meaning) MESSAGE_##name,
#define FIELD(message, key, type, bound, meaning)
#include "wire/messages.def"
#undef MESSAGE
#undef FIELD
};

enum { FROM_WORKER = 1, FROM_SUPERVISOR = 0 };

/* clang-format off */
struct codec_message codec_messages[] = {
#define MESSAGE(name, wire, from, states, meaning) {wire, FROM_##from, NULL, 0},
#define FIELD(message, key, type, bound, meaning)
#include "wire/messages.def"
#undef MESSAGE
#undef FIELD
};

struct codec_field codec_fields[] = {
#define MESSAGE(name, wire, from, states, meaning)
#define FIELD(message, key, type, bound, meaning) {MESSAGE_##message, #key, TYPE_##type, NULL},
#include "wire/messages.def"
#undef MESSAGE
#undef FIELD
};
/* clang-format on */

const size_t codec_field_count = sizeof codec_fields / sizeof *codec_fields;
const size_t codec_message_count = sizeof codec_messages / sizeof *codec_messages;

PyObject *codec_error;

bool codec_init(PyObject *module)
{
	for (size_t i = 0; i < codec_field_count; i++) {
		struct codec_field *field = &codec_fields[i];
		struct codec_message *message = &codec_messages[field->message];

		field->name = PyUnicode_InternFromString(field->key);
		if (!field->name)
			return false;
		if (!message->field_count++)
			message->fields = field;
	}
	codec_error = PyErr_NewExceptionWithDoc(
		"_rlmd.ProtocolError",
		"A message that is not in the table, or not as it stands there.", PyExc_ValueError,
		NULL);
	return codec_error && !PyModule_AddObject(module, "ProtocolError", codec_error);
}
