#include "llm/recording.h"

#include <dirent.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/timer.h"
#include "llm/key.h"
#include "llm/scripted.h"

enum {
	FILE_SIZE_MAX = 64 << 20,
	VALUE_SIZE_MAX = 256 << 20,
	DEPTH_MAX = 16,
	POSITION_SIZE = 12,   /* digits of a name that say who asked */
	PROMPT_SHOWN = 60,    /* bytes of a prompt in an error */
	DIFFERENCE_MAX = 280, /* bytes, of which ... */
	SHOWN = 32,           /* ... of each text from where they differ on, ... */
	BEFORE = 12,          /* ... and so many before that */
	CANCELLED_MS = 10000, /* that an exchange that was cancelled is waited for */
	PATIENCE_MS = 500,    /* for an answer that is missing */
};

/* A file of a replay. */
struct recorded {
	char *name; /* owned */
	bool taken;
};

struct recording {
	char *record_dir, *replay_dir; /* owned; NULL: off */
	const struct key_list *keys;   /* lent */
	int64_t written;               /* answers that were used, of those that are recorded */

	/* Of a replay: */
	struct recorded *files; /* owned, sorted by name */
	size_t file_count;
	struct scripted *script;            /* owned */
	TAILQ_HEAD(, recording_turn) turns; /* lent, by their order */
	int64_t next;                       /* the order that comes next */
	struct timer *due;                  /* owned: the first one's turn is now */
	struct timer *missing;              /* owned: the next one does not come */
};

/* --- reading a directory ---------------------------------------------------------------- */

static int is_json(const struct dirent *file)
{
	size_t size = strlen(file->d_name);

	return file->d_name[0] != '.' && size > 5 && !strcmp(file->d_name + size - 5, ".json");
}

/* By its name, or a value's. */
static bool is_recorded(const char *name)
{
	return strspn(name, "0123456789abcdef") == EXCHANGE_ID_SIZE - 1 &&
	       name[EXCHANGE_ID_SIZE - 1] == '-';
}

static json_t *read_json(const char *path, size_t size_max, struct rlmd_error *err)
{
	size_t size;
	auto_free char *bytes = file_read(path, size_max, &size, err);
	json_t *json = bytes ? json_read(text_from(bytes, size), DEPTH_MAX, err) : NULL;

	if (bytes && !json && err) {
		err->kind = RLMD_ERROR_INPUT;
		error_context(err, "%s", path);
	}
	return json;
}

static void add_file(struct recording *recording, const char *name)
{
	recording->files = xreallocarray(recording->files, recording->file_count + 1,
					 sizeof *recording->files);
	recording->files[recording->file_count++] = (struct recorded){.name = xstrdup(name)};
}

static bool add_script(struct recording *recording, const char *name, struct rlmd_error *err)
{
	auto_free char *path = xasprintf("%s/%s", recording->replay_dir, name);
	json_auto_t *json = read_json(path, FILE_SIZE_MAX, err);

	return json &&
	       (scripted_add(recording->script, json, err) || error_context(err, "%s", path));
}

static bool open_replay(struct recording *recording, struct rlmd_error *err)
{
	struct dirent **files = NULL;
	int count = scandir(recording->replay_dir, &files, is_json, versionsort);
	bool fine = true;

	if (count < 0)
		return error_errno(err, RLMD_ERROR_INPUT, "cannot read the replay directory %s",
				   recording->replay_dir);
	for (int i = 0; i < count; i++) {
		if (is_recorded(files[i]->d_name))
			add_file(recording, files[i]->d_name);
		else if (fine)
			fine = add_script(recording, files[i]->d_name, err);
		free(files[i]);
	}
	free(files);
	if (!count)
		return error_set(err, RLMD_ERROR_INPUT,
				 "the replay directory %s holds no *.json file; make one by "
				 "recording a run (record), or write a script",
				 recording->replay_dir);
	return fine;
}

static bool open_record(const char *dir, struct rlmd_error *err)
{
	struct stat st;

	if ((mkdir(dir, 0700) && errno != EEXIST) || stat(dir, &st))
		return error_errno(err, RLMD_ERROR_USAGE, "cannot record in %s", dir);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, RLMD_ERROR_USAGE, "cannot record in %s: it is no directory",
				 dir);
	return !access(dir, W_OK | X_OK) ||
	       error_errno(err, RLMD_ERROR_USAGE, "cannot record in %s", dir);
}

