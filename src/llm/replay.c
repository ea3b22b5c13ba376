#include "llm/replay.h"

#include <dirent.h>
#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "llm/body.h"
#include "llm/entry.h"
#include "llm/exchange.h"
#include "llm/kept_names.h"
#include "llm/key.h"
#include "llm/replay_miss.h"
#include "llm/replay_order.h"

enum {
	FILE_SIZE_MAX = 64 << 20,
	SCRIPT_DEPTH_MAX = 16,
	SHOWN = 60,           /* bytes of a prompt in an error */
	CANCELLED_MS = 10000, /* that what was cancelled when it was recorded is waited for */
};

struct entry {
	json_t *json;        /* owned; checked */
	int kind;            /* enum llm_kind, or -1: any */
	int64_t depth, turn; /* -1: any */
	bool has_pattern;
	regex_t pattern;
	bool repeat, used;
};

struct replay {
	char *dir;             /* owned */
	struct entry *entries; /* owned */
	size_t entry_count;
	struct kept_names names;    /* owned */
	struct replay_order *order; /* owned */
};

struct recorder {
	char *dir;               /* owned */
	const struct keys *keys; /* lent */
	struct kept_names names; /* owned */
	int64_t written;         /* answers that have come */
};

static int is_json(const struct dirent *file)
{
	size_t size = strlen(file->d_name);

	return file->d_name[0] != '.' && size > 5 && !strcmp(file->d_name + size - 5, ".json");
}

static bool read_kind(const json_t *match, int *ret, struct rlmd_error *err)
{
	const json_t *kind = json_object_get(match, "kind");

	*ret = -1;
	if (!kind)
		return true;
	for (enum llm_kind each = LLM_TURN; each <= LLM_DIRECT; each++)
		if (text_equal(json_text(kind), llm_kind_name(each))) {
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

static bool read_pattern(const json_t *match, struct entry *entry, struct rlmd_error *err)
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

static bool read_entry(json_t *json, struct entry *entry, struct rlmd_error *err)
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

static bool replay_add(struct replay *replay, json_t *json, struct rlmd_error *err)
{
	struct entry *entry;

	replay->entries = xreallocarray(replay->entries, replay->entry_count + 1,
					sizeof *replay->entries);
	entry = &replay->entries[replay->entry_count++];
	memset(entry, 0, sizeof *entry);
	return read_entry(json, entry, err);
}

static json_t *read_json(const char *path, struct rlmd_error *err)
{
	size_t size;
	auto_free char *bytes = file_read(path, FILE_SIZE_MAX, &size, err);
	json_t *json = bytes ? json_read(text_from(bytes, size), SCRIPT_DEPTH_MAX, err) : NULL;

	if (bytes && !json && err) {
		err->kind = RLMD_ERROR_INPUT;
		error_context(err, "%s", path);
	}
	return json;
}

static bool replay_read_script(struct replay *replay, const char *name, struct rlmd_error *err)
{
	auto_free char *path = xasprintf("%s/%s", replay->dir, name);
	json_auto_t *script = read_json(path, err);
	json_t *entry;
	size_t i;

	if (!script)
		return false;
	if (!json_is_array(script))
		return replay_add(replay, script, err) || error_context(err, "%s", path);
	json_array_foreach (script, i, entry)
		if (!replay_add(replay, entry, err))
			return error_context(err, "%s: entry %zu", path, i + 1);
	return true;
}

static bool replay_read(struct replay *replay, struct rlmd_error *err)
{
	struct dirent **files = NULL;
	int count = scandir(replay->dir, &files, is_json, versionsort);
	bool fine = true;

	if (count < 0)
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read the replay directory %s",
				   replay->dir);
	for (int i = 0; i < count; i++) {
		if (!kept_names_add(&replay->names, files[i]->d_name) && fine)
			fine = replay_read_script(replay, files[i]->d_name, err);
		free(files[i]);
	}
	free(files);
	if (!count)
		return error_set(err, RLMD_ERROR_INPUT,
				 "the replay directory %s holds no *.json file; make one with "
				 "--record, or write a script",
				 replay->dir);
	return fine;
}

struct replay *replay_new(struct event_base *base, const char *dir, struct rlmd_error *err)
{
	struct replay *replay = xcalloc(1, sizeof *replay);

	replay->dir = xstrdup(dir);
	kept_names_init(&replay->names);
	replay->order = replay_order_new(base);
	if (replay_read(replay, err))
		return replay;
	replay_free(replay);
	return NULL;
}

void replay_free(struct replay *replay)
{
	if (!replay)
		return;
	for (size_t i = 0; i < replay->entry_count; i++) {
		json_decref(replay->entries[i].json);
		if (replay->entries[i].has_pattern)
			regfree(&replay->entries[i].pattern);
	}
	free(replay->entries);
	free(replay->dir);
	kept_names_done(&replay->names);
	replay_order_free(replay->order);
	free(replay);
}

static struct rlmd_text last_user_message(const struct llm_request *request)
{
	for (size_t i = request->message_count; i-- > 0;)
		if (request->messages[i].role == LLM_USER)
			return request->messages[i].text;
	return (struct rlmd_text){0};
}

static bool entry_matches(const struct entry *entry, const struct llm_request *request)
{
	struct rlmd_text prompt = last_user_message(request);
	regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)prompt.size};

	if ((entry->used && !entry->repeat) ||
	    (entry->kind >= 0 && entry->kind != (int)request->kind) ||
	    (entry->depth >= 0 && entry->depth != request->depth) ||
	    (entry->turn >= 0 && entry->turn != request->turn))
		return false;
	return !entry->has_pattern ||
	       !regexec(&entry->pattern, prompt.bytes ? prompt.bytes : "", 1, &range, REG_STARTEND);
}

