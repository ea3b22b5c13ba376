#include "batch/tenancies.h"

#include <rlmd/engine.h>
#include <rlmd/job.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "batch/confine.h"
#include "batch/job_line.h"

#define APART "L3" /* that keeps tenants from each other */

struct tenancies {
	struct tenancies_options options;
	struct tenancy **items; /* owned */
	size_t count;
	size_t expected;     /* tenants of the batch */
	uint32_t uid_ranges; /* that are given */
	bool shared;         /* one of them to all that rlmd.conf does not know */
	uint32_t shared_uid_range;
};

struct tenancies *tenancies_new(const struct tenancies_options *options)
{
	struct tenancies *tenancies = xcalloc(1, sizeof *tenancies);

	tenancies->options = *options;
	tenancies->expected = 1;
	return tenancies;
}

void tenancies_free(struct tenancies *tenancies)
{
	if (!tenancies)
		return;
	for (size_t i = 0; i < tenancies->count; i++) {
		rlmd_group_unref(tenancies->items[i]->group);
		free(tenancies->items[i]->provider);
		free(tenancies->items[i]->name);
		free(tenancies->items[i]);
	}
	free(tenancies->items);
	free(tenancies);
}

/* --- what one needs ------------------------------------------------------------------ */

static const struct tenant *settings_of(const struct tenancies *tenancies, const char *name)
{
	const struct tenants *tenants = tenancies->options.tenants;

	for (size_t i = 0; i < tenants->count; i++)
		if (!strcmp(tenants->items[i].name, name))
			return &tenants->items[i];
	return NULL;
}

static uint32_t uid_range_of(struct tenancies *tenancies, const struct tenant *settings)
{
	if (settings)
		return tenancies->uid_ranges++;
	if (!tenancies->shared) {
		tenancies->shared = true;
		tenancies->shared_uid_range = tenancies->uid_ranges++;
	}
	return tenancies->shared_uid_range;
}

/* The command's own, or what several need; a tenant may want more, never less. */
static const char *level_of(const struct tenancies *tenancies, const struct tenant *settings)
{
	static const char *const levels[] = {NULL, "L1", "L2", "L3", "L4"};
	const char *level = tenancies->options.require;

	if (!level && tenancies->expected > 1)
		level = APART;
	if (settings && settings->require && (!level || level[1] - '0' < settings->require))
		level = levels[settings->require];
	return level;
}

static bool open_provider(struct tenancy *tenancy, struct rlmd_error *err)
{
	const struct tenancies_options *options = &tenancy->tenancies->options;
	const struct tenant *settings = tenancy->settings;
	struct rlmd_provider *provider;
	const char *kind;
	bool added;

	if (!settings || !(settings->provider || settings->key_file))
		return true;
	kind = settings->provider ? settings->provider : options->kind;
	if (!settings->key_file) {
		tenancy->provider = xstrdup(kind);
		return true;
	}
	provider = options->provider(options->owner, kind, settings->key_file, err);
	tenancy->provider = xasprintf("%s.%s", settings->name, kind);
	added = provider &&
		rlmd_engine_add_provider(options->engine, tenancy->provider, provider, err);
	rlmd_provider_unref(provider);
	return added;
}

static bool open_sandbox(struct tenancy *tenancy, struct rlmd_error *err)
{
	struct tenancies *tenancies = tenancy->tenancies;
	const struct tenancies_options *options = &tenancies->options;
	const struct tenant *settings = tenancy->settings;
	const struct tenancy_needs needs = {
		.worker_memory = settings ? settings->worker_memory : 0,
		.uid_range = uid_range_of(tenancies, settings),
		.parts = (unsigned)tenancies->expected,
		.require = level_of(tenancies, settings),
	};

	tenancy->sandbox = options->sandbox(options->owner, &needs, err);
	return tenancy->sandbox;
}

static bool open_group(struct tenancy *tenancy, struct rlmd_error *err)
{
	const struct tenant *settings = tenancy->settings;
	const struct rlmd_group_options options = {
		.size = sizeof options,
		.weight = (unsigned)tenancies_weight(tenancy),
		.max_calls = settings ? settings->max_parallel : 0,
		.calls_per_minute = settings ? settings->calls_per_minute : 0,
	};

	tenancy->group = rlmd_group_new(tenancy->tenancies->options.engine, &options, err);
	return tenancy->group;
}

