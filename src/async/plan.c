/*
 * Checking takes time in proportion to operations, dependencies and the bytes
 * of the inputs (names are sorted by hash, which adds a logarithm), and nothing here
 * recurses, so that the longest chain needs no more stack than the shortest.
 */
#include "async/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/metrics.h"
#include "async/substitute.h"
#include "base/abi.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

/* FNV-1a. Ids chosen to collide gain nothing: ties are decided by the ids. */
static uint64_t hash(struct rlmd_text id)
{
	uint64_t value = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < id.size; i++)
		value = (value ^ (unsigned char)id.bytes[i]) * UINT64_C(0x100000001b3);
	return value;
}

static int by_name(const void *a, const void *b, void *owner)
{
	const struct rlmd_operation *operations = owner;
	const struct plan_name *left = a, *right = b;
	int order = (left->hash > right->hash) - (left->hash < right->hash);

	if (!order)
		order = strcmp(operations[left->index].id, operations[right->index].id);
	return order ? order : (left->index > right->index) - (left->index < right->index);
}

/* As strcmp(); neither has a NUL inside. */
static int compare(struct rlmd_text id, const char *name)
{
	int order = strncmp(id.bytes, name, id.size);

	return order ? order : -(name[id.size] != 0);
}

size_t plan_find(const struct rlmd_plan *plan, struct rlmd_text id)
{
	size_t low = 0, high = plan->name_count;
	uint64_t wanted = hash(id);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct plan_name *name = &plan->names[middle];
		int order = (wanted > name->hash) - (wanted < name->hash);

		if (!order)
			order = compare(id, plan->operations[name->index].id);
		if (!order)
			return name->index;
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return RLMD_PLAN_NOBODY;
}

static struct rlmd_text text_of_id(const char *id)
{
	return (struct rlmd_text){id, strlen(id)};
}

static bool has_bytes(struct rlmd_text text)
{
	return text.bytes || !text.size;
}

/* Lent texts and arrays must not be NULL. */
static bool check_lent(size_t index, const struct rlmd_operation *operation, struct rlmd_error *err)
{
	if (!has_bytes(operation->input) || !has_bytes(operation->context) ||
	    !has_bytes(operation->metadata))
		return error_set(err, RLMD_ERROR_INPUT, "operations[%zu]: a text of it is NULL",
				 index);
	if (operation->depends_count && !operation->depends_on)
		return error_set(err, RLMD_ERROR_INPUT, "operations[%zu].dependsOn: is NULL",
				 index);
	for (size_t d = 0; d < operation->depends_count; d++)
		if (!operation->depends_on[d])
			return error_set(err, RLMD_ERROR_INPUT,
					 "operations[%zu].dependsOn[%zu]: is NULL", index, d);
	return true;
}

static bool check_sizes(const struct rlmd_plan *plan, struct rlmd_error *err)
{
	size_t dependencies = 0;

	for (size_t i = 0; i < plan->count; i++) {
		if (plan->operations[i].depends_count > RLMD_PLAN_DEPENDENCIES_MAX - dependencies)
			return error_set(err, RLMD_ERROR_INPUT,
					 "operations[%zu].dependsOn: too many dependencies; the "
					 "most are %d in all",
					 i, RLMD_PLAN_DEPENDENCIES_MAX);
		dependencies += plan->operations[i].depends_count;
		if ((unsigned)plan->operations[i].type >= METRICS_TYPES ||
		    (unsigned)plan->operations[i].mode > RLMD_OPERATION_RUN)
			return error_set(err, RLMD_ERROR_INPUT,
					 "operations[%zu]: its type or its mode is none of those "
					 "that there are",
					 i);
		if (!check_lent(i, &plan->operations[i], err))
			return false;
	}
	return true;
}

