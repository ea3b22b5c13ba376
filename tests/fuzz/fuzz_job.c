/*
 * A line of a jobs file, whatever it holds: an error that can be read, or a job whose texts are
 * where they say, and which is the same job when it is read again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "batch/job_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t touch(struct rlmd_text text)
{
	size_t sum = 0;

	for (size_t i = 0; i < text.size; i++)
		sum += (unsigned char)text.bytes[i];
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rlmd_text line = text_from(data, size);
	struct rlmd_error err = {0};
	struct job_line job, again;

	if (!job_line_read(line, &job, &err)) {
		assert(err.kind == RLMD_ERROR_INPUT && *err.text);
		return 0;
	}
	assert(*job.custom_id && text_is_utf8(text_of(job.custom_id)));
	assert(touch(job.task) && text_is_utf8(job.task) && text_is_utf8(job.context));
	touch(job.schema);
	free(job_line_path(&job, "."));
	assert(job_line_read(line, &again, &err) && !strcmp(job.digest, again.digest));
	job_line_done(&again);
	job_line_done(&job);
	return 0;
}
