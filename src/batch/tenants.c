#include "batch/tenants.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/money.h"
#include "base/number.h"
#include "base/text.h"

enum setting_type { IS_NAME, IS_LIST, IS_COUNT, IS_SIZE, IS_MONEY, IS_LEVEL };

struct setting_row {
	const char *name, *what;
	size_t offset;
	enum setting_type type;
	int64_t unsaid, min, max;
};

static const struct setting_row settings[] = {
#define SETTING(field, type, name, unsaid, min, max, what)                                         \
	{name, what, offsetof(struct tenant, field), IS_##type, unsaid, min, max},
#include "batch/tenants.def"
#undef SETTING
};

enum { SETTINGS = sizeof settings / sizeof *settings };

static void clear_list(struct tenant_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct tenant_list){0};
}

void tenants_done(struct tenants *tenants)
{
	for (size_t i = 0; i < tenants->count; i++) {
		char *tenant = (char *)&tenants->items[i];

		for (size_t j = 0; j < SETTINGS; j++) {
			if (settings[j].type == IS_NAME)
				free(*(char **)(void *)(tenant + settings[j].offset));
			if (settings[j].type == IS_LIST)
				clear_list((void *)(tenant + settings[j].offset));
		}
		free(tenants->items[i].name);
	}
	free(tenants->items);
	*tenants = (struct tenants){0};
}

/* --- values ------------------------------------------------------------------------ */

static bool set_name(const char *value, char **ret, struct rlmd_error *err)
{
	if (!*value || !text_is_utf8(text_of(value)))
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is %s", value,
				 *value ? "not UTF-8" : "empty");
	free(*ret);
	*ret = xstrdup(value);
	return true;
}

static bool set_list(const char *value, struct tenant_list *ret, struct rlmd_error *err)
{
	auto_free char *copy = xstrdup(value);
	struct tenant_list list = {0};
	char *rest = copy, *item;

	if (!text_is_utf8(text_of(value)))
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is not UTF-8", value);
	while ((item = strsep(&rest, ", \t"))) {
		if (!*item)
			continue;
		list.items = xreallocarray(list.items, list.count + 1, sizeof *list.items);
		list.items[list.count++] = xstrdup(item);
	}
	if (!list.count)
		return error_set(err, RLMD_ERROR_USAGE, "names nothing");
	clear_list(ret);
	*ret = list;
	return true;
}

static bool set_number(const struct setting_row *row, const char *value, int64_t *ret,
		       struct rlmd_error *err)
{
	bool is_size = row->type == IS_SIZE;
	int64_t number;

	if (number_parse(value, is_size ? "KMGT" : "KMG", is_size ? 1024 : 1000, &number) &&
	    number >= row->min && number <= row->max) {
		*ret = number;
		return true;
	}
	return error_set(err, RLMD_ERROR_USAGE,
			 "'%s' is no number of %s from %" PRId64 " to %" PRId64 "; write %s", value,
			 row->what, row->min, row->max, is_size ? "512M or 1G" : "digits, or 100k");
}

static bool set_level(const struct setting_row *row, const char *value, int64_t *ret,
		      struct rlmd_error *err)
{
	int64_t level = (*value == 'L' && value[1] && !value[2]) ? value[1] - '0' : 0;

	if (level < row->min || level > row->max)
		return error_set(err, RLMD_ERROR_USAGE, "'%s' is none of L1, L2, L3 and L4", value);
	*ret = level;
	return true;
}

static bool set_value(const struct setting_row *row, const char *value, void *ret,
		      struct rlmd_error *err)
{
	switch (row->type) {
	case IS_NAME:
		return set_name(value, ret, err);
	case IS_LIST:
		return set_list(value, ret, err);
	case IS_COUNT:
	case IS_SIZE:
		return set_number(row, value, ret, err);
	case IS_MONEY:
		return money_parse(value, ret, err);
	case IS_LEVEL:
		return set_level(row, value, ret, err);
	}
	return false;
}

/* --- tenants ----------------------------------------------------------------------- */

