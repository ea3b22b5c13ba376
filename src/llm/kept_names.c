#include "llm/kept_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "llm/exchange.h"

enum { PLACE_SIZE = 13 }; /* twelve digits and a NUL */

void kept_names_init(struct kept_names *names)
{
	*names = (struct kept_names){.seen = json_object()};
}

void kept_names_done(struct kept_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	free(names->taken);
	json_decref(names->seen);
	*names = (struct kept_names){0};
}

bool kept_names_add(struct kept_names *names, const char *name)
{
	if (strspn(name, "0123456789abcdef") != EXCHANGE_ID_SIZE - 1 ||
	    name[EXCHANGE_ID_SIZE - 1] != '-')
		return false;
	names->names = xreallocarray(names->names, names->count + 1, sizeof *names->names);
	names->taken = xreallocarray(names->taken, names->count + 1, sizeof *names->taken);
	names->names[names->count] = xstrdup(name);
	names->taken[names->count++] = false;
	return true;
}

static void hash_place(const struct llm_request *request, char out[static PLACE_SIZE])
{
	char hash[EXCHANGE_ID_SIZE];

	exchange_hash(text_of(request->place), hash);
	snprintf(out, PLACE_SIZE, "%.*s", PLACE_SIZE - 1, hash);
}

char *kept_names_key(const struct llm_request *request)
{
	char id[EXCHANGE_ID_SIZE], place[PLACE_SIZE];

	exchange_id(request, id);
	hash_place(request, place);
	return xasprintf("%s-%s", id, place);
}

char *kept_names_next(struct kept_names *names, const struct llm_request *request)
{
	auto_free char *key = kept_names_key(request);

	return xasprintf("%s-%lld.json", key, (long long)json_count(names->seen, key));
}

static const char *take(struct kept_names *names, size_t i)
{
	names->taken[i] = true;
	return names->names[i];
}

const char *kept_names_find(struct kept_names *names, const struct llm_request *request)
{
	auto_free char *name = kept_names_next(names, request);
	size_t other = names->count;

	for (size_t i = 0; i < names->count; i++) {
		if (names->taken[i] || strncmp(names->names[i], name, EXCHANGE_ID_SIZE))
			continue;
		if (!strcmp(names->names[i], name))
			return take(names, i);
		if (other == names->count)
			other = i;
	}
	return other < names->count ? take(names, other) : NULL;
}

const char *kept_names_near(const struct kept_names *names, const struct llm_request *request)
{
	char place[PLACE_SIZE];

	hash_place(request, place);
	for (size_t i = 0; i < names->count; i++)
		if (!strncmp(names->names[i] + EXCHANGE_ID_SIZE, place, PLACE_SIZE - 1))
			return names->names[i];
	return NULL;
}