static bool check_name(size_t index, struct rlmd_text id, struct rlmd_error *err)
{
	if (!id.size)
		return error_set(err, RLMD_ERROR_INPUT, "operations[%zu].id: is empty", index);
	if (id.size > RLMD_PLAN_ID_MAX)
		return error_set(err, RLMD_ERROR_INPUT,
				 "operations[%zu].id: is longer than %d bytes", index,
				 RLMD_PLAN_ID_MAX);
	if (substitute_id(id) != id.size || !text_is_utf8(id))
		return error_set(err, RLMD_ERROR_INPUT,
				 "operations[%zu].id: \"%s\" has something else than letters, "
				 "digits and - _ . : / @ +",
				 index, id.bytes);
	return true;
}

static bool index_names(struct rlmd_plan *plan, struct rlmd_error *err)
{
	struct rlmd_text id;

	plan->names = xcalloc(plan->count, sizeof *plan->names);
	for (size_t i = 0; i < plan->count; i++) {
		if (!plan->operations[i].id)
			continue;
		id = text_of_id(plan->operations[i].id);
		if (!check_name(i, id, err))
			return false;
		plan->names[plan->name_count++] = (struct plan_name){hash(id), (uint32_t)i};
	}
	qsort_r(plan->names, plan->name_count, sizeof *plan->names, by_name, plan->operations);
	for (size_t i = 1; i < plan->name_count; i++) {
		size_t first = plan->names[i - 1].index, second = plan->names[i].index;
		const char *name = plan->operations[first].id;

		if (!strcmp(name, plan->operations[second].id))
			return error_set(err, RLMD_ERROR_INPUT,
					 "operations[%zu].id: \"%s\" is taken by operations[%zu]",
					 second, name, first);
	}
	return true;
}

static bool resolve(struct rlmd_plan *plan, struct rlmd_error *err)
{
	struct plan_edges *edges = &plan->dependencies;
	uint32_t used = 0;

	edges->starts = xcalloc(plan->count + 1, sizeof *edges->starts);
	for (size_t i = 0; i < plan->count; i++)
		used += (uint32_t)plan->operations[i].depends_count;
	edges->others = xcalloc(used, sizeof *edges->others);
	used = 0;
	for (size_t i = 0; i < plan->count; i++) {
		const struct rlmd_operation *operation = &plan->operations[i];

		for (size_t d = 0; d < operation->depends_count; d++) {
			const char *id = operation->depends_on[d];
			size_t found = plan_find(plan, text_of_id(id));

			if (found == RLMD_PLAN_NOBODY)
				return error_set(err, RLMD_ERROR_INPUT,
						 "operations[%zu].dependsOn[%zu]: \"%.*s\" is not "
						 "the id of an operation",
						 i, d, RLMD_PLAN_ID_MAX, id);
			edges->others[used++] = (uint32_t)found;
		}
		edges->starts[i + 1] = used;
	}
	return true;
}

/* The dependencies seen from the other side; a dependent stands in the order of the plan. */
static void turn_around(struct rlmd_plan *plan)
{
	const struct plan_edges *from = &plan->dependencies;
	struct plan_edges *to = &plan->dependents;
	size_t total = plan->ordered ? from->starts[plan->count] : 0;
	auto_free uint32_t *fill = xcalloc(plan->count + 1, sizeof *fill);

	to->starts = xcalloc(plan->count + 1, sizeof *to->starts);
	to->others = xcalloc(total, sizeof *to->others);
	for (size_t e = 0; e < total; e++)
		to->starts[from->others[e] + 1]++;
	for (size_t i = 0; i < plan->count; i++)
		to->starts[i + 1] += to->starts[i];
	memcpy(fill, to->starts, (plan->count + 1) * sizeof *fill);
	for (size_t i = 0; total && i < plan->count; i++)
		for (uint32_t e = from->starts[i]; e < from->starts[i + 1]; e++)
			to->others[fill[from->others[e]]++] = (uint32_t)i;
}

static const char *label(const struct rlmd_plan *plan, size_t index)
{
	return plan->operations[index].id;
}

/* Only who stands on a cycle, or behind one, has something missing; going from one to what it
 * misses must come by the same place twice. */
static bool name_cycle(const struct rlmd_plan *plan, const uint32_t *missing,
		       struct rlmd_error *err)
{
	auto_free uint32_t *next = xcalloc(plan->count, sizeof *next);
	auto_free bool *passed = xcalloc(plan->count, sizeof *passed);
	size_t at = 0, length = 1, count;
	char path[sizeof err->text];
	const char *left_out = "";
	int used;