static void on_due(void *owner);
static void on_missing(void *owner);

struct recording *recording_new(struct event_base *base, const char *record_dir,
				const char *replay_dir, const struct key_list *keys,
				struct rlmd_error *err)
{
	struct recording *recording = xcalloc(1, sizeof *recording);

	recording->record_dir = record_dir ? xstrdup(record_dir) : NULL;
	recording->replay_dir = replay_dir ? xstrdup(replay_dir) : NULL;
	recording->keys = keys;
	recording->script = scripted_new();
	TAILQ_INIT(&recording->turns);
	recording->due = timer_new(base, on_due, recording);
	recording->missing = timer_new(base, on_missing, recording);
	if ((!replay_dir || open_replay(recording, err)) &&
	    (!record_dir || open_record(record_dir, err)))
		return recording;
	recording_free(recording);
	return NULL;
}

void recording_free(struct recording *recording)
{
	if (!recording)
		return;
	for (size_t i = 0; i < recording->file_count; i++)
		free(recording->files[i].name);
	free(recording->files);
	scripted_free(recording->script);
	timer_free(recording->due);
	timer_free(recording->missing);
	free(recording->record_dir);
	free(recording->replay_dir);
	free(recording);
}

bool recording_replays(const struct recording *recording)
{
	return recording->replay_dir;
}

/* --- requests that are in no file -------------------------------------------------------- */

/* From a little before the difference on, escaped. */
static void show(struct rlmd_text text, size_t at, char *out, size_t size)
{
	size_t start = at > BEFORE ? at - BEFORE : 0;
	const char *line = memrchr(text.bytes + start, '\n', at - start);

	if (line)
		start = (size_t)(line + 1 - text.bytes);
	while (start < at && ((unsigned char)text.bytes[start] & 0xc0) == 0x80)
		start++;
	text_escape(text_clip(text_slice(text, start, text.size), SHOWN), out, size);
}

static void explain_text(size_t message, const char *role, struct rlmd_text now,
			 struct rlmd_text then, char *out)
{
	size_t least = now.size < then.size ? now.size : then.size, at = 0, line = 1;
	char here[4 * SHOWN + 1], there[4 * SHOWN + 1];

	while (at < least && now.bytes[at] == then.bytes[at])
		line += now.bytes[at++] == '\n';
	show(now, at, here, sizeof here);
	show(then, at, there, sizeof there);
	snprintf(out, DIFFERENCE_MAX, "message %zu (%s), line %zu: '%.64s' was '%.64s'", message,
		 role, line, here, there);
}

/* As recordings know it: without what a clock put in, where that is kept. */
static struct rlmd_text content_of(const json_t *message)
{
	const json_t *timeless = json_object_get(message, "timeless");

	return timeless ? json_text(timeless) : json_get_text(message, "content");
}

/* The one that differs first; false: all are the same. */
static bool explain_messages(const json_t *now, const json_t *then, char *out)
{
	size_t count = json_array_size(now), i;
	const json_t *message;

	json_array_foreach (now, i, message) {
		const json_t *before = json_array_get(then, i);
		struct rlmd_text text = content_of(message), was = content_of(before);

		if (!before)
			break;
		if (text.size == was.size && !memcmp(text.bytes, was.bytes, was.size))
			continue;
		/* Of what is not kept without the clock's words nothing can be said. */
		if (json_object_get(message, "timeless") && !json_object_get(before, "timeless"))
			continue;
		explain_text(i + 1, json_get_string(message, "role"), text, was, out);
		return true;
	}
	if (count == json_array_size(then))
		return false;
	snprintf(out, DIFFERENCE_MAX, "it has %zu messages, and that had %zu", count,
		 json_array_size(then));
	return true;
}

/* The first thing in words that is another in `recorded`, the "request" of a recording; "" where
 * nothing is that can be told. Times of the clock are no difference. */
