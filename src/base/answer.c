#include "base/answer.h"

const char *answer_source_name(enum answer_source source)
{
	static const char *const names[] = {
#define X(source, name) [ANSWER_##source] = name,
		ANSWER_SOURCES(X)
#undef X
	};

	return names[source];
}
