#include "pool/boot.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "pool/translate.h"

enum { STEP_BYTES = 256 << 10 }; /* of an input, in one callback: about half a millisecond */

struct boot {
	struct rlmd_sandbox *sandbox; /* lent */
	struct event *posted;         /* owned: the next step is due */
	struct spawn *spawn;          /* owned, from when the inputs are ready */
	struct memfile **files;       /* owned, `count` references: inputs, then indexes */
	enum text_form *forms;        /* owned */
	size_t count, ready;          /* files in all; of them ready, the first ones */
	size_t memory;
	sandbox_spawn_fn *fn;
	void *owner; /* lent */
};

void boot_choose(const struct rlmd_sandbox *sandbox, const struct worker_options *options,
		 struct worker_input ret[static WORKER_INPUTS_MAX])
{
	size_t largest = sandbox_map_max(sandbox), i;

	for (i = 0; i < options->input_count; i++) {
		enum text_form form = memfile_form(options->inputs[i].file);

		ret[i] = options->inputs[i];
		ret[i].form = TEXT_UTF8;
		if (memfile_form_size(ret[i].file, form) <= largest)
			ret[i].form = form;
	}
}

static void boot_free(struct boot *boot)
{
	spawn_cancel(boot->spawn);
	event_free(boot->posted);
	while (boot->count)
		memfile_unref(boot->files[--boot->count]);
	free(boot->files);
	free(boot->forms);
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
		fds[i] = memfile_form_fd(boot->files[i], boot->forms[i], err);
		if (fds[i] < 0)
			return false;
	}
	boot->spawn = sandbox_spawn(boot->sandbox, fds, boot->count, boot->memory, on_spawn, boot);
	return true;
}

static bool step(struct boot *boot, struct rlmd_error *err)
{
	while (boot->ready < boot->count) {
		bool done;

		if (!memfile_prepare(boot->files[boot->ready], boot->forms[boot->ready], STEP_BYTES,
				     &done, err))
			return false;
		if (!done) {
			loop_post(boot->posted);
			return true;
		}
		boot->ready++;
	}
	return ask(boot, err);
}

static void on_posted(evutil_socket_t fd, short what, void *arg)
{
	struct boot *boot = arg;
	struct rlmd_error err;

	(void)fd;
	(void)what;
	if (!step(boot, &err))
		deliver(boot, NULL, &err);
}

static void add_file(struct boot *boot, struct memfile *file, enum text_form form)
{
	boot->files[boot->count] = memfile_ref(file);
	boot->forms[boot->count++] = form;
}

struct boot *boot_start(struct event_base *base, struct rlmd_sandbox *sandbox,
			const struct worker_options *options, sandbox_spawn_fn *fn, void *owner)
{
	struct boot *boot = xcalloc(1, sizeof *boot);
	size_t most = 2 * options->input_count + 1, i;

	*boot = (struct boot){
		.sandbox = sandbox,
		.files = xcalloc(most, sizeof *boot->files),
		.forms = xcalloc(most, sizeof *boot->forms),
		.memory = translate_start_memory(options),
		.fn = fn,
		.owner = owner,
	};
	for (i = 0; i < options->input_count; i++)
		add_file(boot, options->inputs[i].file, options->inputs[i].form);
	for (i = 0; i < options->input_count; i++)
		if (options->inputs[i].index)
			add_file(boot, options->inputs[i].index, TEXT_UTF8);
	boot->posted = loop_timer(base, on_posted, boot);
	loop_post(boot->posted);
	return boot;
}

void boot_cancel(struct boot *boot)
{
	if (boot)
		boot_free(boot);
}