static void explain_difference(const struct llm_request *request, const json_t *recorded,
			       char out[static DIFFERENCE_MAX])
{
	static const char *const fields[] = {"model", "max_tokens", "temperature", "stop",
					     "schema"};
	json_auto_t *now = exchange_request(request);

	out[0] = '\0';
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		json_t *here = json_object_get(now, fields[i]);
		json_t *there = json_object_get(recorded, fields[i]);
		auto_free char *is = here ? json_to_string(here) : NULL;
		auto_free char *was = there ? json_to_string(there) : NULL;

		if (json_equal(here, there) || (!here && !there))
			continue;
		snprintf(out, DIFFERENCE_MAX, "%s %.60s was %.60s", fields[i], is ? is : "none",
			 was ? was : "none");
		return;
	}
	explain_messages(json_object_get(now, "messages"), json_object_get(recorded, "messages"),
			 out);
}

/* A file that was recorded from the same position, for whatever request. */
static const char *find_near(const struct recording *recording, const char *name)
{
	const char *position = name + EXCHANGE_ID_SIZE;

	for (size_t i = 0; i < recording->file_count; i++)
		if (!strncmp(recording->files[i].name + EXCHANGE_ID_SIZE, position, POSITION_SIZE))
			return recording->files[i].name;
	return NULL;
}

static bool miss(const struct recording *recording, const char *name,
		 const struct llm_request *request, struct rlmd_error *err)
{
	const char *near = find_near(recording, name);
	auto_free char *path = near ? xasprintf("%s/%s", recording->replay_dir, near) : NULL;
	json_auto_t *recorded = near ? read_json(path, FILE_SIZE_MAX, NULL) : NULL;
	char difference[DIFFERENCE_MAX] = "", shown[4 * PROMPT_SHOWN + 1];

	text_escape(text_clip(scripted_prompt(request), PROMPT_SHOWN), shown, sizeof shown);
	if (recorded)
		explain_difference(request, json_object_get(recorded, "request"), difference);
	if (difference[0])
		return error_set(
			err, RLMD_ERROR_REPLAY,
			"no answer in %s for the call of kind %s, depth %d, turn %d, which "
			"is another one than %.8s...: %s; give the options of the "
			"recording, or record again (record)",
			recording->replay_dir, request_kind_name(request->kind), request->depth,
			request->turn, near, difference);
	return error_set(err, RLMD_ERROR_REPLAY,
			 "no answer in %s for the call of kind %s, depth %d, turn %d, whose prompt "
			 "begins '%s'; give the options of the recording, record it (record), "
			 "or add an entry that matches",
			 recording->replay_dir, request_kind_name(request->kind), request->depth,
			 request->turn, shown);
}

/* --- finding ----------------------------------------------------------------------------- */

/* Another position's answer to the same request will do. */
static const char *take_file(struct recording *recording, const char *name)
{
	struct recorded *found = NULL;

	for (size_t i = 0; i < recording->file_count; i++) {
		struct recorded *file = &recording->files[i];

		if (file->taken || strncmp(file->name, name, EXCHANGE_ID_SIZE))
			continue;
		if (!found || !strcmp(file->name, name))
			found = file;
	}
	if (found)
		found->taken = true;
	return found ? found->name : NULL;
}

/* It had no answer, for something else was decided first, as it will be again. */
static void wait_for_cancelled(struct exchange *exchange)
{
	if (!exchange->cancelled)
		return;
	exchange->delay_ms = CANCELLED_MS;
	error_set(&exchange->error, RLMD_ERROR_CANCELLED, "it was cancelled when it was recorded");
}

bool recording_find(struct recording *recording, const char *name,
		    const struct llm_request *request, struct exchange *ret, struct rlmd_error *err)
{
	const char *file = take_file(recording, name);
	auto_free char *path = file ? xasprintf("%s/%s", recording->replay_dir, file) : NULL;
	json_auto_t *recorded = file ? read_json(path, FILE_SIZE_MAX, err) : NULL;

	if (!file)
		return scripted_find(recording->script, request, ret) ||
		       miss(recording, name, request, err);
	if (!recorded || !exchange_read(recorded, ret, err))
		return recorded && error_context(err, "%s", path);
	wait_for_cancelled(ret);
	return true;
}

/* --- keeping ----------------------------------------------------------------------------- */

struct recorded_file {
	struct exchange_file exchange;
	struct atomic_file file;
	struct recording *recording; /* lent */
	bool cancelled;
};

