#include "engine/inputs.h"

_Static_assert((int)CONTEXT_INPUTS_MAX <= (int)WORKER_INPUTS_MAX, "a worker holds every input");

size_t inputs_of(const struct context *context, struct worker_input ret[static WORKER_INPUTS_MAX])
{
	for (size_t i = 0; i < context->count; i++) {
		const struct context_input *input = &context->inputs[i];

		ret[i] = (struct worker_input){input->name, input->file, input->files};
	}
	return context->count;
}
