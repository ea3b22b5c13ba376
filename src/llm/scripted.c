#include "llm/scripted.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"

struct scripted_entry {
	json_t *json;        /* owned; checked */
	int kind;            /* enum llm_kind, or -1: any */
	int64_t depth, turn; /* -1: any */
	bool has_pattern;
	regex_t pattern;
	bool repeat, used;
};

struct scripted {
	struct scripted_entry *entries; /* owned */
	size_t count;
};

struct scripted *scripted_new(void)
{
	return xcalloc(1, sizeof(struct scripted));
}

void scripted_free(struct scripted *script)
{
	if (!script)
		return;
	for (size_t i = 0; i < script->count; i++) {
		json_decref(script->entries[i].json);
		if (script->entries[i].has_pattern)
			regfree(&script->entries[i].pattern);
	}
	free(script->entries);
	free(script);
}

static bool read_kind(const json_t *match, int *ret, struct rlmd_error *err)
{
	const json_t *kind = json_object_get(match, "kind");

	*ret = -1;
	if (!kind)
		return true;
	for (enum llm_kind each = LLM_TURN; each <= LLM_DIRECT; each++)
		if (text_equal(json_text(kind), request_kind_name(each))) {
			*ret = (int)each;
			return true;
		}
	return error_set(err, RLMD_ERROR_INPUT,
			 "\"match\".\"kind\" is none of turn, llm_query, forced, direct");
}

static bool read_number(const json_t *match, const char *field, int64_t *ret,
			struct rlmd_error *err)
{
	const json_t *value = json_object_get(match, field);

	*ret = value ? json_integer_value(value) : -1;
	if (value && (!json_is_integer(value) || *ret < 0))
		return error_set(err, RLMD_ERROR_INPUT,
				 "\"match\".\"%s\" is no whole number from 0 on", field);
	return true;
}

static bool read_pattern(const json_t *match, struct scripted_entry *entry, struct rlmd_error *err)
{
	const json_t *pattern = json_object_get(match, "pattern");
	char reason[200];
	int failed;

	if (!pattern)
		return true;
	if (!json_is_string(pattern))
		return error_set(err, RLMD_ERROR_INPUT, "\"match\".\"pattern\" is no string");
	failed = regcomp(&entry->pattern, json_string_value(pattern), REG_EXTENDED);
	if (failed) {
		regerror(failed, &entry->pattern, reason, sizeof reason);
		return error_set(err, RLMD_ERROR_INPUT, "\"match\".\"pattern\": %s", reason);
	}
	entry->has_pattern = true;
	return true;
}

static bool read_entry(json_t *json, struct scripted_entry *entry, struct rlmd_error *err)
{
	static const char *const fields[] = {"match", "response",  "error", "repeat", "request",
					     "order", "cancelled", "index", NULL};
	static const char *const match_fields[] = {"kind", "depth", "turn", "pattern", NULL};
	const json_t *match = json_object_get(json, "match");
	const json_t *repeat = json_object_get(json, "repeat");
	struct exchange exchange;

	if (!json_is_object(json))
		return error_set(err, RLMD_ERROR_INPUT, "no object");
	if (match && !json_is_object(match))
		return error_set(err, RLMD_ERROR_INPUT, "\"match\" is no object");
	if (repeat && !json_is_boolean(repeat))
		return error_set(err, RLMD_ERROR_INPUT, "\"repeat\" is not true or false");
	if (!exchange_fields(json, fields, err) || !exchange_fields(match, match_fields, err) ||
	    !exchange_read(json, &exchange, err))
		return false;
	exchange_done(&exchange);
	entry->json = json_incref(json);
	entry->repeat = json_is_true(repeat);
	return read_kind(match, &entry->kind, err) &&
	       read_number(match, "depth", &entry->depth, err) &&
	       read_number(match, "turn", &entry->turn, err) && read_pattern(match, entry, err);
}

static bool add_entry(struct scripted *script, json_t *json, struct rlmd_error *err)
{
	struct scripted_entry *entry;

	script->entries = xreallocarray(script->entries, script->count + 1,
					sizeof *script->entries);
	entry = &script->entries[script->count++];
	memset(entry, 0, sizeof *entry);
	return read_entry(json, entry, err);
}

bool scripted_add(struct scripted *script, json_t *json, struct rlmd_error *err)
{
	json_t *entry;
	size_t i;

	if (!json_is_array(json))
		return add_entry(script, json, err);
	json_array_foreach (json, i, entry)
		if (!add_entry(script, entry, err))
			return error_context(err, "entry %zu", i + 1);
	return true;
}

struct rlmd_text scripted_prompt(const struct llm_request *request)
{
	for (size_t i = request->message_count; i-- > 0;)
		if (request->messages[i].role == LLM_USER)
			return request->messages[i].text;
	return (struct rlmd_text){0};
}

static bool entry_matches(const struct scripted_entry *entry, const struct llm_request *request)
{
	struct rlmd_text prompt = scripted_prompt(request);
	regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)prompt.size};

	if ((entry->used && !entry->repeat) ||
	    (entry->kind >= 0 && entry->kind != (int)request->kind) ||
	    (entry->depth >= 0 && entry->depth != request->depth) ||
	    (entry->turn >= 0 && entry->turn != request->turn))
		return false;
	return !entry->has_pattern ||
	       !regexec(&entry->pattern, prompt.bytes ? prompt.bytes : "", 1, &range, REG_STARTEND);
}

bool scripted_find(struct scripted *script, const struct llm_request *request, struct exchange *ret)
{
	for (size_t i = 0; i < script->count; i++) {
		struct scripted_entry *entry = &script->entries[i];

		if (!entry_matches(entry, request))
			continue;
		entry->used = true;
		exchange_read(entry->json, ret, NULL);
		ret->order = -1; /* a recording that was edited has none any more */
		return true;
	}
	return false;
}
