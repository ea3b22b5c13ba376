#include "llm/recording.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "llm/key.h"
#include "llm/replay.h"
#include "llm/told.h"

struct recording {
	struct replay *replay;     /* owned; NULL: providers are asked */
	struct recorder *recorder; /* owned; NULL: off */
	struct told *told;         /* owned */
	struct keys keys;          /* owned: what is replaced */
};

struct recording *recording_new(struct event_base *base, const char *record_dir,
				const char *replay_dir, struct rlmd_error *err)
{
	struct recording *recording = xcalloc(1, sizeof *recording);

	recording->told = told_new(replay_dir, record_dir, &recording->keys);
	if (replay_dir)
		recording->replay = replay_new(base, replay_dir, err);
	if (record_dir && (!replay_dir || recording->replay))
		recording->recorder = recorder_new(record_dir, &recording->keys, err);
	if ((!replay_dir || recording->replay) && (!record_dir || recording->recorder))
		return recording;
	recording_free(recording);
	return NULL;
}

void recording_free(struct recording *recording)
{
	if (!recording)
		return;
	told_free(recording->told);
	recorder_free(recording->recorder);
	replay_free(recording->replay);
	keys_done(&recording->keys);
	free(recording);
}

bool recording_replays(const struct recording *recording)
{
	return recording->replay;
}

bool recording_keeps(const struct recording *recording)
{
	return recording->recorder || recording->replay;
}

void recording_hide(struct recording *recording, const char *key)
{
	keys_add(&recording->keys, key);
}

bool recording_find(struct recording *recording, const struct llm_request *request,
		    struct exchange *ret, struct rlmd_error *err)
{
	return replay_find(recording->replay, request, ret, err);
}

char *recording_name(struct recording *recording, const struct llm_request *request)
{
	return recording->recorder ? recorder_name(recording->recorder, request) : NULL;
}

bool recording_write(struct recording *recording, const char *name,
		     const struct llm_request *request, const struct llm_response *response,
		     bool cancelled, const struct rlmd_error *exchange_error,
		     struct rlmd_error *err)
{
	return recorder_write(recording->recorder, name, request, response, cancelled,
			      exchange_error, err);
}

void recording_cancel(struct recording *recording, const char *name,
		      const struct llm_request *request, const struct llm_usage *usage,
		      int64_t cost)
{
	const struct llm_response used = {
		.usage = *usage, .cost = cost, .cost_known = true, .model = request->model};

	recording_write(recording, name, request, &used, true, NULL, NULL);
}

struct replay_order *recording_order(const struct recording *recording)
{
	return replay_order(recording->replay);
}

struct told *recording_told(const struct recording *recording)
{
	return recording->told;
}