/* It names directories, cgroups and rows of metrics. */
static bool check_name(const char *name, struct rlmd_error *err)
{
	size_t size = strlen(name), good = 0;

	while (isalnum((unsigned char)name[good]) ||
	       (good && name[good] && strchr("._-", name[good])))
		good++;
	if (size && good == size && size <= TENANT_NAME_MAX)
		return true;
	return error_set(
		err, RLMD_ERROR_USAGE,
		"no tenant can be named '%s': a name has up to %d letters, digits and ._-, "
		"a letter or digit first",
		name, TENANT_NAME_MAX);
}

static struct tenant *find(const struct tenants *tenants, const char *name)
{
	for (size_t i = 0; i < tenants->count; i++)
		if (!strcmp(tenants->items[i].name, name))
			return &tenants->items[i];
	return NULL;
}

static struct tenant *add(struct tenants *tenants, const char *name)
{
	struct tenant *tenant;

	tenants->items = xreallocarray(tenants->items, tenants->count + 1, sizeof *tenants->items);
	tenant = &tenants->items[tenants->count++];
	*tenant = (struct tenant){.name = xstrdup(name)};
	for (size_t i = 0; i < SETTINGS; i++)
		if (settings[i].type != IS_NAME && settings[i].type != IS_LIST)
			*(int64_t *)(void *)((char *)tenant +
					     settings[i].offset) = settings[i].unsaid;
	return tenant;
}

static bool unknown_setting(const char *setting, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *known = buffer_new();
	auto_free char *list = NULL;

	for (size_t i = 0; i < SETTINGS; i++)
		buffer_add_printf(known, "%s%s", i ? ", " : "", settings[i].name);
	list = text_drain(known, NULL);
	return error_set(err, RLMD_ERROR_USAGE,
			 "a tenant has no '%s'; it has %s. What is for all stands above the first "
			 "tenant, or under [exec]",
			 setting, list);
}

bool tenants_set(struct tenants *tenants, const char *name, const char *setting, const char *value,
		 struct rlmd_error *err)
{
	struct tenant *tenant = find(tenants, name);
	size_t row = 0;

	if (!tenant && !check_name(name, err))
		return false;
	while (row < SETTINGS && strcmp(settings[row].name, setting))
		row++;
	if (row == SETTINGS)
		return unknown_setting(setting, err);
	if (!tenant)
		tenant = add(tenants, name);
	return set_value(&settings[row], value, (char *)tenant + settings[row].offset, err) ||
	       error_context(err, "%s", setting);
}

const struct tenant *tenants_find(const struct tenants *tenants, const char *name,
				  struct rlmd_error *err)
{
	const struct tenant *tenant = find(tenants, name);
	auto_evbuffer struct evbuffer *known = NULL;
	auto_free char *list = NULL;

	if (tenant)
		return tenant;
	known = buffer_new();
	for (size_t i = 0; i < tenants->count; i++)
		buffer_add_printf(known, "%s%s", i ? ", " : "", tenants->items[i].name);
	list = text_drain(known, NULL);
	error_set(
		err, RLMD_ERROR_INPUT,
		"there is no tenant '%.64s'; %s%s; a section [tenant NAME] of rlmd.conf makes one",
		name, *list ? "there are " : "there are none", list);
	return NULL;
}

static bool is_user(const char *name, uid_t uid)
{
	const struct passwd *found;
	int64_t number;

	if (number_parse(name, "", 1, &number))
		return number == uid;
	found = getpwnam(name);
	return found && found->pw_uid == uid;
}

const struct tenant *tenants_of_user(const struct tenants *tenants, uid_t uid)
{
	for (size_t i = 0; i < tenants->count; i++) {
		const struct tenant_list *users = &tenants->items[i].users;

		for (size_t j = 0; j < users->count; j++)
			if (is_user(users->items[j], uid))
				return &tenants->items[i];
	}
	return NULL;
}

bool tenants_may_use(const struct tenant *tenant, const char *model)
{
	bool allowed = !tenant->models.count;

	for (size_t i = 0; i < tenant->models.count && !allowed; i++)
		allowed = !fnmatch(tenant->models.items[i], model, FNM_NOESCAPE);
	return allowed;
}

char *tenants_models(const struct tenant *tenant)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	for (size_t i = 0; i < tenant->models.count; i++)
		buffer_add_printf(out, "%s%s", i ? ", " : "", tenant->models.items[i]);
	return text_drain(out, NULL);
}