struct replay_order *replay_order(const struct replay *replay)
{
	return replay->order;
}

/* The entries of scripts are for what no recording has. */
static struct entry *find_entry(struct replay *replay, const struct llm_request *request)
{
	for (size_t i = 0; i < replay->entry_count; i++)
		if (entry_matches(&replay->entries[i], request))
			return &replay->entries[i];
	return NULL;
}

static bool miss(const struct replay *replay, const struct llm_request *request,
		 struct rlmd_error *err)
{
	const char *near = kept_names_near(&replay->names, request);
	auto_free char *path = near ? xasprintf("%s/%s", replay->dir, near) : NULL;
	json_auto_t *recorded = near ? read_json(path, NULL) : NULL;
	char difference[REPLAY_MISS_SIZE] = "", shown[4 * SHOWN + 1];

	text_escape(text_clip(last_user_message(request), SHOWN), shown, sizeof shown);
	if (recorded)
		replay_miss_explain(request, json_object_get(recorded, "request"), difference);
	if (difference[0])
		return error_set(
			err, RLMD_ERROR_REPLAY,
			"no answer in %s for the call of kind %s, depth %d, turn %d, which "
			"is another one than %.8s...: %s; give the options of the "
			"recording, or record again with --record",
			replay->dir, llm_kind_name(request->kind), request->depth, request->turn,
			near, difference);
	return error_set(err, RLMD_ERROR_REPLAY,
			 "no answer in %s for the call of kind %s, depth %d, turn %d, whose prompt "
			 "begins '%s'; give the options of the recording, record it with --record, "
			 "or add an entry that matches",
			 replay->dir, llm_kind_name(request->kind), request->depth, request->turn,
			 shown);
}

/* It had no answer, for something else was decided first, as it will be again. */
static void wait_for_cancelled(struct exchange *exchange)
{
	if (!exchange->cancelled)
		return;
	exchange->delay_ms = CANCELLED_MS;
	error_set(&exchange->error, RLMD_ERROR_CANCELLED, "it was cancelled when it was recorded");
}

bool replay_find(struct replay *replay, const struct llm_request *request, struct exchange *ret,
		 struct rlmd_error *err)
{
	const char *name = kept_names_find(&replay->names, request);
	struct entry *entry;

	if (name) {
		auto_free char *path = xasprintf("%s/%s", replay->dir, name);
		json_auto_t *recorded = read_json(path, err);

		if (!recorded || !exchange_read(recorded, ret, err))
			return recorded && error_context(err, "%s", path);
		wait_for_cancelled(ret);
		return true;
	}
	entry = find_entry(replay, request);
	if (!entry)
		return miss(replay, request, err);
	entry->used = true;
	if (!exchange_read(entry->json, ret, err))
		return false;
	ret->order = -1; /* it is no recording any more */
	return true;
}

struct recorder *recorder_new(const char *dir, const struct keys *keys, struct rlmd_error *err)
{
	struct recorder *recorder;
	struct stat st;

	if ((mkdir(dir, 0700) && errno != EEXIST) || stat(dir, &st) || access(dir, W_OK | X_OK)) {
		error_errno(err, RLMD_ERROR_INPUT, "cannot record in %s", dir);
		return NULL;
	}
	if (!S_ISDIR(st.st_mode)) {
		error_set(err, RLMD_ERROR_INPUT, "cannot record in %s: no directory", dir);
		return NULL;
	}
	recorder = xcalloc(1, sizeof *recorder);
	recorder->dir = xstrdup(dir);
	recorder->keys = keys;
	kept_names_init(&recorder->names);
	return recorder;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	free(recorder->dir);
	kept_names_done(&recorder->names);
	free(recorder);
}

char *recorder_name(struct recorder *recorder, const struct llm_request *request)
{
	return kept_names_next(&recorder->names, request);
}

bool recorder_write(struct recorder *recorder, const char *name, const struct llm_request *request,
		    const struct llm_response *response, bool cancelled,
		    const struct rlmd_error *exchange_error, struct rlmd_error *err)
{
	auto_free char *path = xasprintf("%s/%s", recorder->dir, name);
	struct body *entry = entry_of_exchange(request, response, exchange_error,
					       cancelled ? -1 : recorder->written++);
	struct atomic_file file;
	bool ok;

	if (!atomic_file_open(&file, path, 0600)) {
		body_free(entry);
		return error_errno(err, RLMD_ERROR_INPUT, "cannot write %s", path);
	}
	if (!entry_write(entry, recorder->keys, file.fd, NULL, NULL, err))
		ok = error_context(err, "%s", path);
	else
		ok = atomic_file_commit(&file, false) ||
		     error_errno(err, RLMD_ERROR_INPUT, "cannot write %s", path);
	atomic_file_done(&file);
	body_free(entry);
	return ok;
}