/* Its place in the order is that of its end, for then it is used. */
static bool commit(struct exchange_file *exchange, struct rlmd_error *err)
{
	struct recorded_file *recorded = (struct recorded_file *)exchange;
	char last[48] = "\"cancelled\":true}\n";

	if (!recorded->cancelled)
		snprintf(last, sizeof last, "\"order\":%" PRId64 "}\n",
			 recorded->recording->written++);
	return file_write_fd(exchange->fd, text_of(last), err) &&
	       (atomic_file_commit(&recorded->file, false) ||
		error_errno(err, RLMD_ERROR_INPUT, "rename"));
}

static void free_file(struct exchange_file *exchange)
{
	atomic_file_done(&((struct recorded_file *)exchange)->file);
	free(exchange);
}

bool recording_records(const struct recording *recording)
{
	return recording->record_dir;
}

struct exchange_file *recording_keep(struct recording *recording, const char *name,
				     const struct llm_request *request,
				     const struct llm_response *response, bool cancelled,
				     const struct rlmd_error *failure, struct rlmd_error *err)
{
	auto_free char *path = xasprintf("%s/%s", recording->record_dir, name);
	struct recorded_file *recorded;
	struct atomic_file file;

	if (!atomic_file_open(&file, path, 0600)) {
		error_errno(err, RLMD_ERROR_INPUT, "cannot write %s", path);
		return NULL;
	}
	recorded = xcalloc(1, sizeof *recorded);
	recorded->recording = recording;
	recorded->cancelled = cancelled;
	recorded->file = file;
	recorded->exchange = (struct exchange_file){
		.entry = exchange_entry(request, response, failure),
		.keys = recording->keys,
		.fd = file.fd,
		.path = file.path,
		.commit = commit,
		.free = free_file,
	};
	return &recorded->exchange;
}

/* --- values ------------------------------------------------------------------------------ */

static char *value_path(const char *dir, const char *id, int64_t number)
{
	return xasprintf("%s/%s-%lld.json", dir, id, (long long)number);
}

json_t *recording_find_value(const struct recording *recording, const char *id, int64_t number)
{
	const char *dir = recording->replay_dir;
	auto_free char *path = dir ? value_path(dir, id, number) : NULL;

	return path ? read_json(path, VALUE_SIZE_MAX, NULL) : NULL;
}

void recording_keep_value(const struct recording *recording, const char *id, int64_t number,
			  const json_t *value)
{
	const char *dir = recording->record_dir;
	auto_free char *path = dir ? value_path(dir, id, number) : NULL;
	auto_evbuffer struct evbuffer *bytes = buffer_new();
	size_t size;
	char *start;

	if (!path)
		return;
	json_write_line(value, bytes);
	start = (char *)buffer_pullup(bytes, -1);
	size = key_list_redact(recording->keys, start, evbuffer_get_length(bytes));
	file_write(path, text_from(start, size), NULL);
}

/* --- the order of answers ---------------------------------------------------------------- */

/* The first waits for its turn, or for one that is missing. */
static void look(struct recording *recording)
{
	const struct recording_turn *first = TAILQ_FIRST(&recording->turns);

	timer_stop(recording->missing);
	if (!first)
		return;
	if (first->order <= recording->next)
		timer_post(recording->due);
	else
		timer_start(recording->missing, PATIENCE_MS);
}

/* C3: it has left when it hears of it, and the next one's turn is another one of the loop. */
static void on_due(void *owner)
{
	struct recording *recording = owner;
	struct recording_turn *first = TAILQ_FIRST(&recording->turns);

	if (!first || first->order > recording->next)
		return;
	recording->next = first->order == recording->next ? recording->next + 1 : recording->next;
	recording_leave(first);
	first->come(first->owner);
}

static void on_missing(void *owner)
{
	struct recording *recording = owner;

	recording->next = TAILQ_FIRST(&recording->turns)->order;
	look(recording);
}

void recording_wait(struct recording *recording, struct recording_turn *turn)
{
	struct recording_turn *other;

	turn->recording = recording;
	TAILQ_FOREACH (other, &recording->turns, entry)
		if (other->order > turn->order)
			break;
	if (other)
		TAILQ_INSERT_BEFORE(other, turn, entry);
	else
		TAILQ_INSERT_TAIL(&recording->turns, turn, entry);
	look(recording);
}

void recording_leave(struct recording_turn *turn)
{
	struct recording *recording = turn->recording;

	if (!recording)
		return;
	turn->recording = NULL;
	TAILQ_REMOVE(&recording->turns, turn, entry);
	look(recording);
}