/* --- tenants ------------------------------------------------------------------------- */

void tenancies_expect(struct tenancies *tenancies, size_t count)
{
	tenancies->expected = count ? count : 1;
}

bool tenancies_begin(struct tenancies *tenancies, const char **ret_level, struct rlmd_error *err)
{
	const struct tenancies_options *options = &tenancies->options;
	const struct tenancy_needs needs = {.parts = (unsigned)tenancies->expected,
					    .require = options->require};
	const struct rlmd_sandbox *sandbox;
	const char *level;

	*ret_level = NULL;
	if (tenancies->expected < 2)
		return true;
	sandbox = options->sandbox(options->owner, &needs, err);
	if (!sandbox)
		return false;
	level = rlmd_sandbox_level(sandbox);
	if (strcmp(level, APART) >= 0)
		return true;
	if (!options->require)
		return error_set(err, RLMD_ERROR_SANDBOX,
				 "the jobs of %zu tenants need isolation " APART
				 " from each other, and %s is what there is: 'rlmd doctor' tells "
				 "what would add to it; --require %s goes on with that",
				 tenancies->expected, level, level);
	*ret_level = level;
	return true;
}

/* Jobs that were loaded where other tenants are known, or none: they are not done with the
 * operator's key. */
static bool check_known(const struct tenancy *tenancy, struct rlmd_error *err)
{
	if (!tenancy->stranger)
		return true;
	if (*tenancy->name)
		return tenants_find(tenancy->tenancies->options.tenants, tenancy->name, err);
	return error_set(err, RLMD_ERROR_INPUT,
			 "jobs of the store name no tenant, and rlmd.conf has some: 'rlmd batch "
			 "--default-tenant NAME' loads such lines as one's");
}

static struct tenancy *add(struct tenancies *tenancies, struct rlmd_text name)
{
	struct tenancy *tenancy = xcalloc(1, sizeof *tenancy);
	struct rlmd_error err;

	tenancy->tenancies = tenancies;
	tenancy->name = xstrndup(name.bytes, name.size);
	tenancy->settings = settings_of(tenancies, tenancy->name);
	tenancy->stranger = tenancies->options.tenants->count && !tenancy->settings;
	tenancies->items = xreallocarray(tenancies->items, tenancies->count + 1,
					 sizeof *tenancies->items);
	tenancies->items[tenancies->count++] = tenancy;
	if (tenancies->expected < tenancies->count)
		tenancies->expected = tenancies->count;
	if (!check_known(tenancy, &err) || !open_group(tenancy, &err) ||
	    !open_provider(tenancy, &err) || !open_sandbox(tenancy, &err))
		tenancy->unable = err;
	return tenancy;
}

struct tenancy *tenancies_get(struct tenancies *tenancies, struct rlmd_text name)
{
	for (size_t i = 0; i < tenancies->count; i++)
		if (text_equal(name, tenancies->items[i]->name))
			return tenancies->items[i];
	return add(tenancies, name);
}

int64_t tenancies_weight(const struct tenancy *tenancy)
{
	return tenancy->settings ? tenancy->settings->weight : 1;
}

/* --- models ---------------------------------------------------------------------------- */

static bool is_prefix(struct rlmd_text prefix, const char *name)
{
	return name && text_equal(prefix, name);
}

static bool is_kind(struct rlmd_text prefix)
{
	const char *kind;

	for (size_t i = 0; (kind = rlmd_provider_kind(i)); i++)
		if (text_equal(prefix, kind))
			return true;
	return false;
}

/* A provider that a name begins with is asked under its own key: none of others'. `ret` is what is
 * left of the name where its own provider was meant. */
static bool choose_provider(const struct tenancy *tenancy, const char *model, const char **ret,
			    struct rlmd_error *err)
{
	const struct tenancies *tenancies = tenancy->tenancies;
	const char *slash = strchr(model, '/');
	struct rlmd_text prefix = text_from(model, slash ? (size_t)(slash - model) : 0);
	const struct tenant *settings = tenancy->settings;
	const char *kind = settings && settings->provider ? settings->provider
							  : tenancies->options.kind;
	bool own = settings && settings->key_file;
	bool others = own && is_kind(prefix) && !is_prefix(prefix, kind);

