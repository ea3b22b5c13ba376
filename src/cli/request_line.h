/* cli/request_line.h - the first line of an HTTP request, as much of it as an exporter wants. */
#pragma once

#include <stdbool.h>

#include "base/text.h"

struct request_line {
	bool head;             /* HEAD, else GET */
	struct rlmd_text path; /* lent: as it was sent, without its query */
};

/* Without its end. Returns the status to refuse it with, "400 Bad Request"; static; NULL: `ret` is
 * filled. */
const char *request_line_read(struct rlmd_text, struct request_line *ret);