	while (!missing[at])
		at++;
	for (; !passed[at]; at = next[at]) {
		const uint32_t *needs = plan_others(&plan->dependencies, at, &count);

		passed[at] = true;
		while (!missing[*needs])
			needs++;
		next[at] = *needs;
	}
	used = snprintf(path, sizeof path, "%s", label(plan, at));
	for (size_t i = next[at]; i != at; i = next[i], length++)
		if ((size_t)used < sizeof path / 3)
			used += snprintf(path + used, sizeof path - (size_t)used, " -> %s",
					 label(plan, i));
		else
			left_out = " -> ...";
	if (length == 1)
		return error_set(err, RLMD_ERROR_INPUT,
				 "operations[%zu].dependsOn: \"%s\" depends on itself", at,
				 label(plan, at));
	return error_set(err, RLMD_ERROR_INPUT, "operations: a cycle of %zu: %s%s -> %s", length,
			 path, left_out, label(plan, at));
}

static bool check_cycles(const struct rlmd_plan *plan, struct rlmd_error *err)
{
	auto_free uint32_t *missing = xcalloc(plan->count, sizeof *missing);
	auto_free uint32_t *ready = xcalloc(plan->count, sizeof *ready);
	size_t found = 0, count;

	for (size_t i = 0; i < plan->count; i++) {
		plan_others(&plan->dependencies, i, &count);
		missing[i] = (uint32_t)count;
		if (!count)
			ready[found++] = (uint32_t)i;
	}
	for (size_t i = 0; i < found; i++) {
		const uint32_t *dependents = plan_others(&plan->dependents, ready[i], &count);

		for (size_t d = 0; d < count; d++)
			if (!--missing[dependents[d]])
				ready[found++] = dependents[d];
	}
	return found == plan->count || name_cycle(plan, missing, err);
}

static bool check_strategy(const struct rlmd_plan *plan, struct rlmd_error *err)
{
	switch (plan->strategy) {
	case RLMD_PLAN_DEPENDENCY_AWARE:
	case RLMD_PLAN_SEQUENTIAL:
		return check_cycles(plan, err);
	case RLMD_PLAN_SPECULATIVE:
		for (size_t i = 0; i < plan->count; i++)
			if (plan->operations[i].depends_count)
				return error_set(err, RLMD_ERROR_INPUT,
						 "operations[%zu].dependsOn: the alternatives of a "
						 "Speculative plan cannot depend on each other",
						 i);
		return true;
	case RLMD_PLAN_PARALLEL:
		return true;
	}
	return error_set(err, RLMD_ERROR_INPUT, "strategy: is none of those that there are");
}

/* `needed` says for each operation who needed it last, counted from 1. */
static bool check_input(struct rlmd_plan *plan, size_t index, const uint32_t *needed,
			struct rlmd_error *err)
{
	struct substitute_scan scan = {.rest = plan->operations[index].input};
	enum substitute_piece kind;
	struct rlmd_text id;

	while ((kind = substitute_next(&scan, &id)) != SUBSTITUTE_END) {
		size_t found;

		plan->filled[index] |= kind == SUBSTITUTE_REFERENCE || scan.raw;
		if (kind == SUBSTITUTE_TEXT)
			continue;
		found = plan_find(plan, id);
		if (found == RLMD_PLAN_NOBODY || needed[found] != index + 1)
			return error_set(err, RLMD_ERROR_INPUT,
					 "operations[%zu].input: {{%.*s}} names no dependency of "
					 "it (\\{{%.*s}} stands for the text itself)",
					 index, (int)id.size, id.bytes, (int)id.size, id.bytes);
		if (!plan->ordered)
			return error_set(err, RLMD_ERROR_INPUT,
					 "operations[%zu].input: {{%.*s}} has no response: "
					 "Parallel ignores dependencies",
					 index, (int)id.size, id.bytes);
		plan->quoted[found] = true;
	}
	return true;
}