	*ret = model;
	if (!prefix.size)
		return true;
	for (size_t i = 0; i < tenancies->count && !others; i++)
		others = tenancies->items[i] != tenancy && tenancies->items[i]->settings &&
			 tenancies->items[i]->settings->key_file &&
			 is_prefix(prefix, tenancies->items[i]->provider);
	if (others)
		return error_set(err, RLMD_ERROR_INPUT,
				 "model '%.100s' is one of a provider for which this tenant has no "
				 "key",
				 model);
	if (own && (is_prefix(prefix, kind) || is_prefix(prefix, tenancy->provider)))
		*ret = slash + 1;
	return true;
}

/* Where the job names none: the command's, or the first that it may use. */
static const char *usual_model(const struct tenant *settings, const char *model)
{
	if (model && tenants_may_use(settings, model))
		return model;
	for (size_t i = 0; i < settings->models.count; i++)
		if (!strpbrk(settings->models.items[i], "*?["))
			return settings->models.items[i];
	return model;
}

static bool may_use(const struct tenant *settings, const char *model, const char *named,
		    struct rlmd_error *err)
{
	auto_free char *list = NULL;

	if (tenants_may_use(settings, named) || tenants_may_use(settings, model))
		return true;
	list = tenants_models(settings);
	return error_set(err, RLMD_ERROR_INPUT,
			 "tenant '%s' may not use model '%.100s': its models are %.300s",
			 settings->name, named, list);
}

/* A model of a tenant, as the engine is to know it. */
static bool choose(const struct tenancy *tenancy, const char *named, const char **ret,
		   struct rlmd_error *err)
{
	*ret = NULL;
	if (!named)
		return true;
	return choose_provider(tenancy, named, ret, err) &&
	       (!tenancy->settings || may_use(tenancy->settings, *ret, named, err));
}

bool tenancies_give(const struct tenancy *tenancy, const char *model, struct rlmd_job_options *ret,
		    struct rlmd_error *err)
{
	const struct tenant *settings = tenancy->settings;
	const char *below = ret->subcall_model;

	if (!model)
		model = settings && settings->models.count ? usual_model(settings, ret->model)
							   : ret->model;
	if (!model && settings && settings->models.count)
		return error_set(err, RLMD_ERROR_INPUT,
				 "the job names no model, and tenant '%s' may use some only",
				 settings->name);
	/* The command's setting is for those who may. */
	if (below && settings && !tenants_may_use(settings, below))
		below = NULL;
	if (settings && settings->models.count) {
		ret->models = (const char *const *)settings->models.items;
		ret->model_count = settings->models.count;
	}
	ret->tenant = *tenancy->name ? tenancy->name : NULL;
	ret->group = tenancy->group;
	ret->sandbox = tenancy->sandbox;
	if (tenancy->provider)
		ret->provider = tenancy->provider;
	return choose(tenancy, model, &ret->model, err) &&
	       choose(tenancy, below, &ret->subcall_model, err);
}

/* --- contexts ------------------------------------------------------------------------ */

char *tenancies_path(const struct tenancy *tenancy, const struct job_line *line,
		     const char *directory, struct rlmd_error *err)
{
	const struct tenancies_options *options = &tenancy->tenancies->options;
	const struct tenant *settings = tenancy->settings;
	const char *root = settings && settings->root ? settings->root : options->root;
	char *path = job_line_path(line, directory), *inside;

	*err = (struct rlmd_error){0};
	if (!path || (!settings && !root) || options->allow_outside)
		return path;
	if (options->needs_root && !root) {
		free(path);
		error_set(err, RLMD_ERROR_INPUT,
			  "tenant '%s' has no directory on this machine: 'root = DIRECTORY' in "
			  "rlmd.conf names one, or --root does; --allow-outside lifts that",
			  settings->name);
		return NULL;
	}
	inside = confine(root ? root : directory, path, "--allow-outside", err);
	free(path);
	return inside;
}
