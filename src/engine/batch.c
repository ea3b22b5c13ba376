#include "engine/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/memfile.h"
#include "engine/job.h"
#include "llm/llm.h"
#include "pool/worker.h"

#define THOUSANDTHS 1000.0

enum { CONTEXT_MARKED = 4096 }; /* bytes of a context by which its task is known, with its size */

struct batch_number {
	char digits[24];
};

static struct rlmd_text copied(struct rlmd_text text)
{
	return text_from(text_copy(text), text.size);
}

/* What is long lies in a memory file, which is kept in its place. */
static struct rlmd_text take_text(struct batch *batch, const struct worker_call *call, size_t place)
{
	struct batch_text *taken = &batch->texts[place];

	if (call->files && call->files[place]) {
		taken->file = memfile_ref(call->files[place]);
		return call->texts[place];
	}
	taken->copy = text_copy(call->texts[place]);
	return text_from(taken->copy, call->texts[place].size);
}

static size_t turns_of(const struct worker_call *call, size_t place)
{
	return call->turns ? call->turns[place] : 1;
}

static const char *model_of(const struct worker_call *call, size_t place)
{
	return call->models ? call->models[place] : call->model;
}

static void take_operation(struct batch *batch, const struct worker_call *call, size_t place,
			   struct rlmd_text input)
{
	batch->operations[place] = (struct rlmd_operation){
		.mode = call->kind == WORKER_RLM_QUERY ? RLMD_OPERATION_RUN : RLMD_OPERATION_CALL,
		.input = input,
		.model = xstrdup(model_of(call, place)),
	};
}

static void take_operations(struct batch *batch, const struct worker_call *call)
{
	size_t text = 0;

	batch->count = call->count;
	batch->texts = xcalloc(call->text_count, sizeof *batch->texts);
	batch->text_count = call->text_count;
	batch->operations = xcalloc(call->count, sizeof *batch->operations);
	batch->earlier = xcalloc(call->text_count - call->count + 1, sizeof *batch->earlier);
	for (size_t i = 0; i < call->count; i++) {
		for (size_t turn = 1; turn < turns_of(call, i); turn++)
			batch->earlier[batch->earlier_count++] = take_text(batch, call, text++);
		take_operation(batch, call, i, take_text(batch, call, text++));
	}
}

static void take_subsets(struct batch *batch, const struct worker_call *call)
{
	if (!call->subsets)
		return;
	batch->subsets = xcalloc(batch->count, sizeof *batch->subsets);
	for (size_t i = 0; i < batch->count; i++) {
		const struct worker_subset *given = &call->subsets[i];
		size_t *ranges;

		if (!given->ranges)
			continue;
		ranges = xreallocarray(NULL, given->count * 2, sizeof *ranges);
		memcpy(ranges, given->ranges, given->count * 2 * sizeof *ranges);
		batch->subsets[i] = (struct worker_subset){given->input, ranges, given->count};
	}
}

bool batch_read(struct batch *batch, const struct worker_call *call, struct rlmd_plan_error *err)
{
	struct rlmd_plan_description description = {.strategy = RLMD_PLAN_PARALLEL,
						    .literal = true};

	*batch = (struct batch){.wishes = {
					.system = copied(call->system),
					.max_tokens = call->max_tokens,
					.with_temperature = call->temperature >= 0,
					.temperature = call->temperature / THOUSANDTHS,
				}};
	take_operations(batch, call);
	take_subsets(batch, call);
	description.operations = batch->operations;
	description.count = batch->count;
	batch->plan = rlmd_plan_new(&description, err);
	return batch->plan;
}

/* What a task is about: a context of its own, or a part of its caller's. */
static size_t add_context(const struct batch *batch, const struct worker_call *call, size_t i,
			  struct batch_number *number, struct rlmd_text *out)
{
	const struct worker_subset *subset = batch->subsets ? &batch->subsets[i] : NULL;
	struct memfile *context = call->contexts ? call->contexts[i] : NULL;
	size_t count = 0;

	if (subset && subset->ranges)
		out[count++] = text_from((const char *)subset->ranges,
					 2 * subset->count * sizeof *subset->ranges);
	if (context) {
		snprintf(number->digits, sizeof number->digits, "%zu", memfile_size(context));
		out[count++] = text_of(number->digits);
		out[count++] = text_clip(memfile_text(context), CONTEXT_MARKED);
	}
	return count;
}

static void mark(const struct batch *batch, const struct worker_call *call, struct caller *caller,
		 char out[static CALLER_MARK_SIZE])
{
	auto_free struct rlmd_text *all = xcalloc(call->text_count + 4 * batch->count + 2,
						  sizeof *all);
	auto_free struct batch_number *numbers = xcalloc(batch->count, sizeof *numbers);
	char wishes[64];
	size_t count = 0;

	snprintf(wishes, sizeof wishes, "%d %" PRId64 " %d", (int)call->kind, call->max_tokens,
		 call->temperature);
	all[count++] = text_of(wishes);
	all[count++] = call->system;
	for (size_t i = 0; i < call->text_count; i++)
		all[count++] = call->texts[i];
	for (size_t i = 0; i < batch->count; i++) {
		all[count++] = text_of(model_of(call, i));
		count += add_context(batch, call, i, &numbers[i], all + count);
	}
	caller_mark(caller, all, count, out);
}

void batch_mark(const struct batch *batch, const struct worker_call *call, struct caller *caller,
		char out[static CALLER_MARK_SIZE])
{
	*out = '\0';
	if (llm_knows_places(caller->job->llm))
		mark(batch, call, caller, out);
}

void batch_equip(const struct batch *batch, const struct worker_call *call,
		 struct operation *operations)
{
	const struct rlmd_text *earlier = batch->earlier;
	const struct batch_text *text = batch->texts;

	for (size_t i = 0; i < batch->count; i++) {
		text += turns_of(call, i);
		if (text[-1].file)
			operations[i].scan = memfile_scan(text[-1].file);
		operations[i].wishes = &batch->wishes;
		operations[i].earlier = earlier;
		operations[i].earlier_count = turns_of(call, i) - 1;
		earlier += operations[i].earlier_count;
		if (call->contexts)
			operations[i].context = memfile_ref(call->contexts[i]);
		if (batch->subsets && batch->subsets[i].ranges)
			operations[i].subset = &batch->subsets[i];
	}
}

void batch_done(struct batch *batch)
{
	rlmd_plan_free(batch->plan);
	for (size_t i = 0; i < batch->count; i++)
		free((char *)batch->operations[i].model);
	for (size_t i = 0; batch->subsets && i < batch->count; i++)
		free((size_t *)batch->subsets[i].ranges);
	free(batch->subsets);
	for (size_t i = 0; i < batch->text_count; i++) {
		memfile_unref(batch->texts[i].file);
		free(batch->texts[i].copy);
	}
	free(batch->texts);
	free(batch->operations);
	free(batch->earlier);
	free((char *)batch->wishes.system.bytes);
}
