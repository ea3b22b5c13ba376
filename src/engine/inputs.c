#include "engine/inputs.h"

_Static_assert((int)CONTEXT_INPUTS_MAX <= (int)WORKER_INPUTS_MAX, "a worker holds every input");

size_t inputs_of(const struct context *context, struct worker_input ret[static WORKER_INPUTS_MAX])
{
	for (size_t i = 0; i < context->count; i++) {
		const struct context_input *input = &context->inputs[i];

		ret[i] = (struct worker_input){
			.name = input->name,
			.file = input->file,
			.index = input->files ? file_index_file(input->files) : NULL,
		};
	}
	return context->count;
}