static bool check_inputs(struct rlmd_plan *plan, struct rlmd_error *err)
{
	auto_free uint32_t *needed = xcalloc(plan->count, sizeof *needed);
	size_t count;

	for (size_t i = 0; i < plan->count; i++) {
		const uint32_t *needs = plan_others(&plan->dependencies, i, &count);

		for (size_t d = 0; d < count; d++)
			needed[needs[d]] = (uint32_t)i + 1;
		if (!check_input(plan, i, needed, err))
			return false;
	}
	return true;
}

/* The caller's version of the struct may be smaller or larger than ours. */
static bool copy_operations(struct rlmd_plan *plan, const struct rlmd_operation *given,
			    size_t count, struct rlmd_error *err)
{
	if (!count || !given)
		return error_set(err, RLMD_ERROR_INPUT, "operations: there are none");
	if (count > RLMD_PLAN_OPERATIONS_MAX)
		return error_set(err, RLMD_ERROR_INPUT,
				 "operations: %zu are too many, the most are %d", count,
				 RLMD_PLAN_OPERATIONS_MAX);
	plan->operations = xcalloc(count, sizeof *plan->operations);
	plan->count = count;
	for (size_t i = 0; i < count; i++) {
		const char *one = (const char *)given + i * given->size;

		if (!abi_copy_in(&plan->operations[i], sizeof *plan->operations, one,
				 sizeof *plan->operations, "rlmd_operation", err))
			return error_context(err, "operations[%zu]", i);
		if (plan->operations[i].size != given->size)
			return error_set(err, RLMD_ERROR_USAGE,
					 "operations[%zu]: its size is not that of the first", i);
	}
	return true;
}

struct rlmd_plan *rlmd_plan_new(const struct rlmd_plan_description *given, struct rlmd_error *err)
{
	struct rlmd_plan_description description;
	struct rlmd_plan *plan;

	if (!abi_copy_in(&description, sizeof description, given, sizeof description,
			 "rlmd_plan_description", err))
		return NULL;
	plan = xcalloc(1, sizeof *plan);
	plan->strategy = description.strategy;
	plan->ordered = plan->strategy == RLMD_PLAN_DEPENDENCY_AWARE ||
			plan->strategy == RLMD_PLAN_SEQUENTIAL;
	if (copy_operations(plan, description.operations, description.count, err) &&
	    check_sizes(plan, err) && index_names(plan, err) && resolve(plan, err)) {
		turn_around(plan);
		plan->filled = xcalloc(plan->count, sizeof *plan->filled);
		plan->quoted = xcalloc(plan->count, sizeof *plan->quoted);
		if (check_strategy(plan, err) && (description.literal || check_inputs(plan, err)))
			return plan;
	}
	rlmd_plan_free(plan);
	return NULL;
}

void rlmd_plan_free(struct rlmd_plan *plan)
{
	if (!plan)
		return;
	free(plan->operations);
	free(plan->names);
	free(plan->dependencies.starts);
	free(plan->dependencies.others);
	free(plan->dependents.starts);
	free(plan->dependents.others);
	free(plan->filled);
	free(plan->quoted);
	free(plan);
}

size_t rlmd_plan_count(const struct rlmd_plan *plan)
{
	return plan ? plan->count : 0;
}

const struct rlmd_operation *rlmd_plan_operation(const struct rlmd_plan *plan, size_t index)
{
	return index < rlmd_plan_count(plan) ? &plan->operations[index] : NULL;
}

void rlmd_plan_set_owner(struct rlmd_plan *plan, size_t index, void *owner)
{
	if (index < rlmd_plan_count(plan))
		plan->operations[index].owner = owner;
}

size_t rlmd_plan_ready(const struct rlmd_plan *plan, const bool *completed, size_t *ret_indices)
{
	size_t ready = 0, count;

	for (size_t i = 0; completed && ret_indices && i < rlmd_plan_count(plan); i++) {
		const uint32_t *needs = plan_others(&plan->dependencies, i, &count);
		size_t met = plan->ordered ? 0 : count;

		while (met < count && completed[needs[met]])
			met++;
		if (!completed[i] && met == count)
			ret_indices[ready++] = i;
	}
	return ready;
}
