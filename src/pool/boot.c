#include "pool/boot.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/timer.h"
#include "pool/translate.h"

struct boot {
	struct rlmd_sandbox *sandbox; /* lent */
	struct timer *posted;         /* owned */
	struct spawn *spawn;          /* owned, once it was asked for */
	struct memfile **files;       /* owned, `count` references: inputs, then indexes */
	size_t count;
	size_t memory;
	sandbox_spawn_fn *fn;
	void *owner; /* lent */
};

void boot_choose(const struct rlmd_sandbox *sandbox, const struct worker_options *options,
		 struct worker_input ret[static WORKER_INPUTS_MAX])
{
	bool maps = sandbox_maps_texts(sandbox);

	for (size_t i = 0; i < options->input_count; i++) {
		ret[i] = options->inputs[i];
		ret[i].form = maps ? memfile_form(ret[i].file) : TEXT_UTF8;
	}
}

static void boot_free(struct boot *boot)
{
	spawn_cancel(boot->spawn);
	timer_free(boot->posted);
	while (boot->count)
		memfile_unref(boot->files[--boot->count]);
	free(boot->files);
	free(boot);
}

static void deliver(struct boot *boot, const struct spawned *spawned, const struct rlmd_error *err)
{
	sandbox_spawn_fn *fn = boot->fn;
	void *owner = boot->owner;

	boot_free(boot);
	fn(owner, spawned, err);
}

static void on_spawn(void *owner, const struct spawned *spawned, const struct rlmd_error *err)
{
	struct boot *boot = owner;

	boot->spawn = NULL;
	deliver(boot, spawned, err);
}

static bool ask(struct boot *boot, struct rlmd_error *err)
{
	auto_free int *fds = xcalloc(boot->count + 1, sizeof *fds);

	for (size_t i = 0; i < boot->count; i++) {
		fds[i] = memfile_fd(boot->files[i], err);
		if (fds[i] < 0)
			return false;
	}
	boot->spawn = sandbox_spawn(boot->sandbox, fds, boot->count, boot->memory, on_spawn, boot);
	return true;
}

static void on_posted(void *arg)
{
	struct boot *boot = arg;
	struct rlmd_error err;

	if (!ask(boot, &err))
		deliver(boot, NULL, &err);
}

static void add_file(struct boot *boot, struct memfile *file)
{
	boot->files[boot->count++] = memfile_ref(file);
}

struct boot *boot_start(struct event_base *base, struct rlmd_sandbox *sandbox,
			const struct worker_options *options, sandbox_spawn_fn *fn, void *owner)
{
	struct boot *boot = xcalloc(1, sizeof *boot);
	size_t most = 2 * options->input_count + 1, i;

	*boot = (struct boot){
		.sandbox = sandbox,
		.files = xcalloc(most, sizeof *boot->files),
		.memory = translate_start_memory(options),
		.fn = fn,
		.owner = owner,
	};
	for (i = 0; i < options->input_count; i++)
		add_file(boot, options->inputs[i].file);
	for (i = 0; i < options->input_count; i++)
		if (options->inputs[i].index)
			add_file(boot, options->inputs[i].index);
	boot->posted = timer_new(base, on_posted, boot);
	timer_post(boot->posted);
	return boot;
}

void boot_cancel(struct boot *boot)
{
	if (boot)
		boot_free(boot);
}
