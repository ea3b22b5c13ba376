#include "engine/inputs.h"

#include "source/subset.h"

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

bool inputs_part(const struct context *context, const struct worker_subset *subset,
		 struct memfile **ret_file, struct file_index **ret_index, struct rlmd_error *err)
{
	if (subset->input >= context->count || !context->inputs[subset->input].files)
		return error_set(err, RLMD_ERROR_INPUT, "a part of an input that has no files");
	return subset_make(&context->inputs[subset->input], subset->ranges, subset->count, ret_file,
			   ret_index, err);
}
